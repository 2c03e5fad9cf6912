/**
 * The one error class that the client throws, built from the wire's error table.
 *
 * Owns: how a refusal, a time-out and a lost lease look to a program: a stable `code`, whether a
 * retry may help, what became of the operation, and details such as who holds. Never: another class
 * for another cause; programs branch on `code`. Used by: every file of the client and its users.
 */
import {
  ERROR_ROWS,
  ErrorCode,
  type ErrorOutcome,
  type ErrorRow,
  errorRow,
} from '../wire/errors.js';
import type { SilentNode } from './unreachable.js';

export { ErrorCode };

/**
 * Who stands in the way of a LOCK_BUSY, or holds where a forced release meant another (CONFLICT).
 * All 0 and empty when nobody holds.
 */
export interface Holder {
  /** Fencing token of the holder's lease; 0 when nobody holds. */
  readonly token: number;
  /** Cluster time in ms at which it was granted. */
  readonly sinceMs: number;
  /** Cluster time in ms at which it ends unless renewed. */
  readonly deadlineMs: number;
  /** Milliseconds of cluster time from this answer until then. */
  readonly endsInMs: number;
  /** Number of the principal that holds. */
  readonly principal: number;
  /** null when it gave none, as in a get. */
  readonly metadata: Uint8Array | null;
}

/** How a lease ended, as STALE_LEASE says it; `unknown`: never issued, or too long ago. */
export type LeaseEnd =
  | 'unknown'
  | 'released'
  | 'expired'
  | 'session_expired'
  | 'session_closed'
  | 'forced'
  | 'taken_over'
  | 'restored';

/** A grant that won against a cancel; the client has released it or will. */
export interface ReleasedGrant {
  readonly token: number;
  readonly revision: number;
}

/** What an error knows beside its code. A field is absent when it does not apply. */
export interface ErrorDetails {
  /** LOCK_BUSY; CONFLICT of a forced release. */
  readonly holder?: Holder;
  /** STALE_LEASE. */
  readonly leaseEnd?: LeaseEnd;
  /**
   * STALE_LEASE: revision of the event that ended the lease, 0 when not known. DISABLED: since
   * which revision.
   */
  readonly revision?: number;
  /** BAD_REQUEST, LIMIT: the field or bound that the refusal names. */
  readonly field?: string;
  /** COMPACTED: the oldest revision that the asked node still has. */
  readonly oldestRevision?: number;
  /** CANCELLED: the lock had been granted before the cancel arrived, and was given back. */
  readonly granted?: ReleasedGrant;
  /** NOT_LEADER: address of the leader, `host:port`. */
  readonly leader?: string;
  /** NO_QUORUM: nobody answered at any of these addresses. Absent when some node did. */
  readonly silent?: readonly SilentNode[];
  /** withLock, LEASE_EXPIRED: what the work had returned when its lease was found lost. */
  readonly value?: unknown;
}

/** How to make an error that the table does not fully describe. */
export interface ErrorInit {
  /** One sentence: what failed, actual and wanted value. The table's words when absent. */
  readonly message?: string;
  /** What became of the operation; the table's verdict when absent. */
  readonly outcome?: ErrorOutcome;
  readonly retryable?: boolean;
  /** How long the node asks to wait, ms; -1 when it does not say. */
  readonly retryAfterMs?: number;
  readonly details?: ErrorDetails;
  readonly cause?: unknown;
}

const CODE_BY_NAME: ReadonlyMap<string, ErrorRow> = new Map(
  ERROR_ROWS.map((row) => [row.code, row]),
);

/**
 * Every failure of the client. `code` is one of docs/ERRORS.md and stays the same for ever.
 *
 * @example
 * try {
 *   await client.acquire('jobs/nightly', { waitMs: 0 });
 * } catch (error) {
 *   if (isHoldfastError(error, 'LOCK_BUSY')) console.log(error.details.holder?.token);
 *   else throw error;
 * }
 */
export class HoldfastError extends Error {
  override readonly name = 'HoldfastError';
  /** Stable public code, for example `LOCK_BUSY`. */
  readonly code: string;
  /** Number of the code on the wire. */
  readonly number: number;
  /** True when the same call may succeed later. */
  readonly retryable: boolean;
  /** Whether the operation had an effect: `none`, `applied`, or `unknown`. */
  readonly outcome: ErrorOutcome;
  /** Milliseconds after which a node wants to be asked again, -1 when it does not say. */
  readonly retryAfterMs: number;
  readonly details: ErrorDetails;
  /** Failures that happened while this one was handled, oldest first; usually empty. */
  readonly suppressed: unknown[] = [];

  /** `number` is an ErrorCode; `init` overrides the words and verdicts of the table. */
  constructor(number: number, init: ErrorInit = {}) {
    const row = errorRow(number);
    const options = init.cause === undefined ? undefined : { cause: init.cause };
    super(init.message ?? row.meaning, options);
    this.code = row.code;
    this.number = number;
    this.retryable = init.retryable ?? row.retryable;
    this.outcome = init.outcome ?? row.outcome;
    this.retryAfterMs = init.retryAfterMs ?? -1;
    this.details = init.details ?? {};
  }
}

/** True when `error` is a HoldfastError, and has `code` when one is given. */
export function isHoldfastError(error: unknown, code?: string): error is HoldfastError {
  if (code !== undefined && !CODE_BY_NAME.has(code)) throw new Error(`no such error code: ${code}`);
  return error instanceof HoldfastError && (code === undefined || error.code === code);
}

/** The error itself; anything else that was thrown becomes the cause of UNKNOWN_OUTCOME. */
export function asHoldfastError(error: unknown): HoldfastError {
  if (error instanceof HoldfastError) return error;
  const message = `the client failed: ${String(error)}`;
  return new HoldfastError(ErrorCode.UnknownOutcome, { message, cause: error, retryable: false });
}

/** A call that the client refuses before anything is sent. `field` is the option that is wrong. */
export function badRequest(field: string, message: string): HoldfastError {
  return new HoldfastError(ErrorCode.BadRequest, { message, details: { field } });
}

/** The client was closed; `outcome` says whether the call may have had an effect. */
export function clientClosed(outcome: ErrorOutcome): HoldfastError {
  const message = 'close ended this call: the client was closed';
  return new HoldfastError(ErrorCode.ShuttingDown, { message, outcome, retryable: false });
}

/** Adds what went wrong on the way to an error without hiding the error itself. */
export function suppress(error: unknown, other: unknown): void {
  if (error instanceof HoldfastError) {
    error.suppressed.push(other);
    return;
  }
  if (!(error instanceof Error) || !Object.isExtensible(error)) return;
  const present: unknown = Reflect.get(error, 'suppressed');
  if (Array.isArray(present)) present.push(other);
  else if (present === undefined) Reflect.defineProperty(error, 'suppressed', hidden([other]));
}

function hidden(value: unknown[]): PropertyDescriptor {
  return { value, writable: true, configurable: true, enumerable: false };
}
