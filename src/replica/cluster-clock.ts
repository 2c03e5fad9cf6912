/**
 * The leader's running clock: cluster time between the entries it stamps (invariant I8).
 *
 * Owns: how cluster time advances. It starts from the last entry in the leader's own log and adds
 * elapsed time, capped per turn, so that it never runs ahead of real time and a stall expires
 * nobody. Never: a wall clock, another node's clock. Used by: turn of the leader.
 */
import { assert } from '../collections/assert.js';
import { CLOCK_STEP_MS_MAX } from '../limits.js';

const US_PER_MS = 1_000;

export class ClusterClock {
  private runningMs = 0;
  private lastStampMs = 0;
  private lastTurnUs = 0;

  /** Starts to lead: `stampMs` is the stamp of the last entry in this node's log, 0 for none. */
  start(stampMs: number, nowUs: number): void {
    this.runningMs = stampMs;
    this.lastStampMs = stampMs;
    this.lastTurnUs = nowUs;
  }

  /** A turn runs at `nowUs` (ClockPort). */
  advance(nowUs: number): void {
    const elapsedMs = (nowUs - this.lastTurnUs) / US_PER_MS;
    this.lastTurnUs = nowUs;
    if (elapsedMs > 0) this.runningMs += Math.min(elapsedMs, CLOCK_STEP_MS_MAX);
  }

  /** The stamp of the entry that is closed now, in whole ms: never less than the one before. */
  stamp(): number {
    const stampMs = Math.max(this.lastStampMs, Math.floor(this.runningMs));
    assert(stampMs >= this.lastStampMs, 'I8: stamps never fall');
    this.lastStampMs = stampMs;
    return stampMs;
  }
}
