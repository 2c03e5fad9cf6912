/**
 * Closing the open batch: one entry = one batch = one proposal.
 *
 * Owns: when a batch is closed, its stamp and its random bits, its callers until they are known by
 * (index, term), and the refusal of what is not proposed. Never: a disk or a socket.
 * Called by: admission (full), turn (due), upkeep (overdue).
 */

import { assert } from '../collections/assert.js';
import { OutcomeCode } from '../core/locks/outcome.js';
import { EntryKind } from '../core/raft/message.js';
import {
  BATCH_BYTES_MAX,
  BATCH_OPERATIONS_MAX,
  BATCHES_IN_FLIGHT_MAX,
  LOG_APPENDS_PAUSE,
  PULSE_MS,
} from '../limits.js';
import { ErrorCode } from '../wire/errors.js';
import type { Connection } from './connection.js';
import { replyNotLeader, replyRefusal } from './replies.js';
import type { ReplicaState } from './state.js';

const US_PER_MS = 1_000;
/** A pulse is due a little before PULSE_MS, since turns come in ticks. */
const PULSE_EARLY_MS = 20;

/** True when so much waits for a majority, or for this node's disk, that no more is proposed. */
export function isLogBehind(state: ReplicaState): boolean {
  const inFlight = state.pending.countOfTerm(state.raft.term);
  return inFlight >= BATCHES_IN_FLIGHT_MAX || isDiskBehind(state);
}

/** True when the own disk has so many appends to do that it is given no more entries. */
export function isDiskBehind(state: ReplicaState): boolean {
  return state.lastAppendId - state.durableAppendId >= LOG_APPENDS_PAUSE;
}

/** Closes the open batch at once when it has reached its bound. */
export function closeIfFull(state: ReplicaState): void {
  const { writer } = state;
  if (writer.count < BATCH_OPERATIONS_MAX && writer.length < BATCH_BYTES_MAX) return;
  if (!isLogBehind(state)) closeBatch(state, state.options.clock.nowUs());
}

/** Turn of a leader: closes what is due. Asks for another turn when something will be. */
export function closeWhenDue(state: ReplicaState): void {
  const { raft, open, pacer, nowUs } = state;
  if (raft.needsNoOp) {
    propose(state, EntryKind.NoOp);
    return;
  }
  if (!raft.isProposing || isLogBehind(state)) return;
  if (open.count === 0) {
    if (isPulseDue(state)) closeBatch(state, nowUs);
    return;
  }
  if (open.openedUs === 0) open.openedUs = nowUs;
  const waitUs = pacer.waitUs(nowUs, open.count);
  if (waitUs > 0) state.options.turn.after(waitUs);
  else closeBatch(state, nowUs);
}

/** Takes out of the open batch whose deadline is over: it was not proposed, nothing happened. */
export function refuseOverdue(state: ReplicaState, nowUs: number): void {
  const { open, writer } = state;
  if (open.earliestUs > nowUs) return;
  for (let i = 0; i < open.count; i += 1) {
    const connection = open.connections[i] as Connection | null;
    if (connection === null || (open.deadlinesUs[i] as number) > nowUs) continue;
    replyRefusal(state, connection, open.correlations[i] as number, OutcomeCode.DeadlinePassed);
  }
  writer.retain((position) => (open.deadlinesUs[position] as number) > nowUs);
  open.dropOverdue(nowUs);
}

/** This node leads no more: its open batch was never proposed, its callers may try elsewhere. */
export function refuseOpenBatch(state: ReplicaState): void {
  const { open, writer, raft } = state;
  for (let i = 0; i < open.count; i += 1) {
    const connection = open.connections[i] as Connection | null;
    if (connection === null) continue;
    const correlation = open.correlations[i] as number;
    if (raft.leaderId !== 0 && raft.leaderId !== raft.nodeId) {
      replyNotLeader(state, connection, correlation);
    } else {
      replyRefusal(state, connection, correlation, ErrorCode.NoQuorum);
    }
  }
  open.clear();
  writer.open();
}

/** An idle leader lets cluster time pass while anything waits for it (I8). */
function isPulseDue(state: ReplicaState): boolean {
  const idleUs = state.nowUs - state.lastProposedUs;
  return state.machine.hasDeadlines && idleUs >= (PULSE_MS - PULSE_EARLY_MS) * US_PER_MS;
}

function closeBatch(state: ReplicaState, nowUs: number): void {
  refuseOverdue(state, nowUs);
  state.pacer.onClosed(nowUs, state.open.count, state.pending.operations);
  propose(state, EntryKind.Batch);
}

function propose(state: ReplicaState, kind: EntryKind): void {
  const { raft, writer, options, entropy } = state;
  options.entropy.fill16(entropy, 0);
  const operations = writer.count;
  assert(operations === state.open.count, 'I5: every operation of a batch has its caller');
  const stampMs = state.clusterClock.stamp();
  const data = writer.close(stampMs, options.featureLevel, entropy);
  const index = raft.propose(kind, data);
  assert(index > 0, 'propose: this node leads');
  state.lastProposedUs = state.nowUs;
  state.counters.proposed_entries += 1;
  state.counters.proposed_operations += operations;
  if (operations === 0) return;
  state.open.index = index;
  state.open.term = raft.term;
  if (state.open.openedUs === 0) state.open.openedUs = state.nowUs;
  state.pending.push(state.open);
  state.open = state.pending.take();
}
