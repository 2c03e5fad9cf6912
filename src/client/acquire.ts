/**
 * One acquire from its request id to its lease, or to an error that says what became of it.
 *
 * Owns: the race of grant, cancel, deadline and session loss. Steps of an abort: (1) the signal
 * fires; (2) a request that was never written is failed, without effect; otherwise (3) a cancel
 * follows it; (4) the acquire's own final answer or the cancel's, whichever comes first, decides;
 * they agree, since one entry of the log decided. A grant that nobody waits for any more is given
 * back. Never: a lease that is believed in without a fresh sample. Used by: client.ts.
 */
import type { PackValue } from '../wire/msgpack-writer.js';
import { CommandKind } from '../wire/request.js';
import type { Reply } from '../wire/response.js';
import type { Call } from './call.js';
import { type Bound, boundOf, longerBound, remainingMs, type Sample } from './deadline.js';
import { ErrorCode, HoldfastError } from './errors.js';
import type { AcquirePlan } from './options.js';
import { Ownership, releaseOperation, renewOperation } from './ownership.js';
import type { Parts } from './parts.js';
import type { Presence, PresenceWatcher } from './presence.js';
import { type Grant, grantAt, numberAt } from './reply.js';
import { takeSequence } from './sequence-wait.js';
import type { TimeLeft } from './time-left.js';

/** A grant of which less than this share of its TTL is left is renewed before it is believed. */
const FRESH_SHARE = 0.5;

/**
 * Acquires one lock. Without `presence` the lease stands alone. Settles by `timeLeft`, to which the
 * plan's wait is added when the request stands in the queue. Rejects with a HoldfastError:
 * LOCK_BUSY, WAIT_TIMEOUT, CANCELLED, CONFLICT, LIMIT, BAD_REQUEST, SESSION_EXPIRED, OVERLOADED,
 * NO_QUORUM, UNKNOWN_OUTCOME or DEADLINE_PASSED.
 */
export async function acquire(
  parts: Parts,
  plan: AcquirePlan,
  presence: Presence | null,
  timeLeft: TimeLeft,
): Promise<Ownership> {
  if (plan.signal?.aborted === true) throw cancelled(plan, 'none');
  if (presence === null) {
    const id = plan.requestId ?? parts.ambient.clock.randomId();
    return new Acquisition(parts, plan, null, id, timeLeft).run();
  }
  const sequence = await takeSequence(parts, plan, presence, timeLeft);
  return new Acquisition(parts, plan, presence, sequence, timeLeft).run();
}

function cancelled(plan: AcquirePlan, outcome: 'none' | 'unknown'): HoldfastError {
  const message = `the acquire of ${plan.name} was cancelled by its signal`;
  return new HoldfastError(ErrorCode.Cancelled, { message, outcome, cause: plan.signal?.reason });
}

class Acquisition implements PresenceWatcher {
  readonly #parts: Parts;
  readonly #plan: AcquirePlan;
  readonly #presence: Presence | null;
  readonly #request: number | string | Uint8Array;
  readonly #timeLeft: TimeLeft;
  readonly #call: Call;
  #isQueued = false;
  #isAborted = false;

