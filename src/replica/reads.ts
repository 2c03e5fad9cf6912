/**
 * Answers reads from the applied state, once their read point is applied (thesis §6.4).
 *
 * Owns: one ReadIndex round a turn for all reads of the turn, from any node. Never: a lease on
 * leadership, a wall clock. Called by: turn, queries (stale reads), upkeep (deadlines).
 */
import { CommandKind, RequestKind } from '../core/locks/command.js';
import { OutcomeCode } from '../core/locks/outcome.js';
import type { SessionReading } from '../core/locks/lock-machine.js';
import type {
  HolderReading,
  LockReading,
  LookupState,
  WaiterReading,
} from '../core/locks/readings.js';
import { GET_WAITERS_MAX } from '../limits.js';
import type { PackValue } from '../wire/msgpack-writer.js';
import { encodeLookup } from '../wire/reply.js';
import type { PendingRead } from './pending-reads.js';
import { markDirty, onAnswered, replyFields, replyRefusal } from './replies.js';
import type { ReplicaState } from './state.js';

const US_PER_MS = 1_000;

/** Gives the gathered reads a round, when there is a leader to confirm it. */
export function beginReadRound(state: ReplicaState): void {
  const { reads, raft } = state;
  if (reads.gathered.length === 0 || raft.leaderId === 0) return;
  state.counters.readRounds += 1;
  raft.readIndex(reads.begin(state.nowUs));
}

/** Answers every read whose read point is applied. */
export function answerReads(state: ReplicaState): void {
  const ready = state.reads.takeReady(state.appliedIndex);
  for (let i = 0; i < ready.length; i += 1) answerRead(state, ready[i] as PendingRead);
}

/** Answers one read from the applied state, or postpones it until its revision has come. */
export function answerRead(state: ReplicaState, read: PendingRead): void {
  if (read.connection.closed) return;
  state.counters.reads += 1;
  const { query } = read;
  switch (query.kind) {
    case CommandKind.Get:
      if (query.atLeastRevision > state.machine.revision) state.reads.postpone(read);
      else answerGet(state, read, query.name);
      return;
    case CommandKind.List:
      answerList(state, read);
      return;
    case CommandKind.Lookup:
      answerLookup(state, read);
      return;
    case CommandKind.Check:
      answerCheck(state, read, query.name, query.token);
      return;
    case CommandKind.SessionAttach:
      answerAttach(state, read);
      return;
    default:
      throw new Error(`read: no reader for command ${query.kind}`);
  }
}

/** Ms since this node last learnt a commit index: how old what it shows may be. */
function ageMs(state: ReplicaState): number {
  const nowUs = state.options.clock.nowUs();
  return Math.max(0, Math.round((nowUs - state.lastCommitUs) / US_PER_MS));
}

function answerGet(state: ReplicaState, read: PendingRead, name: Uint8Array): void {
  const { machine } = state;
  const lock = machine.get(name, 0, name.length, GET_WAITERS_MAX);
  const row: PackValue[] =
    lock === null ? [name, 0, null, 0, []] : [...lockRow(lock), lock.queue.map(waiterRow)];
  replyFields(state, read.connection, read.correlation, [
    ...row,
    machine.revision,
    ageMs(state),
  ]);
}

function answerList(state: ReplicaState, read: PendingRead): void {
  const { machine } = state;
  const { query } = read;
  const page = machine.list(query.name, query.cursor, query.limit);
  const last = page.locks[page.locks.length - 1];
  replyFields(state, read.connection, read.correlation, [
    page.locks.map(lockRow),
    page.more && last !== undefined ? last.name : null,
    machine.revision,
    ageMs(state),
  ]);
}

function lockRow(lock: LockReading): PackValue[] {
  return [lock.name, lock.revision, holderRow(lock.holder), lock.waiters];
}

function holderRow(holder: HolderReading | null): PackValue {
  if (holder === null) return null;
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

function waiterRow(waiter: WaiterReading): PackValue {
  return [waiter.place, waiter.since, waiter.until, waiter.principal, waiter.metadata];
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
  connection.endItem();
  markDirty(state, connection);
  onAnswered(state, connection);
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

function answerCheck(
  state: ReplicaState,
  read: PendingRead,
  name: Uint8Array,
  token: number,
): void {
  const lock = state.machine.get(name, 0, name.length, 0);
  const current = lock === null || lock.holder === null ? 0 : lock.holder.token;
  const verdict = current !== 0 && token === current ? 'current' : 'stale';
  replyFields(state, read.connection, read.correlation, [verdict, current]);
}

/** Binds the session to the connection: newest wins, nothing is replicated. */
function answerAttach(state: ReplicaState, read: PendingRead): void {
  const { machine, attachments } = state;
  const { connection, correlation, query } = read;
  const reading = findSession(state, read);
  const isOwner =
    reading !== null &&
    machine.isSecretOf(
      reading.slot,
      query.secret0,
      query.secret1,
      query.secret2,
      query.secret3,
    );
  if (!isOwner) {
    replyRefusal(state, connection, correlation, OutcomeCode.SessionExpired);
    return;
  }
  attachments.attach(reading.slot, machine.sessionNumberAt(reading.slot), connection);
  replyFields(state, connection, correlation, [
    reading.deadline,
    reading.ttlMs,
    !reading.isLive,
  ]);
}
