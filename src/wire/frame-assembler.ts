/**
 * Cuts a byte stream into frames: chunks of any size in, whole frames out, copied at most once.
 *
 * Owns: the bytes of an incomplete frame. Never: an allocation by a claimed length; its buffer
 * grows with what has arrived. Frames whole inside one chunk are read where they lie.
 * Used by: io (client port, peer port) and client, each connection its own.
 */
import { INVALID } from './msgpack-reader.js';

/** Total bytes of the frame at `start`; 0 while unknown; INVALID when its length is refused. */
export type FrameBytesAt = (bytes: Uint8Array, start: number, end: number) => number;

const NO_BYTES = new Uint8Array(0);
const CAPACITY_MIN = 4_096;
/** A buffer that grew past this is given back to the collector once it is empty. */
const CAPACITY_KEPT = 64 * 1_024;

export class FrameAssembler {
  /** Where the current frame lies, length field included; valid until the next push(). */
  bytes: Uint8Array = NO_BYTES;
  frameStart = 0;
  frameEnd = 0;
  /** True once a length was refused: nothing more will come out, close the connection. */
  broken = false;

  /** Bytes read so far are `position` … `end` of `bytes`. */
  private position = 0;
  private end = 0;
  /** The assembler's own buffer; `bytes` is either it or the chunk pushed last. */
  private kept: Uint8Array = NO_BYTES;

  /** `frameBytesAt` knows the header of this port's frames. */
  constructor(private readonly frameBytesAt: FrameBytesAt) {}

  /** Bytes of an incomplete frame: more than 0 means that a frame has begun. */
  get pendingBytes(): number {
    return this.end - this.position;
  }

  /** Takes the next chunk, which must stay unchanged until next() has returned false. */
  push(chunk: Uint8Array): void {
    const pending = this.end - this.position;
    if (pending === 0) {
      this.bytes = chunk;
      this.position = 0;
      this.end = chunk.length;
      return;
    }
    this.makeRoom(pending, pending + chunk.length);
    this.kept.set(chunk, pending);
    this.bytes = this.kept;
    this.position = 0;
    this.end = pending + chunk.length;
  }

  /**
   * Moves to the next whole frame. False when there is none yet; the rest is then kept.
   * After false, `broken` tells whether the stream can go on.
   */
  next(): boolean {
    if (this.broken) return false;
    const size = this.frameBytesAt(this.bytes, this.position, this.end);
    if (size === INVALID) {
      this.broken = true;
      return false;
    }
    if (size === 0 || size > this.end - this.position) {
      this.keepRest();
      return false;
    }
    this.frameStart = this.position;
    this.frameEnd = this.position + size;
    this.position = this.frameEnd;
    return true;
  }

  /** Moves the rest of a chunk, which is not ours, into the assembler's own buffer. */
  private keepRest(): void {
    const pending = this.end - this.position;
    if (pending === 0) {
      this.bytes = NO_BYTES;
      this.position = 0;
      this.end = 0;
      if (this.kept.length > CAPACITY_KEPT) this.kept = NO_BYTES;
      return;
    }
    if (this.bytes === this.kept && this.position === 0) return;
    this.makeRoom(pending, pending);
    this.bytes = this.kept;
    this.position = 0;
    this.end = pending;
  }

  /** Puts the `pending` bytes at the start of `kept` with room for `needed` in all. */
  private makeRoom(pending: number, needed: number): void {
    const rest = this.bytes.subarray(this.position, this.end);
    if (this.kept.length >= needed) {
      if (this.bytes !== this.kept) this.kept.set(rest);
      else if (this.position > 0) this.kept.copyWithin(0, this.position, this.end);
      return;
    }
    const grown = new Uint8Array(Math.max(CAPACITY_MIN, needed, 2 * pending));
    grown.set(rest);
    this.kept = grown;
  }
}
