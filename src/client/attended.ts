/**
 * Promises that a program may leave alone without ending its process.
 *
 * Owns: the rule that a failure of the client never becomes an unhandled rejection; a program that
 * awaits hears of it all the same. Never: attends to an error that is not the client's: one thrown
 * by work under a lock is the program's own. Used by: client.ts, lease.ts, hold.ts, presence.ts.
 */
import { HoldfastError } from './errors.js';

/** For promises whose rejection reaches its caller by another way too. */
export function ignore(): void {
  // Nothing to do: see where it is passed.
}

/** The same result; a rejection with a HoldfastError counts as handled. */
export function attended<Value>(promise: Promise<Value>): Promise<Value> {
  const result = new Promise<Value>((resolve, reject) => {
    promise.then(resolve, (error: unknown) => {
      if (error instanceof HoldfastError) result.catch(ignore);
      reject(error);
    });
  });
  return result;
}
