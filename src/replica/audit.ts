/**
 * Pages of the audit stream: committed events with what caused them, in the order of revisions.
 *
 * Owns: pages that were asked for and not given yet. What is in memory, event and entry both, is
 * read here, a bounded amount a turn; what is older comes from the history on disk. Never: waits
 * for a reader, keeps a place for one: a reader says from where, and who is late costs nothing but
 * its own lateness. Called by: queries (admit), turn, replica (onHistory).
 */
import { AUDIT_READS_MAX, AUDIT_VISITS_MAX } from '../limits.js';
import type { AuditRow } from '../wire/audit.js';
import { ErrorCode } from '../wire/errors.js';
import type { Query } from '../wire/query.js';
import { encodeAuditPage } from '../wire/query-reply.js';
import { encodeCompacted } from '../wire/watch.js';
import { AuditRead, startsWith } from './audit-reads.js';
import type { Connection } from './connection.js';
import type { HistoryPage } from './ports.js';
import { finishReply, replyRefusal } from './replies.js';
import type { ReplicaState } from './state.js';

const US_PER_MS = 1_000;
const RETRY_MS = 50;

/** Files a request for a page, or refuses it. */
export function admitAudit(
  state: ReplicaState,
  connection: Connection,
  correlation: number,
  query: Query,
  deadlineUs: number,
): void {
  const { audits, events, options } = state;
  if (audits.count >= AUDIT_READS_MAX) {
    replyRefusal(state, connection, correlation, ErrorCode.Overloaded, null, RETRY_MS);
    return;
  }
  const from = query.revision < 0 ? events.next : query.revision;
  const nowUs = options.clock.nowUs();
  const waitUntilUs = Math.min(deadlineUs, nowUs + query.waitMs * US_PER_MS);
  const read = new AuditRead(connection, correlation, query, from, waitUntilUs, deadlineUs);
  audits.waiting.push(read);
  options.turn.soon();
}

/** The first revision that this node can show. */
export function oldestAudited(state: ReplicaState): number {
  const { events, options } = state;
  const history = options.history ?? null;
  return history === null ? events.oldest : Math.min(events.oldest, history.oldestRevision);
}

/** A turn's share of the pages that are owed. */
export function answerAudits(state: ReplicaState): void {
  const { audits, options } = state;
  if (audits.waiting.length === 0) return;
  const round = audits.waiting;
  audits.waiting = [];
  let budget = AUDIT_VISITS_MAX;
  for (let at = 0; at < round.length; at += 1) {
    const read = round[at] as AuditRead;
    if (read.connection.closed) continue;
    if (budget <= 0) audits.waiting.push(read);
    else budget -= serve(state, read);
  }
  if (budget <= 0) options.turn.soon();
}

/** Gives one page, files it anew, or hands it to the history. Returns the events looked at. */
function serve(state: ReplicaState, read: AuditRead): number {
  const { audits, events, machine } = state;
  if (read.next >= events.next) {
    if (state.nowUs >= read.waitUntilUs) give(state, read, []);
    else audits.waiting.push(read);
    return 1;
  }
  if (!isInMemory(state, read.next)) {
    readHistory(state, read, machine.revision);
    return 1;
  }
  const rows: AuditRow[] = [];
  const from = read.next;
  while (read.next < events.next && rows.length < read.limit) {
    if (read.next - from >= AUDIT_VISITS_MAX || !isInMemory(state, read.next)) break;
    const row = rowAt(state, read.next, read.prefix);
    read.next += 1;
    if (row !== null) rows.push(row);
  }
  if (rows.length > 0 || state.nowUs >= read.waitUntilUs) give(state, read, rows);
  else audits.waiting.push(read);
  return read.next - from + rows.length;
}

/** True when both the event and its entry are in memory. */
function isInMemory(state: ReplicaState, revision: number): boolean {
  const { events, raft } = state;
  return revision >= events.oldest && raft.entryAt(events.indexOf(revision)) !== undefined;
}

function rowAt(state: ReplicaState, revision: number, prefix: Uint8Array): AuditRow | null {
  return startsWith(state.events.nameOf(revision), prefix) ? rowOf(state, revision) : null;
}

/** The row of one event, null when it or its entry has left memory. */
export function auditedRow(state: ReplicaState, revision: number): AuditRow | null {
  const isKnown = revision < state.events.next && isInMemory(state, revision);
  return isKnown ? rowOf(state, revision) : null;
}

function rowOf(state: ReplicaState, revision: number): AuditRow {
  const { events, raft, audits } = state;
  const name = events.nameOf(revision);
  const index = events.indexOf(revision);
  audits.rows.open(index, raft.entryAt(index)?.data as Uint8Array);
  const event = {
    revision,
    kind: events.kindOf(revision),
    token: events.tokenOf(revision),
    place: events.placeOf(revision),
    cause: events.causeOf(revision),
    principal: events.principalOf(revision),
    position: events.positionOf(revision),
  };
  return audits.rows.row(event, name);
}

function readHistory(state: ReplicaState, read: AuditRead, revision: number): void {
  const { audits, options } = state;
  const history = options.history ?? null;
  if (history === null || read.next < history.oldestRevision) {
    refuse(state, read);
    return;
  }
  audits.lastReadId += 1;
  audits.reading.set(audits.lastReadId, read);
  history.read({
    readId: audits.lastReadId,
    from: read.next,
    prefix: read.prefix,
    limit: read.limit,
    appliedIndex: state.appliedIndex,
    revision,
  });
}

/** The history has an answer. */
export function onHistory(state: ReplicaState, readId: number, page: HistoryPage | null): void {
  const { audits, options } = state;
  const read = audits.reading.get(readId);
  audits.reading.delete(readId);
  if (read === undefined || read.connection.closed) return;
  if (page === null) {
    refuse(state, read);
    return;
  }
  read.next = page.next;
  const isLate = options.clock.nowUs() >= read.deadlineUs;
  if (page.rows.length > 0 || isLate) give(state, read, page.rows);
  else audits.waiting.push(read);
}

function give(state: ReplicaState, read: AuditRead, rows: readonly AuditRow[]): void {
  const { connection, correlation } = read;
  const { machine, options, counters } = state;
  const oldest = oldestAudited(state);
  const page = { rows, next: read.next, oldest, revision: machine.revision };
  const out = connection.beginItem();
  encodeAuditPage(out, correlation, machine.now, page, options.clusterId);
  finishReply(state, connection);
  counters.audit_events_told += rows.length;
}

/** What is wanted is no longer kept here. */
function refuse(state: ReplicaState, read: AuditRead): void {
  const { connection, correlation } = read;
  const { machine, counters } = state;
  counters.audits_compacted += 1;
  const out = connection.beginItem();
  encodeCompacted(out, correlation, null, oldestAudited(state), machine.revision);
  finishReply(state, connection);
}
