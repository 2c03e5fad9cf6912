/**
 * Client frames: u32 big-endian body length, then one MessagePack array [1, shard, item, ...].
 *
 * Owns: frame version 1, which is for ever, and the bounds of a frame. Never: what an operation
 * means, sockets. A node writes the array's header as array32, five bytes, so that it can patch
 * the count in afterwards; a reader takes any array width. Used by: io (cut the stream), replica
 * (read requests, frame replies), client.
 */
import {
  FRAME_BYTES_MAX,
  FRAME_OPERATIONS_MAX,
  NESTING_DEPTH_MAX,
  REQUEST_DEADLINE_DEFAULT_MS,
  REQUEST_DEADLINE_MAX_MS,
} from '../limits.js';
import { ErrorCode } from './errors.js';
import {
  arrayAt,
  arrayHeaderBytes,
  INVALID,
  integerBytes,
  NIL,
  skipAt,
  u32At,
  unsignedAt,
} from './msgpack-reader.js';
import { putU32 } from './msgpack-writer.js';
import type { OutBuffer } from './out-buffer.js';

export const FRAME_VERSION = 1;
/** The only shard there is. */
export const FRAME_SHARD = 0;
/** Bytes of the length before a frame's body. */
export const FRAME_HEADER_BYTES = 4;
export const CORRELATION_MAX = 2 ** 32 - 1;

/** Bytes of an open frame before its first item: length, array32 header, version, shard. */
const PREFIX_BYTES = FRAME_HEADER_BYTES + 5 + 2;
/** An open frame this large is ended before the next reply; a reply is at most as large again. */
const FRAME_FULL_BYTES = FRAME_BYTES_MAX / 2;

/**
 * Bytes of the frame that starts at `start`, length field included; 0 while that field is
 * incomplete; INVALID when it claims 0 or more than `bodyMax` bytes: close the connection.
 */
export function frameBytesAt(
  bytes: Uint8Array,
  start: number,
  end: number,
  bodyMax: number = FRAME_BYTES_MAX,
): number {
  if (end - start < FRAME_HEADER_BYTES) return 0;
  const body = u32At(bytes, start);
  return body === 0 || body > bodyMax ? INVALID : FRAME_HEADER_BYTES + body;
}

/**
 * Starts a frame at the end of `out`.
 * Returns its position, for endFrame.
 */
export function beginFrame(out: OutBuffer): number {
  const position = out.length;
  out.reserve(PREFIX_BYTES);
  const bytes = out.bytes;
  bytes[position + 4] = 0xdd;
  bytes[position + 9] = FRAME_VERSION;
  bytes[position + 10] = FRAME_SHARD;
  out.length = position + PREFIX_BYTES;
  return position;
}

/** True when the frame begun at `position` has to be ended before another reply is appended. */
export function isFrameFull(out: OutBuffer, position: number): boolean {
  return out.length - position >= FRAME_FULL_BYTES;
}

/** Ends the frame begun at `position`, to which `items` items were appended. */
export function endFrame(out: OutBuffer, position: number, items: number): void {
  putU32(out.bytes, position, out.length - position - FRAME_HEADER_BYTES);
  putU32(out.bytes, position + 5, items + 2);
}

/**
 * Body position of the first item, or a negative error code. Checks version, shard and count.
 * Shared by both directions.
 */
export function frameItemsAt(bytes: Uint8Array, start: number, end: number): number {
  if (end - start > FRAME_BYTES_MAX) return -ErrorCode.TooLarge;
  const count = arrayAt(bytes, start, end);
  if (count < 2) return -ErrorCode.BadRequest;
  if (count - 2 > FRAME_OPERATIONS_MAX) return -ErrorCode.TooLarge;
  let at = start + arrayHeaderBytes(bytes[start]!);
  const version = unsignedAt(bytes, at, end);
  if (version < 0) return -ErrorCode.BadRequest;
  if (version !== FRAME_VERSION) return -ErrorCode.UnsupportedVersion;
  at += integerBytes(bytes[at]!);
  if (unsignedAt(bytes, at, end) !== FRAME_SHARD) return -ErrorCode.BadRequest;
  return at + integerBytes(bytes[at]!);
}

const NO_BYTES = new Uint8Array(0);

/**
 * Walks the requests of one frame, in place. Reused; its fields are those of the current request.
 * The bytes belong to the caller and must not change until the walk is over.
 */
export class FrameReader {
  /** 1 to CORRELATION_MAX. */
  correlation = 0;
  /** Remaining ms, 0 to REQUEST_DEADLINE_MAX_MS; the default when the client named none. */
  deadlineMs = 0;
  /** First element of the operation; 0 when the operation has no command: refuse it. */
  command = 0;
  /** Range of the operation's own MessagePack array. */
  operationStart = 0;
  operationEnd = 0;
  /**
   * After next() returned false: 0 at the end of a sound frame, else the code with which the
   * connection is told (correlation 0) and closed, since what follows cannot be trusted.
   */
  fault = 0;

  private bytes: Uint8Array = NO_BYTES;
  private position = 0;
  private end = 0;
  private remaining = 0;

  /**
   * Starts on the frame body `start` … `end` (without its length field).
   * Returns 0, or BadRequest, TooLarge, UnsupportedVersion: tell and close the connection.
   */
  open(bytes: Uint8Array, start: number, end: number): number {
    this.bytes = bytes;
    this.end = end;
    this.remaining = 0;
    const at = frameItemsAt(bytes, start, end);
    this.fault = at < 0 ? -at : 0;
    if (at < 0) return this.fault;
    this.position = at;
    this.remaining = arrayAt(bytes, start, end) - 2;
    return 0;
  }

  /** Moves to the next request. False at the end, or at a broken item: see `fault`. */
  next(): boolean {
    if (this.fault !== 0) return false;
    if (this.remaining === 0) {
      if (this.position !== this.end) this.fault = ErrorCode.BadRequest;
      return false;
    }
    this.remaining -= 1;
    if (this.readItem()) return true;
    this.fault = ErrorCode.BadRequest;
    return false;
  }

  private readItem(): boolean {
    const bytes = this.bytes;
    const end = this.end;
    let at = this.position;
    if (arrayAt(bytes, at, end) !== 3) return false;
    at += arrayHeaderBytes(bytes[at]!);
    const correlation = unsignedAt(bytes, at, end);
    if (correlation < 1 || correlation > CORRELATION_MAX) return false;
    at += integerBytes(bytes[at]!);
    const deadlineMs = unsignedAt(bytes, at, end);
    if (deadlineMs < NIL) return false;
    at += integerBytes(bytes[at]!);
    const next = skipAt(bytes, at, end, NESTING_DEPTH_MAX);
    if (next < 0) return false;
    this.correlation = correlation;
    this.deadlineMs = deadlineMs < 0 ? REQUEST_DEADLINE_DEFAULT_MS : deadlineMs;
    if (deadlineMs > REQUEST_DEADLINE_MAX_MS) this.deadlineMs = REQUEST_DEADLINE_MAX_MS;
    this.operationStart = at;
    this.operationEnd = next;
    this.command = commandAt(bytes, at, next);
    this.position = next;
    return true;
  }
}

/** The command number of the operation at `at`, 0 when there is none. */
export function commandAt(bytes: Uint8Array, at: number, end: number): number {
  if (arrayAt(bytes, at, end) < 1) return 0;
  const command = unsignedAt(bytes, at + arrayHeaderBytes(bytes[at]!), end);
  return Math.max(command, 0);
}
