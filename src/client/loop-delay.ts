/**
 * How late this process runs its timers: the event-loop delay of the safe deadline
 * (docs/CLIENT.md).
 *
 * Owns: one small recurring timer while something is held, and the decaying peak of its lateness.
 * Never: judges a lease. After a stall or a suspend it tells its owner to look at every hold, since
 * their own timers stood still too. Used by: client-context.ts.
 */
import { LOOP_DELAY_HALF_LIFE_MS, LOOP_DELAY_TICK_MS } from './bounds.js';
import { type Clock, elapsedMs, type Instant, type Timer } from './clock.js';

/** A tick this much late makes every hold be looked at. */
const STALL_MS = 50;

export class LoopDelay {
  readonly #clock: Clock;
  readonly #onStall: () => void;
  #users = 0;
  #timer: Timer | undefined;
  #armedAt: Instant;
  #peakMs = 0;

  /** `onStall` is called from a tick that came at least 50 ms late. */
  constructor(clock: Clock, onStall: () => void) {
    this.#clock = clock;
    this.#onStall = onStall;
    this.#armedAt = clock.read();
  }

  /** The recent peak of lateness in ms; it halves every second. */
  get ms(): number {
    return this.#peakMs;
  }

  /** One more hold wants the delay measured. */
  addUser(): void {
    this.#users += 1;
    if (this.#timer === undefined) this.#arm();
  }

  /** One hold less; with none left the measuring stops. */
  removeUser(): void {
    this.#users -= 1;
    if (this.#users > 0) return;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #arm(): void {
    this.#armedAt = this.#clock.read();
    this.#timer = this.#clock.startTimer(LOOP_DELAY_TICK_MS, () => this.#tick());
  }

  #tick(): void {
    const elapsed = elapsedMs(this.#clock, this.#armedAt, this.#clock.read());
    const lateMs = Math.max(0, elapsed - LOOP_DELAY_TICK_MS);
    this.#peakMs = Math.max(lateMs, this.#peakMs * 0.5 ** (elapsed / LOOP_DELAY_HALF_LIFE_MS));
    this.#arm();
    if (lateMs >= STALL_MS) this.#onStall();
  }
}
