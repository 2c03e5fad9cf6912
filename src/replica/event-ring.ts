/**
 * The newest committed events, as columns: what watches resume from.
 *
 * Owns: the events of revisions `oldest` to `next` - 1 and their names, in two rings that grow to a
 * bound and then forget the oldest. Never: an object for an event, so an entry costs no garbage
 * when nobody watches. A leap of the revision (a restored state) empties it.
 * Written by: apply.ts. Read by: watches.ts.
 */
import { assert } from '../collections/assert.js';
import type { EventBatch } from '../core/locks/event.js';
import type { LockMachine } from '../core/locks/lock-machine.js';
import {
  NAME_BYTES_MAX,
  WATCH_EVENTS_KEPT,
  WATCH_EVENTS_LEAST,
  WATCH_NAME_BYTES_KEPT,
} from '../limits.js';

/** Bytes of names kept for each event that is kept, before the bound on either. */
const NAME_BYTES_EACH = WATCH_NAME_BYTES_KEPT / WATCH_EVENTS_KEPT;

export class EventRing {
  /** First revision that is kept; equal to `next` when none is. */
  oldest = 1;
  /** The revision that the next event is to have. */
  next = 1;
  private capacity = WATCH_EVENTS_LEAST;
  private kinds = new Uint8Array(this.capacity);
  private causes = new Uint8Array(this.capacity);
  private principals = new Uint32Array(this.capacity);
  private tokens = new Float64Array(this.capacity);
  private places = new Float64Array(this.capacity);
  private stamps = new Float64Array(this.capacity);
  /** Where the name begins, counted over all names ever written. */
  private nameStarts = new Float64Array(this.capacity);
  private nameLengths = new Uint16Array(this.capacity);
  /** The entry that has the event, and the position in it of the command that caused it. */
  private indexes = new Float64Array(this.capacity);
  private positions = new Int32Array(this.capacity);
  private names = new Uint8Array(this.nameCapacity);
  private namesEnd = 0;

  constructor(private readonly eventsMax = WATCH_EVENTS_KEPT) {}

  private get nameCapacity(): number {
    return Math.max(this.capacity * NAME_BYTES_EACH, 2 * NAME_BYTES_MAX);
  }

  /** Forgets everything; the next event has `revision`. */
  begin(revision: number): void {
    this.oldest = revision;
    this.next = revision;
  }

  /** Takes the events of the entry that `machine` has just applied. */
  record(machine: LockMachine): void {
    const events: EventBatch = machine.events;
    for (let i = 0; i < events.count; i += 1) {
      const event = events.at(i);
      if (event.revision !== this.next) this.begin(event.revision);
      if (this.next - this.oldest === this.capacity && this.capacity < this.eventsMax) this.grow();
      const slot = this.slotOf(event.revision);
      this.kinds[slot] = event.kind;
      this.causes[slot] = event.cause;
      this.principals[slot] = event.principal;
      this.tokens[slot] = event.token;
      this.places[slot] = event.place;
      this.stamps[slot] = machine.now;
      this.indexes[slot] = machine.appliedIndex;
      this.positions[slot] = event.position;
      this.keepName(slot, machine, event.name);
      this.next += 1;
      this.forget();
    }
  }

  kindOf(revision: number): number {
    return this.kinds[this.slotOf(revision)] as number;
  }
  causeOf(revision: number): number {
    return this.causes[this.slotOf(revision)] as number;
  }
  principalOf(revision: number): number {
    return this.principals[this.slotOf(revision)] as number;
  }
  tokenOf(revision: number): number {
    return this.tokens[this.slotOf(revision)] as number;
  }
  placeOf(revision: number): number {
    return this.places[this.slotOf(revision)] as number;
  }
  /** Cluster time of the entry, ms. */
  stampOf(revision: number): number {
    return this.stamps[this.slotOf(revision)] as number;
  }

  /** Log index of the entry. */
  indexOf(revision: number): number {
    return this.indexes[this.slotOf(revision)] as number;
  }
  /** Position in the entry of the command that caused it; -1: the sweep did. */
  positionOf(revision: number): number {
    return this.positions[this.slotOf(revision)] as number;
  }

  /** The lock's name: a view that is good until the next record(). */
  nameOf(revision: number): Uint8Array {
    const slot = this.slotOf(revision);
    const start = (this.nameStarts[slot] as number) % this.names.length;
    return this.names.subarray(start, start + (this.nameLengths[slot] as number));
  }

  private slotOf(revision: number): number {
    return revision & (this.capacity - 1);
  }

  /** Names are never split: what does not fit before the end begins at the start again. */
  private keepName(slot: number, machine: LockMachine, name: number): void {
    const size = this.names.length;
    const length = machine.nameLength(name);
    assert(length <= NAME_BYTES_MAX, 'events: a name fits the ring of names');
    const left = size - (this.namesEnd % size);
    if (left < length) this.namesEnd += left;
    machine.copyName(name, this.names, this.namesEnd % size);
    this.nameStarts[slot] = this.namesEnd;
    this.nameLengths[slot] = length;
    this.namesEnd += length;
  }

  /** Lets go of events that are too many, or whose names are overwritten. */
  private forget(): void {
    if (this.next - this.oldest > this.capacity) this.oldest = this.next - this.capacity;
    const first = this.namesEnd - this.names.length;
    while ((this.nameStarts[this.slotOf(this.oldest)] as number) < first) this.oldest += 1;
  }

  /** Doubles the rings; the events and their names move. */
  private grow(): void {
    const old = { ...this };
    const oldMask = this.capacity - 1;
    this.capacity *= 2;
    this.kinds = new Uint8Array(this.capacity);
    this.causes = new Uint8Array(this.capacity);
    this.principals = new Uint32Array(this.capacity);
    this.tokens = new Float64Array(this.capacity);
    this.places = new Float64Array(this.capacity);
    this.stamps = new Float64Array(this.capacity);
    this.nameStarts = new Float64Array(this.capacity);
    this.nameLengths = new Uint16Array(this.capacity);
    this.indexes = new Float64Array(this.capacity);
    this.positions = new Int32Array(this.capacity);
    this.names = new Uint8Array(this.nameCapacity);
    this.namesEnd = 0;
    for (let revision = this.oldest; revision < this.next; revision += 1) {
      const from = revision & oldMask;
      const to = this.slotOf(revision);
      this.kinds[to] = old.kinds[from] as number;
      this.causes[to] = old.causes[from] as number;
      this.principals[to] = old.principals[from] as number;
      this.tokens[to] = old.tokens[from] as number;
      this.places[to] = old.places[from] as number;
      this.stamps[to] = old.stamps[from] as number;
      this.indexes[to] = old.indexes[from] as number;
      this.positions[to] = old.positions[from] as number;
      const start = (old.nameStarts[from] as number) % old.names.length;
      const length = old.nameLengths[from] as number;
      this.names.set(old.names.subarray(start, start + length), this.namesEnd);
      this.nameStarts[to] = this.namesEnd;
      this.nameLengths[to] = length;
      this.namesEnd += length;
    }
  }
}
