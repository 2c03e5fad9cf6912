/**
 * The one place that knows msgpackr: decodes whole values off the hot path.
 *
 * Owns: the options that make msgpackr read standard MessagePack, and the checks before it: depth
 * and claimed lengths are bounded by skipAt first, so a few bytes cannot ask for a large heap.
 * Never: encodes; msgpackr writes integers from 2^32 up as floats, msgpack-writer.ts does not.
 * Used by: response decoder (client), founding.
 */
import { Unpackr } from 'msgpackr';
import { NESTING_DEPTH_MAX } from '../limits.js';
import { skipAt } from './msgpack-reader.js';

/** Integers above 2^53 - 1 lose digits as numbers and then fail every check of a safe integer. */
const UNPACKR = new Unpackr({
  useRecords: false,
  mapsAsObjects: true,
  int64AsType: 'number',
  copyBuffers: true,
});

/**
 * The value that fills `start` … `end` exactly; its binaries are copies.
 * Returns undefined, which MessagePack itself cannot express, when the bytes are no such value.
 */
export function unpackValue(bytes: Uint8Array, start: number, end: number): unknown {
  if (skipAt(bytes, start, end, NESTING_DEPTH_MAX) !== end) return undefined;
  try {
    return UNPACKR.unpack(bytes.subarray(start, end));
  } catch {
    return undefined; // the caller counts it: it refuses the frame
  }
}
