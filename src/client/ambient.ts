/**
 * What the parts of one client share: clock, counters, newest sample, event-loop delay.
 *
 * Owns: the newest sample of cluster time and the list of holds to look at after a stall. Never:
 * module state; each client has its own. Used by: every stateful part of the client.
 */
import { AbortWatch } from './abort-watch.js';
import type { Clock, Timer } from './clock.js';
import { Counters } from './counters.js';
import type { Sample } from './deadline.js';
import { LoopDelay } from './loop-delay.js';

/** Something whose safe deadline may have passed while timers stood still. */
export interface Reviewable {
  /** Reads the clock and draws the consequence. */
  review(): void;
}

export class Ambient {
  readonly counters = new Counters();
  readonly aborts = new AbortWatch();
  readonly loopDelay: LoopDelay;
  readonly #holds = new Set<Reviewable>();
  readonly #timers = new Set<Timer>();
  #sample: Sample | undefined;
  #isClosed = false;

  constructor(readonly clock: Clock) {
    this.loopDelay = new LoopDelay(clock, () => this.reviewAll());
  }

  /** The newest own committed request, or undefined before the first. */
  get sample(): Sample | undefined {
    return this.#sample;
  }

  /** Notes an own committed request; an older one than the newest is passed over. */
  observe(sample: Sample): void {
    const newest = this.#sample;
    if (newest !== undefined && newest.sentAt.awakeMs > sample.sentAt.awakeMs) return;
    this.#sample = sample;
  }

  /** From now on `hold` is looked at after a stall of the event loop. */
  watch(hold: Reviewable): void {
    this.#holds.add(hold);
    this.loopDelay.addUser();
  }

  unwatch(hold: Reviewable): void {
    if (this.#holds.delete(hold)) this.loopDelay.removeUser();
  }

  /** Calls `onTime` after `afterMs`, once, unless the client is closed before. */
  after(afterMs: number, onTime: () => void): Timer {
    const timer: Timer = this.clock.startTimer(afterMs, () => {
      this.#timers.delete(timer);
      if (!this.#isClosed) onTime();
    });
    this.#timers.add(timer);
    return {
      cancel: () => {
        this.#timers.delete(timer);
        timer.cancel();
      },
    };
  }

  /** Cancels what after() started: a closed client does not keep its process alive. */
  close(): void {
    this.#isClosed = true;
    for (const timer of this.#timers) timer.cancel();
    this.#timers.clear();
  }

  /** Looks at every hold now. */
  reviewAll(): void {
    for (const hold of [...this.#holds]) hold.review();
  }
}
