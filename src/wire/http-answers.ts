/**
 * Turns replies of the binary protocol into the JSON of the HTTP interface.
 *
 * Owns: which fields answer which route. Never: a status line or a socket.
 * Used by: io/http.
 */
import { auditPageOf } from './audit.js';
import { ErrorCode } from './errors.js';
import { codeName, hexOf, type Json, leaseEndName } from './event-json.js';
import { explanationOf } from './explain.js';
import { countAt, listAt, lockJson, lockRowOf, ruleJson, textOrBytes } from './lock-json.js';
import type { Reply } from './response.js';

/** What the request named: its path parameter and its key. */
export interface Asked {
  /** Path parameter: lock name, lease id, session id or request id. */
  readonly subject: string;
  /** Lease id of proclaim and resign. */
  readonly leaseId: string;
  /** Node id of a transfer, 0 for none. */
  readonly nodeId: number;
  readonly key: string;
}

/** The bytes of hexadecimal digits, or null when the text is not 32 of them. */
export function bytesOfHex(text: string): Uint8Array | null {
  if (!/^[0-9a-fA-F]{32}$/.test(text)) return null;
  return Uint8Array.from({ length: 16 }, (_, at) =>
    Number.parseInt(text.slice(2 * at, 2 * at + 2), 16),
  );
}

function termOf(reply: Reply, expiresAt: number, ttlMs: number): Json {
  const now = Math.max(0, reply.clusterTimeMs);
  return { ttl_ms: ttlMs, expires_at: expiresAt, expires_in_ms: Math.max(0, expiresAt - now) };
}

/** lease, token, revision, deadline, ttl_ms from `at` on. */
function grantOf(reply: Reply, fields: readonly unknown[], at: number): Json {
  return {
    lease_id: hexOf(fields[at]),
    fencing_token: countAt(fields, at + 1),
    revision: countAt(fields, at + 2),
    ...termOf(reply, countAt(fields, at + 3), countAt(fields, at + 4)),
  };
}

function readPointOf(reply: Reply, at: number): Json {
  const age = reply.fields[at + 2];
  return {
    revision: countAt(reply.fields, at),
    applied_index: countAt(reply.fields, at + 1),
    cluster_time: reply.clusterTimeMs,
    ...(typeof age === 'number' ? { age_ms: age } : {}),
  };
}

function lockOf(reply: Reply, asked: Asked): Json {
  const row = reply.fields[0];
  const point = readPointOf(reply, 1);
  const lock = lockJson(Array.isArray(row) ? row : null, reply.clusterTimeMs);
  const disabled = ruleJson(reply.fields[4]);
  if (lock === null) {
    const free = { last_revision: null, holder: null, waiters: 0, fencing: 'required', queue: [] };
    return { name: asked.subject, ...free, disabled, ...point };
  }
  return { ...lock, disabled, ...point };
}

function pageOf(reply: Reply): Json {
  const now = reply.clusterTimeMs;
  return {
    locks: listAt(reply.fields, 0).map((row) => lockRowOf(row, now)),
    next_cursor: typeof reply.fields[1] === 'string' ? reply.fields[1] : null,
    ...readPointOf(reply, 2),
  };
}

function electionOf(reply: Reply, asked: Asked): Json {
  const row = reply.fields[0];
  const now = reply.clusterTimeMs;
  const holder: unknown = Array.isArray(row) ? row[2] : null;
  return {
    name: asked.subject,
    leader: leaderOf(holder, now),
    candidates: Array.isArray(row) ? countAt(row, 3) : 0,
    revision: countAt(reply.fields, 1),
    cluster_time: now,
  };
}

/** Who leads an election, from the holder of its lock. */
export function leaderOf(holder: unknown, now: number): Json | null {
  if (!Array.isArray(holder)) return null;
  const expiresAt = countAt(holder, 2);
  return {
    ...textOrBytes('value', holder[6]),
    fencing_token: countAt(holder, 0),
    since: countAt(holder, 1),
    expires_at: expiresAt,
    expires_in_ms: Math.max(0, expiresAt - now),
  };
}

function lookupOf(reply: Reply, asked: Asked): Json {
  const state = String(reply.fields[0]);
  const head = { request_id: asked.subject, state, cluster_time: reply.clusterTimeMs };
  const stored = reply.fields[1];
  if (!Array.isArray(stored)) return head;
  const code = countAt(stored, 0);
  const named = { ...head, code: codeName(code) };
  if (code === ErrorCode.Queued) return { ...named, place: countAt(stored, 3) };
  if (code !== ErrorCode.Ok) return named;
  if (stored.length === 8) return { ...named, ...grantOf(reply, stored, 3) };
  if (stored.length === 9) return { ...named, ...forcedOf(stored, 3) };
  if (stored.length !== 7) return named;
  const term = termOf(reply, countAt(stored, 5), countAt(stored, 6));
  return { ...named, session_id: hexOf(stored[3]), secret: hexOf(stored[4]), ...term };
}

function cancellationOf(reply: Reply, asked: Asked): Json {
  const cause = countAt(reply.fields, 0);
  return {
    request_id: asked.subject,
    cancelled: cause === ErrorCode.Cancelled,
    code: codeName(cause),
    ...(reply.fields.length > 1 ? grantOf(reply, reply.fields, 1) : {}),
    cluster_time: reply.clusterTimeMs,
  };
}

