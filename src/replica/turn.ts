/**
 * The turn: feed raft, carry out its effects, apply, answer. One after the other, never nested.
 *
 * Owns: the order. Nothing leaves before what it promises is durable: votes and acknowledgements
 * are held until the log says so. Called by: replica.ts, from TurnPort.
 */
import { assert } from '../collections/assert.js';
import { Role } from '../core/raft/effects.js';
import type { Message } from '../core/raft/message.js';
import { APPEND_BYTES_MAX, LOG_WINDOW_BYTES, LOG_WINDOW_ENTRIES } from '../limits.js';
import { stampOf } from '../wire/entry.js';
import { applyCommitted } from './apply.js';
import { answerAudits } from './audit.js';
import { closeWhenDue, refuseOpenBatch } from './batching.js';
import { compactWhenDue } from './compaction.js';
import { onOffer } from './install.js';
import { answerReads, beginReadRound } from './reads.js';
import { flushConnections, replyNotLeader } from './replies.js';
import type { HeldMessages, ReplicaState } from './state.js';
import { tellWatches } from './watching.js';

/** Runs one turn at `nowUs`. */
export function runTurn(state: ReplicaState): void {
  const { options, raft, clusterClock } = state;
  state.nowUs = options.clock.nowUs();
  if (raft.role === Role.Leader) clusterClock.advance(state.nowUs);
  followRole(state);
  closeWhenDue(state);
  beginReadRound(state);
  carryOutEffects(state);
  noteCommit(state);
  applyCommitted(state);
  compactWhenDue(state);
  answerReads(state);
  tellWatches(state);
  answerAudits(state);
  raft.trimWindow(state.appliedIndex, LOG_WINDOW_ENTRIES, LOG_WINDOW_BYTES);
  flushConnections(state);
  options.peers.flush();
}

/**
 * Starts or stops to lead when raft has since the last turn. The term counts, not the role alone: a
 * node may have lost and won leadership between two turns, and another leader's stamps with it.
 */
function followRole(state: ReplicaState): void {
  const { raft } = state;
  const ledTerm = raft.role === Role.Leader ? raft.term : 0;
  if (ledTerm === state.ledTerm) return;
  if (state.ledTerm !== 0) stopLeading(state);
  if (ledTerm !== 0) startLeading(state);
  state.ledTerm = ledTerm;
}

function startLeading(state: ReplicaState): void {
  const { raft, clusterClock } = state;
  // The clock of a new leader goes on from its own log, from nothing else (I8).
  const last = raft.entryAt(raft.lastIndex);
  // Without an entry behind it, the snapshot is the end of the log, and its stamp the last one.
  assert(
    last !== undefined || raft.lastIndex === state.appliedIndex,
    'I8: the last entry is in memory',
  );
  clusterClock.start(last === undefined ? state.machine.now : stampOf(last.data), state.nowUs);
  state.counters.elections += 1;
}

function stopLeading(state: ReplicaState): void {
  state.counters.step_downs += 1;
  refuseOpenBatch(state);
  for (const connection of state.connections) {
    if (connection.greeted) replyNotLeader(state, connection, 0);
  }
}

/** A leader learns a commit index when it moves; for followers see replica.ts. */
function noteCommit(state: ReplicaState): void {
  const { commitIndex } = state.raft;
  if (commitIndex === state.lastCommitIndex) return;
  state.lastCommitUs = state.nowUs;
  state.lastCommitIndex = commitIndex;
}

function carryOutEffects(state: ReplicaState): void {
  const { raft, options } = state;
  const { effects } = raft;
  for (let i = 0; i < effects.messages.length; i += 1) {
    options.peers.send(effects.messages[i] as Message);
  }
  if (effects.hasAppend) handToLog(state);
  if (effects.messagesWhenDurable.length > 0) {
    if (state.lastAppendId > state.durableAppendId) {
      const messages = effects.messagesWhenDurable.slice();
      state.held.push({ appendId: state.lastAppendId, messages });
    } else {
      sendAll(state, effects.messagesWhenDurable);
    }
  }
  for (let i = 0; i < effects.logReads.length; i += 1) {
    const wish = effects.logReads[i] as { peer: number; fromIndex: number; toIndex: number };
    state.lastReadId += 1;
    state.logReads.set(state.lastReadId, wish.peer);
    options.log.read(state.lastReadId, wish.fromIndex, wish.toIndex, APPEND_BYTES_MAX);
  }
  if (effects.snapshotIndex !== 0) onOffer(state, effects.snapshotFrom, effects.snapshotIndex);
  for (let i = 0; i < effects.readStates.length; i += 1) {
    const read = effects.readStates[i] as { context: number; index: number };
    state.reads.confirm(read.context, read.index);
  }
  for (let i = 0; i < effects.readsAborted.length; i += 1) {
    state.reads.abort(effects.readsAborted[i] as number);
  }
  effects.clear();
}

function handToLog(state: ReplicaState): void {
  const { raft, options, counters } = state;
  const { effects } = raft;
  state.lastAppendId = raft.takeAppend();
  counters.appends += 1;
  state.meters.onOrdered(state.lastAppendId, state.nowUs);
  options.log.append({
    appendId: state.lastAppendId,
    resetTo: effects.resetTo,
    truncateFrom: effects.truncateFrom,
    entries: effects.entries.slice(),
    hardState: effects.hardState,
    commitIndex: raft.commitIndex,
  });
}

/** Everything up to this append is on disk: what was held for it may leave. */
export function onLogDurable(state: ReplicaState, appendId: number): void {
  state.durableAppendId = appendId;
  state.meters.onDurable(appendId, state.options.clock.nowUs());
  state.raft.onAppended(appendId);
  while (state.held.length > 0) {
    const first = state.held[0] as HeldMessages;
    if (first.appendId > appendId) break;
    state.held.shift();
    release(state, first.messages);
  }
}

function sendAll(state: ReplicaState, messages: readonly Message[]): void {
  for (let i = 0; i < messages.length; i += 1) state.options.peers.send(messages[i] as Message);
}

function release(state: ReplicaState, messages: readonly Message[]): void {
  const { raft, options } = state;
  for (let i = 0; i < messages.length; i += 1) {
    const message = messages[i] as Message;
    // The own vote is a message to oneself that has waited for the disk like any other.
    if (message.to === raft.nodeId) raft.step(message);
    else options.peers.send(message);
  }
}
