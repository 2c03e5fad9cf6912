/**
 * A fixed schedule: operation n is due n / rate after the beginning, whatever came of the others.
 *
 * Owns: which operation is due. Latency is counted from that moment, so a stall is in the latency
 * of everything that was due during it, and no correction is made afterwards. Never: a timer.
 * Used by: the open loops.
 */

const MS_PER_S = 1_000;

export class Schedule {
  private fromMs = 0;
  private issued = 0;
  private perMs: number;
  /** From when another rate holds; what is due before then comes first. */
  private laterFromMs = Number.POSITIVE_INFINITY;
  private laterPerMs = 0;

  /** @param ratePerSecond operations a second, 0 for none ever */
  constructor(ratePerSecond: number) {
    this.perMs = ratePerSecond / MS_PER_S;
  }

  /** Begins at `nowMs`: the first operation is due at once. */
  start(nowMs: number): void {
    this.fromMs = nowMs;
    this.issued = 0;
  }

  /** From `nowMs` on another rate holds. What was due before stays due, at its moment. */
  setRate(nowMs: number, ratePerSecond: number): void {
    if (this.laterFromMs !== Number.POSITIVE_INFINITY) this.change();
    this.laterFromMs = nowMs;
    this.laterPerMs = ratePerSecond / MS_PER_S;
  }

  /** The moment at which the next operation is due, if that is not after `nowMs`; else -1. */
  next(nowMs: number): number {
    let atMs = this.fromMs + this.issued / this.perMs;
    if (atMs >= this.laterFromMs) {
      this.change();
      atMs = this.fromMs;
    }
    // Written so that a rate of 0, whose moments are NaN and Infinity, is never due.
    if (!(atMs <= nowMs)) return -1;
    this.issued += 1;
    return atMs;
  }

  /** The operation that next() gave could not be sent: it stays due, at the same moment. */
  putBack(): void {
    this.issued -= 1;
  }

  private change(): void {
    this.fromMs = this.laterFromMs;
    this.perMs = this.laterPerMs;
    this.issued = 0;
    this.laterFromMs = Number.POSITIVE_INFINITY;
  }
}
