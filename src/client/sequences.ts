/**
 * The sequence numbers of one session and what it tells the cluster about them (invariant I6).
 *
 * Owns: which sequences are final for the caller (settled), the acknowledgement mark, the singles
 * above it, and the window. Never: sends. A sequence whose wait may still be granted is not
 * settled: acknowledging a pending wait is refused as a whole (docs/SEMANTICS.md, Request ids).
 * Used by: session.ts.
 */
import { ACKNOWLEDGED_SINGLES_MAX } from '../limits.js';
import { SESSION_SEQUENCES_MAX } from './bounds.js';

/** What one request tells: everything up to `mark`, and `singles` above it, ascending or not. */
export interface Acknowledgement {
  readonly mark: number;
  readonly singles: readonly number[];
}

export class Sequences {
  readonly #windowMax: number;
  #last = 0;
  #mark = 0;
  /** Everything up to here has reached the cluster, as far as its answers have told. */
  #known = 0;
  /** Settled, above the mark. */
  readonly #settled = new Set<number>();
  /** Settled or seen in the queue, above #known. */
  readonly #reached = new Set<number>();
  /** Settled above the mark and not yet carried by a request. */
  readonly #untold = new Set<number>();
  /** Sent or about to be, neither settled nor queued. */
  #open = 0;
  readonly #queued = new Set<number>();
  /** Carried by a request that is not answered yet. */
  #carried = 0;

  /** `windowMax`: sequences that may be open or unacknowledged, 1 … SESSION_SEQUENCES_MAX. */
  constructor(windowMax: number = SESSION_SEQUENCES_MAX) {
    this.#windowMax = windowMax;
  }

  /** The mark that the next request will carry. */
  get mark(): number {
    return this.#mark;
  }

  /** True when the next sequence is inside the window of the cluster. */
  get hasRoom(): boolean {
    const unacknowledged = this.#open + this.#untold.size + this.#carried;
    return this.#last + 1 <= this.#floor + this.#windowMax && unacknowledged < this.#windowMax;
  }

  get #floor(): number {
    return Math.max(this.#mark, this.#known);
  }

  /** Takes the next number, from 1 on. Only when hasRoom. */
  take(): number {
    this.#last += 1;
    this.#open += 1;
    return this.#last;
  }

  /** The cluster answered that the wait of this sequence stands in the queue. */
  queued(sequence: number): void {
    if (this.#queued.has(sequence) || sequence <= this.#mark || this.#settled.has(sequence)) return;
    this.#queued.add(sequence);
    this.#open -= 1;
    this.#reach(sequence);
  }

  /** The caller has the final result of this sequence, or will never ask for it. */
  settle(sequence: number): void {
    if (sequence <= this.#mark || this.#settled.has(sequence)) return;
    if (!this.#queued.delete(sequence)) this.#open -= 1;
    this.#settled.add(sequence);
    this.#untold.add(sequence);
    this.#reach(sequence);
    while (this.#settled.delete(this.#mark + 1)) {
      this.#mark += 1;
      this.#untold.delete(this.#mark);
    }
  }

  /** What the next request carries. It ends with exactly one of told() and untold(). */
  acknowledge(): Acknowledgement {
    const singles: number[] = [];
    for (const single of this.#untold) {
      if (singles.length === ACKNOWLEDGED_SINGLES_MAX) break;
      singles.push(single);
      this.#untold.delete(single);
    }
    this.#carried += singles.length;
    return { mark: this.#mark, singles };
  }

  /** The request that carried it was applied. */
  told(acknowledgement: Acknowledgement): void {
    this.#carried -= acknowledgement.singles.length;
  }

  /** The request that carried it may not have been applied: its singles are told again. */
  untold(acknowledgement: Acknowledgement): void {
    this.#carried -= acknowledgement.singles.length;
    for (const single of acknowledgement.singles) {
      if (single > this.#mark) this.#untold.add(single);
    }
  }

  #reach(sequence: number): void {
    if (sequence > this.#known) this.#reached.add(sequence);
    while (this.#reached.delete(this.#known + 1)) this.#known += 1;
  }
}
