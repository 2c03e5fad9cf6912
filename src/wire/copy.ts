/**
 * Copies bytes out of a borrowed buffer.
 *
 * Owns: the rule that what outlives a socket buffer is copied once, to its exact size. Never: a
 * view. (Buffer.prototype.slice makes a view where Uint8Array.prototype.slice copies, so neither
 * is called on bytes that may be either.) Used by: peer, query and response decoders.
 */

/** The bytes `start` … `end` in a buffer of their own. */
export function copyOf(bytes: Uint8Array, start: number, end: number): Uint8Array {
  const copy = new Uint8Array(end - start);
  copy.set(bytes.subarray(start, end));
  return copy;
}
