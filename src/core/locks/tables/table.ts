/**
 * What every table has: slots, a digest share, and the byte store that its strings live in.
 *
 * Owns: allocation of slots and the growth of columns. Never: the meaning of a column.
 * Extended by: lock, lease, session, wait and result tables. Columns are struct-of-arrays so that a
 * million records are no work for the garbage collector; a slot is only a place, never an identity.
 */
import type { ByteStore } from '../../../collections/byte-store.js';
import type { RecordHash } from '../../../collections/digest.js';
import { SlotAllocator } from '../../../collections/slot-allocator.js';
import { DigestColumn, type DigestSource } from './digest-column.js';

/** Slots that a table starts with. */
export const CAPACITY_INITIAL = 1_024;

/** No record: the value of an empty link. */
export const NONE = -1;

export abstract class Table implements DigestSource {
  readonly slots = new SlotAllocator();
  readonly digest: DigestColumn;
  private capacity = CAPACITY_INITIAL;

  constructor(
    readonly store: ByteStore,
    hash: RecordHash,
  ) {
    this.digest = new DigestColumn(this, hash, CAPACITY_INITIAL);
  }

  get count(): number {
    return this.slots.count;
  }

  isLive(slot: number): boolean {
    return this.slots.isLive(slot);
  }

  abstract hashRecord(slot: number, hash: RecordHash): void;

  /** Enlarges every column to `capacity`, keeping what is there. */
  protected abstract growColumns(capacity: number): void;

  /** A free slot whose columns hold whatever the last record left: set all of them. */
  protected take(): number {
    const slot = this.slots.allocate();
    if (slot >= this.capacity) {
      while (this.capacity <= slot) this.capacity *= 2;
      this.growColumns(this.capacity);
      this.digest.grow(this.capacity);
    }
    this.digest.touch(slot);
    return slot;
  }

  protected give(slot: number): void {
    this.slots.release(slot);
    this.digest.drop(slot);
  }

  /** Writes the bytes behind a handle into a hash; none is distinct from empty. */
  protected hashBytes(handle: number, hash: RecordHash): void {
    if (handle === 0) {
      hash.number(-1);
      return;
    }
    const store = this.store;
    hash.bytes(store.pageOf(handle), store.offsetOf(handle), store.lengthOf(handle));
  }
}