  constructor(
    parts: Parts,
    plan: AcquirePlan,
    presence: Presence | null,
    request: number | string | Uint8Array,
    timeLeft: TimeLeft,
  ) {
    this.#parts = parts;
    this.#plan = plan;
    this.#presence = presence;
    this.#request = request;
    this.#timeLeft = timeLeft;
    this.#call = parts.leader.call({
      operation: this.#operation(),
      deadlineMs: timeLeft.ms,
      waitMs: plan.extensionMs,
      isLogged: true,
      isOwnRequest: plan.requestId === null,
      onQueued: () => this.#onQueued(),
      ...(presence === null ? {} : { binding: presence, sequences: presence.sequences }),
    });
  }

  async run(): Promise<Ownership> {
    const { aborts } = this.#parts.ambient;
    const stopWatching = aborts.watch(this.#plan.signal, () => this.#abort());
    this.#presence?.watch(this);
    if (this.#plan.signal?.aborted === true) this.#abort();
    try {
      return await this.#believe(await this.#decided());
    } finally {
      stopWatching();
      this.#presence?.unwatch(this);
    }
  }

  onLost(error: HoldfastError): void {
    const message = `the session was lost while it acquired ${this.#plan.name}: ${error.message}`;
    const outcome = this.#call.mayHaveEffect ? 'unknown' : 'none';
    this.#call.fail(
      new HoldfastError(ErrorCode.SessionExpired, { message, outcome, cause: error }),
    );
  }

  /** [command, request, session, acknowledged, trace, name, ttl, wait, mode, permits, …]. */
  #operation(): PackValue[] {
    const plan = this.#plan;
    return [
      CommandKind.Acquire,
      this.#request,
      this.#presence?.idBytes ?? null,
      null,
      plan.traceId,
      plan.name,
      plan.ttlMs,
      plan.waitMs,
      null,
      null,
      null,
      plan.expectedRevision,
      plan.owner,
      plan.metadata,
      plan.notAfterMs,
      plan.lockDelayMs,
      plan.holdMsMax,
    ];
  }

  /** The grant, or the refusal as an error; either way nothing more is owed for the request id. */
  async #decided(): Promise<Decided> {
    try {
      const reply = await this.#call.result;
      const grant = grantAt(reply.fields, 0);
      this.#settle();
      return { reply, grant };
    } catch (error) {
      this.#onRefused(error);
      throw error;
    }
  }

  /** For what follows the decision, or hurries it: never longer than one request may take. */
  get #stepMs(): number {
    return Math.min(this.#timeLeft.ms, this.#plan.deadlineMs);
  }

  #settle(): void {
    if (typeof this.#request === 'number') this.#presence?.settle(this.#request);
  }

  #onQueued(): void {
    if (!this.#isQueued) this.#timeLeft.extend(this.#plan.extensionMs);
    this.#isQueued = true;
    if (typeof this.#request === 'number') this.#presence?.queued(this.#request);
  }

  /** A request whose outcome is unknown is cancelled until the cluster has answered that. */
  #onRefused(error: unknown): void {
    const isGone = error instanceof HoldfastError && error.number === ErrorCode.SessionExpired;
    if (isGone) this.#presence?.onGone(error);
    if (!(error instanceof HoldfastError) || !this.#isOpen(error)) {
      this.#settle();
      return;
    }
    const settle = (): void => this.#settle();
    this.#parts.debts.owe({
      operation: this.#cancelOperation(),
      ...(this.#presence === null ? {} : { binding: this.#presence }),
      onPaid: (reply) => {
        this.#settle();
        if (reply.fields[0] === ErrorCode.Ok && reply.fields.length > 1) this.#oweRelease(reply);
      },
      onDropped: settle,
    });
  }

  /** True when the request may be granted, now or later, without anybody hearing of it. */
  #isOpen(error: HoldfastError): boolean {
    if (error.outcome === 'none') return false;
    if (error.number === ErrorCode.RequestForgotten) return false;
    return this.#presence === null || this.#presence.isLive;
  }

  #oweRelease(reply: Reply): void {
    this.#parts.ambient.counters.grantsReturned += 1;
    this.#parts.debts.owe({ operation: releaseOperation(grantAt(reply.fields, 1).leaseId) });
  }

  #cancelOperation(): PackValue[] {
    const session = this.#presence?.idBytes ?? null;
    return [CommandKind.Cancel, null, session, null, null, this.#request];
  }

  #abort(): void {
    if (this.#call.isSettled || this.#isAborted) return;
    this.#isAborted = true;
    if (!this.#call.wasSent) {
      this.#call.fail(cancelled(this.#plan, 'none'));
      return;
    }
    const cancel = this.#parts.leader.call({
      operation: this.#cancelOperation(),
      deadlineMs: this.#stepMs,
      isLogged: true,
      isEssential: true,
      ...(this.#presence === null ? {} : { binding: this.#presence }),
    });
    cancel.result.then(
      (reply) => this.#onCancelled(reply),
      (error: unknown) => this.#onCancelFailed(error),
    );
  }

  /** Fields of the answer: the code of the final result, and the grant if there was one. */
  #onCancelled(reply: Reply): void {
    if (this.#call.isSettled) return;
    const [cause, ...grant] = reply.fields;
    if (cause === ErrorCode.Ok && grant.length > 0) {
      this.#call.settle({ ...reply, fields: grant });
    } else if (typeof cause !== 'number' || cause === ErrorCode.Cancelled) {
      this.#call.fail(cancelled(this.#plan, 'none'));
    } else {
      this.#call.fail(new HoldfastError(cause, { outcome: 'none' }));
    }
  }

  #onCancelFailed(error: unknown): void {
    const message = `the cancel of ${this.#plan.name} was not answered: it may be granted yet`;
    this.#call.fail(new HoldfastError(ErrorCode.UnknownOutcome, { message, cause: error }));
  }

  /** Makes the lease of a grant, or gives the grant back when nobody wants it any more. */
  async #believe(decided: Decided): Promise<Ownership> {
    const { grant } = decided;
    if (this.#isAborted) return this.#giveBack(grant, cancelled(this.#plan, 'none'));
    const sample = await this.#freshSample(decided);
    if (this.#isAborted) return this.#giveBack(sample.grant, cancelled(this.#plan, 'none'));
    if (this.#presence?.isLive === false) {
      return this.#giveBack(sample.grant, new HoldfastError(ErrorCode.SessionExpired));
    }
    const ownership = new Ownership(this.#parts, {
      name: this.#plan.name,
      grant: sample.grant,
      sample: sample.sample,
      keeper: this.#presence,
    });
    if (!ownership.hold.isLive)
      throw ownership.hold.error ?? new HoldfastError(ErrorCode.LeaseExpired);
    this.#presence?.add(ownership);
    return ownership;
  }

  /** The caller is told by `reason`, with what was granted and given back. */
  async #giveBack(grant: Grant, reason: HoldfastError): Promise<never> {
    const { token, revision } = grant;
    this.#parts.ambient.counters.grantsReturned += 1;
    const call = this.#parts.leader.call({
      operation: releaseOperation(grant.leaseId),
      deadlineMs: this.#stepMs,
      isLogged: true,
      isEssential: true,
    });
    const error = new HoldfastError(reason.number, {
      message: `${reason.message}; it had been granted and was given back`,
      outcome: 'applied',
      details: { granted: { token, revision } },
      cause: reason.cause,
    });
    try {
      await call.result;
    } catch (failure) {
      error.suppressed.push(failure);
      this.#parts.debts.owe({ operation: releaseOperation(grant.leaseId) });
    }
    throw error;
  }

  /**
   * The sample that keeps the grant longest. A replay counts only when this process sent the id
   * first. With none that leaves half the TTL, the lease is renewed first (docs/CLIENT.md).
   */
  async #freshSample(decided: Decided): Promise<Fresh> {
    const { reply, grant } = decided;
    const { ambient } = this.#parts;
    const { firstSentAt } = this.#call;
    const samples: Sample[] = ambient.sample === undefined ? [] : [ambient.sample];
    const isOwn = !reply.isReplay || this.#plan.requestId === null;
    if (firstSentAt !== undefined && isOwn) {
      samples.push({ sentAt: firstSentAt, clusterTimeMs: reply.clusterTimeMs });
    }
    const now = ambient.clock.read();
    let best: Sample | undefined;
    let bound: Bound | undefined;
    for (const sample of samples) {
      const candidate = boundOf(sample, grant.deadlineMs);
      if (bound !== undefined && longerBound(ambient.clock, bound, candidate, now) === bound)
        continue;
      best = sample;
      bound = candidate;
    }
    if (best !== undefined && bound !== undefined) {
      const leftMs = remainingMs(ambient.clock, bound, now, ambient.loopDelay.ms);
      if (leftMs >= grant.ttlMs * FRESH_SHARE) return { grant, sample: best };
    }
    return this.#renewed(grant);
  }

  async #renewed(grant: Grant): Promise<Fresh> {
    const call = this.#parts.leader.call({
      operation: renewOperation(grant.leaseId, null, null),
      deadlineMs: this.#stepMs,
      isLogged: true,
      isEssential: true,
    });
    try {
      const reply = await call.result;
      const sentAt = call.firstSentAt ?? this.#parts.ambient.clock.read();
      const deadlineMs = numberAt(reply.fields, 0);
      return {
        grant: { ...grant, deadlineMs, ttlMs: numberAt(reply.fields, 1) },
        sample: { sentAt, clusterTimeMs: reply.clusterTimeMs },
      };
    } catch (error) {
      const isOver = error instanceof HoldfastError && error.number === ErrorCode.StaleLease;
      if (!isOver) this.#parts.debts.owe({ operation: releaseOperation(grant.leaseId) });
      throw error;
    }
  }
}

interface Decided {
  readonly reply: Reply;
  readonly grant: Grant;
}

/** A grant with a sample under which it can be believed. */
interface Fresh {
  readonly grant: Grant;
  readonly sample: Sample;
}
