/**
 * Answers reads from the applied state, once their read point is applied (thesis §6.4).
 *
 * Owns: one ReadIndex round a turn for all reads of the turn, from any node. Never: a lease on
 * leadership, a wall clock. Called by: turn.
 */
import { CommandKind, RequestKind } from '../core/locks/command.js';
import type { SessionReading } from '../core/locks/lock-machine.js';
import { OutcomeCode } from '../core/locks/outcome.js';
import type { LookupState } from '../core/locks/readings.js';
import {
  CONNECTION_OUT_BYTES_MAX,
  GET_WAITERS_MAX,
  LIST_VISIT_BYTES,
  LIST_VISITS_MAX,
  READ_BYTES_LEAST,
  READ_BYTES_PER_TURN,
} from '../limits.js';
import { ErrorCode } from '../wire/errors.js';
import {
  encodeAttached,
  encodeCheck,
  encodeLock,
  encodeLockPage,
  encodeMembers,
  encodeStatus,
  type ReadPoint,
} from '../wire/query-reply.js';
import { encodeLookup } from '../wire/reply.js';
import { answerExplain } from './explain.js';
import type { PendingRead } from './pending-reads.js';
import { finishReply, replyRefusal } from './replies.js';
import type { ReplicaState } from './state.js';
import { memberRows, readStatus } from './status.js';

const US_PER_MS = 1_000;
const RETRY_MS = 1_000;

/** Gives the gathered reads a round, when there is a leader to confirm it. */
export function beginReadRound(state: ReplicaState): void {
  const { reads, raft } = state;
  if (reads.gathered.length === 0 || reads.isFull || raft.leaderId === 0) return;
  state.counters.read_rounds += 1;
  raft.readIndex(reads.begin(state.nowUs));
}

/**
 * Answers the reads whose read point is applied, a bounded amount of work a turn: one connection
 * that asks for a great many lists must not cost the others their turns or the node its leadership.
 */
export function answerReads(state: ReplicaState): void {
  const { reads, machine, options } = state;
  reads.promote(state.appliedIndex, machine.revision);
  let budget = READ_BYTES_PER_TURN;
  while (budget > 0) {
    const read = reads.shiftReady();
    if (read === undefined) return;
    budget -= READ_BYTES_LEAST + answerBounded(state, read);
  }
  if (reads.readyCount > 0) options.turn.soon();
}

/** Answers one read unless its caller does not take what it has. Returns the bytes it cost. */
function answerBounded(state: ReplicaState, read: PendingRead): number {
  const { connection, correlation } = read;
  if (connection.closed) return 0;
  const before = connection.out.length;
  if (before + connection.transport.backlogBytes > CONNECTION_OUT_BYTES_MAX) {
    const message = 'read the replies first';
    replyRefusal(state, connection, correlation, ErrorCode.Overloaded, message, RETRY_MS);
    return 0;
  }
  state.counters.reads += 1;
  if (read.query.kind === CommandKind.List) return answerList(state, read);
  answerRead(state, read);
  return connection.out.length - before;
}

/** Answers one read from the applied state, or postpones it until its revision has come. */
function answerRead(state: ReplicaState, read: PendingRead): void {
  switch (read.query.kind) {
    case CommandKind.Get:
      if (read.query.atLeastRevision > state.machine.revision) state.reads.postpone(read);
      else answerGet(state, read);
      return;
    case CommandKind.Lookup:
      answerLookup(state, read);
      return;
    case CommandKind.Explain:
      answerExplain(state, read);
      return;
    case CommandKind.Check:
      answerCheck(state, read);
      return;
    case CommandKind.SessionAttach:
      answerAttach(state, read);
      return;
    case CommandKind.Status:
      answerStatus(state, read);
      return;
    case CommandKind.Members:
      answerMembers(state, read);
      return;
    default:
      throw new Error(`read: no reader for command ${read.query.kind}`);
  }
}

function answerStatus(state: ReplicaState, read: PendingRead): void {
  const { connection, correlation } = read;
  encodeStatus(connection.beginItem(), correlation, readStatus(state));
  finishReply(state, connection);
}

