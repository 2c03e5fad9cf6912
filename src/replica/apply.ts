/**
 * Committed entries into the lock machine, in order, and their outcomes to whoever waits (I5).
 *
 * Owns: the applied index and the matching of outcomes to callers by (index, term). Never: decides
 * an outcome. An entry of another term at a pending index proves that the pending one can never
 * commit: its callers are told NOT_LEADER, outcome none. Called by: turn, and when a read arrives.
 */
import { CommandKind } from '../core/locks/command.js';
import { OutcomeCode } from '../core/locks/outcome.js';
import type { Entry } from '../core/raft/message.js';
import { APPEND_BYTES_MAX, APPLY_OPERATIONS_MAX } from '../limits.js';
import type { Listener } from './attachments.js';
import type { Connection } from './connection.js';
import type { PendingBatch } from './pending.js';
import { beginEntry, decodeLogged } from './replay.js';
import { replyCompletion, replyNotLeader, replyOutcome } from './replies.js';
import { APPLY_READ, type ReplicaState } from './state.js';

/** Applies what is committed and in memory, a bounded number of operations a turn. */
export function applyCommitted(state: ReplicaState): void {
  const { raft, options } = state;
  let operations = 0;
  while (state.appliedIndex < raft.commitIndex) {
    if (operations >= APPLY_OPERATIONS_MAX) {
      options.turn.soon();
      return;
    }
    const entry = raft.entryAt(state.appliedIndex + 1);
    if (entry === undefined) {
      readForApply(state);
      return;
    }
    operations += 1 + applyEntry(state, entry);
  }
}

/** Memory no longer holds the next entry: the log thread brings a run of them. */
function readForApply(state: ReplicaState): void {
  if (state.isApplyReading) return;
  state.isApplyReading = true;
  state.lastReadId += 1;
  state.logReads.set(state.lastReadId, APPLY_READ);
  const from = state.appliedIndex + 1;
  state.options.log.read(state.lastReadId, from, state.raft.commitIndex, APPEND_BYTES_MAX);
}

/** The run has come: committed entries never change, so they are applied as they are. */
export function applyRead(state: ReplicaState, entries: readonly Entry[]): void {
  state.isApplyReading = false;
  for (let i = 0; i < entries.length; i += 1) {
    const entry = entries[i] as Entry;
    if (entry.index === state.appliedIndex + 1) applyEntry(state, entry);
  }
}

/** Applies one committed entry. Returns how many operations it had. */
function applyEntry(state: ReplicaState, entry: Entry): number {
  const { machine, entryReader, counters } = state;
  const callers = takeCallers(state, entry);
  beginEntry(machine, entryReader, entry.index, entry.data);
  let told = tellCompletions(state, 0);
  let position = 0;
  while (entryReader.next()) {
    applyOperation(state, entry, callers, position);
    if (machine.completions.count > told) told = tellCompletions(state, told);
    position += 1;
  }
  machine.endEntry();
  if (machine.events.count > 0) {
    state.events.record(machine);
    state.meters.onEvents(machine, state.events);
  }
  const tookUs = callers === null ? -1_000 : Math.max(0, state.nowUs - callers.openedUs);
  state.meters.onEntry(tookUs / 1_000);
  if (callers !== null) state.pending.give(callers);
  state.appliedIndex = entry.index;
  state.compaction.onApplied(entry.data.length);
  counters.applied_entries += 1;
  counters.applied_operations += position;
  return position;
}

function applyOperation(
  state: ReplicaState,
  entry: Entry,
  callers: PendingBatch | null,
  position: number,
): void {
  const { machine, entryReader, command, outcome } = state;
  decodeLogged(entryReader, entry.data, command);
  machine.apply(command, outcome);
  state.meters.onApplied(command.kind, outcome.code);
  if (outcome.replay) state.counters.duplicates += 1;
  else if (command.kind === CommandKind.ReportRefusal) countRefusals(state);
  if (callers === null) return;
  const connection = callers.connections[position] as Connection | null;
  if (connection === null || connection.closed) return;
  const correlation = callers.correlations[position] as number;
  if (outcome.code === OutcomeCode.Queued) {
    const isImplicit = !command.hasSession;
    state.attachments.listen(outcome.revision, connection, correlation, isImplicit);
    connection.waiting += 1;
  } else if (command.kind === CommandKind.SessionOpen && outcome.code === OutcomeCode.Ok) {
    attachOpened(state, connection);
  }
  replyOutcome(state, connection, correlation, outcome);
}

/** A guard's report, which counts once however often it is heard. */
function countRefusals({ meters, command, outcome }: ReplicaState): void {
  if (outcome.code === OutcomeCode.Ok) meters.fencingRefusals += command.refusals;
}

/** Who opens a session speaks for it at once. */
function attachOpened(state: ReplicaState, connection: Connection): void {
  const { machine, outcome, attachments } = state;
  const slot = machine.sessionSlot(outcome.id0, outcome.id1, outcome.id2, outcome.id3);
  if (slot < 0) return;
  attachments.attach(slot, machine.sessionNumberAt(slot), connection);
}

/**
 * The callers of this very entry. Every other batch at or below its index was cut out of the log:
 * what is applied there is another's, so it can never commit, and its callers are told so (I5).
 */
function takeCallers(state: ReplicaState, entry: Entry): PendingBatch | null {
  let own: PendingBatch | null = null;
  let batch = state.pending.takeUpTo(entry.index);
  while (batch !== null) {
    if (batch.index === entry.index && batch.term === entry.term) {
      own = batch;
      batch = state.pending.takeUpTo(entry.index);
      continue;
    }
    for (let i = 0; i < batch.count; i += 1) {
      const connection = batch.connections[i] as Connection | null;
      if (connection !== null) replyNotLeader(state, connection, batch.correlations[i] as number);
    }
    state.pending.give(batch);
    batch = state.pending.takeUpTo(entry.index);
  }
  return own;
}

/** Waits that ended: their callers hear the final result. Returns how many have been told. */
function tellCompletions(state: ReplicaState, from: number): number {
  const { completions } = state.machine;
  for (let i = from; i < completions.count; i += 1) {
    const completion = completions.at(i);
    const listeners = state.attachments.takeListeners(completion.place);
    if (listeners === undefined) continue;
    for (let j = 0; j < listeners.length; j += 1) {
      const listener = listeners[j] as Listener;
      listener.connection.waiting -= 1;
      replyCompletion(state, listener.connection, listener.correlation, completion.outcome);
    }
  }
  return completions.count;
}
