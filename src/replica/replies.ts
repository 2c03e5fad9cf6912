/**
 * Writing answers into connections, so that each dirty connection is written once a turn.
 *
 * Owns: the list of dirty connections and the count of unanswered requests. Never: what an answer
 * says. Used by: admission, apply, reads, upkeep.
 */
import type { Outcome } from '../core/locks/outcome.js';
import { CONNECTION_REQUESTS_MAX } from '../limits.js';
import { ErrorCode } from '../wire/errors.js';
import { encodeNotLeader, encodeOutcome, encodeRefusal } from '../wire/reply.js';
import type { Connection } from './connection.js';
import { leaderAddress, type ReplicaState } from './state.js';

/** Puts the connection on the list of those to flush at the end of the turn. */
export function markDirty(state: ReplicaState, connection: Connection): void {
  if (connection.dirty) return;
  connection.dirty = true;
  state.dirty.push(connection);
}

/** A request of this connection has its final answer. */
export function onAnswered(state: ReplicaState, connection: Connection): void {
  connection.unanswered -= 1;
  state.counters.replies += 1;
  if (connection.readingPaused && connection.unanswered < CONNECTION_REQUESTS_MAX / 2) {
    connection.readingPaused = false;
    connection.transport.resumeReading();
  }
}

/** Sends what the machine decided. A queued acquire is decided too: its wait is counted apart. */
export function replyOutcome(
  state: ReplicaState,
  connection: Connection,
  correlation: number,
  outcome: Outcome,
): void {
  if (connection.closed) return;
  encodeOutcome(connection.beginItem(), correlation, outcome);
  connection.endItem();
  markDirty(state, connection);
  onAnswered(state, connection);
}

/** Sends the final result of a wait whose acquire was answered Queued before. */
export function replyCompletion(
  state: ReplicaState,
  connection: Connection,
  correlation: number,
  outcome: Outcome,
): void {
  if (connection.closed) return;
  encodeOutcome(connection.beginItem(), correlation, outcome);
  connection.endItem();
  markDirty(state, connection);
  state.counters.replies += 1;
}

/** Sends a refusal that this node decided; final. */
export function replyRefusal(
  state: ReplicaState,
  connection: Connection,
  correlation: number,
  code: number,
  message: string | null = null,
  retryAfterMs = -1,
  field: string | null = null,
): void {
  if (connection.closed) return;
  const detail = field === null ? [] : [field];
  encodeRefusal(connection.beginItem(), correlation, code, message, retryAfterMs, detail);
  connection.endItem();
  markDirty(state, connection);
  state.counters.refusals += 1;
  state.meters.onRefused(code);
  if (correlation !== 0) onAnswered(state, connection);
}

/** Sends NOT_LEADER with the leader this node knows; `correlation` 0 is a notice to all. */
export function replyNotLeader(
  state: ReplicaState,
  connection: Connection,
  correlation: number,
): void {
  if (connection.closed) return;
  const { leaderId } = state.raft;
  encodeNotLeader(connection.beginItem(), correlation, leaderId, leaderAddress(state));
  connection.endItem();
  markDirty(state, connection);
  state.counters.refusals += 1;
  state.meters.onRefused(ErrorCode.NotLeader);
  if (correlation !== 0) onAnswered(state, connection);
}

/** Tells a queued acquire, which was answered before, that what became of its wait is not known. */
export function replyLostWait(
  state: ReplicaState,
  connection: Connection,
  correlation: number,
): void {
  if (connection.closed) return;
  encodeRefusal(connection.beginItem(), correlation, ErrorCode.UnknownOutcome, null, -1, []);
  connection.endItem();
  markDirty(state, connection);
  state.counters.refusals += 1;
}

/** A final reply has been appended to the connection's open frame (beginItem). */
export function finishReply(state: ReplicaState, connection: Connection): void {
  connection.endItem();
  markDirty(state, connection);
  onAnswered(state, connection);
}

/** End of turn: one write for each connection that has something to be told. */
export function flushConnections(state: ReplicaState): void {
  const { dirty } = state;
  for (let i = 0; i < dirty.length; i += 1) {
    const connection = dirty[i] as Connection;
    connection.dirty = false;
    if (!connection.closed) connection.transport.flush();
  }
  dirty.length = 0;
}
