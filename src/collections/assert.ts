/**
 * The one way to say that an invariant holds.
 *
 * Owns: nothing. Never recovers: a broken invariant ends the node, since going on could give one
 * lock to two holders. On in production. Used by: every layer.
 */

/** Thrown by assert; main ends the process when it sees one. */
export class AssertionError extends Error {
  override readonly name = 'AssertionError';
}

/** Throws AssertionError with `message` unless `condition` holds. */
export function assert(condition: boolean, message: string): asserts condition {
  if (!condition) throw new AssertionError(message);
}
