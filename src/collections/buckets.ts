/**
 * A histogram as plain counts: how many values lay at or below each bound, and their sum.
 *
 * Owns: the counts. Never: a metrics library, a label, a value kept. Values in ms.
 * Used by: replica (counts), server (hands them to observe when a scrape comes).
 */
import { assert } from './assert.js';

/** Bounds in ms that latencies are counted by. */
export const LATENCY_BOUNDS_MS: readonly number[] = [
  0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 10_000,
];
/** Bounds in ms for how long something was held or waited for. */
export const HOLD_BOUNDS_MS: readonly number[] = [
  1, 10, 100, 1_000, 5_000, 15_000, 30_000, 60_000, 300_000, 3_600_000, 86_400_000,
];

export class Buckets {
  /** Values in each bucket by itself; the last one is above every bound. */
  readonly counts: Float64Array;
  sumMs = 0;

  constructor(readonly boundsMs: readonly number[]) {
    assert(boundsMs.length > 0, 'buckets: at least one bound');
    this.counts = new Float64Array(boundsMs.length + 1);
  }

  /** Counts `weight` values of `ms`. */
  observe(ms: number, weight = 1): void {
    const { boundsMs, counts } = this;
    let at = 0;
    while (at < boundsMs.length && ms > (boundsMs[at] as number)) at += 1;
    counts[at] = (counts[at] as number) + weight;
    this.sumMs += ms * weight;
  }

  get count(): number {
    let count = 0;
    for (let at = 0; at < this.counts.length; at += 1) count += this.counts[at] as number;
    return count;
  }
}
