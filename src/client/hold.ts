/**
 * Whether this process may believe that it holds something: a lease, or a session.
 *
 * Owns: the states held → jeopardy → held | lost | released, the abort signal and the safe deadline
 * of one hold. Every question reads the clock first: a timer that fires late never leaves a hold
 * held. Never: talks to the cluster. Lost and released are final: a hold that was lost is not
 * revived by a late answer. Used by: ownership.ts, session.ts.
 */
import { Alarm } from './alarm.js';
import type { Ambient, Reviewable } from './ambient.js';
import { attended } from './attended.js';
import { type Bound, boundOf, longerBound, remainingMs, type Sample } from './deadline.js';
import { ErrorCode, HoldfastError } from './errors.js';

/**
 * `held`: sure until the safe deadline. `jeopardy`: still held as far as is known, but a renewal is
 * unanswered or its outcome unknown: start nothing new. `lost`, `released`: over for good.
 */
export type HoldState = 'held' | 'jeopardy' | 'lost' | 'released';

interface Waiter {
  resolve(): void;
  reject(error: HoldfastError): void;
}

export class Hold implements Reviewable {
  readonly #ambient: Ambient;
  readonly #what: string;
  readonly #onLost: (error: HoldfastError) => void;
  readonly #controller = new AbortController();
  readonly #alarm: Alarm;
  #state: HoldState = 'held';
  #bound: Bound;
  #deadlineMs: number;
  #error: HoldfastError | undefined;
  #waiters: Waiter[] = [];

  /**
   * `what` names the thing in messages; `deadlineMs` is its deadline in cluster time, `sample` an
   * own committed request. `onLost` is called once, after the signal fired. A hold whose safe
   * deadline has passed already is lost at the first look.
   */
  constructor(
    ambient: Ambient,
    what: string,
    sample: Sample,
    deadlineMs: number,
    onLost: (error: HoldfastError) => void,
  ) {
    this.#ambient = ambient;
    this.#what = what;
    this.#onLost = onLost;
    this.#deadlineMs = deadlineMs;
    this.#bound = boundOf(sample, deadlineMs);
    this.#alarm = new Alarm(ambient.clock, () => this.#wake());
    this.#alarm.wakeWithin(this.#remaining());
    ambient.watch(this);
  }

  /** The state now. Reads the clock: past the safe deadline it is lost, and the signal fires. */
  get state(): HoldState {
    this.review();
    return this.#state;
  }

  /** Aborts when the hold is lost. Reads the clock first. */
  get signal(): AbortSignal {
    this.review();
    return this.#controller.signal;
  }

  /** True while the hold is neither lost nor released. */
  get isLive(): boolean {
    const state = this.state;
    return state === 'held' || state === 'jeopardy';
  }

  /** The latest deadline that is known, in cluster time, ms. */
  get deadlineMs(): number {
    return this.#deadlineMs;
  }

  /** Why the hold was lost; undefined unless it was. */
  get error(): HoldfastError | undefined {
    return this.#error;
  }

  /** Milliseconds until the safe deadline; 0 when the hold is over. */
  remainingMs(): number {
    return this.isLive ? Math.max(0, this.#remaining()) : 0;
  }

  /** Resolves once held; rejects with the reason once lost or released. Settles by the deadline. */
  ready(): Promise<void> {
    const state = this.state;
    if (state === 'held') return Promise.resolve();
    return attended(state === 'jeopardy' ? this.#wait() : Promise.reject(this.#endError()));
  }

  /** A committed request of this process says that the deadline is at least `deadlineMs`. */
  extend(sample: Sample, deadlineMs: number): void {
    if (!this.isLive) return;
    const now = this.#ambient.clock.read();
    this.#deadlineMs = Math.max(this.#deadlineMs, deadlineMs);
    const bound = boundOf(sample, this.#deadlineMs);
    this.#bound = longerBound(this.#ambient.clock, this.#bound, bound, now);
    this.#alarm.wakeWithin(this.#remaining());
    this.#confirm();
  }

  /** A renewal is unanswered past its time, or an outcome is unknown. */
  jeopardize(): void {
    if (this.state !== 'held') return;
    this.#state = 'jeopardy';
    this.#ambient.counters.jeopardies += 1;
  }

  /** The cluster said that it is over, or the safe deadline passed. */
  lose(error: HoldfastError): void {
    if (this.#state === 'lost' || this.#state === 'released') return;
    this.#error = error;
    this.#end('lost');
    this.#controller.abort(error);
    this.#onLost(error);
  }

  /**
   * The caller gives it up: not a loss. With an `error` the signal fires, for work that still runs.
   */
  release(error?: HoldfastError): void {
    if (!this.isLive) return;
    this.#error = error;
    this.#end('released');
    if (error !== undefined) this.#controller.abort(error);
  }

  /** Reads the clock and loses the hold when its safe deadline has passed. */
  review(): void {
    if (this.#state === 'lost' || this.#state === 'released') return;
    const remaining = this.#remaining();
    this.#alarm.wakeWithin(remaining); // the measured delay may have moved the deadline forward
    if (remaining > 0) return;
    const message = `${this.#what} may have ended: its safe deadline passed without a renewal`;
    this.lose(new HoldfastError(ErrorCode.LeaseExpired, { message }));
  }

  /** Milliseconds until the alarm has to look again. */
  #wake(): number {
    return this.isLive ? this.#remaining() : Number.POSITIVE_INFINITY;
  }

  #remaining(): number {
    const { clock, loopDelay } = this.#ambient;
    return remainingMs(clock, this.#bound, clock.read(), loopDelay.ms);
  }

  #confirm(): void {
    if (this.#state !== 'jeopardy') return;
    this.#state = 'held';
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const waiter of waiters) waiter.resolve();
  }

  #end(state: 'lost' | 'released'): void {
    this.#state = state;
    this.#alarm.cancel();
    this.#ambient.unwatch(this);
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const waiter of waiters) waiter.reject(this.#endError());
  }

  #wait(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiters.push({ resolve, reject });
    });
  }

  #endError(): HoldfastError {
    if (this.#error !== undefined) return this.#error;
    const message = `${this.#what} was released: it cannot become ready`;
    return new HoldfastError(ErrorCode.LeaseExpired, { message, outcome: 'none' });
  }
}
