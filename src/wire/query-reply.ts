/**
 * Encodes the replies to queries: hello, members, attach, locks, check, status.
 *
 * Owns: their fields and the rows in which members, locks, holders and waiters are shown. Never: a
 * lease id; who may read a lock may not therefore release it. The reply to a lookup is in reply.ts,
 * since it repeats a stored one. Used by: replica.
 */
import { OutcomeCode } from '../core/locks/outcome.js';
import type {
  HolderReading,
  LockReading,
  RuleReading,
  WaiterReading,
} from '../core/locks/readings.js';
import type { AuditRow } from './audit.js';
import type { PackValue } from './msgpack-writer.js';
import type { OutBuffer } from './out-buffer.js';
import { encodeFields } from './reply.js';

/** A member as clients are told of it. */
export interface MemberRow {
  readonly nodeId: number;
  /** `host:port` of its client port. */
  readonly address: string;
  readonly role: 'voter' | 'learner';
}

export interface HelloReply {
  /** The protocol version spoken from now on. */
  readonly version: number;
  readonly featureLevel: number;
  readonly nodeId: number;
  /** 0 when this node knows no leader. */
  readonly leaderId: number;
  readonly shardCount: number;
  /** 16 bytes. */
  readonly clusterId: Uint8Array;
  readonly frameBytesMax: number;
  readonly members: readonly MemberRow[];
}

/** How fresh a read is. */
export interface ReadPoint {
  /** Last applied stamp, ms. */
  readonly clusterTime: number;
  /** Last revision and log index that the answer includes. */
  readonly revision: number;
  readonly appliedIndex: number;
  /** A stale read: ms since this node last learnt a commit index; -1 for a linearizable one. */
  readonly ageMs: number;
}

const TEXT_DECODER = new TextDecoder();

function memberRows(members: readonly MemberRow[]): PackValue[] {
  return members.map((member) => [member.nodeId, member.address, member.role]);
}

/** version, feature_level, node_id, leader_id, shard_count, cluster_id, frame_bytes_max, members */
export function encodeHello(out: OutBuffer, correlation: number, hello: HelloReply): void {
  encodeFields(out, correlation, OutcomeCode.Ok, -1, [
    hello.version,
    hello.featureLevel,
    hello.nodeId,
    hello.leaderId,
    hello.shardCount,
    hello.clusterId,
    hello.frameBytesMax,
    memberRows(hello.members),
  ]);
}

/** leader_id, members */
export function encodeMembers(
  out: OutBuffer,
  correlation: number,
  leaderId: number,
  members: readonly MemberRow[],
): void {
  encodeFields(out, correlation, OutcomeCode.Ok, -1, [leaderId, memberRows(members)]);
}

/** No fields. `clusterTime`: last applied stamp, ms. */
export function encodePong(out: OutBuffer, correlation: number, clusterTime: number): void {
  encodeFields(out, correlation, OutcomeCode.Ok, clusterTime, []);
}

/** deadline, ttl_ms, ended. `clusterTime`: last applied stamp, ms. */
export function encodeAttached(
  out: OutBuffer,
  correlation: number,
  clusterTime: number,
  deadline: number,
  ttlMs: number,
  hasEnded: boolean,
): void {
  encodeFields(out, correlation, OutcomeCode.Ok, clusterTime, [deadline, ttlMs, hasEnded]);
}

/** There are no policies at feature level 1: every lock has the strict one. */
const FENCING = 'required';

/** [token, since, deadline, last_renewed, principal, has_session, metadata|nil] */
function holderRow(holder: HolderReading): PackValue {
  return [
    holder.token,
    holder.since,
    holder.deadline,
    holder.renewedAt,
    holder.principal,
    holder.hasSession,
    holder.metadata,
  ];
}

/** [place, since, until, principal, metadata|nil] */
export function waiterRow(waiter: WaiterReading): PackValue {
  return [waiter.place, waiter.since, waiter.until, waiter.principal, waiter.metadata];
}

/** [name, last_revision, holder|nil, waiters, fencing] */
export function lockRow(lock: LockReading): PackValue[] {
  const name = TEXT_DECODER.decode(lock.name);
  const holder = lock.holder === null ? null : holderRow(lock.holder);
  return [name, lock.revision, holder, lock.waiters, FENCING];
}

