/**
 * When an open batch is closed: at once when little comes in, after a short gap under load.
 *
 * Owns: the gap. Every commit costs about as much CPU as a hundred operations, so a busy leader
 * that closes a batch as soon as it can spends itself on commits
 * (docs/decisions/0003-commit-gap.md).
 * Never: a timer; the turn asks when to come back. Used by: turn of the leader.
 */
import { BATCH_GAP_US_MAX } from '../limits.js';

/** The rate is an average over about this long. */
const WINDOW_US = 20_000;
/** Below this rate, in operations a µs, a batch never waits: latency is all that counts. */
const RATE_PATIENT = 0.004;
/** Gap for each operation a µs: 2.5 ms at 100,000 operations a second. */
const GAP_US_PER_RATE = 25_000;

export class Pacer {
  private ratePerUs = 0;
  private lastCloseUs = 0;

  /** µs to wait before the open batch may be closed; 0 or less: close it now. */
  waitUs(nowUs: number): number {
    if (this.ratePerUs < RATE_PATIENT) return 0;
    const gapUs = Math.min(BATCH_GAP_US_MAX, this.ratePerUs * GAP_US_PER_RATE);
    return this.lastCloseUs + gapUs - nowUs;
  }

  /** A batch of `operations` is closed at `nowUs`. */
  onClosed(nowUs: number, operations: number): void {
    const elapsedUs = Math.max(1, nowUs - this.lastCloseUs);
    this.lastCloseUs = nowUs;
    const keep = Math.exp(-elapsedUs / WINDOW_US);
    this.ratePerUs = this.ratePerUs * keep + (operations / elapsedUs) * (1 - keep);
  }
}
