/**
 * Waiting for a state, with an end: what does not come is an error that names it.
 *
 * Owns: the polling. Never: a verdict; a drill that waited in vain is told so by its runner.
 * Used by: every file of the drills.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { CliError } from '../exit-codes.js';

const LOOK_MS = 20;
/** Generous: a drill may run beside the work of a busy machine. */
export const UNTIL_MS_DEFAULT = 30_000;

/** Thrown by a `look` when the state can no longer come: there is nothing to wait for. */
export class Hopeless extends Error {
  override readonly name = 'Hopeless';
}

function wordsOf(error: unknown): string {
  if (error === null) return '';
  return `: ${error instanceof Error ? error.message : String(error)}`;
}

/**
 * Calls `look` until it gives something other than null or false, and returns that. An error that
 * it throws means "not yet". Throws CliError DRILL_FAILED when the time is up.
 */
export async function until<T>(
  what: string,
  look: () => T | null | false | Promise<T | null | false>,
  timeoutMs = UNTIL_MS_DEFAULT,
): Promise<T> {
  const startedMs = performance.now();
  let trouble: unknown = null;
  for (;;) {
    try {
      const found = await look();
      if (found !== null && found !== false) return found;
      trouble = null;
    } catch (error) {
      trouble = error;
    }
    const isLate = performance.now() - startedMs > timeoutMs;
    if (isLate || trouble instanceof Hopeless) {
      const waited = Math.round(performance.now() - startedMs);
      throw new CliError('DRILL_FAILED', `waited ${waited} ms for ${what}${wordsOf(trouble)}`);
    }
    await delay(LOOK_MS);
  }
}
