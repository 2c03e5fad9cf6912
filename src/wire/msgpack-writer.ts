/**
 * Writes MessagePack in place: the smallest form of each value, integers never as floats.
 *
 * Owns: nothing. The put functions write at a position that the caller has made room for and
 * return the next one; writeValue makes its own room and takes whole values, off the hot path.
 * Never: records, extensions, shared structures. Used by: reply and request encoders, founding.
 */
import type { OutBuffer } from './out-buffer.js';

/** What writeValue can write. A number that is a safe integer is written as an integer. */
export type PackValue =
  | null
  | boolean
  | number
  | string
  | Uint8Array
  | readonly PackValue[]
  | { readonly [key: string]: PackValue };

/** The most bytes that an integer takes. */
export const INTEGER_BYTES_MAX = 9;
/** Bytes of a written id. */
export const PACKED_ID_BYTES = 18;
/** The most bytes before the content of a string, binary, array or map. */
export const HEADER_BYTES_MAX = 5;

const TWO_MINUS_32 = 2 ** -32;
const TEXT_ENCODER = new TextEncoder();

/** Writes the lower 32 bits of an integer, big-endian. */
export function putU32(bytes: Uint8Array, at: number, value: number): number {
  bytes[at] = value >>> 24;
  bytes[at + 1] = value >>> 16;
  bytes[at + 2] = value >>> 8;
  bytes[at + 3] = value;
  return at + 4;
}

/** Writes a big-endian u64; `value` is 0 to 2^53 - 1. */
export function putU64(bytes: Uint8Array, at: number, value: number): number {
  return putU32(bytes, putU32(bytes, at, highOf(value)), value | 0);
}

/** Writes an integer, 0 to 2^53 - 1, in its smallest unsigned form. */
export function putUnsigned(bytes: Uint8Array, at: number, value: number): number {
  return putHalves(bytes, at, highOf(value), value | 0);
}

/** The upper half of an integer, for putHalves; the lower one is `value | 0`. */
export function highOf(value: number): number {
  return (value * TWO_MINUS_32) | 0;
}

/**
 * Writes an integer, given as its upper and lower 32 bits, in its smallest unsigned form. The hot
 * path calls this one: V8 hands a number from 2^31 up over as a heap object, two halves as words.
 */
export function putHalves(bytes: Uint8Array, at: number, high: number, low: number): number {
  if (high === 0 && low >= 0 && low < 0x80) {
    bytes[at] = low;
    return at + 1;
  }
  return putWideHalves(bytes, at, high, low);
}

function putWideHalves(bytes: Uint8Array, at: number, high: number, low: number): number {
  if (high !== 0) {
    bytes[at] = 0xcf;
    return putU32(bytes, putU32(bytes, at + 1, high), low);
  }
  if (low < 0 || low >= 0x1_0000) {
    bytes[at] = 0xce;
    return putU32(bytes, at + 1, low);
  }
  if (low < 0x100) {
    bytes[at] = 0xcc;
    bytes[at + 1] = low;
    return at + 2;
  }
  bytes[at] = 0xcd;
  bytes[at + 1] = low >>> 8;
  bytes[at + 2] = low;
  return at + 3;
}

/** Writes nil. */
export function putNil(bytes: Uint8Array, at: number): number {
  bytes[at] = 0xc0;
  return at + 1;
}

/** Writes an integer, or nil when it is negative, which is how absent numbers are kept. */
export function putOptional(bytes: Uint8Array, at: number, value: number): number {
  return value < 0 ? putNil(bytes, at) : putUnsigned(bytes, at, value);
}

export function putBoolean(bytes: Uint8Array, at: number, value: boolean): number {
  bytes[at] = value ? 0xc3 : 0xc2;
  return at + 1;
}

/** Writes an id, four words of 32 bits (signed or not), as a binary of 16 bytes. */
export function putId(
  bytes: Uint8Array,
  at: number,
  id0: number,
  id1: number,
  id2: number,
  id3: number,
): number {
  bytes[at] = 0xc4;
  bytes[at + 1] = 16;
  putU32(bytes, at + 2, id0);
  putU32(bytes, at + 6, id1);
  putU32(bytes, at + 10, id2);
  return putU32(bytes, at + 14, id3);
}

/** Writes the header of an array of `count` elements, 0 to 2^32 - 1. */
export function putArrayHeader(bytes: Uint8Array, at: number, count: number): number {
  if (count < 16) {
    bytes[at] = 0x90 | count;
    return at + 1;
  }
  return putCounted(bytes, at, 0xdc, count);
}

