/**
 * Walks the replies of one node frame in place, without an object for each.
 *
 * Owns: nothing but its position. Never: the meaning of fields. Used by: clients that send a great
 * many requests, the load generator among them; others use response.ts.
 */
import { NESTING_DEPTH_MAX } from '../limits.js';
import { CORRELATION_MAX, frameItemsAt } from './frame.js';
import {
  arrayAt,
  arrayHeaderBytes,
  booleanAt,
  integerBytes,
  NIL,
  skipAt,
  unsignedAt,
  wordAt,
} from './msgpack-reader.js';

const TWO_32 = 2 ** 32;
/** High half of 2^53 - 1. */
const HIGH_MAX = 0x1f_ffff;
const NO_BYTES = new Uint8Array(0);

/** Reused; its fields are those of the current reply. */
export class ReplyReader {
  /** 0 for a notice to the whole connection. */
  correlation = 0;
  code = 0;
  /** Cluster time of the entry, ms; -1 when no entry was involved. */
  clusterTimeMs = -1;
  isReplay = false;
  /** The fields after the head: how many, and where their MessagePack lies. */
  fieldCount = 0;
  fieldsStart = 0;
  fieldsEnd = 0;
  /** After next() returned false: true when the frame is broken; close the connection. */
  broken = false;

  private bytes: Uint8Array = NO_BYTES;
  private position = 0;
  private end = 0;
  private remaining = 0;

  /** Starts on the frame body `start` … `end`. False when it is no frame of version 1. */
  open(bytes: Uint8Array, start: number, end: number): boolean {
    this.bytes = bytes;
    this.end = end;
    this.remaining = 0;
    const at = frameItemsAt(bytes, start, end);
    this.broken = at < 0;
    if (this.broken) return false;
    this.position = at;
    this.remaining = arrayAt(bytes, start, end) - 2;
    return true;
  }

  /** Moves to the next reply. False at the end, or at a broken one: see `broken`. */
  next(): boolean {
    if (this.broken) return false;
    if (this.remaining === 0) {
      this.broken = this.position !== this.end;
      return false;
    }
    this.remaining -= 1;
    this.broken = !this.readReply();
    return !this.broken;
  }

  private readReply(): boolean {
    const bytes = this.bytes;
    const end = this.end;
    let at = this.position;
    const count = arrayAt(bytes, at, end);
    if (count < 4) return false;
    at += arrayHeaderBytes(bytes[at]!);
    this.correlation = unsignedAt(bytes, at, end);
    if (this.correlation < 0 || this.correlation > CORRELATION_MAX) return false;
    at += integerBytes(bytes[at]!);
    this.code = unsignedAt(bytes, at, end);
    if (this.code < 0) return false;
    at += integerBytes(bytes[at]!);
    if (!this.readClusterTime(at)) return false;
    at += integerBytes(bytes[at]!);
    const replay = booleanAt(bytes, at, end);
    if (replay < 0) return false;
    this.isReplay = replay === 1;
    this.fieldsStart = at + 1;
    this.fieldCount = count - 4;
    return this.passFields();
  }

  /** Puts a long number together on the spot, in a field: see wordAt. */
  private readClusterTime(at: number): boolean {
    const bytes = this.bytes;
    if (at < this.end && bytes[at]! >= 0xce && bytes[at]! <= 0xcf) {
      const isLong = bytes[at] === 0xcf;
      if (at + (isLong ? 9 : 5) > this.end) return false;
      const high = isLong ? wordAt(bytes, at + 1) : 0;
      if (high < 0 || high > HIGH_MAX) return false;
      this.clusterTimeMs = high * TWO_32 + (wordAt(bytes, isLong ? at + 5 : at + 1) >>> 0);
      return true;
    }
    this.clusterTimeMs = unsignedAt(bytes, at, this.end);
    return this.clusterTimeMs >= NIL;
  }

  private passFields(): boolean {
    let at = this.fieldsStart;
    for (let field = 0; field < this.fieldCount; field += 1) {
      at = skipAt(this.bytes, at, this.end, NESTING_DEPTH_MAX);
      if (at < 0) return false;
    }
    this.fieldsEnd = at;
    this.position = at;
    return true;
  }
}
