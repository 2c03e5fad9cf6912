/**
 * When a snapshot is made, and whether it counts: the main thread's share of compaction.
 *
 * Owns: the trigger, the record of the live digest at the draft's index, and the comparison. A
 * draft comes from the disk alone; where it differs from memory one of them is wrong, so it is
 * discarded, the log is kept whole, and the operator is told. Never: reads or writes a snapshot.
 * Called by: turn.ts, replica.ts (SnapshotEvents).
 */
import { assert } from '../collections/assert.js';
import { Phase } from './compaction-state.js';
import type { SnapshotDraft } from './ports.js';
import type { ReplicaState } from './state.js';

/** Changed records of each kind that one turn hashes, and turns after which the rest is done. */
const SETTLED_PER_TURN = 2_048;
const SETTLING_TURNS_MAX = 64;

/** End of a turn: begins a snapshot of what is applied when enough log has come. */
export function compactWhenDue(state: ReplicaState): void {
  const { compaction, options } = state;
  const snapshots = options.snapshots ?? null;
  if (compaction.phase > Phase.Settling || snapshots === null) return;
  if (compaction.phase === Phase.Idle) {
    const isDue = compaction.isDue || compaction.isWanted(state.appliedIndex);
    if (!isDue || snapshots.isLent) return;
    compaction.phase = Phase.Settling;
    compaction.settlingTurns = 0;
  }
  compaction.settlingTurns += 1;
  const isSettled = state.machine.settleDigest(SETTLED_PER_TURN);
  if (!isSettled && compaction.settlingTurns < SETTLING_TURNS_MAX) {
    options.turn.soon();
    return;
  }
  compaction.phase = Phase.Making;
  compaction.draftIndex = state.appliedIndex;
  compaction.liveDigest = state.machine.digest();
  compaction.restartCount();
  // Whoever waits asks again: what fails is not tried again at once.
  compaction.wantedIndex = 0;
  // What is applied was handed to the log before: once sealed, it is on this node's disk.
  snapshots.make(state.appliedIndex);
}

export function onDraft(state: ReplicaState, draft: SnapshotDraft | null): void {
  const { compaction, options, counters } = state;
  const snapshots = options.snapshots ?? null;
  assert(compaction.phase === Phase.Making && snapshots !== null, 'draft: one was asked for');
  if (draft === null) {
    counters.snapshots_failed += 1;
    compaction.phase = Phase.Idle;
    return;
  }
  assert(draft.index === compaction.draftIndex, 'draft: of the index that was asked for');
  compaction.phase = Phase.Ending;
  if (draft.digest === compaction.liveDigest) {
    compaction.onSnapshot(draft.index, draft.bytes);
    counters.snapshots_taken += 1;
    snapshots.keep(draft.index, Math.max(1, draft.index - compaction.policy.tailEntries + 1));
  } else {
    counters.snapshots_discarded += 1;
    snapshots.discard(draft.index, compaction.liveDigest);
  }
}

export function onKept(state: ReplicaState, index: number, firstIndex: number): void {
  const { compaction, raft } = state;
  assert(compaction.phase === Phase.Ending && index === compaction.draftIndex, 'kept: as asked');
  assert(firstIndex <= index + 1, 'kept: no gap between snapshot and log');
  compaction.phase = Phase.Idle;
  raft.compact(firstIndex - 1);
}

export function onDiscarded(state: ReplicaState): void {
  state.compaction.phase = Phase.Idle;
}
