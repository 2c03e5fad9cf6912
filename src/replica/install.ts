/**
 * A node that is too far behind for entries continues from the leader's snapshot (Raft §7).
 *
 * Owns: the order of an install: the snapshot is durable and its machine built before anything here
 * changes; then, within one turn, raft's log starts behind it, the machine is replaced, and whoever
 * waited for a skipped entry is answered from the stored results (I5, I6). Never: bytes of a
 * snapshot. Called by: turn.ts (offers), replica.ts (onFetched).
 */

import { assert } from '../collections/assert.js';
import { OutcomeCode } from '../core/locks/outcome.js';
import type { Entry } from '../core/raft/message.js';
import { ErrorCode } from '../wire/errors.js';
import { Phase } from './compaction-state.js';
import type { Connection } from './connection.js';
import type { PendingBatch } from './pending.js';
import type { FetchedSnapshot } from './ports.js';
import { decodeLogged } from './replay.js';
import { replyLostWait, replyNotLeader, replyOutcome, replyRefusal } from './replies.js';
import type { ReplicaState } from './state.js';

/** The leader offers a snapshot of at least `index`. While a job runs it passes: it comes again. */
export function onOffer(state: ReplicaState, nodeId: number, index: number): void {
  const { compaction, options } = state;
  const snapshots = options.snapshots ?? null;
  if (snapshots === null || compaction.phase !== Phase.Idle) return;
  compaction.phase = Phase.Fetching;
  snapshots.fetch(nodeId, index);
}

export function onFetched(state: ReplicaState, snapshot: FetchedSnapshot | null): void {
  const { compaction, counters } = state;
  compaction.phase = Phase.Idle;
  if (snapshot === null) {
    counters.snapshot_fetches_failed += 1;
    return;
  }
  compaction.onSnapshot(snapshot.index, snapshot.bytes);
  install(state, snapshot);
}

/** A batch whose entry is skipped, and the entry if this node still has it in memory. */
interface SkippedBatch {
  readonly batch: PendingBatch;
  readonly entry: Entry | null;
}

function install(state: ReplicaState, snapshot: FetchedSnapshot): void {
  const { raft, attachments } = state;
  const { index, machine } = snapshot;
  const skipped = findSkipped(state, index);
  // Entries that came meanwhile may cover it: then they are applied as always.
  // Nothing changes the members, so those of the snapshot are those in force.
  if (!raft.installSnapshot(index, snapshot.term, raft.members)) return;
  state.counters.snapshots_installed += 1;
  state.machine = machine;
  // What lies between is not known here: watches that need it are told COMPACTED (I9).
  state.events.begin(machine.revision + 1);
  state.appliedIndex = index;
  state.isApplyReading = false;
  state.compaction.restartCount();
  for (const { batch, entry } of skipped) answerSkipped(state, batch, entry);
  for (let batch = state.pending.takeUpTo(index); batch !== null; ) {
    state.pending.give(batch);
    batch = state.pending.takeUpTo(index);
  }
  for (const { connection, correlation } of attachments.replaceState((place) =>
    machine.hasWait(place),
  )) {
    connection.waiting -= 1;
    replyLostWait(state, connection, correlation);
  }
  // Sessions are attached to nothing any more: clients look for the leader and attach again.
  for (const connection of state.connections) {
    if (connection.greeted) replyNotLeader(state, connection, 0);
  }
}

function findSkipped(state: ReplicaState, index: number): SkippedBatch[] {
  const { raft, pending } = state;
  const skipped: SkippedBatch[] = [];
  for (let at = 0; at < pending.count; at += 1) {
    const batch = pending.at(at);
    if (batch.index > index) continue;
    const entry = raft.entryAt(batch.index);
    skipped.push({ batch, entry: entry?.term === batch.term ? entry : null });
  }
  return skipped;
}

/** Whether the entry was committed is not known here; a stored result says that its effect was. */
function answerSkipped(state: ReplicaState, batch: PendingBatch, entry: Entry | null): void {
  const { entryReader, command } = state;
  const isKnown = entry !== null && entryReader.open(entry.data);
  for (let position = 0; position < batch.count; position += 1) {
    if (isKnown) {
      assert(entryReader.next(), 'I5: every operation of a batch has its caller');
      decodeLogged(entryReader, entry.data, command);
    }
    const connection = batch.connections[position] as Connection | null;
    if (connection === null || connection.closed) continue;
    answerCaller(state, connection, batch.correlations[position] as number, isKnown);
  }
}

function answerCaller(
  state: ReplicaState,
  connection: Connection,
  correlation: number,
  isKnown: boolean,
): void {
  const { machine, command, outcome, attachments } = state;
  if (!isKnown || !machine.recall(command, outcome)) {
    state.counters.unknown_outcomes += 1;
    replyRefusal(state, connection, correlation, ErrorCode.UnknownOutcome);
    return;
  }
  if (outcome.code === OutcomeCode.Queued) {
    attachments.listen(outcome.revision, connection, correlation, !command.hasSession);
    connection.waiting += 1;
  }
  replyOutcome(state, connection, correlation, outcome);
}