function answerMembers(state: ReplicaState, read: PendingRead): void {
  const { connection, correlation } = read;
  encodeMembers(connection.beginItem(), correlation, state.raft.leaderId, memberRows(state));
  finishReply(state, connection);
}

function readPoint(state: ReplicaState, isStale: boolean): ReadPoint {
  const { machine } = state;
  const sinceUs = state.options.clock.nowUs() - state.lastCommitUs;
  return {
    clusterTime: machine.now,
    revision: machine.revision,
    appliedIndex: state.appliedIndex,
    ageMs: isStale ? Math.max(0, Math.round(sinceUs / US_PER_MS)) : -1,
  };
}

function answerGet(state: ReplicaState, read: PendingRead): void {
  const { connection, correlation, query } = read;
  const { name } = query;
  const lock = state.machine.get(name, 0, name.length, GET_WAITERS_MAX);
  const rule = state.machine.readRule(name, 0, name.length);
  encodeLock(connection.beginItem(), correlation, lock, readPoint(state, query.stale), rule);
  finishReply(state, connection);
}

/** Returns what the visited names cost, in the currency of the turn's budget. */
function answerList(state: ReplicaState, read: PendingRead): number {
  const { connection, correlation, query } = read;
  const page = state.machine.list(query.name, query.cursor, query.limit, LIST_VISITS_MAX);
  const point = readPoint(state, query.stale);
  encodeLockPage(connection.beginItem(), correlation, page.locks, page.cursor, point);
  finishReply(state, connection);
  return page.visits * LIST_VISIT_BYTES;
}

function answerLookup(state: ReplicaState, read: PendingRead): void {
  const { machine, outcome } = state;
  const { connection, correlation, query } = read;
  let found: LookupState = 'unknown';
  if (query.requestKind === RequestKind.Free) {
    found = machine.lookupFree(connection.principal, query.request, outcome);
  } else {
    const reading = findSession(state, read);
    if (reading === null) {
      replyRefusal(state, connection, correlation, OutcomeCode.SessionExpired);
      return;
    }
    found = machine.lookupSequence(reading.slot, query.sequence, outcome);
  }
  const stored = found === 'done' || found === 'queued' ? outcome : null;
  if (found === 'queued') outcome.code = OutcomeCode.Queued;
  encodeLookup(connection.beginItem(), correlation, machine.now, found, stored);
  finishReply(state, connection);
}

function findSession(state: ReplicaState, read: PendingRead): SessionReading | null {
  const { query, connection } = read;
  return state.machine.findSession(
    connection.principal,
    query.session0,
    query.session1,
    query.session2,
    query.session3,
  );
}

function answerCheck(state: ReplicaState, read: PendingRead): void {
  const { machine } = state;
  const { connection, correlation, query } = read;
  const lock = machine.get(query.name, 0, query.name.length, 0);
  const current = lock === null || lock.holder === null ? 0 : lock.holder.token;
  const isCurrent = current !== 0 && query.token === current;
  encodeCheck(connection.beginItem(), correlation, machine.now, isCurrent, current);
  finishReply(state, connection);
}

/** Binds the session to the connection: newest wins, nothing is replicated. */
function answerAttach(state: ReplicaState, read: PendingRead): void {
  const { machine, attachments } = state;
  const { connection, correlation, query } = read;
  const reading = findSession(state, read);
  const isOwner =
    reading !== null &&
    machine.isSecretOf(reading.slot, query.secret0, query.secret1, query.secret2, query.secret3);
  if (!isOwner) {
    replyRefusal(state, connection, correlation, OutcomeCode.SessionExpired);
    return;
  }
  attachments.attach(reading.slot, machine.sessionNumberAt(reading.slot), connection);
  const { deadline, ttlMs, isLive } = reading;
  encodeAttached(connection.beginItem(), correlation, machine.now, deadline, ttlMs, !isLive);
  finishReply(state, connection);
}
