/**
 * Reads MessagePack in place: headers with bounds, integers, byte ranges, ids, and a bounded skip.
 *
 * Owns: nothing; every function is given bytes and a position and returns a number. Never: an
 * allocation, a throw, or a step past `end`. A value and its size both follow from the lead byte,
 * so a caller reads a value first and then asks how far to move on.
 * Used by: frame, operation, query and response decoders.
 */

/** The value is nil. Equal to what Command calls absent. */
export const NIL = -1;
/** The bytes are no such value: wrong type, out of range, or past the end. */
export const INVALID = -2;

const TWO_32 = 2 ** 32;
/** High half of the largest integer that a double holds exactly, 2^53 - 1. */
const HIGH_MAX = 0x1f_ffff;

/**
 * The big-endian word at `at` as a signed integer; the caller has checked that four bytes are
 * there. The hot path calls this and writes `>>> 0` behind it: V8 hands a result from 2^31 up over
 * as a heap object where it does not inline the call, a signed word never.
 */
export function wordAt(bytes: Uint8Array, at: number): number {
  const high = (bytes[at]! << 8) | bytes[at + 1]!;
  return (high << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!;
}

/** The big-endian u32 at `at`; the caller has checked that four bytes are there. */
export function u32At(bytes: Uint8Array, at: number): number {
  return wordAt(bytes, at) >>> 0;
}

/** The big-endian u64 at `at`, or INVALID above 2^53 - 1; the caller has checked the bounds. */
export function u64At(bytes: Uint8Array, at: number): number {
  const high = u32At(bytes, at);
  return high > HIGH_MAX ? INVALID : high * TWO_32 + u32At(bytes, at + 4);
}

/**
 * The integer at `at`, 0 to 2^53 - 1, written in any width, signed or not.
 * Returns NIL for nil; INVALID for anything else, negative numbers and floats included.
 */
export function unsignedAt(bytes: Uint8Array, at: number, end: number): number {
  if (at >= end) return INVALID;
  const lead = bytes[at]!;
  if (lead < 0x80) return lead;
  if (lead === 0xc0) return NIL;
  return wideUnsignedAt(bytes, at, end, lead);
}

function wideUnsignedAt(bytes: Uint8Array, at: number, end: number, lead: number): number {
  if (lead < 0xcc || lead > 0xd3) return INVALID;
  if (at + integerBytes(lead) > end) return INVALID;
  if (lead >= 0xd0 && bytes[at + 1]! >= 0x80) return INVALID;
  switch (lead & 3) {
    case 0:
      return bytes[at + 1]!;
    case 1:
      return (bytes[at + 1]! << 8) | bytes[at + 2]!;
    case 2:
      return u32At(bytes, at + 1);
    default:
      return u64At(bytes, at + 1);
  }
}

/** Bytes that the integer or nil with this lead byte takes, lead included. */
export function integerBytes(lead: number): number {
  if (lead < 0xcc || lead > 0xd3) return 1;
  return 1 + (1 << (lead & 3));
}

/**
 * Length of the string or binary at `at`: its bytes lie whole before `end`.
 * Returns NIL for nil, INVALID otherwise. The bytes start at `at + rangeHeaderBytes(lead)`.
 */
export function rangeAt(bytes: Uint8Array, at: number, end: number): number {
  if (at >= end) return INVALID;
  const lead = bytes[at]!;
  if (lead === 0xc0) return NIL;
  const header = rangeHeaderBytes(lead);
  if (header === 0 || at + header > end) return INVALID;
  const length = rangeLength(bytes, at, lead, header);
  return length > end - at - header ? INVALID : length;
}

function rangeLength(bytes: Uint8Array, at: number, lead: number, header: number): number {
  switch (header) {
    case 1:
      return lead & 0x1f;
    case 2:
      return bytes[at + 1]!;
    case 3:
      return (bytes[at + 1]! << 8) | bytes[at + 2]!;
    default:
      return u32At(bytes, at + 1);
  }
}

/** Bytes before the content of a string or binary with this lead byte, 0 when it is neither. */
export function rangeHeaderBytes(lead: number): number {
  if (lead >= 0xa0 && lead <= 0xbf) return 1;
  if (lead === 0xc4 || lead === 0xd9) return 2;
  if (lead === 0xc5 || lead === 0xda) return 3;
  return lead === 0xc6 || lead === 0xdb ? 5 : 0;
}

/**
 * Offset of the 16 bytes of the id at `at`: a binary of exactly 16 bytes, any header width.
 * Returns NIL for nil, INVALID otherwise. The next value starts 16 bytes after the offset.
 */
export function idAt(bytes: Uint8Array, at: number, end: number): number {
  if (at >= end) return INVALID;
  const lead = bytes[at]!;
  if (lead === 0xc0) return NIL;
  if (lead < 0xc4 || lead > 0xc6) return INVALID;
  if (rangeAt(bytes, at, end) !== 16) return INVALID;
  return at + rangeHeaderBytes(lead);
}

/**
 * Number of elements of the array at `at`. A count that the bytes before `end` cannot hold, at
 * one byte an element, is refused here, so that nobody loops or allocates by a claimed count.
 * Returns NIL for nil, INVALID otherwise. Elements start at `at + arrayHeaderBytes(lead)`.
 */
export function arrayAt(bytes: Uint8Array, at: number, end: number): number {
  if (at >= end) return INVALID;
  const lead = bytes[at]!;
  if (lead === 0xc0) return NIL;
  const header = arrayHeaderBytes(lead);
  if (header === 0 || at + header > end) return INVALID;
  let count = lead & 0x0f;
  if (header === 3) count = (bytes[at + 1]! << 8) | bytes[at + 2]!;
  if (header === 5) count = u32At(bytes, at + 1);
  return count > end - at - header ? INVALID : count;
}

/** Bytes before the first element of an array with this lead byte, 0 when it is no array. */
export function arrayHeaderBytes(lead: number): number {
  if (lead >= 0x90 && lead <= 0x9f) return 1;
  if (lead === 0xdc) return 3;
  return lead === 0xdd ? 5 : 0;
}

/** 1 for true, 0 for false, NIL for nil, INVALID otherwise. Each takes one byte. */
export function booleanAt(bytes: Uint8Array, at: number, end: number): number {
  if (at >= end) return INVALID;
  const lead = bytes[at]!;
  if (lead === 0xc3) return 1;
  if (lead === 0xc2) return 0;
  return lead === 0xc0 ? NIL : INVALID;
}

/**
 * Position after the value at `at`, or INVALID when it is cut off, is an extension type or the one
 * unassigned lead byte, or nests arrays and maps more than `depth` levels deep. The work is
 * bounded by the bytes passed over, never by a claimed count or length.
 */
export function skipAt(bytes: Uint8Array, at: number, end: number, depth: number): number {
  if (at >= end) return INVALID;
  const lead = bytes[at]!;
  if (lead < 0x80 || lead >= 0xe0) return at + 1;
  if (lead >= 0xc0) return skipWideAt(bytes, at, end, depth);
  if (lead >= 0xa0) return boundedBy(end, at + 1 + (lead & 0x1f));
  const count = lead >= 0x90 ? lead & 0x0f : (lead & 0x0f) * 2;
  return skipElements(bytes, at + 1, end, count, depth);
}

function boundedBy(end: number, next: number): number {
  return next > end ? INVALID : next;
}

function skipElements(
  bytes: Uint8Array,
  from: number,
  end: number,
  count: number,
  depth: number,
): number {
  if (depth === 0 || count > end - from) return INVALID;
  let at = from;
  for (let element = 0; element < count; element += 1) {
    at = skipAt(bytes, at, end, depth - 1);
    if (at < 0) return INVALID;
  }
  return at;
}

/** Lead bytes 0xc0 to 0xdf. */
function skipWideAt(bytes: Uint8Array, at: number, end: number, depth: number): number {
  const lead = bytes[at]!;
  const header = rangeHeaderBytes(lead);
  if (header !== 0) {
    if (at + header > end) return INVALID;
    return boundedBy(end, at + header + rangeLength(bytes, at, lead, header));
  }
  if (lead >= 0xcc && lead <= 0xd3) return boundedBy(end, at + integerBytes(lead));
  if (lead >= 0xdc) {
    const size = (lead & 1) === 0 ? 3 : 5;
    if (at + size > end) return INVALID;
    const claimed = size === 3 ? (bytes[at + 1]! << 8) | bytes[at + 2]! : u32At(bytes, at + 1);
    return skipElements(bytes, at + size, end, lead >= 0xde ? claimed * 2 : claimed, depth);
  }
  if (lead === 0xca) return boundedBy(end, at + 5);
  if (lead === 0xcb) return boundedBy(end, at + 9);
  return lead <= 0xc3 && lead !== 0xc1 ? at + 1 : INVALID;
}
