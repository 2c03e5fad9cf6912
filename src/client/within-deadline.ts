/**
 * Bounds a wait for something that others wait for too: a shared promise with a deadline of one's
 * own.
 *
 * Owns: one timer and one abort listener for each wait. Never: ends what is waited for; others may
 * still want it. Used by: client.ts, for the opening of the shared session.
 */
import { Alarm } from './alarm.js';
import type { Ambient } from './ambient.js';
import { ErrorCode, HoldfastError } from './errors.js';

/** How long, and what to say when it was too long. */
export interface Patience {
  /** Names what is waited for, in messages. */
  readonly what: string;
  /** Milliseconds from now. */
  readonly deadlineMs: number;
  readonly signal: AbortSignal | undefined;
  /** ErrorCode with which the wait ends at its deadline, asked then. */
  readonly codeAtDeadline: () => number;
}

/**
 * Settles as `promise` does, or rejects with the code that `patience` gives at its deadline, or
 * CANCELLED when its signal fires; both without effect of the waiting call.
 */
export function withinDeadline<Value>(
  ambient: Ambient,
  promise: Promise<Value>,
  patience: Patience,
): Promise<Value> {
  const { what, deadlineMs, signal, codeAtDeadline } = patience;
  const { clock, aborts } = ambient;
  return new Promise((resolve, reject) => {
    const untilMs = clock.nowMs() + deadlineMs;
    const alarm = new Alarm(clock, () => {
      const leftMs = untilMs - clock.nowMs();
      if (leftMs > 0) return leftMs;
      const message = `${what} was not done within ${deadlineMs} ms`;
      stop();
      reject(new HoldfastError(codeAtDeadline(), { message, outcome: 'none', retryable: true }));
      return Number.POSITIVE_INFINITY;
    });
    const onAbort = (): void => {
      const message = `${what} was cancelled by its signal`;
      stop();
      reject(new HoldfastError(ErrorCode.Cancelled, { message, cause: signal?.reason }));
    };
    const stopWatching = aborts.watch(signal, onAbort);
    const stop = (): void => {
      alarm.cancel();
      stopWatching();
    };
    promise.finally(stop).then(resolve, reject);
    alarm.wakeWithin(deadlineMs);
    if (signal?.aborted === true) onAbort();
  });
}
