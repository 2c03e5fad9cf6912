/**
 * One deadline over several steps: what one step uses up, the next one does not have.
 *
 * Owns: a moment of the awake counter. Never: a timer; each step has its own. An acquire that opens
 * a session, waits, renews and gives back settles by one deadline, not by one for each step.
 * Used by: client.ts, acquire.ts, sequence-wait.ts.
 */
import type { Clock } from './clock.js';

/** A step is given at least this, so that it fails by itself and says why. */
const STEP_MS_MIN = 1;

export class TimeLeft {
  readonly #clock: Clock;
  #untilMs: number;

  /** `ms` from now on. */
  constructor(clock: Clock, ms: number) {
    this.#clock = clock;
    this.#untilMs = clock.nowMs() + ms;
  }

  /** Milliseconds for the next step, at least 1. */
  get ms(): number {
    return Math.max(STEP_MS_MIN, this.#untilMs - this.#clock.nowMs());
  }

  /** Waiting in a queue is allowed on top. */
  extend(ms: number): void {
    this.#untilMs += ms;
  }
}
