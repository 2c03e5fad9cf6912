/**
 * The public face of a session: a client's presence at the cluster, usable without the lock API.
 *
 * Owns: what a program may see and do. Never: renewals, sequences, leases; presence.ts has them,
 * and the client finds a session's presence by presenceOf. Made by: client.openSession. Used by:
 * programs.
 */
import { CLOSE_DEADLINE_DEFAULT_MS } from './bounds.js';
import type { Counters } from './counters.js';
import { HoldfastError } from './errors.js';
import type { Presence } from './presence.js';

/**
 * `open`: alive. `jeopardy`: a renewal is unanswered, or there is no leader. `lost`: its leases are
 * gone or may be. `closed`: by close().
 */
export type SessionState = 'open' | 'jeopardy' | 'lost' | 'closed';

/** How to open a session. */
export interface SessionOptions {
  /** TTL in ms, 1,000 … 86,400,000 unless a policy says otherwise; default 30,000. */
  readonly ttlMs?: number;
  /** Shown beside the session, at most 1,024 bytes. */
  readonly metadata?: Uint8Array | string;
  /** Milliseconds until the call is failed, 1 … 60,000; default 10,000. */
  readonly deadlineMs?: number;
}

/**
 * A session: while it is open, one renewal loop keeps alive it and all leases acquired through it.
 *
 * @example
 * await using session = await client.openSession({ ttlMs: 15_000 });
 * session.signal.addEventListener('abort', () => stopWorking());
 * const lease = await client.acquire('shards/7', { session });
 */
export class Session implements AsyncDisposable {
  readonly #presence: Presence;
  readonly #counters: Counters;

  /** Programs call client.openSession. */
  constructor(presence: Presence, counters: Counters) {
    this.#presence = presence;
    this.#counters = counters;
  }

  /** The presence behind a session; for the client only. */
  static presenceOf(session: Session): Presence {
    return session.#presence;
  }

  /** Identifies the session in lists and audits: 32 hexadecimal digits. Not a secret. */
  get id(): string {
    return this.#presence.key;
  }

  /** Whether the session is alive, as far as this process can know. Reads the clock. */
  get state(): SessionState {
    const state = this.#presence.hold.state;
    if (state === 'held') return 'open';
    return state === 'released' ? 'closed' : state;
  }

  /**
   * Aborts when the session is lost, at its safe deadline at the latest; the reason is a
   * HoldfastError (LEASE_EXPIRED or SESSION_EXPIRED). Does not abort on close(). Reads the clock.
   */
  get signal(): AbortSignal {
    return this.#presence.hold.signal;
  }

  /** TTL that the cluster granted, ms. */
  get ttlMs(): number {
    return this.#presence.ttlMs;
  }

  /** Leases that live in this session now. */
  get leaseCount(): number {
    return this.#presence.leaseCount;
  }

  /** Milliseconds until the safe deadline; 0 when the session is over. */
  remainingMs(): number {
    return this.#presence.hold.remainingMs();
  }

  /** Resolves once open; rejects with the reason when lost or closed. Settles by the deadline. */
  ready(): Promise<void> {
    return this.#presence.hold.ready();
  }

  /**
   * Closes the session: its waits are cancelled, its leases end and their signals abort.
   * Idempotent. Resolves when the cluster has answered. Rejects UNKNOWN_OUTCOME or DEADLINE_PASSED
   * after `deadlineMs` (ms, default 2,000); the session then ends by its TTL.
   */
  close(deadlineMs: number = CLOSE_DEADLINE_DEFAULT_MS): Promise<void> {
    return this.#presence.close(deadlineMs);
  }

  /** close() for `await using`: a failure is counted in releaseFailures, since the TTL ends it. */
  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.close();
    } catch (error) {
      if (!(error instanceof HoldfastError)) throw error;
      this.#counters.releaseFailures += 1;
    }
  }
}
