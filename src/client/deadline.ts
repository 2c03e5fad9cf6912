/**
 * Safe-deadline arithmetic (docs/CLIENT.md): until when this process may believe that it holds.
 *
 * Owns: the formula s + (D − C) − max(2.5 %, 5 ms) − event-loop delay and the rule for which of two
 * bounds holds. Pure: readings of the clock are arguments. Never: a timer; see alarm.ts. Used by:
 * hold.ts.
 *
 * Why a bound is valid: a request first sent at local time s was committed in an entry stamped C,
 * so cluster time was at most C at s; cluster time never runs ahead of real time, so it reaches D
 * no sooner than D − C later. Clock rates within 1 % at both ends cost at most 2 %; 2.5 % covers
 * them.
 */
import { LOOP_DELAY_SHARE_MAX } from './bounds.js';
import { type Clock, elapsedMs, type Instant } from './clock.js';

/** Share of the period that covers clock rates of 1 % at both ends. */
export const MARGIN_SHARE = 0.025;
/** The least margin, which covers timer steps. */
export const MARGIN_MS_MIN = 5;

/** One own committed request: when it was first sent, and the cluster time of its entry. */
export interface Sample {
  readonly sentAt: Instant;
  /** Cluster time C of the entry, ms. */
  readonly clusterTimeMs: number;
}

/** A promise of the cluster in local time: it holds for `periodMs` from `from` on. */
export interface Bound {
  readonly from: Instant;
  /** D − C in ms, the margin not yet taken off. */
  readonly periodMs: number;
}

/** What is taken off a period of `periodMs` for clock rates and timer steps, in ms. */
export function marginMs(periodMs: number): number {
  return Math.max(periodMs * MARGIN_SHARE, MARGIN_MS_MIN);
}

/** The bound that `sample` gives for a deadline in cluster time. */
export function boundOf(sample: Sample, deadlineMs: number): Bound {
  return { from: sample.sentAt, periodMs: deadlineMs - sample.clusterTimeMs };
}

/**
 * Milliseconds left at `now` under `bound`; not above 0: past the safe deadline. One stall of the
 * event loop takes at most LOOP_DELAY_SHARE_MAX of the period off: a stall that is over must not
 * end a lease that lives, and every look at the state reads the clock anyway.
 */
export function remainingMs(clock: Clock, bound: Bound, now: Instant, loopDelayMs: number): number {
  const delay = Math.min(loopDelayMs, bound.periodMs * LOOP_DELAY_SHARE_MAX);
  return bound.periodMs - marginMs(bound.periodMs) - delay - elapsedMs(clock, bound.from, now);
}

/**
 * The bound that lasts longer, seen from `now`. Both are valid, since a deadline never moves back;
 * the newer is not always the longer: its request may have taken seconds to commit.
 */
export function longerBound(clock: Clock, one: Bound, other: Bound, now: Instant): Bound {
  return remainingMs(clock, one, now, 0) >= remainingMs(clock, other, now, 0) ? one : other;
}
