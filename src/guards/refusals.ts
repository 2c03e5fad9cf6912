/**
 * Refusals on their way to whoever collects them: at most one report a lock and second.
 *
 * Owns: what is not reported yet, bounded, and when it is. Never: what a report becomes (a metric,
 * a log, a command to the cluster: the reporter's), and never a part of a guarded write: a refusal
 * is noted here and reported from a timer, and a reporter that fails is counted. Used by: programs,
 * as the observer of their guards.
 */
import { type Clock, SystemClock } from '../client/clock.js';
import { REFUSAL_REPORT_MS, REFUSED_LOCKS_MAX } from '../limits.js';
import type { GuardEvent, GuardObserver } from './tally.js';

/** What guards of one kind refused for one lock since the last report of it. */
export interface Refusal {
  /** Kind of guard, such as `postgres`. */
  readonly resource: string;
  readonly lock: string;
  /** Token that was refused last. */
  readonly offered: number;
  /** Greatest mark that a token was compared with; 0 when no resource told it. */
  readonly seen: number;
  /** Refused writes, 1 at least. */
  readonly count: number;
}

/** Takes reports. It is called on the event loop: take the report and return. */
export interface RefusalReporter {
  report(refusal: Refusal): void;
}

/**
 * Gathers the refusals of any number of guards for one reporter. The first is reported at once, in
 * a turn of its own; those of the second after it together, one report for each lock and kind.
 *
 * @example
 * const refusals = new RefusalBatches({ report: ({ lock, count }) => stale.inc({ lock }, count) });
 * const guard = new PostgresGuard(pool, { observer: refusals });
 */
export class RefusalBatches implements GuardObserver {
  /** Reports that were given to the reporter. */
  reports = 0;
  /** Reports with which the reporter failed; they are not given again. */
  reporterErrors = 0;
  /** Refusals of more locks than REFUSED_LOCKS_MAX within one second: counted, not reported. */
  dropped = 0;
  readonly #reporter: RefusalReporter;
  readonly #clock: Clock;
  /** By kind of guard and lock. */
  #waiting = new Map<string, Refusal>();
  #isTimerSet = false;
  #reportedMs = Number.NEGATIVE_INFINITY;

  constructor(reporter: RefusalReporter, clock: Clock = new SystemClock()) {
    this.#reporter = reporter;
    this.#clock = clock;
  }

  /** Notes a refusal. Called by the guard. */
  onRefused({ resource, lock, offered, seen }: GuardEvent): void {
    const key = `${resource} ${lock}`;
    const before = this.#waiting.get(key);
    if (before === undefined && this.#waiting.size >= REFUSED_LOCKS_MAX) {
      this.dropped += 1;
      return;
    }
    const greatest = Math.max(seen, before?.seen ?? 0);
    const count = (before?.count ?? 0) + 1;
    this.#waiting.set(key, { resource, lock, offered, seen: greatest, count });
    this.#setTimer();
  }

  /** Reports what waits, now: before a program ends that cannot wait for a second. */
  flush(): void {
    const waiting = this.#waiting;
    if (waiting.size === 0) return;
    this.#waiting = new Map();
    this.#reportedMs = this.#clock.nowMs();
    for (const refusal of waiting.values()) this.#report(refusal);
  }

  #setTimer(): void {
    if (this.#isTimerSet) return;
    this.#isTimerSet = true;
    const restMs = this.#reportedMs + REFUSAL_REPORT_MS - this.#clock.nowMs();
    this.#clock.startTimer(Math.max(0, Math.ceil(restMs)), () => {
      this.#isTimerSet = false;
      this.flush();
    });
  }

  #report(refusal: Refusal): void {
    this.reports += 1;
    const onError = (): void => {
      this.reporterErrors += 1;
    };
    try {
      // The type says void, and an asynchronous function passes for it: its error is kept too.
      const returned: unknown = this.#reporter.report(refusal);
      if (returned instanceof Promise) returned.catch(onError);
    } catch {
      onError(); // the write was refused long ago, and nobody waits for this
    }
  }
}
