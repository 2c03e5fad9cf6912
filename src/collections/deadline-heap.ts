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

const CAPACITY_INITIAL = 64;
/**
 * The root's place. The four children of place p are 4 × (p - 2) and the next three, its parent is
 * p / 4 + 2: siblings share a cache line of 64 bytes, and place 0 means "not in the heap".
 */
const ROOT = 3;

export class DeadlineHeap {
  /** By place: the pair (deadline, order), and the slot. */
  private keys = new Float64Array(2 * CAPACITY_INITIAL);
  private slots = new Int32Array(CAPACITY_INITIAL);
  /** By slot: its place, 0 when it has none. */
  private places = new Int32Array(CAPACITY_INITIAL);
  /** The first place behind the last entry. */
  private end = ROOT;

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
   * Adds a slot, 0 or more, that is not in the heap. `deadline`: cluster time in ms; `order`:
   * breaks ties and is unique among equal deadlines. Constant time when no entry is later.
   */
  push(slot: number, deadline: number, order: number): void {
    assert(slot >= 0 && !this.has(slot), 'push a slot that is not in the heap');
    if (slot >= this.places.length) this.growPlaces(slot);
    if (this.end === this.slots.length) this.growEntries();
    const place = this.end;
    this.end += 1;
    this.rise(place, slot, deadline, order);
  }

  /** Takes `slot` out. Returns false when it was not in. */
  remove(slot: number): boolean {
    if (!this.has(slot)) return false;
    const place = this.places[slot]!;
    this.places[slot] = 0;
    this.end -= 1;
    const last = this.end;
    if (place !== last) {
      this.settle(place, this.slots[last]!, this.keys[2 * last]!, this.keys[2 * last + 1]!);
    }
    return true;
  }

  /** Gives `slot`, which must be in the heap, another deadline; its order stays. */
  update(slot: number, deadline: number): void {
    assert(this.has(slot), 'update a slot in the heap');
    const place = this.places[slot]!;
    this.settle(place, slot, deadline, this.keys[2 * place + 1]!);
  }

  /** Puts an entry where it belongs, above or below the hole at `place`. */
  private settle(place: number, slot: number, deadline: number, order: number): void {
    if (place > ROOT && this.isBefore(deadline, order, (place >> 2) + 2)) {
      this.rise(place, slot, deadline, order);
    } else {
      this.sink(place, slot, deadline, order);
    }
  }

  private rise(hole: number, slot: number, deadline: number, order: number): void {
    let place = hole;
    while (place > ROOT) {
      const parent = (place >> 2) + 2;
      if (!this.isBefore(deadline, order, parent)) break;
      this.move(parent, place);
      place = parent;
    }
    this.put(place, slot, deadline, order);
  }

  private sink(hole: number, slot: number, deadline: number, order: number): void {
    let place = hole;
    for (;;) {
      const first = 4 * (place - 2);
      if (first >= this.end) break;
      const child = this.leastOf(first);
      if (this.isBefore(deadline, order, child)) break;
      this.move(child, place);
      place = child;
    }
    this.put(place, slot, deadline, order);
  }

  /** The least of the siblings from `first` on. */
  private leastOf(first: number): number {
    const keys = this.keys;
    const behind = Math.min(first + 4, this.end);
    let least = first;
    let deadline = keys[2 * first]!;
    for (let place = first + 1; place < behind; place += 1) {
      const other = keys[2 * place]!;
      if (other > deadline) continue;
      if (other === deadline && keys[2 * place + 1]! > keys[2 * least + 1]!) continue;
      least = place;
      deadline = other;
    }
    return least;
  }

  private isBefore(deadline: number, order: number, place: number): boolean {
    const other = this.keys[2 * place]!;
    return deadline < other || (deadline === other && order < this.keys[2 * place + 1]!);
  }

  private move(from: number, to: number): void {
    this.put(to, this.slots[from]!, this.keys[2 * from]!, this.keys[2 * from + 1]!);
  }

  private put(place: number, slot: number, deadline: number, order: number): void {
    this.keys[2 * place] = deadline;
    this.keys[2 * place + 1] = order;
    this.slots[place] = slot;
    this.places[slot] = place;
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
