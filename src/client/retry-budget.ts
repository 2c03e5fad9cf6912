/**
 * How many requests may be repeated after a refusal: one in ten, so retries cannot add up to a
 * storm.
 *
 * Owns: the tokens and the jittered back-off between attempts. Never: counts the one re-send that a
 * change of leader or a lost connection costs; that is bounded by the search for the leader. Used
 * by: leader.ts.
 */
import { RETRIES_KEPT_MAX, RETRIES_PER_SECOND, RETRY_SHARE } from './bounds.js';
import type { Clock } from './clock.js';

export class RetryBudget {
  readonly #clock: Clock;
  #tokens = RETRIES_KEPT_MAX / 4;
  #filledAtMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#filledAtMs = clock.nowMs();
  }

  /** A request is sent for the first time. */
  deposit(): void {
    this.#tokens = Math.min(this.#tokens + RETRY_SHARE, RETRIES_KEPT_MAX);
  }

  /** Takes one retry; false when there is none: the caller passes the refusal on. */
  tryWithdraw(): boolean {
    this.#fill();
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }

  #fill(): void {
    const now = this.#clock.nowMs();
    const earned = ((now - this.#filledAtMs) / 1_000) * RETRIES_PER_SECOND;
    this.#tokens = Math.min(this.#tokens + earned, RETRIES_KEPT_MAX);
    this.#filledAtMs = now;
  }
}

/**
 * Full-jitter back-off: a random time below a ceiling that doubles with each attempt.
 * `attempt` counts from 0; `firstMs` and `greatestMs` bound the ceiling.
 */
export function fullJitterMs(
  clock: Clock,
  attempt: number,
  firstMs: number,
  greatestMs: number,
): number {
  const ceiling = Math.min(greatestMs, firstMs * 2 ** Math.min(attempt, 30));
  return clock.random() * ceiling;
}
