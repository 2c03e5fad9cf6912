/**
 * A hash index over slots: from a hash to the slots whose keys have it.
 *
 * Owns: one table of (hash, slot) pairs, open addressing, linear probing. Never: keys; the caller
 * computes the hash and checks equality on each candidate. The home of a hash is the upper bits of
 * its product with the golden ratio, so that hashes which differ in few bits spread (Knuth, The Art
 * of Computer Programming 3, 6.4), and a table twice as large is filled in memory order. Removal
 * shifts back: there are no tombstones. Used by: the lock machine (names, ids, requests).
 */

import { assert } from './assert.js';

const CAPACITY_MIN = 16;
/** Entries that a table may have places for. Full: the node ends; its users are bounded below. */
const CAPACITY_MAX = 1 << 27;
/** The table doubles when more than 60 % of its places are taken. */
const LOAD_MAX = 0.6;
/** 2^32 divided by the golden ratio, odd. */
const GOLDEN = 0x9e3779b1 | 0;

export class HashIndex {
  /** Pairs: the hash, then the slot plus one, 0 for a free place. */
  private entries: Int32Array;
  private mask: number;
  private shift: number;
  private countMax: number;
  private entryCount = 0;
  /** Where find stands: its hash, and the place of its last candidate. */
  private findHash = 0;
  private findPlace = 0;

  /** `expected`: entries to make room for at once, 0 or more. */
  constructor(expected = 0) {
    let capacity = CAPACITY_MIN;
    while (capacity * LOAD_MAX < expected) capacity *= 2;
    assert(capacity <= CAPACITY_MAX, 'keep a hash index below 2^27 places');
    this.entries = new Int32Array(2 * capacity);
    this.mask = capacity - 1;
    this.shift = Math.clz32(capacity) + 1;
    this.countMax = Math.floor(capacity * LOAD_MAX);
  }

  /** Entries in the index. */
  get count(): number {
    return this.entryCount;
  }

  /**
   * The first slot that was inserted with `hash`, or -1. Starts the round for findNext. A hash is
   * any 32 bits: signed or unsigned, they are the same hash.
   */
  find(hash: number): number {
    this.findHash = hash | 0;
    this.findPlace = Math.imul(hash, GOLDEN) >>> this.shift;
    return this.probe();
  }

  /** The next candidate of the last find, or -1. Not after an insert or a remove in between. */
  findNext(): number {
    this.findPlace = (this.findPlace + 1) & this.mask;
    return this.probe();
  }

  /** Adds an entry. Equal entries are the caller's to avoid. `slot`: 0 to 2^31 - 2. */
  insert(hash: number, slot: number): void {
    assert(slot >= 0, 'index a slot of 0 or more');
    if (this.entryCount >= this.countMax) this.grow();
    this.place(hash | 0, slot + 1);
    this.entryCount += 1;
  }

  /** Takes the entry of (hash, slot) out. Returns false when there is none. */
  remove(hash: number, slot: number): boolean {
    const entries = this.entries;
    const wanted = hash | 0;
    let at = Math.imul(wanted, GOLDEN) >>> this.shift;
    for (;;) {
      const held = entries[2 * at + 1]!;
      if (held === 0) return false;
      if (held === slot + 1 && entries[2 * at] === wanted) break;
      at = (at + 1) & this.mask;
    }
    this.closeGap(at);
    this.entryCount -= 1;
    return true;
  }

  private probe(): number {
    const entries = this.entries;
    const wanted = this.findHash;
    let at = this.findPlace;
    for (;;) {
      const held = entries[2 * at + 1]!;
      if (held === 0 || entries[2 * at] === wanted) {
        this.findPlace = at;
        return held - 1;
      }
      at = (at + 1) & this.mask;
    }
  }

  private place(hash: number, held: number): void {
    const entries = this.entries;
    let at = Math.imul(hash, GOLDEN) >>> this.shift;
    while (entries[2 * at + 1] !== 0) at = (at + 1) & this.mask;
    entries[2 * at] = hash;
    entries[2 * at + 1] = held;
  }

