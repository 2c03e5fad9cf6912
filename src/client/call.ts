/**
 * One operation on its way: what is sent, how often, until when, and who is told.
 *
 * Owns: the promise, the deadline, and whether an earlier attempt may have had an effect. Never:
 * chooses a connection; leader.ts does. A call settles once: whatever comes later is ignored.
 * Used by: leader.ts, connection.ts, and everyone who asks something of the cluster.
 */
import type { PackValue } from '../wire/msgpack-writer.js';
import type { Reply } from '../wire/response.js';
import { Alarm } from './alarm.js';
import type { Ambient } from './ambient.js';
import type { Instant } from './clock.js';
import { ErrorCode, HoldfastError } from './errors.js';
import type { Acknowledgement, Sequences } from './sequences.js';

/** What a call was sent on. */
export interface Carrier {
  /** `host:port` of the node. */
  readonly address: string;
  /** The call was settled otherwise: its answer is no longer awaited. */
  forget(call: Call): void;
}

/** A session as the road to the leader sees it: it must be attached to a connection first. */
export interface Binding {
  readonly key: string;
  /** The attach operation, built anew for each connection. */
  attachOperation(): PackValue[];
  /** The connection is attached; the reply has deadline, ttl and whether the session has ended. */
  onAttached(reply: Reply): void;
  /** The cluster does not know the session any more. */
  onGone(error: HoldfastError): void;
}

/** What a call is made of. */
export interface CallSpec {
  /** The operation as MessagePack elements; element 3 is replaced by the acknowledgement. */
  readonly operation: PackValue[];
  /** Milliseconds from now until the call is failed. */
  readonly deadlineMs: number;
  /**
   * True when the operation goes to the log: an attempt without an answer may have had an effect.
   */
  readonly isLogged: boolean;
  /** Milliseconds more once the operation stands in a queue. */
  readonly waitMs?: number;
  /** The session that the connection must be attached to. */
  readonly binding?: Binding;
  /** Acknowledgements to carry. */
  readonly sequences?: Sequences;
  /** Any node that was greeted can answer. */
  readonly isRead?: boolean;
  /**
   * Goes before others and is not counted against the retry budget: renewals, releases, cancels.
   */
  readonly isEssential?: boolean;
  /** The request id was chosen by this process, so a replay is an answer to our own attempt. */
  readonly isOwnRequest?: boolean;
  /** Asked by the client by itself, such as a renewal: its span begins a trace of its own. */
  readonly isOwnWork?: boolean;
  /** Called for each reply that says that the operation stands in the queue. */
  readonly onQueued?: (reply: Reply) => void;
  /** Only for this connection: a call that is lost with it is not sent on another. */
  readonly isPinned?: boolean;
}

/** Place of the acknowledgement in a logged operation. */
const ACKNOWLEDGED_ELEMENT = 3;

export class Call {
  readonly result: Promise<Reply>;
  /** When the first attempt was written; the `s` of the safe deadline. */
  firstSentAt: Instant | undefined;
  /** The connection that the call was sent on last and not yet answered by. */
  connection: Carrier | undefined;
  correlation = 0;
  /** What the answer came on; undefined before it came. */
  answeredBy: Carrier | undefined;
  /** Refusals so far, for the back-off. */
  refusals = 0;
  isSettled = false;
  isQueued = false;
  /** What last went wrong, for the words of a time-out. */
  lastError: HoldfastError | undefined;

  readonly #ambient: Ambient;
  readonly #alarm: Alarm;
  #deadlineAtMs: number;
  #acknowledgement: Acknowledgement | undefined;
  /** An attempt was written and is not answered. */
  #isAttempting = false;
  /** An attempt was lost without an answer. */
  #wasLost = false;
  #resolve: (reply: Reply) => void = unset;
  #reject: (error: HoldfastError) => void = unset;

  constructor(
    ambient: Ambient,
    readonly spec: CallSpec,
  ) {
    this.#ambient = ambient;
    this.result = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    this.result.catch(unset); // the owner awaits it; a call given up has none
    this.#deadlineAtMs = ambient.clock.nowMs() + spec.deadlineMs;
    this.#alarm = new Alarm(ambient.clock, () => this.#wake());
    this.#alarm.wakeWithin(spec.deadlineMs);
  }

