/**
 * One record a lock name: who holds it, who waits, and what last happened to it.
 *
 * Owns: names (by hash and in byte order), the queue's ends, the list of idle locks. Never: leases
 * or waits themselves. A lock that nobody holds and nobody waits for is idle; it is kept for its
 * last revision until there are too many. Used by: the rules of the lock machine.
 */
import type { ByteStore } from '../../../collections/byte-store.js';
import type { RecordHash } from '../../../collections/digest.js';
import { HashIndex, hashBytes } from '../../../collections/hash-index.js';
import { NameOrder } from '../../../collections/name-order.js';
import { growFloat64, growInt32, growUint32 } from '../../../collections/slot-allocator.js';
import { CAPACITY_INITIAL, NONE, Table } from './table.js';

const TAG_LOCK = 1;

export class LockTable extends Table {
  name = new Uint32Array(CAPACITY_INITIAL);
  nameHash = new Int32Array(CAPACITY_INITIAL);
  /** Lease slot of the exclusive holder. */
  holder = new Int32Array(CAPACITY_INITIAL);
  firstWait = new Int32Array(CAPACITY_INITIAL);
  lastWait = new Int32Array(CAPACITY_INITIAL);
  waiters = new Uint32Array(CAPACITY_INITIAL);
  /** Revision of the last grant or end. */
  lastRevision = new Float64Array(CAPACITY_INITIAL);
  private previousIdle = new Int32Array(CAPACITY_INITIAL);
  private nextIdle = new Int32Array(CAPACITY_INITIAL);
  private isIdle = new Int32Array(CAPACITY_INITIAL);

  oldestIdle = NONE;
  private newestIdle = NONE;
  idleCount = 0;

  readonly order: NameOrder;
  private readonly byName = new HashIndex();

  /** The seeds keep a client from choosing names that collide in the index. */
  constructor(
    store: ByteStore,
    hash: RecordHash,
    private readonly seed0: number,
    private readonly seed1: number,
  ) {
    super(store, hash);
    this.order = new NameOrder(store);
  }

  /** Slot of the lock with this name, or NONE. */
  find(bytes: Uint8Array, offset: number, length: number): number {
    const hash = hashBytes(bytes, offset, length, this.seed0, this.seed1);
    let slot = this.byName.find(hash);
    while (slot !== NONE) {
      if (this.store.equals(this.name[slot] as number, bytes, offset, length)) return slot;
      slot = this.byName.findNext();
    }
    return NONE;
  }

  /** A new lock, not yet idle: its caller grants it in the same command. */
  create(bytes: Uint8Array, offset: number, length: number): number {
    const slot = this.take();
    const hash = hashBytes(bytes, offset, length, this.seed0, this.seed1);
    const handle = this.store.store(bytes, offset, length);
    this.name[slot] = handle;
    this.nameHash[slot] = hash;
    this.holder[slot] = NONE;
    this.firstWait[slot] = NONE;
    this.lastWait[slot] = NONE;
    this.waiters[slot] = 0;
    this.lastRevision[slot] = 0;
    this.isIdle[slot] = 0;
    this.byName.insert(hash, slot);
    this.order.insert(handle, slot);
    return slot;
  }

  remove(slot: number): void {
    this.leaveIdle(slot);
    this.byName.remove(this.nameHash[slot] as number, slot);
    this.order.remove(this.name[slot] as number);
    this.store.release(this.name[slot] as number);
    this.give(slot);
  }

  /** Puts the lock at the young end of the idle list, which is therefore in lastRevision order. */
  becomeIdle(slot: number): void {
    this.isIdle[slot] = 1;
    this.previousIdle[slot] = this.newestIdle;
    this.nextIdle[slot] = NONE;
    if (this.newestIdle === NONE) this.oldestIdle = slot;
    else this.nextIdle[this.newestIdle] = slot;
    this.newestIdle = slot;
    this.idleCount += 1;
  }

  /** The idle lock behind this one, NONE behind the youngest: a walk from oldestIdle. */
  nextIdleOf(slot: number): number {
    return this.nextIdle[slot] as number;
  }

  isIdleAt(slot: number): boolean {
    return this.isIdle[slot] !== 0;
  }

  leaveIdle(slot: number): void {
    if (this.isIdle[slot] === 0) return;
    const previous = this.previousIdle[slot] as number;
    const next = this.nextIdle[slot] as number;
    if (previous === NONE) this.oldestIdle = next;
    else this.nextIdle[previous] = next;
    if (next === NONE) this.newestIdle = previous;
    else this.previousIdle[next] = previous;
    this.isIdle[slot] = 0;
    this.idleCount -= 1;
  }

  override hashRecord(slot: number, hash: RecordHash): void {
    hash.begin(TAG_LOCK);
    this.hashBytes(this.name[slot] as number, hash);
    hash.numberAt(this.lastRevision, slot);
  }

  protected override growColumns(capacity: number): void {
    this.name = growUint32(this.name, capacity, 0);
    this.nameHash = growInt32(this.nameHash, capacity, 0);
    this.holder = growInt32(this.holder, capacity, NONE);
    this.firstWait = growInt32(this.firstWait, capacity, NONE);
    this.lastWait = growInt32(this.lastWait, capacity, NONE);
    this.waiters = growUint32(this.waiters, capacity, 0);
    this.lastRevision = growFloat64(this.lastRevision, capacity, 0);
    this.previousIdle = growInt32(this.previousIdle, capacity, NONE);
    this.nextIdle = growInt32(this.nextIdle, capacity, NONE);
    this.isIdle = growInt32(this.isIdle, capacity, 0);
  }
}
