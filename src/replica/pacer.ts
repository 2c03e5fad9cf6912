/**
 * When an open batch is closed: at once when nobody else can come, after a short gap under load.
 *
 * Owns: the gap. A commit costs five nodes about as much CPU as some hundred operations, so a busy
 * leader that closes a batch as soon as it can spends itself on commits
 * (docs/decisions/0003-commit-gap.md). Never: a timer; the turn asks when to come back.
 * Used by: turn of the leader.
 */
import { BATCH_GAP_US_MAX } from '../limits.js';

/** The rate is an average over about this long. */
const RATE_WINDOW_US = 20_000;
/** The crowd is forgotten over about this long. */
const CROWD_WINDOW_US = 100_000;
/** Up to this rate, in operations a µs, a batch never waits: latency is all that counts. */
const RATE_PATIENT = 0.001;
/** From this rate on a batch waits for the whole gap. */
const RATE_BUSY = 0.005;

export class Pacer {
  private ratePerUs = 0;
  private lastCloseUs = 0;
  /** The most operations that were unanswered at once, lately. */
  private crowd = 0;

  /** µs to wait before the open batch of `operations` may be closed; 0 or less: close it now. */
  waitUs(nowUs: number, operations: number): number {
    if (this.ratePerUs <= RATE_PATIENT) return 0;
    // All who ask at a time are in this batch: they wait for it, and nobody else will come.
    if (operations >= this.crowd) return 0;
    const share = (this.ratePerUs - RATE_PATIENT) / (RATE_BUSY - RATE_PATIENT);
    return this.lastCloseUs + Math.min(1, share) * BATCH_GAP_US_MAX - nowUs;
  }

  /** A batch of `operations` is closed at `nowUs` while `unanswered` others are under way. */
  onClosed(nowUs: number, operations: number, unanswered: number): void {
    const elapsedUs = Math.max(1, nowUs - this.lastCloseUs);
    this.lastCloseUs = nowUs;
    const keep = Math.exp(-elapsedUs / RATE_WINDOW_US);
    this.ratePerUs = this.ratePerUs * keep + (operations / elapsedUs) * (1 - keep);
    const remembered = this.crowd * Math.exp(-elapsedUs / CROWD_WINDOW_US);
    this.crowd = Math.max(remembered, operations + unanswered);
  }
}
