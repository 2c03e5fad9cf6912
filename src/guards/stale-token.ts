/**
 * The refusal of a guard, and the other ways in which a guarded write can fail.
 *
 * Owns: STALE_TOKEN with both tokens, and the words of an outcome that nobody knows. Never: whether
 * a token is stale; the stores decide. Used by: every guard, programs.
 */
import { ErrorCode, HoldfastError } from '../client/errors.js';
import type { ErrorOutcome } from '../wire/errors.js';
import type { Fence } from './fence.js';

/**
 * The write was refused, and nothing of it was done: the resource has seen a newer token of this
 * lock. Stop working under this lease; trying again cannot help.
 */
export class StaleTokenError extends HoldfastError {
  /** Name of the lock. */
  readonly lock: string;
  /** Token that the resource has seen. */
  readonly seen: number;
  /** Token that the write showed. */
  readonly offered: number;
  /** Which guard refused, such as `postgres`. */
  readonly resource: string;

  /** @param outcome `unknown` when an earlier attempt at the same write may have been done. */
  constructor(resource: string, fence: Fence, seen: number, outcome: ErrorOutcome = 'none') {
    const { lock, token } = fence;
    const words = `${resource} refused a write under lock ${lock}`;
    const message = `${words}: its token is ${token}, ${seen} was seen`;
    super(ErrorCode.StaleToken, { message, outcome });
    this.lock = lock;
    this.seen = seen;
    this.offered = token;
    this.resource = resource;
  }
}

/** True when `error` is a guard's refusal of a stale token. */
export function isStaleToken(error: unknown): error is StaleTokenError {
  return error instanceof StaleTokenError;
}

/** The resource did not say whether the write was done. */
export function unknownWrite(resource: string, fence: Fence, cause: unknown): HoldfastError {
  const why = cause instanceof Error ? cause.message : String(cause);
  const message = `${resource} did not say what became of a write under ${fence.lock}: ${why}`;
  return new HoldfastError(ErrorCode.UnknownOutcome, { message, cause, retryable: true });
}

/** The resource belongs to another lock, so this token says nothing about it. */
export function otherLock(resource: string, what: string, owner: string): HoldfastError {
  const message = `${resource} refused a write: ${what} is guarded by lock ${owner}`;
  return new HoldfastError(ErrorCode.Conflict, { message, outcome: 'none' });
}
