/**
 * The one jittered renewal loop of a session, or of a lease without one.
 *
 * Owns: when the next renewal starts and when a started one counts as unanswered. One renewal at a
 * time; it is sent again by the leader's road itself. Never: judges the hold. The pace follows the
 * shortest TTL that depends on it: a third of it at most. Used by: session.ts, ownership.ts.
 */
import { Alarm } from './alarm.js';
import type { Ambient } from './ambient.js';
import {
  JEOPARDY_MS_MAX,
  JEOPARDY_TTL_SHARE,
  RENEWAL_JITTER_SHARE,
  RENEWAL_TTL_SHARE,
} from './bounds.js';

/** The least pause after a renewal that failed. */
const PAUSE_MS_MIN = 10;

/** What a loop renews. */
export interface Renewable {
  /** The shortest TTL that depends on the renewals, ms. */
  readonly shortestTtlMs: number;
  /** One renewal. Settles when it is answered, refused or past its deadline. */
  renew(): Promise<void>;
  /** The renewal in flight is unanswered past its time. Called again at that pace. */
  onUnanswered(timeoutMs: number): void;
}

/** How long a renewal may be unanswered before its leases are in jeopardy, ms. */
export function renewalTimeoutMs(ttlMs: number): number {
  return Math.min(ttlMs * JEOPARDY_TTL_SHARE, JEOPARDY_MS_MAX);
}

/**
 * How long one renewal is waited for before another is made, ms: a third of the TTL, so that an
 * answer that never comes costs one renewal and not the lease. Never longer than what is left.
 */
export function renewalDeadlineMs(ttlMs: number, remainingMs: number): number {
  return Math.max(1, Math.min(ttlMs * RENEWAL_TTL_SHARE, remainingMs));
}

export class RenewalLoop {
  readonly #ambient: Ambient;
  readonly #renewable: Renewable;
  readonly #alarm: Alarm;
  readonly #lateAlarm: Alarm;
  #startedAtMs: number;
  /** Share of the interval that jitter leaves, drawn anew for each renewal. */
  #share: number;
  #isRenewing = false;
  #isStopped = false;

  constructor(ambient: Ambient, renewable: Renewable) {
    this.#ambient = ambient;
    this.#renewable = renewable;
    this.#startedAtMs = ambient.clock.nowMs();
    this.#share = this.#draw();
    this.#alarm = new Alarm(ambient.clock, () => this.#wake());
    this.#lateAlarm = new Alarm(ambient.clock, () => this.#onLate());
  }

  /** Starts the loop, or makes it look at a TTL that became shorter. */
  schedule(): void {
    if (!this.#isStopped && !this.#isRenewing) this.#alarm.wakeWithin(this.#dueInMs());
  }

  /** Renews now, unless a renewal is in flight. */
  renewNow(): void {
    if (this.#isStopped || this.#isRenewing) return;
    this.#alarm.cancel();
    this.#run();
  }

  stop(): void {
    this.#isStopped = true;
    this.#alarm.cancel();
    this.#lateAlarm.cancel();
  }

  #draw(): number {
    return 1 - RENEWAL_JITTER_SHARE * this.#ambient.clock.random();
  }

  #dueInMs(): number {
    const interval = this.#renewable.shortestTtlMs * RENEWAL_TTL_SHARE * this.#share;
    return this.#startedAtMs + interval - this.#ambient.clock.nowMs();
  }

  #wake(): number {
    if (this.#isStopped || this.#isRenewing) return Number.POSITIVE_INFINITY;
    const dueInMs = this.#dueInMs();
    if (dueInMs > 0) return dueInMs;
    this.#run();
    return Number.POSITIVE_INFINITY;
  }

  #run(): void {
    this.#isRenewing = true;
    this.#startedAtMs = this.#ambient.clock.nowMs();
    this.#share = this.#draw();
    this.#lateAlarm.wakeWithin(renewalTimeoutMs(this.#renewable.shortestTtlMs));
    this.#renewable.renew().then(
      () => this.#onDone(0),
      () => this.#onDone(this.#pauseMs()), // the renewable has counted it and judged its hold
    );
  }

  /** After a failure: soon again, but never in a tight loop. */
  #pauseMs(): number {
    const timeoutMs = renewalTimeoutMs(this.#renewable.shortestTtlMs);
    return Math.max(PAUSE_MS_MIN, this.#ambient.clock.random() * timeoutMs);
  }

  #onLate(): number {
    if (this.#isStopped || !this.#isRenewing) return Number.POSITIVE_INFINITY;
    const timeoutMs = renewalTimeoutMs(this.#renewable.shortestTtlMs);
    this.#renewable.onUnanswered(timeoutMs);
    return timeoutMs;
  }

  #onDone(pauseMs: number): void {
    this.#isRenewing = false;
    this.#lateAlarm.cancel();
    if (this.#isStopped) return;
    this.#alarm.wakeWithin(Math.max(this.#dueInMs(), pauseMs));
  }
}
