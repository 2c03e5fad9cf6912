/**
 * Integers below 2^53 as eight bytes, big-endian, without BigInt.
 *
 * Owns nothing. Never: values of 2^53 or more; reading one gives an inexact number, which the
 * caller's checksum has ruled out. Used by: the log's records, its keys and its thread protocol.
 */

const TWO_32 = 2 ** 32;

/** Writes `value`, 0 … 2^53 - 1, at `offset`. */
export function setU64(view: DataView, offset: number, value: number): void {
  view.setUint32(offset, Math.floor(value / TWO_32));
  view.setUint32(offset + 4, value >>> 0);
}

/** Reads the value that setU64 wrote at `offset`. */
export function getU64(view: DataView, offset: number): number {
  return view.getUint32(offset) * TWO_32 + view.getUint32(offset + 4);
}
