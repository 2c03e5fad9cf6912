/**
 * Waiting for a state, never for a time.
 *
 * Owns: the polling. Never: an assertion; a state that does not come is an error that names it.
 * Used by: the cluster harness and every test with a real process.
 */

const POLL_MS = 10;

/** Thrown by a `look` when the state can no longer come: waitFor gives up at once. */
export class Hopeless extends Error {
  override readonly name = 'Hopeless';
}

/**
 * Calls `look` until it gives something other than false, null or undefined, and returns that.
 * An error thrown by `look` counts as "not yet" and is told when the time is up.
 *
 * @param what the state waited for, for the error.
 * @param timeoutMs when to give up; generous, since a test machine may be busy.
 */
export async function waitFor<T>(
  what: string,
  look: () => T | Promise<T>,
  timeoutMs = 30_000,
): Promise<NonNullable<T>> {
  const started = performance.now();
  let trouble: unknown = null;
  for (;;) {
    try {
      const found = await look();
      if (found !== false && found !== null && found !== undefined) return found;
      trouble = null;
    } catch (error) {
      if (error instanceof Hopeless) throw error;
      trouble = error;
    }
    if (performance.now() - started > timeoutMs) {
      throw new Error(`waited ${timeoutMs} ms for ${what}`, { cause: trouble });
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}
