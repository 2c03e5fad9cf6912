/**
 * The public face of one hold of a lock: what a program may ask of a lease and do with it.
 *
 * Owns: its own release; several leases of one reentrant hold share what is behind. Never: renewals
 * or deadlines; ownership.ts has them. Fails closed: every question reads the clock first.
 * Made by: client.ts. Used by: programs.
 */
import { REQUEST_DEADLINE_DEFAULT_MS } from '../limits.js';
import { attended } from './attended.js';
import type { Counters } from './counters.js';
import { ErrorCode, HoldfastError } from './errors.js';
import type { HoldState } from './hold.js';
import { checkDeadline, checkMetadata, checkOptions, checkTtl } from './options.js';
import type { Ownership, RenewOptions } from './ownership.js';

/** What the cluster answered to a release. */
export interface Released {
  /** Revision of the event that ended the lease; 0 for a reentrant inner release. */
  readonly revision: number;
}

/**
 * A lease on a lock. Pass `token` to the guard of the resource with every write; watch `signal`.
 *
 * @example
 * await using lease = await client.acquire('reports/daily', { ttlMs: 30_000, waitMs: 5_000 });
 * await writeReport({ fencingToken: lease.token, signal: lease.signal });
 */
export class Lease implements AsyncDisposable {
  readonly #ownership: Ownership;
  readonly #counters: Counters;
  readonly #deadlineMs: number;
  #release: Promise<Released> | undefined;

  /** Programs call client.acquire. `deadlineMs` bounds a release that names none. */
  constructor(ownership: Ownership, counters: Counters, deadlineMs = REQUEST_DEADLINE_DEFAULT_MS) {
    this.#ownership = ownership;
    this.#counters = counters;
    this.#deadlineMs = deadlineMs;
    ownership.handles += 1;
  }

  /** Name of the lock. */
  get name(): string {
    return this.#ownership.name;
  }

  /** Fencing token: larger than that of every earlier grant. Below 2^53. */
  get token(): number {
    return this.#ownership.token;
  }

  /** Lease id, 32 hexadecimal digits. A secret: whoever has it may release the lease. */
  get leaseId(): string {
    return this.#ownership.key;
  }

  /** Revision of the grant. */
  get revision(): number {
    return this.#ownership.revision;
  }

  /** TTL that the cluster granted, ms. */
  get ttlMs(): number {
    return this.#ownership.ttlMs;
  }

  /** Deadline in cluster time, ms, as far as this process has heard. */
  get deadlineMs(): number {
    return this.#ownership.hold.deadlineMs;
  }

  /**
   * `held`: sure, until the safe deadline. `jeopardy`: start nothing new. `lost`: stop. `released`.
   * Reads the clock: never `held` past the safe deadline, however late timers fire.
   */
  get state(): HoldState {
    return this.#release === undefined ? this.#ownership.hold.state : 'released';
  }

  /**
   * Aborts at the safe deadline, or earlier when the cluster says that the lease has ended; the
   * reason is a HoldfastError. Does not abort on release(). Reads the clock when it is read.
   */
  get signal(): AbortSignal {
    return this.#ownership.hold.signal;
  }

  /** Milliseconds until the safe deadline; 0 when lost or released. */
  remainingMs(): number {
    return this.#release === undefined ? this.#ownership.hold.remainingMs() : 0;
  }

  /**
   * Resolves when the lease is held: at once, or after jeopardy. Rejects with the reason when it is
   * lost (LEASE_EXPIRED, STALE_LEASE, SESSION_EXPIRED) or released. Settles by the safe deadline.
   */
  ready(): Promise<void> {
    if (this.#release === undefined) return this.#ownership.hold.ready();
    const message = `lease of ${this.name} was released: it cannot become ready`;
    const error = new HoldfastError(ErrorCode.LeaseExpired, { message, outcome: 'none' });
    return attended(Promise.reject(error));
  }

  /**
   * Renews now, optionally with another TTL or metadata; not needed to keep the lease. A shorter
   * TTL never moves the deadline back. Rejects STALE_LEASE when it has ended, BAD_REQUEST `ttl_ms`,
   * UNKNOWN_OUTCOME or DEADLINE_PASSED; the lease is then in jeopardy or lost.
   */
  renew(options: RenewOptions = {}): Promise<void> {
    return attended(this.#renew(options));
  }

  /**
   * Gives the lock back; the next waiter is granted. Idempotent. Rejects STALE_LEASE or
   * LEASE_EXPIRED at once when the lease is over already, UNKNOWN_OUTCOME or DEADLINE_PASSED when
   * nobody answered; the release is then repeated in the background. `deadlineMs`: 1 … 60,000.
   */
  release(deadlineMs: number = this.#deadlineMs): Promise<Released> {
    this.#release ??= attended(this.#releaseOnce(deadlineMs));
    return this.#release;
  }

  /** release() for `await using`: a lease that is over already is counted, not thrown. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.dispose();
  }

  /** Releases and never rejects. Resolves with the failure that was counted, or undefined. */
  async dispose(): Promise<HoldfastError | undefined> {
    try {
      await this.release();
      return undefined;
    } catch (error) {
      if (!(error instanceof HoldfastError)) throw error;
      if (isOver(error)) this.#counters.staleDisposals += 1;
      else this.#counters.releaseFailures += 1;
      return error;
    }
  }

  async #renew(options: RenewOptions): Promise<void> {
    checkOptions('renew', options, ['ttlMs', 'metadata', 'deadlineMs']);
    const ttlMs = checkTtl(options.ttlMs) ?? -1;
    const metadata = checkMetadata(options.metadata);
    const deadlineMs = checkDeadline(options.deadlineMs);
    if (this.#release !== undefined || !this.#ownership.hold.isLive) await this.#rejectOver();
    await this.#ownership.renew(ttlMs, metadata, deadlineMs);
  }

  async #releaseOnce(deadlineMs: number): Promise<Released> {
    this.#ownership.handles -= 1;
    if (this.#ownership.handles > 0) return { revision: 0 };
    return { revision: await this.#ownership.release(deadlineMs) };
  }

  async #rejectOver(): Promise<never> {
    const { error } = this.#ownership.hold;
    throw error ?? new HoldfastError(ErrorCode.StaleLease, { details: { leaseEnd: 'released' } });
  }
}

/** The lease had ended before its release: nothing is left to do. */
function isOver(error: HoldfastError): boolean {
  return (
    error.number === ErrorCode.StaleLease ||
    error.number === ErrorCode.LeaseExpired ||
    error.number === ErrorCode.SessionExpired
  );
}