/** [name, is_prefix, revision, since, principal, asked_by|nil, reason|nil] */
export function ruleRow(rule: RuleReading): PackValue {
  const textOf = (bytes: Uint8Array | null): PackValue => bytes && TEXT_DECODER.decode(bytes);
  const { isPrefix, revision, since, principal } = rule;
  const said = [textOf(rule.actor), textOf(rule.reason)];
  return [textOf(rule.name), isPrefix, revision, since, principal, ...said];
}

/**
 * lock|nil (a lock row with the queue after it), revision, applied_index, age_ms|nil, and the rule
 * where one disables the lock
 */
export function encodeLock(
  out: OutBuffer,
  correlation: number,
  lock: LockReading | null,
  point: ReadPoint,
  rule: RuleReading | null = null,
): void {
  const row = lock === null ? null : [...lockRow(lock), lock.queue.map(waiterRow)];
  const fields = [row, ...pointFields(point), ...(rule === null ? [] : [ruleRow(rule)])];
  encodeFields(out, correlation, OutcomeCode.Ok, point.clusterTime, fields);
}

function pointFields(point: ReadPoint): PackValue[] {
  return [point.revision, point.appliedIndex, point.ageMs < 0 ? null : point.ageMs];
}

/** locks, next_cursor|nil, revision, applied_index, age_ms|nil. `cursor`: null on the last page. */
export function encodeLockPage(
  out: OutBuffer,
  correlation: number,
  locks: readonly LockReading[],
  cursor: Uint8Array | null,
  point: ReadPoint,
): void {
  const rows = locks.map(lockRow);
  const next = cursor === null ? null : TEXT_DECODER.decode(cursor);
  const fields = [rows, next, ...pointFields(point)];
  encodeFields(out, correlation, OutcomeCode.Ok, point.clusterTime, fields);
}

/** verdict, token. `token`: that of the current holder, 0 when nobody holds. */
export function encodeCheck(
  out: OutBuffer,
  correlation: number,
  clusterTime: number,
  isCurrent: boolean,
  token: number,
): void {
  const fields = [isCurrent ? 'current' : 'stale', token];
  encodeFields(out, correlation, OutcomeCode.Ok, clusterTime, fields);
}

/** What a node says of itself; every key is in docs/PROTOCOL.md. */
export interface StatusReply {
  readonly nodeId: number;
  readonly role: 'follower' | 'pre-candidate' | 'candidate' | 'leader';
  readonly term: number;
  /** 0 when this node knows no leader. */
  readonly leaderId: number;
  readonly appliedIndex: number;
  readonly commitIndex: number;
  readonly revision: number;
  readonly clusterTime: number;
  /** 32 hexadecimal digits, of the state at `appliedIndex`. */
  readonly digest: string;
  readonly featureLevel: number;
  readonly members: readonly MemberRow[];
  /** Counters and gauges by name. */
  readonly counters: { readonly [name: string]: number };
}

/** One map. */
export function encodeStatus(out: OutBuffer, correlation: number, status: StatusReply): void {
  const map = {
    node_id: status.nodeId,
    role: status.role,
    term: status.term,
    leader_id: status.leaderId,
    applied_index: status.appliedIndex,
    commit_index: status.commitIndex,
    revision: status.revision,
    cluster_time: status.clusterTime,
    digest: status.digest,
    feature_level: status.featureLevel,
    members: memberRows(status.members),
    counters: status.counters,
  };
  encodeFields(out, correlation, OutcomeCode.Ok, status.clusterTime, [map]);
}

/** A page of the audit stream. */
export interface AuditPage {
  readonly rows: readonly AuditRow[];
  /** The first revision that the page does not cover. */
  readonly next: number;
  /** The first revision that this node can show. */
  readonly oldest: number;
  /** The last one that it has applied. */
  readonly revision: number;
}

/** events, next_revision, oldest_revision, revision, cluster_id */
export function encodeAuditPage(
  out: OutBuffer,
  correlation: number,
  clusterTime: number,
  page: AuditPage,
  clusterId: Uint8Array,
): void {
  const fields = [page.rows, page.next, page.oldest, page.revision, clusterId];
  encodeFields(out, correlation, OutcomeCode.Ok, clusterTime, fields);
}