function renewalOf(reply: Reply, leaseId: string): Json {
  const { fields } = reply;
  const term = termOf(reply, countAt(fields, 0), countAt(fields, 1));
  return {
    lease_id: leaseId,
    fencing_token: countAt(fields, 2),
    ...term,
    cluster_time: reply.clusterTimeMs,
  };
}

function releaseOf(reply: Reply, leaseId: string): Json {
  return {
    lease_id: leaseId,
    released: true,
    revision: countAt(reply.fields, 0),
    cluster_time: reply.clusterTimeMs,
    replay: reply.isReplay,
  };
}

/** revision, token, since, deadline, principal, metadata from `at` on. */
function forcedOf(fields: readonly unknown[], at: number): Json {
  return {
    barrier_token: countAt(fields, at),
    fencing_token: countAt(fields, at + 1),
    since: countAt(fields, at + 2),
    expires_at: countAt(fields, at + 3),
    principal: countAt(fields, at + 4),
    ...metadataOf(fields[at + 5]),
  };
}

/** Empty metadata is none, as in a get. */
function metadataOf(value: unknown): Json {
  const isNone = value instanceof Uint8Array && value.length === 0;
  return textOrBytes('metadata', isNone ? null : value);
}

/** The JSON of a reply with code Ok, by the id of its route. */
export function answerOf(routeId: string, reply: Reply, asked: Asked): Json {
  const { fields } = reply;
  const time = { cluster_time: reply.clusterTimeMs };
  switch (routeId) {
    case 'acquire':
    case 'campaign': {
      const named = { replay: reply.isReplay, request_id: asked.key };
      return { name: asked.subject, ...grantOf(reply, fields, 0), ...time, ...named };
    }
    case 'get':
      return lockOf(reply, asked);
    case 'list':
      return pageOf(reply);
    case 'check': {
      const verdict = { verdict: fields[0], fencing_token: countAt(fields, 1) };
      return { name: asked.subject, ...verdict, ...time };
    }
    case 'renew':
      return renewalOf(reply, asked.subject);
    case 'proclaim':
      return renewalOf(reply, asked.leaseId);
    case 'release':
      return releaseOf(reply, asked.subject);
    case 'resign':
      return releaseOf(reply, asked.leaseId);
    case 'session-open': {
      const ids = { session_id: hexOf(fields[0]), secret: hexOf(fields[1]) };
      const term = termOf(reply, countAt(fields, 2), countAt(fields, 3));
      return { ...ids, ...term, ...time, replay: reply.isReplay, request_id: asked.key };
    }
    case 'session-renew': {
      const term = termOf(reply, countAt(fields, 0), countAt(fields, 1));
      return { session_id: asked.subject, ...term, ...time };
    }
    case 'session-close':
      return { session_id: asked.subject, closed: true, ...time, replay: reply.isReplay };
    case 'lookup':
      return lookupOf(reply, asked);
    case 'cancel':
      return cancellationOf(reply, asked);
    case 'election':
      return electionOf(reply, asked);
    case 'audit':
      return auditPageOf(reply);
    case 'explain':
      return explanationOf(reply, asked.subject);
    case 'force-release': {
      const named = { replay: reply.isReplay, request_id: asked.key };
      return { name: asked.subject, ...forcedOf(fields, 0), ...time, ...named };
    }
    case 'disable':
    case 'enable':
    case 'expire-session':
    case 'report-refusal': {
      const named = { replay: reply.isReplay, request_id: asked.key };
      return { revision: countAt(fields, 0), ...time, ...named };
    }
    case 'transfer':
      return { node_id: asked.nodeId, asked: true };
    default:
      throw new Error(`http: no answer for route ${routeId}`);
  }
}

/** What a refusal says beside code, message, retryable and outcome. */
export function detailOf(reply: Reply): Json {
  const { fields, code } = reply;
  const detail: { [name: string]: unknown } = {};
  if (reply.retryAfterMs >= 0) detail['retry_after_ms'] = reply.retryAfterMs;
  if (reply.clusterTimeMs >= 0) detail['cluster_time'] = reply.clusterTimeMs;
  if (code === ErrorCode.LockBusy || (code === ErrorCode.Conflict && fields.length > 0)) {
    detail['holder'] = busyHolderOf(fields);
  }
  if (code === ErrorCode.Disabled) detail['revision'] = countAt(fields, 0);
  if (code === ErrorCode.StaleLease) {
    detail['cause'] = leaseEndName(countAt(fields, 0));
    detail['ended_revision'] = countAt(fields, 1);
  }
  if (code === ErrorCode.NotLeader) detail['leader'] = leaderAddressOf(fields);
  if (code === ErrorCode.Compacted) {
    detail['oldest_revision'] = countAt(fields, 0);
    detail['revision'] = countAt(fields, 1);
  }
  if (code === ErrorCode.BadRequest || code === ErrorCode.Limit) {
    detail['field'] = typeof fields[0] === 'string' ? fields[0] : '';
  }
  return detail;
}

function leaderAddressOf(fields: readonly unknown[]): Json | null {
  const nodeId = countAt(fields, 0);
  return nodeId === 0 ? null : { node_id: nodeId, address: String(fields[1]) };
}

function busyHolderOf(fields: readonly unknown[]): Json | null {
  if (countAt(fields, 0) === 0) return null;
  return {
    fencing_token: countAt(fields, 0),
    since: countAt(fields, 1),
    expires_at: countAt(fields, 2),
    principal: countAt(fields, 3),
    ...textOrBytes('metadata', fields[4]),
  };
}