  /** True when an attempt of a logged operation was written whose outcome is not known. */
  get mayHaveEffect(): boolean {
    return this.spec.isLogged && (this.#wasLost || this.#isAttempting);
  }

  /** True once an attempt was written. */
  get wasSent(): boolean {
    return this.firstSentAt !== undefined;
  }

  /** Milliseconds until the call is failed, not below 0. */
  remainingMs(): number {
    return Math.max(0, this.#deadlineAtMs - this.#ambient.clock.nowMs());
  }

  /** The cluster has put the operation into a queue: its wait counts from now on. */
  queued(reply: Reply): void {
    if (!this.isQueued) this.#deadlineAtMs += this.spec.waitMs ?? 0;
    this.isQueued = true;
    this.#endAcknowledgement(true);
    this.spec.onQueued?.(reply);
  }

  /** The operation with what this attempt acknowledges. Called when the attempt is written. */
  encode(sentAt: Instant): PackValue[] {
    this.firstSentAt ??= sentAt;
    this.#isAttempting = true;
    const { sequences, operation } = this.spec;
    if (sequences === undefined) return operation;
    const acknowledgement = sequences.acknowledge();
    this.#acknowledgement = acknowledgement;
    const { mark, singles } = acknowledgement;
    operation[ACKNOWLEDGED_ELEMENT] = singles.length === 0 ? mark : [mark, ...singles];
    return operation;
  }

  /** The attempt in flight was answered; `wasApplied` when an entry carried it. */
  attemptAnswered(wasApplied: boolean): void {
    this.#isAttempting = false;
    this.#endAcknowledgement(wasApplied);
  }

  /** The node said that it does not know what became of the attempt. */
  attemptUnknown(): void {
    this.#wasLost = true;
  }

  /** The attempt in flight will not be answered: it may or may not have had an effect. */
  attemptLost(): void {
    if (this.#isAttempting) this.#wasLost = true;
    this.#isAttempting = false;
    this.#endAcknowledgement(false);
  }

  settle(reply: Reply): void {
    if (this.#finish()) this.#resolve(reply);
  }

  fail(error: HoldfastError): void {
    if (this.#finish()) this.#reject(error);
  }

  #finish(): boolean {
    if (this.isSettled) return false;
    this.isSettled = true;
    this.#alarm.cancel();
    this.#endAcknowledgement(false);
    this.connection?.forget(this);
    return true;
  }

  #endAcknowledgement(wasApplied: boolean): void {
    const acknowledgement = this.#acknowledgement;
    if (acknowledgement === undefined) return;
    this.#acknowledgement = undefined;
    if (wasApplied) this.spec.sequences?.told(acknowledgement);
    else this.spec.sequences?.untold(acknowledgement);
  }

  #wake(): number {
    const remaining = this.remainingMs();
    if (remaining > 0) return remaining;
    this.fail(deadlineError(this));
    return Number.POSITIVE_INFINITY;
  }
}

/** What a call is failed with at its deadline. */
function deadlineError(call: Call): HoldfastError {
  const why = call.lastError === undefined ? '' : `; last: ${call.lastError.message}`;
  const cause = call.lastError;
  if (call.mayHaveEffect) {
    const message = `no answer within the deadline, the operation may have taken effect${why}`;
    return new HoldfastError(ErrorCode.UnknownOutcome, { message, cause });
  }
  // Without a leader the reason says more than the time that ran out.
  if (cause?.number === ErrorCode.NoQuorum) {
    const { message, details } = cause;
    return new HoldfastError(ErrorCode.NoQuorum, { message, details, retryable: true });
  }
  const message = `not answered within the deadline, without effect${why}`;
  return new HoldfastError(ErrorCode.DeadlinePassed, { message, cause, retryable: true });
}

function unset(): void {
  // Replaced when the promise is made; as a catch: the owner of the call is told by its await.
}
