/**
 * A timer for a moment that moves, however far away it is.
 *
 * Owns: arming again. Node fires timers above 2^31 − 1 ms at once, and timers stand still during
 * suspend, so a long wait is cut into pieces and the clock is read after each. Never: decides; the
 * owner's check reads the clock itself. Used by: holds, renewal loops, request deadlines.
 */
import { TIMER_MS_MAX } from './bounds.js';
import type { Clock, Timer } from './clock.js';

/** Timers have whole milliseconds: a wish that is less than one earlier changes nothing. */
const TIMER_STEP_MS = 1;

/** One timer, armed again until its owner says that the moment has come. */
export class Alarm {
  readonly #clock: Clock;
  readonly #onWake: () => number;
  #timer: Timer | undefined;
  #wakesAtMs = Number.POSITIVE_INFINITY;

  /**
   * `onWake` is called when the alarm may be due; it returns the milliseconds that are still to
   * wait, or Infinity when it wants no further call.
   */
  constructor(clock: Clock, onWake: () => number) {
    this.#clock = clock;
    this.#onWake = onWake;
  }

  /** Makes sure of a wake within `afterMs`; an earlier wake that is armed already stays. */
  wakeWithin(afterMs: number): void {
    if (afterMs === Number.POSITIVE_INFINITY) return;
    const delay = Math.min(Math.max(Math.ceil(afterMs), TIMER_STEP_MS), TIMER_MS_MAX);
    const wakesAtMs = this.#clock.nowMs() + delay;
    if (wakesAtMs >= this.#wakesAtMs - TIMER_STEP_MS) return;
    this.#timer?.cancel();
    this.#wakesAtMs = wakesAtMs;
    this.#timer = this.#clock.startTimer(delay, () => this.#wake());
  }

  /** Forgets the moment. The alarm can be used again. */
  cancel(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#wakesAtMs = Number.POSITIVE_INFINITY;
  }

  #wake(): void {
    this.#timer = undefined;
    this.#wakesAtMs = Number.POSITIVE_INFINITY;
    this.wakeWithin(this.#onWake());
  }
}
