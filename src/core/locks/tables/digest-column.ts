/**
 * The share that one table's records have in the state digest, kept up lazily.
 *
 * Owns: a hash for each record that is counted in the digest, and the list of records that changed
 * since they were. A record that comes and goes between two looks at the digest is never hashed.
 * Never: what a record's fields are; the table writes those. Used by: every table in this folder.
 */
import { assert } from '../../../collections/assert.js';
import { type RecordHash, StateDigest } from '../../../collections/digest.js';
import { FloatRing } from '../../../collections/ring.js';
import { growUint8, growUint32 } from '../../../collections/slot-allocator.js';

/** A table that can write the logical fields of its record (no slot numbers) into a hash. */
export interface DigestSource {
  /** False when the slot holds no record. */
  isLive(slot: number): boolean;
  hashRecord(slot: number, hash: RecordHash): void;
}

/** Not counted and not listed · counted, hash stored · listed, not counted. */
const ABSENT = 0;
const COUNTED = 1;
const LISTED = 2;

/** Each slot of a table is listed once at most, and a table has no more. */
const LISTED_SLOTS_MAX = 1 << 26;
/** Changed records that may wait; beyond it each entry hashes the oldest ones. */
const LISTED_MAX = 1 << 14;
/** Listed records that one entry hashes when there are too many. */
const SETTLED_PER_ENTRY = 512;

export class DigestColumn {
  private readonly sum = new StateDigest();
  private states: Uint8Array;
  private hashes: Uint32Array;
  /** Slots that changed, the longest ago first: those will not change again so soon. */
  private readonly listed = new FloatRing(LISTED_SLOTS_MAX);

  constructor(
    private readonly source: DigestSource,
    private readonly hash: RecordHash,
    capacity: number,
  ) {
    this.states = new Uint8Array(capacity);
    this.hashes = new Uint32Array(capacity * 4);
  }

  grow(capacity: number): void {
    this.states = growUint8(this.states, capacity, ABSENT);
    this.hashes = growUint32(this.hashes, capacity * 4, 0);
  }

  /** The record is about to change, or has just come. */
  touch(slot: number): void {
    const state = this.states[slot];
    if (state === LISTED) return;
    if (state === COUNTED) this.uncount(slot);
    this.states[slot] = LISTED;
    const isListed = this.listed.push(slot);
    assert(isListed, 'list a changed record once');
  }

  /** The record is gone. */
  drop(slot: number): void {
    if (this.states[slot] !== COUNTED) return;
    this.uncount(slot);
    this.states[slot] = ABSENT;
  }

  /** Keeps the list of changed records short; called once an entry. */
  settleSome(): void {
    if (this.listed.length > LISTED_MAX) this.settle(SETTLED_PER_ENTRY);
  }

  /** Hashes up to `recordsMax` of the changed records. Returns how many are left. */
  settleMost(recordsMax: number): number {
    this.settle(Math.min(recordsMax, this.listed.length));
    return this.listed.length;
  }

  /** Adds this table's sum to `target`. */
  addTo(target: StateDigest): void {
    this.settle(this.listed.length);
    target.add(this.sum.s0, this.sum.s1, this.sum.s2, this.sum.s3);
  }

  private settle(count: number): void {
    for (let i = 0; i < count; i += 1) {
      const slot = this.listed.shift();
      if (!this.source.isLive(slot)) {
        this.states[slot] = ABSENT;
        continue;
      }
      this.source.hashRecord(slot, this.hash);
      this.hash.finish();
      const at = slot * 4;
      this.hashes[at] = this.hash.h0;
      this.hashes[at + 1] = this.hash.h1;
      this.hashes[at + 2] = this.hash.h2;
      this.hashes[at + 3] = this.hash.h3;
      this.sum.add(this.hash.h0, this.hash.h1, this.hash.h2, this.hash.h3);
      this.states[slot] = COUNTED;
    }
  }

  private uncount(slot: number): void {
    const at = slot * 4;
    this.sum.subtract(
      this.hashes[at] as number,
      this.hashes[at + 1] as number,
      this.hashes[at + 2] as number,
      this.hashes[at + 3] as number,
    );
  }
}
