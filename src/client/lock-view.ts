/**
 * What a reader is shown: locks, holders, queues, and what became of a request.
 *
 * Owns: the public shapes of get, list and lookup, and their reading from reply fields. Never: a
 * lease id; reading a lock gives nobody the power to release it. Used by: reads.ts, programs.
 */

import type { Reply } from '../wire/response.js';
import { ErrorCode, type HoldfastError } from './errors.js';
import { bytesAt, errorOf, listAt, numberAt, textAt } from './reply.js';

/** Who holds a lock. Times are cluster time in ms. */
export interface HolderView {
  readonly token: number;
  readonly sinceMs: number;
  readonly deadlineMs: number;
  readonly lastRenewedMs: number;
  readonly principal: number;
  readonly inSession: boolean;
  readonly metadata: Uint8Array | null;
}

/** Who waits for a lock. Times are cluster time in ms. */
export interface WaiterView {
  /** The place: revision at which it was queued; smaller is earlier. */
  readonly place: number;
  readonly sinceMs: number;
  readonly untilMs: number;
  readonly principal: number;
  readonly metadata: Uint8Array | null;
}

/** One lock in a list. */
export interface LockSummary {
  readonly name: string;
  /** Revision of the last grant or end; 0 when the lock has no record. */
  readonly revision: number;
  /** null when nobody holds. */
  readonly holder: HolderView | null;
  /** Waiters in the queue. */
  readonly waiters: number;
  /** Whether guards accept this lock's tokens. */
  readonly fencing: string;
  /** Cluster time of the state that was read, ms: compare the other times with it alone. */
  readonly clusterTimeMs: number;
}

/** Why no acquire of a lock is taken. */
export interface DisabledView {
  /** The lock, or the first bytes of its name. */
  readonly name: string;
  readonly isPrefix: boolean;
  /** Revision and cluster time since which. */
  readonly revision: number;
  readonly sinceMs: number;
  readonly principal: number;
  /** Who asked for it, as they named themselves, and why. */
  readonly actor: string;
  readonly reason: string;
}

/** One lock with the first of its queue. */
export interface LockView extends LockSummary {
  readonly queue: readonly WaiterView[];
  /** The oldest rule that disables it; null: acquires are taken. */
  readonly disabled: DisabledView | null;
  /** Revision of the state that was read. */
  readonly stateRevision: number;
  /** Stale reads: ms since the node last learnt what is committed. null: linearizable. */
  readonly ageMs: number | null;
}

/** What became of a request id. `unknown`: never seen, or a free-form id past its retention. */
export type LookupView =
  | {
      readonly state: 'done';
      readonly error: HoldfastError | null;
      readonly grant: GrantView | null;
    }
  | { readonly state: 'queued'; readonly place: number }
  | { readonly state: 'unknown' | 'forgotten' };

/** A grant as lookup shows it. */
export interface GrantView {
  readonly leaseId: Uint8Array;
  readonly token: number;
  readonly revision: number;
  readonly deadlineMs: number;
  readonly ttlMs: number;
}

const DECODER = new TextDecoder();

/** A name, which may come as text or as bytes. */
export function nameAt(fields: readonly unknown[], index: number): string {
  const value = fields[index];
  return typeof value === 'string' ? value : DECODER.decode(bytesAt(fields, index));
}

function optionalBytesAt(fields: readonly unknown[], index: number): Uint8Array | null {
  return fields[index] === null ? null : bytesAt(fields, index);
}

function holderAt(fields: readonly unknown[], index: number): HolderView | null {
  if (fields[index] === null) return null;
  const row = listAt(fields, index);
  return {
    token: numberAt(row, 0),
    sinceMs: numberAt(row, 1),
    deadlineMs: numberAt(row, 2),
    lastRenewedMs: numberAt(row, 3),
    principal: numberAt(row, 4),
    inSession: row[5] === true,
    metadata: optionalBytesAt(row, 6),
  };
}

/** Reads name, revision, holder, waiters, fencing. */
export function summaryOf(row: readonly unknown[], clusterTimeMs: number): LockSummary {
  return {
    clusterTimeMs,
    name: nameAt(row, 0),
    revision: numberAt(row, 1),
    holder: holderAt(row, 2),
    waiters: numberAt(row, 3),
    fencing: textAt(row, 4),
  };
}

function waiterOf(row: readonly unknown[]): WaiterView {
  return {
    place: numberAt(row, 0),
    sinceMs: numberAt(row, 1),
    untilMs: numberAt(row, 2),
    principal: numberAt(row, 3),
    metadata: optionalBytesAt(row, 4),
  };
}

function disabledAt(fields: readonly unknown[], index: number): DisabledView | null {
  if (fields[index] == null) return null;
  const row = listAt(fields, index);
  return {
    name: textAt(row, 0),
    isPrefix: row[1] === true,
    revision: numberAt(row, 2),
    sinceMs: numberAt(row, 3),
    principal: numberAt(row, 4),
    actor: textAt(row, 5),
    reason: textAt(row, 6),
  };
}

const UNKNOWN_LOCK = { revision: 0, holder: null, waiters: 0, fencing: 'required', queue: [] };

/** Reads the answer to get: a row with its queue or nil, revision, applied index, age, rule. */
export function lockViewOf(name: string, reply: Reply): LockView {
  const { fields, clusterTimeMs } = reply;
  const stateRevision = numberAt(fields, 1);
  const ageMs = fields[3] === null ? null : numberAt(fields, 3);
  const rest = { stateRevision, ageMs, disabled: disabledAt(fields, 4) };
  if (fields[0] === null) return { ...UNKNOWN_LOCK, name, clusterTimeMs, ...rest };
  const row = listAt(fields, 0);
  const queue = listAt(row, 5);
  const waiters = queue.map((_, index) => waiterOf(listAt(queue, index)));
  return { ...summaryOf(row, clusterTimeMs), queue: waiters, ...rest };
}

/** Fields of a stored reply before those of its code: code, cluster time, replay. */
const STORED_HEAD = 3;
/** Fields of a stored refusal before its details: message, retry time. */
const REFUSAL_HEAD = 2;

/** Reads the answer to lookup: state, and the stored reply for done and queued. */
export function lookupViewOf(fields: readonly unknown[]): LookupView {
  const state = textAt(fields, 0);
  if (state === 'queued') {
    const stored = listAt(fields, 1);
    return { state, place: numberAt(stored, STORED_HEAD) };
  }
  if (state === 'done') return doneOf(listAt(fields, 1));
  return { state: state === 'forgotten' ? 'forgotten' : 'unknown' };
}

function doneOf(stored: readonly unknown[]): LookupView {
  const code = numberAt(stored, 0);
  const rest = stored.slice(STORED_HEAD);
  if (code < ErrorCode.LockBusy) return { state: 'done', error: null, grant: grantViewOf(rest) };
  const reply: Reply = {
    correlation: 0,
    code,
    clusterTimeMs: numberAt(stored, 1),
    isReplay: true,
    fields: rest.slice(REFUSAL_HEAD),
    message: '',
    retryAfterMs: -1,
  };
  return { state: 'done', error: errorOf(reply, false), grant: null };
}

/** null for a request that was not an acquire: only a grant starts with a lease id and a token. */
function grantViewOf(fields: readonly unknown[]): GrantView | null {
  if (!(fields[0] instanceof Uint8Array) || typeof fields[1] !== 'number') return null;
  return {
    leaseId: bytesAt(fields, 0),
    token: numberAt(fields, 1),
    revision: numberAt(fields, 2),
    deadlineMs: numberAt(fields, 3),
    ttlMs: numberAt(fields, 4),
  };
}
