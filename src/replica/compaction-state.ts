/**
 * Where a replica stands between two snapshots: how much log came since, and which job runs.
 *
 * Owns: the counts and the phase. One job at a time, so that a compaction never races an install
 * nor either of them another of its kind. Never: a job; compaction.ts and install.ts begin and end
 * them. Used by: state.ts.
 */
import { LOG_TAIL_ENTRIES, SNAPSHOT_ENTRIES, SNAPSHOT_LOG_BYTES } from '../limits.js';

/** Idle · digest being brought up to date · draft being made · draft being judged · fetching. */
export const Phase = { Idle: 0, Settling: 1, Making: 2, Ending: 3, Fetching: 4 } as const;
export type Phase = (typeof Phase)[keyof typeof Phase];

export interface CompactionPolicy {
  /** Entries, or bytes of entries, applied since the last snapshot after which one is made. */
  readonly entries: number;
  readonly logBytes: number;
  /** Entries before a snapshot that stay in the log. */
  readonly tailEntries: number;
}

export const DEFAULT_POLICY: CompactionPolicy = {
  entries: SNAPSHOT_ENTRIES,
  logBytes: SNAPSHOT_LOG_BYTES,
  tailEntries: LOG_TAIL_ENTRIES,
};

export class Compaction {
  phase: Phase = Phase.Idle;
  /** Index of the newest snapshot that counts, 0 for none. */
  snapshotIndex = 0;
  /** Of the draft that is made: its index, and the live state's digest there. */
  draftIndex = 0;
  liveDigest = '';
  /** A backup waits for a snapshot of this index or later; 0: none does. */
  wantedIndex = 0;
  /** Turns spent in Settling. */
  settlingTurns = 0;
  private snapshotBytes = 0;
  private entriesSince = 0;
  private bytesSince = 0;

  constructor(readonly policy: CompactionPolicy) {}

  /** An entry of `bytes` was applied. */
  onApplied(bytes: number): void {
    this.entriesSince += 1;
    this.bytesSince += bytes;
  }

  /** The snapshot at `index` counts. */
  onSnapshot(index: number, bytes: number): void {
    this.snapshotIndex = index;
    this.snapshotBytes = bytes;
  }

  /** The count begins anew, whatever became of the draft: nothing is tried without a pause. */
  restartCount(): void {
    this.entriesSince = 0;
    this.bytesSince = 0;
  }

  /** True when what a backup waits for can be made at `appliedIndex`. */
  isWanted(appliedIndex: number): boolean {
    return this.wantedIndex > this.snapshotIndex && appliedIndex >= this.wantedIndex;
  }

  /**
   * True when as much log came as is worth a snapshot: at least as many bytes as the last one has,
   * so that log and snapshot together stay within twice the live data.
   */
  get isDue(): boolean {
    const { entries, logBytes } = this.policy;
    if (this.entriesSince >= entries) return true;
    return this.bytesSince >= Math.max(logBytes, this.snapshotBytes);
  }
}