  /** Moves back each entry of the run behind `gap` that may stand there; frees the last place. */
  private closeGap(gap: number): void {
    const entries = this.entries;
    const mask = this.mask;
    let at = gap;
    for (;;) {
      at = (at + 1) & mask;
      const held = entries[2 * at + 1]!;
      if (held === 0) break;
      const hash = entries[2 * at]!;
      const home = Math.imul(hash, GOLDEN) >>> this.shift;
      // It may move when its home is not between the gap and itself, counted around the end.
      if (((at - home) & mask) < ((at - gap) & mask)) continue;
      entries[2 * gap] = hash;
      entries[2 * gap + 1] = held;
      gap = at;
    }
    entries[2 * gap] = 0;
    entries[2 * gap + 1] = 0;
  }

  private grow(): void {
    const old = this.entries;
    assert(old.length < 2 * CAPACITY_MAX, 'keep a hash index below 2^27 places');
    this.entries = new Int32Array(2 * old.length);
    this.mask = old.length - 1;
    this.shift -= 1;
    this.countMax = Math.floor(old.length * LOAD_MAX);
    for (let at = 0; at < old.length; at += 2) {
      const held = old[at + 1]!;
      if (held !== 0) this.place(old[at]!, held);
    }
  }
}

/** Rounds of HalfSipHash-1-3 after the last word. */
const ROUNDS_FINAL = 3;

/**
 * The hash of `length` bytes of `source` from `offset`: HalfSipHash-1-3, as a signed 32-bit number,
 * which is never an object on the heap. With a seed that clients cannot know, two u32, they cannot
 * choose names that fall into one place of an index.
 */
export function hashBytes(
  source: Uint8Array,
  offset: number,
  length: number,
  seed0 = 0,
  seed1 = 0,
): number {
  const tail = offset + (length & ~3);
  let v0 = seed0 | 0;
  let v1 = seed1 | 0;
  let v2 = seed0 ^ 0x6c796765;
  let v3 = seed1 ^ 0x74656462;
  let at = offset;
  for (let rounds = (length >>> 2) + 1 + ROUNDS_FINAL; rounds > 0; rounds -= 1) {
    let word = 0;
    if (at < tail) {
      word =
        source[at]! | (source[at + 1]! << 8) | (source[at + 2]! << 16) | (source[at + 3]! << 24);
      at += 4;
    } else if (rounds > ROUNDS_FINAL) {
      word = length << 24;
      for (let shift = 0; at < offset + length; at += 1, shift += 8) word |= source[at]! << shift;
    } else if (rounds === ROUNDS_FINAL) {
      v2 ^= 0xff;
    }
    v3 ^= word;
    v0 = (v0 + v1) | 0;
    v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0;
    v0 = (v0 << 16) | (v0 >>> 16);
    v2 = (v2 + v3) | 0;
    v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2;
    v0 = (v0 + v3) | 0;
    v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0;
    v2 = (v2 + v1) | 0;
    v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2;
    v2 = (v2 << 16) | (v2 >>> 16);
    v0 ^= word;
  }
  return v1 ^ v3;
}

/** The finalizer of MurmurHash3: a bijection of 32 bits that spreads each bit over all. */
function scramble(value: number): number {
  let mixed = Math.imul(value ^ (value >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return mixed ^ (mixed >>> 16);
}

/**
 * The hash of a slot and a whole number of 0 to 2^53, such as a session and a sequence, as a signed
 * 32-bit number.
 */
export function hashPair(a: number, b: number, seed = 0): number {
  const upper = Math.floor(b / 0x1_0000_0000) | 0;
  return scramble(scramble(scramble(a ^ seed ^ GOLDEN) ^ upper) + b);
}

/** The hash of four u32, such as an id of 128 bits, as a signed 32-bit number. */
export function hashWords(a: number, b: number, c: number, d: number): number {
  let mixed = Math.imul(a, GOLDEN) ^ b;
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0x85ebca6b) ^ c;
  mixed = Math.imul(mixed ^ (mixed >>> 15), 0xc2b2ae35) ^ d;
  return scramble(mixed);
}
