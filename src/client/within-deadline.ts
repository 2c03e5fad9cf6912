/**
 * Bounds a wait for something that others wait for too: a shared promise with a deadline of one's own.
 *
 * Owns: one timer and one abort listener for each wait. Never: ends what is waited for; others may
 * still want it. Used by: client.ts, for the opening of the shared session.
 */
import { Alarm } from './alarm.js';
import type { Clock } from './clock.js';
import { ErrorCode, HoldfastError } from './errors.js';

/**
 * Settles as `promise` does, or rejects DEADLINE_PASSED after `deadlineMs` (ms), or CANCELLED when
 * `signal` fires; both without effect of the waiting call. `what` names it in the message.
 */
export function withinDeadline<Value>(
  clock: Clock,
  promise: Promise<Value>,
  what: string,
  deadlineMs: number,
  signal: AbortSignal | undefined,
): Promise<Value> {
  return new Promise((resolve, reject) => {
    const untilMs = clock.nowMs() + deadlineMs;
    const alarm = new Alarm(clock, () => {
      const leftMs = untilMs - clock.nowMs();
      if (leftMs > 0) return leftMs;
      stop();
      const message = `${what} was not done within ${deadlineMs} ms`;
      reject(new HoldfastError(ErrorCode.DeadlinePassed, { message, retryable: true }));
      return Number.POSITIVE_INFINITY;
    });
    const onAbort = (): void => {
      stop();
      const message = `${what} was cancelled by its signal`;
      reject(new HoldfastError(ErrorCode.Cancelled, { message, cause: signal?.reason }));
    };
    const stop = (): void => {
      alarm.cancel();
      signal?.removeEventListener('abort', onAbort);
    };
    if (signal?.aborted === true) return onAbort();
    signal?.addEventListener('abort', onAbort, { once: true });
    alarm.wakeWithin(deadlineMs);
    promise.then(
      (value) => {
        stop();
        resolve(value);
      },
      (error: unknown) => {
        stop();
        reject(error);
      },
    );
  });
}
