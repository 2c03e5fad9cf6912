/**
 * One lease that this client owns: what the public Lease shows, and how it is kept and ended.
 *
 * Owns: the hold of the lease, its own renewals, its release, and the count of reentrant handles.
 * A lease in a session is renewed by its session; one without has a loop of its own. Never: an
 * acquire. Whatever ends it other than an answered release leaves a debt, so that a lease that this
 * process no longer believes in is not kept alive by its session. Used by: lease.ts, session.ts.
 */
import type { PackValue } from '../wire/msgpack-writer.js';
import { CommandKind } from '../wire/request.js';
import type { Reply } from '../wire/response.js';
import { SUSPECT_MS_MIN } from './bounds.js';
import type { Sample } from './deadline.js';
import { ErrorCode, HoldfastError } from './errors.js';
import { Hold } from './hold.js';
import type { Parts } from './parts.js';
import { RenewalLoop, renewalDeadlineMs } from './renewal-loop.js';
import { type Grant, hexOf, numberAt } from './reply.js';

/** The session that keeps a lease, as the lease sees it. */
export interface Keeper {
  readonly isLive: boolean;
  /** A lease ended or has another TTL: the pace of renewals may change. */
  onLeaseChanged(ownership: Ownership): void;
}

/** What a lease is made of. */
export interface OwnershipInit {
  readonly name: string;
  readonly grant: Grant;
  readonly sample: Sample;
  /** null: the lease has no session. */
  readonly keeper: Keeper | null;
}

/** Options of a lease's own renewal. */
export interface RenewOptions {
  /** New TTL in ms, 1,000 … 86,400,000 unless a policy says otherwise; absent: unchanged. */
  readonly ttlMs?: number;
  /** New metadata, at most 1,024 bytes; absent: unchanged. */
  readonly metadata?: Uint8Array | string;
  /** Milliseconds until the call is failed, 1 … 60,000; default 10,000. */
  readonly deadlineMs?: number;
}

export class Ownership {
  readonly name: string;
  readonly leaseId: Uint8Array;
  readonly token: number;
  readonly revision: number;
  readonly hold: Hold;
  /** Handles that are not released: more than 1 only for reentrant acquires. */
  handles = 0;
  ttlMs: number;

  readonly #parts: Parts;
  readonly #keeper: Keeper | null;
  readonly #loop: RenewalLoop | undefined;
  #release: Promise<number> | undefined;
  #onEnd: (() => void) | undefined;

  constructor(parts: Parts, init: OwnershipInit) {
    const { grant, keeper } = init;
    this.#parts = parts;
    this.#keeper = keeper;
    this.name = init.name;
    this.leaseId = grant.leaseId;
    this.token = grant.token;
    this.revision = grant.revision;
    this.ttlMs = grant.ttlMs;
    const what = `lease of ${init.name}`;
    const onLost = (): void => this.#onLost();
    this.hold = new Hold(parts.ambient, what, init.sample, grant.deadlineMs, onLost);
    if (keeper !== null) return;
    this.#loop = new RenewalLoop(parts.ambient, new OwnRenewals(parts, this));
    this.#loop.schedule();
    parts.leader.watch(this);
  }

  get key(): string {
    return hexOf(this.leaseId);
  }

  get inSession(): boolean {
    return this.#keeper !== null;
  }

  /** `onEnd` is called once the lease is lost, released or abandoned. One listener. */
  onEnd(onEnd: () => void): void {
    this.#onEnd = onEnd;
  }

  onLeaderLost(): void {
    this.hold.jeopardize();
  }

  onLeaderFound(): void {
    this.#loop?.renewNow();
  }

  /**
   * The session was renewed in the entry stamped `sample.clusterTimeMs`. A lease that was overdue
   * by its own TTL had ended before (docs/SEMANTICS.md, SessionRenew).
   */
  onSessionRenewed(sample: Sample, sessionDeadlineMs: number): void {
    if (sample.clusterTimeMs >= this.hold.deadlineMs) {
      const message = `lease of ${this.name} was overdue when its session was renewed`;
      this.hold.lose(new HoldfastError(ErrorCode.LeaseExpired, { message }));
      return;
    }
    const deadlineMs = Math.min(sessionDeadlineMs, sample.clusterTimeMs + this.ttlMs);
    this.hold.extend(sample, deadlineMs);
  }

