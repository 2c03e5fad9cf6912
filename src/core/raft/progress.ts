/**
 * What a leader knows of one follower, and how much it may send without hearing back.
 *
 * Owns: matchIndex, nextIndex, the in-flight window. Never: messages.
 * Used by: sending.ts, replication.ts, election.ts (reset).
 */
import { INFLIGHT_APPENDS_MAX, INFLIGHT_BYTES_MAX } from '../../limits.js';

/**
 * Probe: the follower's end is unknown, one append at a time (nextIndex moves on answers only).
 * Replicate: appends are pipelined, nextIndex moves when they are sent. Snapshot: nothing is
 * appended until the offered snapshot is installed.
 */
export const ProgressState = { Probe: 0, Replicate: 1, Snapshot: 2 } as const;
export type ProgressState = (typeof ProgressState)[keyof typeof ProgressState];

export class Progress {
  state: ProgressState = ProgressState.Probe;
  matchIndex = 0;
  nextIndex = 1;
  /** Heard from since the last CheckQuorum. */
  isActive = false;
  /** Probe only: an append is out; the next goes after an answer or a heartbeat's answer. */
  isProbeSent = false;
  /** The heartbeat interval has passed: one answer may send again what may have been lost. */
  mayResend = false;
  /** Entries were asked from the log thread; nothing is sent until they come. */
  isReading = false;
  /** Snapshot only: the tick of the last offer. */
  offeredAtTick = 0;

  /** In-flight appends: last index and bytes of each, oldest first, in a ring. */
  private readonly lastIndices = new Float64Array(INFLIGHT_APPENDS_MAX);
  private readonly bytes = new Float64Array(INFLIGHT_APPENDS_MAX);
  private head = 0;
  private count = 0;
  private bytesInFlight = 0;

  constructor(readonly nodeId: number) {}

  get isPaused(): boolean {
    if (this.isReading) return true;
    if (this.state === ProgressState.Probe) return this.isProbeSent;
    if (this.state === ProgressState.Snapshot) return true;
    return this.isWindowFull;
  }

  private get isWindowFull(): boolean {
    return this.count === INFLIGHT_APPENDS_MAX || this.bytesInFlight >= INFLIGHT_BYTES_MAX;
  }

  becomeProbe(): void {
    this.resetTo(ProgressState.Probe, this.matchIndex + 1);
  }

  becomeReplicate(): void {
    this.resetTo(ProgressState.Replicate, this.matchIndex + 1);
  }

  becomeSnapshot(tick: number): void {
    this.resetTo(ProgressState.Snapshot, this.nextIndex);
    this.offeredAtTick = tick;
  }

  private resetTo(state: ProgressState, nextIndex: number): void {
    this.state = state;
    this.nextIndex = nextIndex;
    this.isProbeSent = false;
    this.isReading = false;
    this.head = 0;
    this.count = 0;
    this.bytesInFlight = 0;
  }

  /** Records an append that ends at `lastIndex` and carries `bytes`. */
  onSent(lastIndex: number, entries: number, bytes: number): void {
    if (this.state === ProgressState.Probe) {
      this.isProbeSent = true;
      return;
    }
    if (entries === 0) return;
    this.nextIndex = lastIndex + 1;
    const slot = (this.head + this.count) % INFLIGHT_APPENDS_MAX;
    this.lastIndices[slot] = lastIndex;
    this.bytes[slot] = bytes;
    this.count += 1;
    this.bytesInFlight += bytes;
  }

  /** The follower holds everything up to `index`. True when that is news. */
  onMatched(index: number): boolean {
    while (this.count > 0 && (this.lastIndices[this.head] as number) <= index) {
      this.dropOldest();
    }
    this.isProbeSent = false;
    if (index <= this.matchIndex) return false;
    this.matchIndex = index;
    if (this.nextIndex <= index) this.nextIndex = index + 1;
    return true;
  }

  /**
   * The follower refused an append after `refusedIndex`; `probeIndex` is the greatest index that
   * may match. False when the refusal is stale: answered by something newer already.
   */
  onRefused(refusedIndex: number, probeIndex: number): boolean {
    if (this.state === ProgressState.Replicate) {
      if (refusedIndex <= this.matchIndex) return false;
      this.becomeProbe();
      return true;
    }
    if (this.nextIndex - 1 !== refusedIndex) return false;
    this.nextIndex = Math.max(Math.min(refusedIndex, probeIndex + 1), this.matchIndex + 1);
    this.isProbeSent = false;
    return true;
  }

  /**
   * A heartbeat was answered: a lost append must not hold the window shut for ever. True once an
   * interval, when appends may be sent again; read rounds beat far more often than that, and would
   * repeat every probe and open every window before a follower's disk can answer.
   */
  onHeartbeatReply(): boolean {
    this.isActive = true;
    if (!this.mayResend) return false;
    this.mayResend = false;
    this.isProbeSent = false;
    if (this.state === ProgressState.Replicate && this.isWindowFull) this.dropOldest();
    return true;
  }

  private dropOldest(): void {
    this.bytesInFlight -= this.bytes[this.head] as number;
    this.head = (this.head + 1) % INFLIGHT_APPENDS_MAX;
    this.count -= 1;
  }
}