/** Writes a lead byte with a u16 count, or the lead byte after it with a u32 count. */
function putCounted(bytes: Uint8Array, at: number, lead: number, count: number): number {
  if (count < 0x1_0000) {
    bytes[at] = lead;
    bytes[at + 1] = count >>> 8;
    bytes[at + 2] = count;
    return at + 3;
  }
  bytes[at] = lead + 1;
  return putU32(bytes, at + 1, count);
}

/** Writes the header of a binary of `length` bytes. */
export function putBinaryHeader(bytes: Uint8Array, at: number, length: number): number {
  if (length < 0x100) {
    bytes[at] = 0xc4;
    bytes[at + 1] = length;
    return at + 2;
  }
  return putCounted(bytes, at, 0xc5, length);
}

/** Writes the header of a string of `length` bytes. */
export function putStringHeader(bytes: Uint8Array, at: number, length: number): number {
  if (length < 0x20) {
    bytes[at] = 0xa0 | length;
    return at + 1;
  }
  if (length < 0x100) {
    bytes[at] = 0xd9;
    bytes[at + 1] = length;
    return at + 2;
  }
  return putCounted(bytes, at, 0xda, length);
}

/** Writes `content` as a binary. */
export function putBinary(bytes: Uint8Array, at: number, content: Uint8Array): number {
  const start = putBinaryHeader(bytes, at, content.length);
  bytes.set(content, start);
  return start + content.length;
}

/** Writes `content`, which is valid UTF-8, as a string. */
export function putUtf8(bytes: Uint8Array, at: number, content: Uint8Array): number {
  const start = putStringHeader(bytes, at, content.length);
  bytes.set(content, start);
  return start + content.length;
}

/** Writes a string of JavaScript; ASCII up to 31 bytes is copied without an encoder. */
export function writeText(out: OutBuffer, text: string): void {
  out.reserve(HEADER_BYTES_MAX + text.length);
  if (text.length < 0x20 && putShortAscii(out.bytes, out.length, text)) {
    out.length += 1 + text.length;
    return;
  }
  const content = TEXT_ENCODER.encode(text);
  out.reserve(HEADER_BYTES_MAX + content.length);
  out.length = putUtf8(out.bytes, out.length, content);
}

/** Returns false, with garbage after `at`, when `text` is not all ASCII. */
function putShortAscii(bytes: Uint8Array, at: number, text: string): boolean {
  bytes[at] = 0xa0 | text.length;
  for (let index = 0; index < text.length; index += 1) {
    const unit = text.charCodeAt(index);
    if (unit >= 0x80) return false;
    bytes[at + 1 + index] = unit;
  }
  return true;
}

/** Appends any value. Numbers that are no safe integers are written as float64. */
export function writeValue(out: OutBuffer, value: PackValue): void {
  if (typeof value === 'string') {
    writeText(out, value);
  } else if (typeof value === 'number') {
    writeNumber(out, value);
  } else if (value instanceof Uint8Array) {
    out.reserve(HEADER_BYTES_MAX + value.length);
    out.length = putBinary(out.bytes, out.length, value);
  } else if (value === null || typeof value === 'boolean') {
    out.reserve(1);
    out.length =
      value === null ? putNil(out.bytes, out.length) : putBoolean(out.bytes, out.length, value);
  } else if (isArray(value)) {
    out.reserve(HEADER_BYTES_MAX);
    out.length = putArrayHeader(out.bytes, out.length, value.length);
    for (const element of value) writeValue(out, element);
  } else {
    writeMap(out, value);
  }
}

/** Array.isArray does not narrow a readonly array. */
function isArray(value: object): value is readonly PackValue[] {
  return Array.isArray(value);
}

function writeNumber(out: OutBuffer, value: number): void {
  out.reserve(INTEGER_BYTES_MAX);
  if (Number.isSafeInteger(value) && value >= 0) {
    out.length = putUnsigned(out.bytes, out.length, value);
    return;
  }
  const isInteger = Number.isSafeInteger(value);
  out.bytes[out.length] = isInteger ? 0xd3 : 0xcb;
  if (isInteger) out.view.setBigInt64(out.length + 1, BigInt(value));
  else out.view.setFloat64(out.length + 1, value);
  out.length += INTEGER_BYTES_MAX;
}

function writeMap(out: OutBuffer, value: { readonly [key: string]: PackValue }): void {
  const entries = Object.entries(value);
  out.reserve(HEADER_BYTES_MAX);
  if (entries.length < 16) {
    out.bytes[out.length] = 0x80 | entries.length;
    out.length += 1;
  } else {
    out.length = putCounted(out.bytes, out.length, 0xde, entries.length);
  }
  for (const [key, element] of entries) {
    writeText(out, key);
    writeValue(out, element);
  }
}
