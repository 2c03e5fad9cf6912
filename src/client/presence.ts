/**
 * A client's presence at the cluster, kept alive by one jittered renewal loop for all its leases.
 *
 * Owns: the session's hold, its sequences, its leases and its end. After a change of leader it is
 * attached again and renewed at once: jeopardy, then open, never lost for that alone. Never: an
 * acquire; acquire.ts does that with the sequences from here.
 * Used by: session.ts (its public face), acquire.ts, client.ts.
 */
import type { PackValue } from '../wire/msgpack-writer.js';
import { CommandKind } from '../wire/request.js';
import type { Reply } from '../wire/response.js';
import { attended } from './attended.js';
import { SUSPECT_MS_MIN } from './bounds.js';
import type { Binding } from './call.js';
import type { Sample } from './deadline.js';
import { ErrorCode, HoldfastError } from './errors.js';
import { Hold } from './hold.js';
import { LeaseChecks } from './lease-checks.js';
import type { Keeper, Ownership } from './ownership.js';
import type { Parts } from './parts.js';
import { type Renewable, RenewalLoop, renewalDeadlineMs } from './renewal-loop.js';
import { bytesAt, hexOf, numberAt } from './reply.js';
import { Sequences } from './sequences.js';
import { ShortestTtl } from './shortest-ttl.js';

/** What the cluster said of a session that was opened. */
export interface SessionInit {
  readonly id: Uint8Array;
  readonly secret: Uint8Array;
  readonly ttlMs: number;
  readonly deadlineMs: number;
  readonly sample: Sample;
}

/** Reads session, secret, deadline, ttl of an answered open. */
export function sessionInitOf(reply: Reply, sample: Sample): SessionInit {
  return {
    id: bytesAt(reply.fields, 0),
    secret: bytesAt(reply.fields, 1),
    deadlineMs: numberAt(reply.fields, 2),
    ttlMs: numberAt(reply.fields, 3),
    sample,
  };
}

/** Whoever waits for something that a lost session will never give. */
export interface PresenceWatcher {
  onLost(error: HoldfastError): void;
}

export class Presence implements Binding, Keeper, Renewable {
  /** The session's id: 32 hexadecimal digits. */
  readonly key: string;
  readonly sequences = new Sequences();
  readonly hold: Hold;

  readonly #parts: Parts;
  readonly #idBytes: Uint8Array;
  readonly #secret: Uint8Array;
  readonly #loop: RenewalLoop;
  readonly #leases = new Map<string, Ownership>();
  readonly #checks: LeaseChecks;
  readonly #shortestTtl = new ShortestTtl();
  readonly #watchers = new Set<PresenceWatcher>();
  /** Acquires that wait for the window of sequences, in the order they came. */
  readonly #roomWaiters = new Set<() => void>();
  #ttlMs: number;
  #close: Promise<void> | undefined;
  #onEnd: (() => void) | undefined;

  constructor(parts: Parts, init: SessionInit) {
    this.#parts = parts;
    this.#idBytes = init.id;
    this.#secret = init.secret;
    this.#ttlMs = init.ttlMs;
    this.key = hexOf(init.id);
    const onLost = (error: HoldfastError): void => this.#onLost(error);
    this.hold = new Hold(parts.ambient, 'session', init.sample, init.deadlineMs, onLost);
    this.#checks = new LeaseChecks(parts, this.#leases);
    this.#loop = new RenewalLoop(parts.ambient, this);
    this.#loop.schedule();
    parts.leader.watch(this);
  }

  /** TTL that the cluster granted, ms. */
  get ttlMs(): number {
    return this.#ttlMs;
  }

  /** Leases that live in this session. */
  get leaseCount(): number {
    return this.#leases.size;
  }

  get isLive(): boolean {
    return this.hold.isLive;
  }

  /** The session's id as bytes, for operations. */
  get idBytes(): Uint8Array {
    return this.#idBytes;
  }

  /** `onEnd` is called once the session is lost or closed. One listener. */
  onEnd(onEnd: () => void): void {
    this.#onEnd = onEnd;
  }

  /** Closes the session, once; see Session.close. */
  close(deadlineMs: number): Promise<void> {
    this.#close ??= attended(this.#closeOnce(deadlineMs));
    return this.#close;
  }

  /** The shortest TTL that depends on the renewals. */
  get shortestTtlMs(): number {
    return Math.min(this.#ttlMs, this.#shortestTtl.leastMs);
  }

  /** One renewal of the loop. */
  renew(): Promise<void> {
    const deadlineMs = renewalDeadlineMs(this.shortestTtlMs, this.hold.remainingMs());
    return this.renewWith(null, deadlineMs, true);
  }

  /** Renews, with a new TTL when one is given, and extends every lease. */
  async renewWith(ttlMs: number | null, deadlineMs: number, isOwnWork = false): Promise<void> {
    const call = this.#parts.leader.call({
      operation: [CommandKind.SessionRenew, null, this.#idBytes, null, null, ttlMs],
      deadlineMs,
      isLogged: true,
      isEssential: true,
      isOwnWork,
      binding: this,
    });
    let reply: Reply;
    try {
      reply = await call.result;
    } catch (error) {
      this.#onRenewalFailed(error);
      throw error;
    }
    const sentAt = call.firstSentAt ?? this.#parts.ambient.clock.read();
    this.#onRenewed({ sentAt, clusterTimeMs: reply.clusterTimeMs }, reply);
  }

  onUnanswered(timeoutMs: number): void {
    this.#jeopardize();
    this.#parts.leader.suspect(Math.max(timeoutMs, SUSPECT_MS_MIN));
  }

