/**
 * A growing byte buffer that encoders append to and a transport drains: copy once out.
 *
 * Owns: its bytes until take() or clear(). Never: framing. Used by: reply encoders, one a
 * connection, and by peer links.
 */

const BYTES_INITIAL = 4_096;
/** A buffer that grew past this is given back to the collector after it was drained. */
const BYTES_KEPT = 1 << 20;

export class OutBuffer {
  bytes: Uint8Array = new Uint8Array(BYTES_INITIAL);
  view: DataView = new DataView(this.bytes.buffer);
  length = 0;

  /** Makes room for `count` more bytes at `length`; the caller then writes and moves `length`. */
  reserve(count: number): void {
    const needed = this.length + count;
    if (needed <= this.bytes.length) return;
    let capacity = this.bytes.length * 2;
    while (capacity < needed) capacity *= 2;
    const grown = new Uint8Array(capacity);
    grown.set(this.bytes.subarray(0, this.length));
    this.bytes = grown;
    this.view = new DataView(grown.buffer);
  }

  /** The written bytes, now owned by the caller; the buffer starts anew. */
  take(): Uint8Array {
    const taken = this.bytes.subarray(0, this.length);
    const capacity = this.length > BYTES_KEPT / 4 ? BYTES_KEPT / 4 : BYTES_INITIAL;
    this.bytes = new Uint8Array(capacity);
    this.view = new DataView(this.bytes.buffer);
    this.length = 0;
    return taken;
  }

  /** Forgets the written bytes; the caller has copied or sent them. */
  clear(): void {
    this.length = 0;
    if (this.bytes.length > BYTES_KEPT) {
      this.bytes = new Uint8Array(BYTES_INITIAL);
      this.view = new DataView(this.bytes.buffer);
    }
  }
}
