/**
 * A ring in shared memory that carries orders from the main thread to the log thread.
 *
 * Owns: the bytes between two positions, one moved by the writer and one by the reader, and the
 * wake-up of a reader that sleeps. A frame is u32 length and bytes, whole and eight-aligned; a
 * length of 0 says that the next message on the thread's port stands here in the sequence (what is
 * too large for the ring, and every request that is no order). Never: the meaning of a frame.
 * Used by: log.ts (writer) and log-thread.ts (reader).
 *
 * 1. The writer fills a frame, then stores its position: the reader sees whole frames only.
 * 2. The reader copies a frame out, then stores its position: the writer never overwrites one.
 * 3. The writer notifies after 1; a reader that checked before it waits on the old position, and
 *    Atomics.wait returns at once when the position has changed in between.
 */
import { LOG_APPENDS_MAX, LOG_RING_BYTES } from '../../limits.js';

const WRITTEN = 0;
const READ = 1;
const CONTROL_BYTES = 64;
const LENGTH_BYTES = 4;
const ALIGNMENT = 8;
/** A length that says: the next frame is at the start of the ring. */
const WRAP = 0xffff_ffff;
/** Kept free for frames of length 0, so that those always fit: all orders and as many requests. */
const RESERVE_BYTES = 2 * LOG_APPENDS_MAX * ALIGNMENT;
/** Frames above this go through the port. */
const FRAME_BYTES_MAX = LOG_RING_BYTES / 4;

function aligned(bytes: number): number {
  return (bytes + ALIGNMENT - 1) & -ALIGNMENT;
}

/** The shared memory of one ring. */
export function makeRing(): SharedArrayBuffer {
  return new SharedArrayBuffer(CONTROL_BYTES + LOG_RING_BYTES);
}

/** Positions count bytes modulo 2^32; their low bits are the place in the ring. */
function placeOf(position: number): number {
  return position & (LOG_RING_BYTES - 1);
}

/** The main thread's end. */
export class RingWriter {
  /** The ring's bytes; `begin` gives the place to write at. */
  readonly bytes: Uint8Array;
  readonly view: DataView;
  private readonly control: Int32Array;
  private position = 0;

  constructor(ring: SharedArrayBuffer) {
    this.control = new Int32Array(ring, 0, CONTROL_BYTES / 4);
    this.bytes = new Uint8Array(ring, CONTROL_BYTES, LOG_RING_BYTES);
    this.view = new DataView(ring, CONTROL_BYTES, LOG_RING_BYTES);
  }

  /** Where to write a frame of `length` bytes, at least 1; -1 when it has to take the port. */
  tryBegin(length: number): number {
    if (length > FRAME_BYTES_MAX) return -1;
    const need = aligned(LENGTH_BYTES + length);
    const place = placeOf(this.position);
    const tail = LOG_RING_BYTES - place;
    const skipped = tail < need ? tail : 0;
    if (this.freeBytes < skipped + need + RESERVE_BYTES) return -1;
    if (skipped > 0) {
      this.view.setUint32(place, WRAP);
      this.position = (this.position + skipped) >>> 0;
    }
    const at = placeOf(this.position);
    this.view.setUint32(at, length);
    this.position = (this.position + need) >>> 0;
    return at + LENGTH_BYTES;
  }

  /** Hands over the frame begun last, now that its bytes are written. */
  end(): void {
    Atomics.store(this.control, WRITTEN, this.position | 0);
    Atomics.notify(this.control, WRITTEN);
  }

  /** Says that the message just posted to the port stands here. */
  putPortFrame(): void {
    if (this.freeBytes < ALIGNMENT) throw new Error('the ring to the log thread is full');
    this.view.setUint32(placeOf(this.position), 0);
    this.position = (this.position + ALIGNMENT) >>> 0;
    this.end();
  }

  private get freeBytes(): number {
    const used = (this.position - Atomics.load(this.control, READ)) >>> 0;
    return LOG_RING_BYTES - used;
  }
}

/** The log thread's end. */
export class RingReader {
  private readonly control: Int32Array;
  private readonly bytes: Uint8Array;
  private readonly view: DataView;
  private position = 0;

  constructor(ring: SharedArrayBuffer) {
    this.control = new Int32Array(ring, 0, CONTROL_BYTES / 4);
    this.bytes = new Uint8Array(ring, CONTROL_BYTES, LOG_RING_BYTES);
    this.view = new DataView(ring, CONTROL_BYTES, LOG_RING_BYTES);
  }

  /** Bytes of the next frame, 0 for one on the port, -1 when there is none. */
  peek(): number {
    if (Atomics.load(this.control, WRITTEN) === (this.position | 0)) return -1;
    const length = this.view.getUint32(placeOf(this.position));
    if (length !== WRAP) return length;
    this.advance(LOG_RING_BYTES - placeOf(this.position));
    return this.view.getUint32(placeOf(this.position));
  }

  /** Copies the frame that peek announced into `target`, of its length, and moves on. */
  take(target: Uint8Array): void {
    const at = placeOf(this.position) + LENGTH_BYTES;
    target.set(this.bytes.subarray(at, at + target.length));
    this.advance(aligned(LENGTH_BYTES + target.length));
  }

  /** Moves past a frame of length 0. */
  takePortFrame(): void {
    this.advance(ALIGNMENT);
  }

  /** Sleeps until there is a frame. The thread does nothing else meanwhile. */
  wait(): void {
    Atomics.wait(this.control, WRITTEN, this.position | 0);
  }

  private advance(bytes: number): void {
    this.position = (this.position + bytes) >>> 0;
    Atomics.store(this.control, READ, this.position | 0);
  }
}