  /** Renews this lease by its own command. Rejects STALE_LEASE when it has ended. */
  async renew(
    ttlMs: number,
    metadata: Uint8Array | null,
    deadlineMs: number,
    isOwnWork = false,
  ): Promise<void> {
    const call = this.#parts.leader.call({
      operation: renewOperation(this.leaseId, ttlMs < 0 ? null : ttlMs, metadata),
      deadlineMs,
      isLogged: true,
      isEssential: true,
      isOwnWork,
    });
    let reply: Reply;
    try {
      reply = await call.result;
    } catch (error) {
      this.#onRenewalFailed(error);
      throw error;
    }
    const sentAt = call.firstSentAt ?? this.#parts.ambient.clock.read();
    this.#parts.ambient.counters.renewals += 1;
    this.ttlMs = numberAt(reply.fields, 1);
    this.hold.extend({ sentAt, clusterTimeMs: reply.clusterTimeMs }, numberAt(reply.fields, 0));
    this.#loop?.schedule();
    this.#keeper?.onLeaseChanged(this);
  }

  /**
   * Gives the lease back; every call gets the same answer: the revision of its end. With a `reason`
   * work that still runs under it is told by the signal.
   */
  release(deadlineMs: number, reason?: HoldfastError): Promise<number> {
    this.#release ??= this.#releaseOnce(deadlineMs, reason);
    return this.#release;
  }

  /** The session or the client ended it: nothing is owed. */
  abandon(error: HoldfastError): void {
    this.hold.release(error);
    this.#stop();
  }

  async #releaseOnce(deadlineMs: number, reason?: HoldfastError): Promise<number> {
    this.hold.review();
    if (this.hold.state === 'lost')
      throw this.hold.error ?? new HoldfastError(ErrorCode.StaleLease);
    this.hold.release(reason);
    this.#stop();
    const call = this.#parts.leader.call({
      operation: releaseOperation(this.leaseId),
      deadlineMs,
      isLogged: true,
      isEssential: true,
    });
    try {
      const reply = await call.result;
      return numberAt(reply.fields, 0);
    } catch (error) {
      if (!isOver(error)) this.#oweRelease();
      throw error;
    }
  }

  #onRenewalFailed(error: unknown): void {
    this.#parts.ambient.counters.renewalFailures += 1;
    if (isOver(error)) this.hold.lose(error);
    else this.hold.jeopardize();
  }

  #onLost(): void {
    this.#parts.ambient.counters.leasesLost += 1;
    this.#stop();
    if (!isOver(this.hold.error)) this.#oweRelease();
  }

  #stop(): void {
    this.#loop?.stop();
    this.#parts.leader.unwatch(this);
    this.#keeper?.onLeaseChanged(this);
    this.#onEnd?.();
  }

  #oweRelease(): void {
    if (this.#keeper?.isLive === false) return; // it ends with its session
    this.#parts.debts.owe({ operation: releaseOperation(this.leaseId) });
  }
}

/** The cluster itself said that the lease has ended. */
function isOver(error: unknown): error is HoldfastError {
  return (
    error instanceof HoldfastError &&
    (error.number === ErrorCode.StaleLease || error.number === ErrorCode.SessionExpired)
  );
}

/** [command, request, session, acknowledged, trace, lease]: idempotent by the lease it names. */
export function releaseOperation(leaseId: Uint8Array): PackValue[] {
  return [CommandKind.Release, null, null, null, null, leaseId];
}

/** [command, request, session, acknowledged, trace, lease, ttl, metadata]. */
export function renewOperation(
  leaseId: Uint8Array,
  ttlMs: number | null,
  metadata: Uint8Array | null,
): PackValue[] {
  return [CommandKind.Renew, null, null, null, null, leaseId, ttlMs, metadata];
}

/** The renewals of a lease without a session. */
class OwnRenewals {
  readonly #parts: Parts;
  readonly #ownership: Ownership;

  constructor(parts: Parts, ownership: Ownership) {
    this.#parts = parts;
    this.#ownership = ownership;
  }

  get shortestTtlMs(): number {
    return this.#ownership.ttlMs;
  }

  renew(): Promise<void> {
    const { ttlMs, hold } = this.#ownership;
    const deadlineMs = renewalDeadlineMs(ttlMs, hold.remainingMs());
    return this.#ownership.renew(-1, null, deadlineMs, true);
  }

  onUnanswered(timeoutMs: number): void {
    this.#ownership.hold.jeopardize();
    this.#parts.leader.suspect(Math.max(timeoutMs, SUSPECT_MS_MIN));
  }
}
