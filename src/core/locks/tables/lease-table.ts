/**
 * One record a live lease: which lock, for whom, with which token, until when.
 *
 * Owns: leases by id, by deadline, and the list of each session's leases in token order. Never:
 * what became of a lease that ended (ended-leases.ts). Used by: the rules of the lock machine.
 */
import { DeadlineHeap } from '../../../collections/deadline-heap.js';
import type { RecordHash } from '../../../collections/digest.js';
import { HashIndex } from '../../../collections/hash-index.js';
import { growFloat64, growInt32, growUint32 } from '../../../collections/slot-allocator.js';
import type { LockTable } from './lock-table.js';
import type { SessionTable } from './session-table.js';
import { CAPACITY_INITIAL, NONE, Table } from './table.js';

const TAG_LEASE = 2;

export class LeaseTable extends Table {
  id0 = new Int32Array(CAPACITY_INITIAL);
  id1 = new Int32Array(CAPACITY_INITIAL);
  id2 = new Int32Array(CAPACITY_INITIAL);
  id3 = new Int32Array(CAPACITY_INITIAL);
  lock = new Int32Array(CAPACITY_INITIAL);
  /** Session slot, or NONE for a lease that stands alone. */
  session = new Int32Array(CAPACITY_INITIAL);
  principal = new Uint32Array(CAPACITY_INITIAL);
  /** The fencing token: the revision of the grant. */
  token = new Float64Array(CAPACITY_INITIAL);
  grantedAt = new Float64Array(CAPACITY_INITIAL);
  renewedAt = new Float64Array(CAPACITY_INITIAL);
  ttlMs = new Float64Array(CAPACITY_INITIAL);
  /** A renewal with a shorter TTL leaves the earlier promise here. */
  deadlineFloor = new Float64Array(CAPACITY_INITIAL);
  metadata = new Uint32Array(CAPACITY_INITIAL);
  previousInSession = new Int32Array(CAPACITY_INITIAL);
  nextInSession = new Int32Array(CAPACITY_INITIAL);

  /** Keys are lower bounds of the deadlines: a session's renewal does not move them. */
  readonly deadlines = new DeadlineHeap();
  private readonly byId = new HashIndex();
  /** Rows name their lock and session; set once by the machine. */
  locks!: LockTable;
  sessions!: SessionTable;

  find(id0: number, id1: number, id2: number, id3: number): number {
    let slot = this.byId.find(id0);
    while (slot !== NONE) {
      const isSame = this.id1[slot] === id1 && this.id2[slot] === id2 && this.id3[slot] === id3;
      if (isSame && this.id0[slot] === id0) return slot;
      slot = this.byId.findNext();
    }
    return NONE;
  }

  /** A slot with its id indexed; the caller sets every other column. */
  create(id0: number, id1: number, id2: number, id3: number): number {
    const slot = this.take();
    this.id0[slot] = id0;
    this.id1[slot] = id1;
    this.id2[slot] = id2;
    this.id3[slot] = id3;
    this.previousInSession[slot] = NONE;
    this.nextInSession[slot] = NONE;
    this.byId.insert(id0, slot);
    return slot;
  }

  remove(slot: number): void {
    this.byId.remove(this.id0[slot] as number, slot);
    this.deadlines.remove(slot);
    const metadata = this.metadata[slot] as number;
    if (metadata !== 0) this.store.release(metadata);
    this.give(slot);
  }

  override hashRecord(slot: number, hash: RecordHash): void {
    hash.begin(TAG_LEASE);
    hash.word(this.id0[slot] as number);
    hash.word(this.id1[slot] as number);
    hash.word(this.id2[slot] as number);
    hash.word(this.id3[slot] as number);
    this.hashBytes(this.locks.name[this.lock[slot] as number] as number, hash);
    this.sessions.hashIdentity(this.session[slot] as number, hash);
    hash.wordAt(this.principal, slot);
    hash.numberAt(this.token, slot);
    hash.numberAt(this.grantedAt, slot);
    hash.numberAt(this.renewedAt, slot);
    hash.numberAt(this.ttlMs, slot);
    hash.numberAt(this.deadlineFloor, slot);
    this.hashBytes(this.metadata[slot] as number, hash);
  }

  protected override growColumns(capacity: number): void {
    this.id0 = growInt32(this.id0, capacity, 0);
    this.id1 = growInt32(this.id1, capacity, 0);
    this.id2 = growInt32(this.id2, capacity, 0);
    this.id3 = growInt32(this.id3, capacity, 0);
    this.lock = growInt32(this.lock, capacity, NONE);
    this.session = growInt32(this.session, capacity, NONE);
    this.principal = growUint32(this.principal, capacity, 0);
    this.token = growFloat64(this.token, capacity, 0);
    this.grantedAt = growFloat64(this.grantedAt, capacity, 0);
    this.renewedAt = growFloat64(this.renewedAt, capacity, 0);
    this.ttlMs = growFloat64(this.ttlMs, capacity, 0);
    this.deadlineFloor = growFloat64(this.deadlineFloor, capacity, 0);
    this.metadata = growUint32(this.metadata, capacity, 0);
    this.previousInSession = growInt32(this.previousInSession, capacity, NONE);
    this.nextInSession = growInt32(this.nextInSession, capacity, NONE);
  }
}
