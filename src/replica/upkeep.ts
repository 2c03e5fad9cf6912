/**
 * What passing time asks of a replica: ticks, deadlines of callers, keep-alives of waits.
 *
 * Owns: the work of a tick. Never: ends a lease; only an entry's stamp does (invariant I8).
 * Called by: replica.ts every TICK_MS.
 */
import { CommandKind, OPERATION_VERSION, PRINCIPAL_CLUSTER } from '../core/locks/command.js';
import { OutcomeCode } from '../core/locks/outcome.js';
import {
  HEARTBEAT_TICKS,
  KEEP_WAITS_MS,
  KEEP_WAITS_PLACES_MAX,
  READ_ROUND_MS_MAX,
  TICK_MS,
} from '../limits.js';
import { ErrorCode } from '../wire/errors.js';
import { writeValue } from '../wire/msgpack-writer.js';
import { OutBuffer } from '../wire/out-buffer.js';
import { closeIfFull, isLogBehind, refuseOverdue } from './batching.js';
import type { Connection } from './connection.js';
import type { PendingBatch } from './pending.js';
import { replyRefusal } from './replies.js';
import { isServing, type ReplicaState } from './state.js';

const US_PER_MS = 1_000;

/** One firing of the tick timer; after a stall raft hears of a few ticks, not of all. */
export function onTick(state: ReplicaState, nowUs: number): void {
  const due = Math.floor((nowUs - state.lastTickUs) / (TICK_MS * US_PER_MS));
  if (due > 0) {
    // More would start an election over a pause in which no message could be read.
    const ticks = Math.min(due, HEARTBEAT_TICKS);
    if (state.raft.leaderId === 0) state.meters.leaderlessUs += due * TICK_MS * US_PER_MS;
    for (let i = 0; i < ticks; i += 1) state.raft.tick();
    state.lastTickUs += due * TICK_MS * US_PER_MS;
  }
  expireCallers(state, nowUs);
  expireReads(state, nowUs);
  keepWaits(state, nowUs);
  if (state.isShuttingDown) handOver(state);
}

/** Callers whose deadline is over: UNKNOWN_OUTCOME if their entry was proposed, else none. */
function expireCallers(state: ReplicaState, nowUs: number): void {
  refuseOverdue(state, nowUs);
  const { pending } = state;
  for (let i = pending.count - 1; i >= 0; i -= 1) {
    const batch = pending.at(i);
    if (batch.earliestUs > nowUs) continue;
    expireBatch(state, batch, nowUs);
    if (batch.earliestUs === Number.POSITIVE_INFINITY) pending.removeAt(i);
  }
}

function expireBatch(state: ReplicaState, batch: PendingBatch, nowUs: number): void {
  batch.earliestUs = Number.POSITIVE_INFINITY;
  for (let i = 0; i < batch.count; i += 1) {
    const connection = batch.connections[i] as Connection | null;
    if (connection === null) continue;
    const deadlineUs = batch.deadlinesUs[i] as number;
    if (deadlineUs > nowUs) {
      batch.earliestUs = Math.min(batch.earliestUs, deadlineUs);
      continue;
    }
    batch.connections[i] = null;
    state.counters.unknown_outcomes += 1;
    const correlation = batch.correlations[i] as number;
    replyRefusal(state, connection, correlation, ErrorCode.UnknownOutcome);
  }
}

function expireReads(state: ReplicaState, nowUs: number): void {
  const { reads } = state;
  if (reads.count === 0) return;
  reads.abortOlder(nowUs - READ_ROUND_MS_MAX * US_PER_MS);
  for (const read of reads.takeUnconfirmed(nowUs)) {
    replyRefusal(state, read.connection, read.correlation, ErrorCode.NoQuorum);
  }
  for (const read of reads.takeLate(nowUs)) {
    replyRefusal(state, read.connection, read.correlation, OutcomeCode.DeadlinePassed);
  }
}

/** Renews the implicit sessions of the callers that this node still holds (I7). */
function keepWaits(state: ReplicaState, nowUs: number): void {
  if (!isServing(state) || isLogBehind(state)) return;
  if (nowUs - state.lastKeptUs < KEEP_WAITS_MS * US_PER_MS) return;
  state.lastKeptUs = nowUs;
  const places = state.attachments.implicitPlaces();
  for (let i = 0; i < places.length; i += KEEP_WAITS_PLACES_MAX) {
    const out = new OutBuffer();
    const some = places.slice(i, i + KEEP_WAITS_PLACES_MAX);
    writeValue(out, [CommandKind.KeepWaits, null, null, null, null, some]);
    state.writer.addOperation(PRINCIPAL_CLUSTER, OPERATION_VERSION, out.bytes, 0, out.length);
    state.open.add(null, 0, Number.POSITIVE_INFINITY);
    closeIfFull(state);
  }
}

/** A node that leaves gives leadership to the most advanced voter, again until it is taken. */
export function handOver(state: ReplicaState): void {
  const { raft } = state;
  if (raft.leaderId !== raft.nodeId || raft.isTransferring) return;
  let target = 0;
  let best = -1;
  raft.forEachProgress((nodeId, matchIndex) => {
    if (matchIndex <= best || !raft.members.voters.includes(nodeId)) return;
    target = nodeId;
    best = matchIndex;
  });
  if (target !== 0) raft.transfer(target);
}
