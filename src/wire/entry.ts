/**
 * The bytes of one log entry: a stamped header, then each operation behind a fixed prefix.
 *
 * Owns: entry format 1 (on disk for ever, big-endian). Header, 32 bytes: u8 format, u8 0,
 * u16 feature level, u32 operations, u64 stamp in ms of cluster time, 16 bytes of entropy.
 * Prefix, 12 bytes: u8 operation version, 3 bytes 0, u32 principal, u32 length; then the client's
 * operation bytes unchanged. No-ops and pulses have no operations. Never: what operations mean.
 * Used by: replica (writes, reads), snapshot compaction (reads).
 */
import { u32At, u64At } from './msgpack-reader.js';
import { putU32, putU64 } from './msgpack-writer.js';

export const ENTRY_FORMAT = 1;
export const ENTRY_HEADER_BYTES = 32;
export const OPERATION_PREFIX_BYTES = 12;
/** Bytes of randomness that a leader puts into each entry. */
export const ENTROPY_BYTES = 16;

const STAMP_OFFSET = 8;
const ENTROPY_OFFSET = 16;
const CAPACITY_INITIAL = 64 * 1_024;

/** Gathers operations into an open batch. Reused; its buffer grows and stays. */
export class EntryWriter {
  /** Operations added since open(). */
  count = 0;
  /** Bytes that close() would return now. */
  length = ENTRY_HEADER_BYTES;

  private bytes: Uint8Array = new Uint8Array(CAPACITY_INITIAL);

  /** Starts an empty batch. */
  open(): void {
    this.count = 0;
    this.length = ENTRY_HEADER_BYTES;
  }

  /** Copies the operation `start` … `end` of `bytes` into the batch. */
  addOperation(
    principal: number,
    version: number,
    bytes: Uint8Array,
    start: number,
    end: number,
  ): void {
    const size = end - start;
    this.reserve(OPERATION_PREFIX_BYTES + size);
    const target = this.bytes;
    putU32(target, this.length, version << 24);
    putU32(target, this.length + 4, principal);
    const at = putU32(target, this.length + 8, size);
    copyInto(target, at, bytes, start, end);
    this.length = at + size;
    this.count += 1;
  }

  /**
   * Ends the batch. `stampMs` is cluster time, 0 to 2^53 - 1; `entropy` is ENTROPY_BYTES long.
   * Returns the entry in a buffer of exactly its size, owned by the caller.
   */
  close(stampMs: number, featureLevel: number, entropy: Uint8Array): Uint8Array {
    const bytes = this.bytes;
    putU32(bytes, 0, (ENTRY_FORMAT << 24) | featureLevel);
    putU32(bytes, 4, this.count);
    putU64(bytes, STAMP_OFFSET, stampMs);
    bytes.set(entropy, ENTROPY_OFFSET);
    const entry = bytes.slice(0, this.length);
    this.open();
    return entry;
  }

  /** Keeps the operations for whose position `keep` says true; off the hot path. */
  retain(keep: (position: number) => boolean): void {
    const { bytes } = this;
    let from = ENTRY_HEADER_BYTES;
    let to = ENTRY_HEADER_BYTES;
    let kept = 0;
    for (let position = 0; position < this.count; position += 1) {
      const next = from + OPERATION_PREFIX_BYTES + u32At(bytes, from + 8);
      if (keep(position)) {
        bytes.copyWithin(to, from, next);
        to += next - from;
        kept += 1;
      }
      from = next;
    }
    this.count = kept;
    this.length = to;
  }

  private reserve(count: number): void {
    const needed = this.length + count;
    if (needed <= this.bytes.length) return;
    let capacity = this.bytes.length * 2;
    while (capacity < needed) capacity *= 2;
    const grown = new Uint8Array(capacity);
    grown.set(this.bytes.subarray(0, this.length));
    this.bytes = grown;
  }
}

/** Below this a loop beats the view that set() needs. */
const COPY_LOOP_BYTES_MAX = 256;

function copyInto(
  target: Uint8Array,
  at: number,
  source: Uint8Array,
  start: number,
  end: number,
): void {
  if (end - start > COPY_LOOP_BYTES_MAX) {
    target.set(source.subarray(start, end), at);
    return;
  }
  let to = at;
  for (let from = start; from < end; from += 1) {
    target[to] = source[from]!;
    to += 1;
  }
}

const NO_BYTES = new Uint8Array(0);

/** Walks the operations of one entry, in place. Reused. */
export class EntryReader {
  stampMs = 0;
  featureLevel = 0;
  /** Operations in the entry. */
  count = 0;
  /** The leader's random bits as four big-endian u32. */
  entropy0 = 0;
  entropy1 = 0;
  entropy2 = 0;
  entropy3 = 0;

  /** The current operation: who, which version, which range of the entry. */
  principal = 0;
  version = 0;
  start = 0;
  end = 0;

  private data: Uint8Array = NO_BYTES;
  private remaining = 0;

  /**
   * Starts on an entry. Checks the whole structure, so that next() cannot fail half-way.
   * Returns false when the bytes are no entry of format 1: then nothing else may be read.
   */
  open(data: Uint8Array): boolean {
    this.remaining = 0;
    if (!isEntry(data)) return false;
    this.data = data;
    this.featureLevel = (data[2]! << 8) | data[3]!;
    this.count = u32At(data, 4);
    this.stampMs = u64At(data, STAMP_OFFSET);
    this.entropy0 = u32At(data, ENTROPY_OFFSET);
    this.entropy1 = u32At(data, ENTROPY_OFFSET + 4);
    this.entropy2 = u32At(data, ENTROPY_OFFSET + 8);
    this.entropy3 = u32At(data, ENTROPY_OFFSET + 12);
    this.remaining = this.count;
    this.end = ENTRY_HEADER_BYTES;
    return true;
  }

  /** Moves to the next operation. False at the end. */
  next(): boolean {
    if (this.remaining === 0) return false;
    this.remaining -= 1;
    const prefix = this.end;
    this.version = this.data[prefix]!;
    this.principal = u32At(this.data, prefix + 4);
    this.start = prefix + OPERATION_PREFIX_BYTES;
    this.end = this.start + u32At(this.data, prefix + 8);
    return true;
  }
}

/** The operations fill the entry exactly, and everything reserved is zero. */
function isEntry(data: Uint8Array): boolean {
  if (data.length < ENTRY_HEADER_BYTES) return false;
  if (data[0] !== ENTRY_FORMAT || data[1] !== 0) return false;
  if (u64At(data, STAMP_OFFSET) < 0) return false;
  const count = u32At(data, 4);
  let at = ENTRY_HEADER_BYTES;
  for (let index = 0; index < count; index += 1) {
    if (at + OPERATION_PREFIX_BYTES > data.length) return false;
    if ((u32At(data, at) & 0xff_ffff) !== 0) return false;
    at += OPERATION_PREFIX_BYTES + u32At(data, at + 8);
    if (at > data.length) return false;
  }
  return at === data.length;
}

/** The stamp of an entry, ms of cluster time; -2 when the bytes are too short or out of range. */
export function stampOf(data: Uint8Array): number {
  return data.length < ENTRY_HEADER_BYTES ? -2 : u64At(data, STAMP_OFFSET);
}
