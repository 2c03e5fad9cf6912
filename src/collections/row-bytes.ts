/**
 * Rows of numbers and byte strings, laid out one after the other in plain bytes.
 *
 * Owns: how a number and a string lie in a row: big-endian, a whole number of -1 to 2^53 - 1 in
 * eight bytes, a string behind its length in two. Never: what a row means, a checksum, a device.
 * A reader never runs past its end: it gives zeroes and says isBroken. Used by: snapshots of the
 * lock machine.
 */

import { STRING_BYTES_MAX } from './byte-store.js';

const TWO_TO_32 = 2 ** 32;
/** Length of a string that is absent, which differs from an empty one. */
const ABSENT = 0xffff;

/** Writes rows into a buffer that grows; `take` hands out what was written. */
export class RowWriter {
  /** Bytes written since the last take. */
  length = 0;
  private bytes: Uint8Array;
  private view: DataView;

  /** `capacity`: bytes to start with. */
  constructor(capacity: number) {
    this.bytes = new Uint8Array(capacity);
    this.view = new DataView(this.bytes.buffer);
  }

  u8(value: number): void {
    this.reserve(1);
    this.bytes[this.length] = value;
    this.length += 1;
  }

  u32(value: number): void {
    this.reserve(4);
    this.view.setUint32(this.length, value);
    this.length += 4;
  }

  /** A whole number of -1 to 2^53 - 1. */
  number(value: number): void {
    this.reserve(8);
    this.view.setInt32(this.length, Math.floor(value / TWO_TO_32));
    this.view.setUint32(this.length + 4, value >>> 0);
    this.length += 8;
  }

  /** `length` bytes of `source` from `offset`, 0 to STRING_BYTES_MAX of them. */
  string(source: Uint8Array, offset: number, length: number): void {
    this.reserve(2 + length);
    this.view.setUint16(this.length, length);
    this.bytes.set(source.subarray(offset, offset + length), this.length + 2);
    this.length += 2 + length;
  }

  /** A string that is not there. */
  absent(): void {
    this.reserve(2);
    this.view.setUint16(this.length, ABSENT);
    this.length += 2;
  }

  /** The rows written so far, valid until the next write; the writer begins anew. */
  take(): Uint8Array {
    const taken = this.bytes.subarray(0, this.length);
    this.length = 0;
    return taken;
  }

  private reserve(count: number): void {
    const needed = this.length + count;
    if (needed <= this.bytes.length) return;
    const grown = new Uint8Array(Math.max(needed, 2 * this.bytes.length));
    grown.set(this.bytes.subarray(0, this.length));
    this.bytes = grown;
    this.view = new DataView(grown.buffer);
  }
}

/** Reads what a RowWriter wrote. */
export class RowReader {
  /** True once something was read that is not there; stays so. */
  isBroken = false;
  /** Where the last string starts in `bytes`, -1 when it is absent, and its length. */
  stringOffset = -1;
  stringBytes = 0;
  private at = 0;
  private readonly view: DataView;

  constructor(readonly bytes: Uint8Array) {
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  /** True when every byte was read. */
  get isAtEnd(): boolean {
    return this.at >= this.bytes.length;
  }

  u8(): number {
    const at = this.step(1);
    return at < 0 ? 0 : this.view.getUint8(at);
  }

  u32(): number {
    const at = this.step(4);
    return at < 0 ? 0 : this.view.getUint32(at);
  }

  /** A whole number of -1 to 2^53 - 1; anything else is broken. */
  number(): number {
    const at = this.step(8);
    if (at < 0) return 0;
    const value = this.view.getInt32(at) * TWO_TO_32 + this.view.getUint32(at + 4);
    if (value >= -1 && Number.isSafeInteger(value)) return value;
    this.isBroken = true;
    return 0;
  }

  /** Finds the next string: see stringOffset and stringBytes. */
  string(): void {
    this.stringOffset = -1;
    this.stringBytes = 0;
    const at = this.step(2);
    if (at < 0) return;
    const length = this.view.getUint16(at);
    if (length === ABSENT) return;
    if (length > STRING_BYTES_MAX) this.isBroken = true;
    const start = this.step(length);
    if (start < 0) return;
    this.stringOffset = start;
    this.stringBytes = length;
  }

  /** Where the next `count` bytes are, or -1 when they are not all there. */
  private step(count: number): number {
    if (this.isBroken || this.at + count > this.bytes.length) {
      this.isBroken = true;
      return -1;
    }
    this.at += count;
    return this.at - count;
  }
}
