/**
 * Slots by deadline: the earliest first, ties by order.
 *
 * Owns: a 4-ary heap in typed arrays and the place of each slot in it, so that a renewal moves its
 * entry instead of leaving a dead one behind. Never: time; the caller compares the top to a stamp.
 * The pair (deadline, order) is unique, so what comes out depends on what is in, not on how it got
 * there: a node restored from a snapshot sweeps in the same order. Used by: the lock machine.
 */

import { assert } from './assert.js';
import { growFloat64, growInt32 } from './slot-allocator.js';

const CAPACITY_MIN = 64;
/**
 * The root's place. The four children of place p are 4 × (p - 2) and the next three, its parent is
 * p / 4 + 2: siblings share a cache line of 64 bytes, and place 0 means "not in the heap".
 */
const ROOT = 3;

export class DeadlineHeap {
  /** By place: the pair (deadline, order), and the slot. */
  private keys: Float64Array;
  private slots: Int32Array;
  /** By slot: its place, 0 when it has none. */
  private places: Int32Array;
  /** The first place behind the last entry. */
  private end = ROOT;

  /** `expected`: slots to make room for at once, 0 or more. */
  constructor(expected = 0) {
    const capacity = Math.max(CAPACITY_MIN, expected + ROOT);
    this.keys = new Float64Array(2 * capacity);
    this.slots = new Int32Array(capacity);
    this.places = new Int32Array(capacity);
  }

  /** Entries in the heap. */
  get count(): number {
    return this.end - ROOT;
  }

  /** True when `slot` has a deadline here. */
  has(slot: number): boolean {
    return slot < this.places.length && this.places[slot] !== 0;
  }

  /** The slot with the least (deadline, order), or -1 when the heap is empty. */
  top(): number {
    return this.end === ROOT ? -1 : this.slots[ROOT]!;
  }

  /** The least deadline, or Infinity when the heap is empty. */
  topDeadline(): number {
    return this.end === ROOT ? Number.POSITIVE_INFINITY : this.keys[2 * ROOT]!;
  }

  /** The deadline of `slot`, which must be in the heap. */
  deadlineOf(slot: number): number {
    assert(this.has(slot), 'ask the deadline of a slot in the heap');
    return this.keys[2 * this.places[slot]!]!;
  }

  /**
   * Adds a slot, 0 or more, that is not in the heap. `deadline`: cluster time in ms, 0 or more;
   * `order`: breaks ties and is unique among equal deadlines. Constant time when no entry is later.
   */
  push(slot: number, deadline: number, order: number): void {
    assert(slot >= 0 && !this.has(slot), 'push a slot that is not in the heap');
    assert(deadline >= 0, 'push a deadline of 0 or more');
    if (slot >= this.places.length) this.growPlaces(slot);
    if (this.end === this.slots.length) this.growEntries();
    const place = this.end;
    this.end += 1;
    this.keys[2 * place] = deadline;
    this.keys[2 * place + 1] = order;
    this.slots[place] = slot;
    this.places[slot] = place;
    this.rise(place);
  }

  /** Takes `slot` out. Returns false when it was not in. */
  remove(slot: number): boolean {
    if (!this.has(slot)) return false;
    const place = this.places[slot]!;
    this.places[slot] = 0;
    this.end -= 1;
    if (place !== this.end) {
      this.move(this.end, place);
      this.settle(place);
    }
    return true;
  }

  /** Gives `slot`, which must be in the heap, another deadline; its order stays. */
  update(slot: number, deadline: number): void {
    assert(this.has(slot), 'update a slot in the heap');
    assert(deadline >= 0, 'update to a deadline of 0 or more');
    const place = this.places[slot]!;
    this.keys[2 * place] = deadline;
    this.settle(place);
  }

  // Below, entries are named by their places: a deadline handed from one method to another would
  // be a heap object wherever the engine does not inline the call.

  /** Moves the entry at `place` to where it belongs, above or below. */
  private settle(place: number): void {
    if (place > ROOT && this.isBefore(place, (place >> 2) + 2)) this.rise(place);
    else this.sink(place);
  }

  private rise(hole: number): void {
    const keys = this.keys;
    const slot = this.slots[hole]!;
    const deadline = keys[2 * hole]!;
    const order = keys[2 * hole + 1]!;
    let place = hole;
    while (place > ROOT) {
      const parent = (place >> 2) + 2;
      const other = keys[2 * parent]!;
      if (deadline > other || (deadline === other && order > keys[2 * parent + 1]!)) break;
      this.move(parent, place);
      place = parent;
    }
    if (place === hole) return;
    keys[2 * place] = deadline;
    keys[2 * place + 1] = order;
    this.slots[place] = slot;
    this.places[slot] = place;
  }

  private sink(hole: number): void {
    const keys = this.keys;
    const slot = this.slots[hole]!;
    const deadline = keys[2 * hole]!;
    const order = keys[2 * hole + 1]!;
    let place = hole;
    for (;;) {
      const first = 4 * (place - 2);
      if (first >= this.end) break;
      const child = this.leastOf(first);
      const other = keys[2 * child]!;
      if (deadline < other || (deadline === other && order < keys[2 * child + 1]!)) break;
      this.move(child, place);
      place = child;
    }
    if (place === hole) return;
    keys[2 * place] = deadline;
    keys[2 * place + 1] = order;
    this.slots[place] = slot;
    this.places[slot] = place;
  }

  /** The place of the least of the siblings from `first` on. */
  private leastOf(first: number): number {
    const behind = Math.min(first + 4, this.end);
    let least = first;
    for (let place = first + 1; place < behind; place += 1) {
      if (this.isBefore(place, least)) least = place;
    }
    return least;
  }

  private isBefore(place: number, other: number): boolean {
    const keys = this.keys;
    const deadline = keys[2 * place]!;
    const otherDeadline = keys[2 * other]!;
    if (deadline !== otherDeadline) return deadline < otherDeadline;
    return keys[2 * place + 1]! < keys[2 * other + 1]!;
  }

  private move(from: number, to: number): void {
    const keys = this.keys;
    const slot = this.slots[from]!;
    keys[2 * to] = keys[2 * from]!;
    keys[2 * to + 1] = keys[2 * from + 1]!;
    this.slots[to] = slot;
    this.places[slot] = to;
  }

  private growPlaces(slot: number): void {
    let capacity = this.places.length;
    while (capacity <= slot) capacity *= 2;
    this.places = growInt32(this.places, capacity);
  }

  private growEntries(): void {
    this.keys = growFloat64(this.keys, 2 * this.keys.length);
    this.slots = growInt32(this.slots, 2 * this.slots.length);
  }
}