  onLeaderLost(): void {
    this.#jeopardize();
  }

  /** The road calls onAttached when the session is attached to the new leader. */
  onLeaderFound(): void {
    // Nothing before the attach.
  }

  attachOperation(): PackValue[] {
    return [CommandKind.SessionAttach, this.#idBytes, this.#secret];
  }

  /** An attach is a read, no sample: the session is renewed at once. */
  onAttached(reply: Reply): void {
    const ended = reply.fields[2];
    if (ended === true || (typeof ended === 'number' && ended !== 0)) {
      this.onGone(new HoldfastError(ErrorCode.SessionExpired));
      return;
    }
    this.#loop.renewNow();
  }

  onGone(error: HoldfastError): void {
    this.hold.lose(error);
  }

  /** The session keeps this lease from now on. */
  add(ownership: Ownership): void {
    this.#leases.set(ownership.key, ownership);
    this.onLeaseChanged(ownership);
  }

  onLeaseChanged(ownership: Ownership): void {
    const { key, hold, ttlMs } = ownership;
    if (hold.isLive) {
      this.#shortestTtl.set(key, ttlMs);
      this.#loop.schedule();
    } else {
      this.#shortestTtl.delete(key);
      this.#leases.delete(key);
    }
  }

  /** A sequence is final for its caller: its result may be forgotten. */
  settle(sequence: number): void {
    this.sequences.settle(sequence);
    this.#tellRoom();
  }

  queued(sequence: number): void {
    this.sequences.queued(sequence);
    this.#tellRoom();
  }

  watch(watcher: PresenceWatcher): void {
    this.#watchers.add(watcher);
  }

  unwatch(watcher: PresenceWatcher): void {
    this.#watchers.delete(watcher);
  }

  /** `onRoom` is called once, when the next sequence may be taken; it takes it at once. */
  awaitRoom(onRoom: () => void): void {
    this.#roomWaiters.add(onRoom);
  }

  abandonRoom(onRoom: () => void): void {
    this.#roomWaiters.delete(onRoom);
  }

  /** The client is closed before the cluster answered: nothing is believed any more. */
  abandon(error: HoldfastError): void {
    this.#stop();
    this.#endLeases(error);
    this.hold.release(error);
  }

  #tellRoom(): void {
    for (const waiter of this.#roomWaiters) {
      if (!this.sequences.hasRoom) return;
      this.#roomWaiters.delete(waiter);
      waiter();
    }
  }

  #onRenewed(sample: Sample, reply: Reply): void {
    this.#parts.ambient.counters.renewals += 1;
    const deadlineMs = numberAt(reply.fields, 0);
    this.#ttlMs = numberAt(reply.fields, 1);
    this.hold.extend(sample, deadlineMs);
    if (!this.hold.isLive) return;
    for (const ownership of [...this.#leases.values()]) {
      ownership.onSessionRenewed(sample, deadlineMs);
    }
    this.#checks.look(renewalDeadlineMs(this.shortestTtlMs, this.hold.remainingMs()));
    this.#loop.schedule();
  }

  #onRenewalFailed(error: unknown): void {
    this.#parts.ambient.counters.renewalFailures += 1;
    const isGone = error instanceof HoldfastError && error.number === ErrorCode.SessionExpired;
    if (isGone) this.hold.lose(error);
    else this.#jeopardize();
  }

  #jeopardize(): void {
    this.hold.jeopardize();
    for (const ownership of [...this.#leases.values()]) ownership.hold.jeopardize();
  }

  #onLost(error: HoldfastError): void {
    this.#parts.ambient.counters.sessionsLost += 1;
    this.#stop();
    for (const ownership of [...this.#leases.values()]) ownership.hold.lose(error);
    this.#leases.clear();
    this.#tellLost(error);
    if (error.number === ErrorCode.SessionExpired) {
      this.#parts.leader.unbind(this);
      return;
    }
    const done = (): void => this.#parts.leader.unbind(this);
    const operation = this.#closeOperation();
    this.#parts.debts.owe({ operation, binding: this, onPaid: done, onDropped: done });
  }

  async #closeOnce(deadlineMs: number): Promise<void> {
    if (!this.hold.isLive) return;
    this.#stop();
    this.hold.release();
    this.#endLeases(sessionClosed());
    try {
      await this.#parts.leader.call({
        operation: this.#closeOperation(),
        deadlineMs,
        isLogged: true,
        isEssential: true,
        binding: this,
      }).result;
    } catch (error) {
      const isGone = error instanceof HoldfastError && error.number === ErrorCode.SessionExpired;
      if (!isGone) throw error;
    } finally {
      this.#parts.leader.unbind(this);
    }
  }

  #closeOperation(): PackValue[] {
    return [CommandKind.SessionClose, null, this.#idBytes, null, null];
  }

  #stop(): void {
    this.#loop.stop();
    this.#parts.leader.unwatch(this);
    this.#onEnd?.();
  }

  #tellLost(error: HoldfastError): void {
    for (const watcher of [...this.#watchers]) watcher.onLost(error);
  }

  /** Work that still runs under a lease of a closed session is told by the lease's signal. */
  #endLeases(error: HoldfastError): void {
    const leases = [...this.#leases.values()];
    this.#leases.clear();
    for (const ownership of leases) ownership.abandon(error);
  }
}

function sessionClosed(): HoldfastError {
  const message = 'the session of this lease was closed';
  return new HoldfastError(ErrorCode.LeaseExpired, { message, outcome: 'applied' });
}
