/**
 * First in, first out, in a ring whose size is a power of two.
 *
 * Owns: its items until they are shifted out. Never more than its bound: push says no, and the
 * caller has its answer to "what happens when it is full". A ring doubles as it fills and keeps the
 * room it once needed. Used by: every layer.
 */

import { assert } from './assert.js';
import { growFloat64 } from './slot-allocator.js';

const CAPACITY_INITIAL = 16;
const CAPACITY_MAX = 1 << 26;

/** A ring of anything. An item that was shifted out is not held on to. */
export class Ring<T> {
  private readonly max: number;
  private items: (T | undefined)[] = new Array<T | undefined>(CAPACITY_INITIAL).fill(undefined);
  private head = 0;
  private count = 0;

  /** `max`: items that it may hold, 1 to 2^26. */
  constructor(max: number) {
    assert(max >= 1 && max <= CAPACITY_MAX, 'bound a ring by 1 to 2^26 items');
    this.max = max;
  }

  /** Items in the ring. */
  get length(): number {
    return this.count;
  }

  /** Adds an item at the end. Returns false, and changes nothing, when the ring is full. */
  push(item: T): boolean {
    if (this.count === this.max) return false;
    if (this.count === this.items.length) this.grow();
    this.items[(this.head + this.count) & (this.items.length - 1)] = item;
    this.count += 1;
    return true;
  }

  /** Takes the oldest item out; undefined when there is none. */
  shift(): T | undefined {
    if (this.count === 0) return undefined;
    const item = this.items[this.head];
    this.items[this.head] = undefined;
    this.head = (this.head + 1) & (this.items.length - 1);
    this.count -= 1;
    return item;
  }

  /** The oldest item, which stays; undefined when there is none. */
  peek(): T | undefined {
    return this.count === 0 ? undefined : this.items[this.head];
  }

  private grow(): void {
    // What had wrapped around to the start comes behind the rest, where there is room now.
    const old = this.items.length;
    for (let at = 0; at < old; at += 1) {
      this.items.push(at < this.head ? this.items[at] : undefined);
      if (at < this.head) this.items[at] = undefined;
    }
  }
}

/** A ring of numbers in a typed array: no number in it is an object. */
export class FloatRing {
  private readonly max: number;
  private items = new Float64Array(CAPACITY_INITIAL);
  private head = 0;
  private count = 0;

  /** `max`: numbers that it may hold, 1 to 2^26. */
  constructor(max: number) {
    assert(max >= 1 && max <= CAPACITY_MAX, 'bound a ring by 1 to 2^26 items');
    this.max = max;
  }

  /** Numbers in the ring. */
  get length(): number {
    return this.count;
  }

  /** Adds a number at the end. Returns false, and changes nothing, when the ring is full. */
  push(item: number): boolean {
    if (this.count === this.max) return false;
    if (this.count === this.items.length) this.grow();
    this.items[(this.head + this.count) & (this.items.length - 1)] = item;
    this.count += 1;
    return true;
  }

  /** Takes the oldest number out. Asserts that there is one: ask length first. */
  shift(): number {
    assert(this.count > 0, 'shift from a ring that is not empty');
    const item = this.items[this.head]!;
    this.head = (this.head + 1) & (this.items.length - 1);
    this.count -= 1;
    return item;
  }

  /** The oldest number, which stays. Asserts that there is one. */
  peek(): number {
    assert(this.count > 0, 'look into a ring that is not empty');
    return this.items[this.head]!;
  }

  private grow(): void {
    const old = this.items.length;
    this.items = growFloat64(this.items, 2 * old);
    // What had wrapped around to the start comes behind the rest, where there is room now.
    this.items.copyWithin(old, 0, this.head);
  }
}
