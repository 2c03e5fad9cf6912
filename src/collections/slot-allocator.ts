/**
 * Numbers for records that are kept as columns: a slot is a row of every column of its table.
 *
 * Owns: which slots are live and the list of free ones. Never: the columns; their owner grows them
 * to `capacity` with the functions below after an allocate that raised it. A freed slot is the
 * next to be given out, while its row is still in the cache. Used by: the lock machine's tables.
 */

import { assert } from './assert.js';

const CAPACITY_INITIAL = 64;
/** Slots of one table. Full: the node ends; the replicated settings bound tables far below. */
const CAPACITY_MAX = 1 << 26;
/** In the column of links: a live slot. Otherwise the next free slot plus one, 0 at the end. */
const LIVE = -1;

export class SlotAllocator {
  private links: Int32Array;
  /** The slot freed last, plus one; 0 when only never used ones are free. */
  private freed = 0;
  private used = 0;
  private liveCount = 0;

  /** `capacity`: rows to start with, 1 or more. */
  constructor(capacity = CAPACITY_INITIAL) {
    assert(capacity >= 1 && capacity <= CAPACITY_MAX, 'start a table with 1 to 2^26 rows');
    this.links = new Int32Array(capacity);
  }

  /** Live slots. */
  get count(): number {
    return this.liveCount;
  }

  /** Rows that every column of the table must have. */
  get capacity(): number {
    return this.links.length;
  }

  /** The greatest slot ever given out, -1 when there was none: no live slot lies above it. */
  get highest(): number {
    return this.used - 1;
  }

  /** Gives out a slot, 0 or more. `capacity` is greater than the slot afterwards. */
  allocate(): number {
    this.liveCount += 1;
    let slot = this.freed - 1;
    if (slot >= 0) {
      this.freed = this.links[slot]!;
    } else {
      slot = this.used;
      if (slot === this.links.length) this.grow();
      this.used += 1;
    }
    this.links[slot] = LIVE;
    return slot;
  }

  /** Takes a slot back. Asserts that it is live. */
  release(slot: number): void {
    assert(this.links[slot] === LIVE, 'release a live slot');
    this.links[slot] = this.freed;
    this.freed = slot + 1;
    this.liveCount -= 1;
  }

  /** True for a slot that is given out. */
  isLive(slot: number): boolean {
    return this.links[slot] === LIVE;
  }

  private grow(): void {
    const capacity = Math.min(2 * this.links.length, CAPACITY_MAX);
    assert(capacity > this.links.length, 'keep a table below 2^26 rows');
    this.links = growInt32(this.links, capacity);
  }
}

/** A column of `capacity` rows that starts with those of `column`; new rows hold `fill`. */
export function growFloat64(
  column: Float64Array,
  capacity: number,
  fill = 0,
): Float64Array<ArrayBuffer> {
  assert(capacity >= column.length, 'grow a column, never shrink it');
  const grown = new Float64Array(capacity);
  grown.set(column);
  if (fill !== 0) grown.fill(fill, column.length);
  return grown;
}

/** Like growFloat64. */
export function growUint32(
  column: Uint32Array,
  capacity: number,
  fill = 0,
): Uint32Array<ArrayBuffer> {
  assert(capacity >= column.length, 'grow a column, never shrink it');
  const grown = new Uint32Array(capacity);
  grown.set(column);
  if (fill !== 0) grown.fill(fill, column.length);
  return grown;
}

/** Like growFloat64. */
export function growInt32(column: Int32Array, capacity: number, fill = 0): Int32Array<ArrayBuffer> {
  assert(capacity >= column.length, 'grow a column, never shrink it');
  const grown = new Int32Array(capacity);
  grown.set(column);
  if (fill !== 0) grown.fill(fill, column.length);
  return grown;
}

/** Like growFloat64. */
export function growUint8(column: Uint8Array, capacity: number, fill = 0): Uint8Array<ArrayBuffer> {
  assert(capacity >= column.length, 'grow a column, never shrink it');
  const grown = new Uint8Array(capacity);
  grown.set(column);
  if (fill !== 0) grown.fill(fill, column.length);
  return grown;
}
