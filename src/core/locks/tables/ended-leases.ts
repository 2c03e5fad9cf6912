/**
 * How the last leases ended: a ring of a replicated, fixed count (invariant I4).
 *
 * Owns: id, cause and revision of each remembered end, oldest overwritten first. Never: live
 * leases. Its share of the state digest is the sum over the remembered ends. Used by: ownership.ts,
 * lease-commands.ts.
 */
import { type RecordHash, StateDigest } from '../../../collections/digest.js';
import { NONE } from './table.js';

const TAG_ENDED = 6;
const CHAINS_MIN = 16;

/** About one chain for each remembered end: a power of two. */
function chainsFor(capacity: number): number {
  let chains = CHAINS_MIN;
  while (chains < capacity) chains *= 2;
  return chains;
}

export class EndedLeases {
  private words: Int32Array;
  private causes: Uint8Array;
  private principals: Uint32Array;
  private revisions: Float64Array;
  /**
   * Ends with equal low bits of id0 form a chain, newest first: heads by those bits, then the end
   * before by slot. Both hold the number of an end, counted from 1. A number that has left the ring
   * ends its chain, so forgetting an end touches no index.
   */
  private heads: Float64Array;
  private before: Float64Array;
  /** Ends ever remembered; the next one goes to slot written % capacity. */
  private written = 0;
  /** Slots before this one are in `sum`; the rest are hashed when the digest is asked for. */
  private counted = 0;
  private sum = new StateDigest();

  constructor(
    private readonly hash: RecordHash,
    private capacity: number,
  ) {
    this.words = new Int32Array(capacity * 4);
    this.causes = new Uint8Array(capacity);
    this.principals = new Uint32Array(capacity);
    this.revisions = new Float64Array(capacity);
    this.heads = new Float64Array(chainsFor(capacity));
    this.before = new Float64Array(capacity);
  }

  add(
    id0: number,
    id1: number,
    id2: number,
    id3: number,
    principal: number,
    cause: number,
    revision: number,
  ): void {
    const slot = this.written % this.capacity;
    if (this.written >= this.capacity) this.forget(slot, this.written - this.capacity);
    this.words[slot * 4] = id0;
    this.words[slot * 4 + 1] = id1;
    this.words[slot * 4 + 2] = id2;
    this.words[slot * 4 + 3] = id3;
    this.causes[slot] = cause;
    this.principals[slot] = principal;
    this.revisions[slot] = revision;
    this.written += 1;
    const chain = id0 & (this.heads.length - 1);
    this.before[slot] = this.heads[chain] as number;
    this.heads[chain] = this.written;
  }

  /** Slot of the remembered end of this principal's lease, or NONE. */
  find(id0: number, id1: number, id2: number, id3: number, principal: number): number {
    const forgotten = this.written - this.capacity;
    let number = this.heads[id0 & (this.heads.length - 1)] as number;
    while (number > 0 && number > forgotten) {
      const slot = (number - 1) % this.capacity;
      const at = slot * 4;
      const isSame =
        this.words[at] === id0 &&
        this.words[at + 1] === id1 &&
        this.words[at + 2] === id2 &&
        this.words[at + 3] === id3;
      if (isSame) return this.principals[slot] === principal ? slot : NONE;
      number = this.before[slot] as number;
    }
    return NONE;
  }

  causeOf(slot: number): number {
    return this.causes[slot] as number;
  }

  revisionOf(slot: number): number {
    return this.revisions[slot] as number;
  }

  /** Changes how many are remembered, keeping the newest. */
  resize(capacity: number): void {
    if (capacity === this.capacity) return;
    const resized = new EndedLeases(this.hash, capacity);
    const kept = Math.min(this.written, this.capacity, capacity);
    for (let number = this.written - kept; number < this.written; number += 1) {
      const slot = number % this.capacity;
      const at = slot * 4;
      resized.add(
        this.words[at] as number,
        this.words[at + 1] as number,
        this.words[at + 2] as number,
        this.words[at + 3] as number,
        this.principals[slot] as number,
        this.causes[slot] as number,
        this.revisions[slot] as number,
      );
    }
    this.capacity = capacity;
    this.words = resized.words;
    this.causes = resized.causes;
    this.principals = resized.principals;
    this.revisions = resized.revisions;
    this.heads = resized.heads;
    this.before = resized.before;
    this.written = resized.written;
    this.counted = 0;
    this.sum = new StateDigest();
  }

  /** How many ends are remembered. */
  get count(): number {
    return Math.min(this.written, this.capacity);
  }

  /** Slot of the remembered end at `position`, 0 for the oldest. */
  slotAt(position: number): number {
    return (this.written - this.count + position) % this.capacity;
  }

  /** One of the four words of the lease id in a slot. */
  wordOf(slot: number, word: number): number {
    return this.words[slot * 4 + word] as number;
  }

  principalOf(slot: number): number {
    return this.principals[slot] as number;
  }

  /** Hashes up to `endsMax` of the ends that are not in the sum. Returns how many are left. */
  settleMost(endsMax: number): number {
    // What was overwritten before it was ever counted needs no hash.
    this.counted = Math.max(this.counted, this.written - this.capacity);
    const to = Math.min(this.written, this.counted + endsMax);
    while (this.counted < to) {
      this.hashSlot(this.counted % this.capacity);
      this.sum.add(this.hash.h0, this.hash.h1, this.hash.h2, this.hash.h3);
      this.counted += 1;
    }
    return this.written - this.counted;
  }

  addTo(target: StateDigest): void {
    this.settleMost(this.capacity);
    target.add(this.sum.s0, this.sum.s1, this.sum.s2, this.sum.s3);
  }

  private forget(slot: number, number: number): void {
    if (number >= this.counted) return;
    this.hashSlot(slot);
    this.sum.subtract(this.hash.h0, this.hash.h1, this.hash.h2, this.hash.h3);
  }

  private hashSlot(slot: number): void {
    const hash = this.hash;
    hash.begin(TAG_ENDED);
    for (let i = 0; i < 4; i += 1) hash.word(this.words[slot * 4 + i] as number);
    hash.word(this.causes[slot] as number);
    hash.wordAt(this.principals, slot);
    hash.numberAt(this.revisions, slot);
    hash.finish();
  }
}
