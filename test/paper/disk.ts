/**
 * A log device in memory: what is durable, and the orders that are not yet.
 *
 * Owns: one node's durable record (term, vote, entries). Never: time; an order becomes durable when
 * a test says so. Checks that orders fit: entries are consecutive and terms never fall. A crash may
 * leave any part of the oldest order that a real device could leave.
 * Used by: cluster.ts.
 */
import type { HardState } from '../../src/core/raft/effects.js';
import type { Entry, Message } from '../../src/core/raft/message.js';

/** One append as it was handed over, with the messages that wait for it. */
export interface Order {
  readonly appendId: number;
  readonly truncateFrom: number;
  readonly entries: readonly Entry[];
  readonly hardState: HardState | null;
  /** Commit index that was known at that moment; kept beside the entries. */
  readonly commitIndex: number;
  readonly held: Message[];
}

/** How much of an order a crash leaves behind; each part includes those before it. */
export const OrderPart = { None: 0, HardState: 1, HalfCut: 2, Cut: 3, All: 4 } as const;
export type OrderPart = (typeof OrderPart)[keyof typeof OrderPart];

export class Disk {
  hardState: HardState = { term: 0, votedFor: 0 };
  /** Highest commit index that was stored beside an entry. */
  commitIndex = 0;
  /** Entry `index` is at `index - 1`. */
  readonly entries: Entry[] = [];
  /** Handed over and not durable, oldest first. */
  readonly orders: Order[] = [];

  get lastIndex(): number {
    return this.entries.length;
  }

  /** Makes the oldest order durable and returns it. */
  completeOldest(): Order {
    const order = this.orders.shift();
    if (order === undefined) throw new Error('disk: nothing is on its way');
    this.applyPart(order, OrderPart.All);
    return order;
  }

  /** Loses what is not durable: `whole` orders and then `part` of the next had reached the disk. */
  crash(whole: number, part: OrderPart): void {
    for (let i = 0; i < whole && this.orders.length > 0; i += 1) this.completeOldest();
    const torn = this.orders[0];
    if (torn !== undefined) this.applyPart(torn, part);
    this.orders.length = 0;
  }

  /** The entries as they will be once every order is durable. */
  entriesHanded(): Entry[] {
    const entries = this.entries.slice();
    for (const order of this.orders) {
      if (order.truncateFrom > 0) entries.length = Math.min(entries.length, order.truncateFrom - 1);
      entries.push(...order.entries);
    }
    return entries;
  }

  private applyPart(order: Order, part: OrderPart): void {
    if (part >= OrderPart.HardState && order.hardState !== null) this.store(order.hardState);
    if (part >= OrderPart.HalfCut && order.truncateFrom > 0) this.cut(order.truncateFrom, part);
    if (part < OrderPart.All || order.entries.length === 0) return;
    for (const entry of order.entries) this.append(entry);
    this.commitIndex = Math.max(this.commitIndex, order.commitIndex);
  }

  private store(hardState: HardState): void {
    if (hardState.term < this.hardState.term) throw new Error('disk: the stored term falls');
    this.hardState = hardState;
  }

  /** The newest entries go first, so a torn cut leaves a shorter suffix. */
  private cut(from: number, part: OrderPart): void {
    if (from > this.lastIndex) throw new Error(`disk: cut from ${from}, last ${this.lastIndex}`);
    const kept = part === OrderPart.HalfCut ? (from + this.lastIndex) >>> 1 : from - 1;
    this.entries.length = kept;
  }

  private append(entry: Entry): void {
    const last = this.entries[this.entries.length - 1];
    if (entry.index !== this.lastIndex + 1) throw new Error('disk: a gap in the entries');
    if (last !== undefined && entry.term < last.term) throw new Error('disk: an entry term falls');
    this.entries.push(entry);
  }
}
