/**
 * One record a queued acquire: its place, its lock, until when it waits.
 *
 * Owns: waits by place and by deadline, the links of each lock's queue and each session's waits.
 * Never: results; the wait's result record is pending and says final once the wait is over.
 * Used by: the rules of the lock machine.
 */
import { DeadlineHeap } from '../../../collections/deadline-heap.js';
import type { RecordHash } from '../../../collections/digest.js';
import { HashIndex } from '../../../collections/hash-index.js';
import { growFloat64, growInt32, growUint32 } from '../../../collections/slot-allocator.js';
import type { LockTable } from './lock-table.js';
import type { SessionTable } from './session-table.js';
import { CAPACITY_INITIAL, NONE, Table } from './table.js';

const TAG_WAIT = 4;

export class WaitTable extends Table {
  /** The revision of the queued event: the wait's number, and its order everywhere. */
  place = new Float64Array(CAPACITY_INITIAL);
  lock = new Int32Array(CAPACITY_INITIAL);
  /** Session slot, or NONE: the wait belongs to an implicit session. */
  session = new Int32Array(CAPACITY_INITIAL);
  principal = new Uint32Array(CAPACITY_INITIAL);
  result = new Int32Array(CAPACITY_INITIAL);
  queuedAt = new Float64Array(CAPACITY_INITIAL);
  /** queuedAt + wait_ms. */
  until = new Float64Array(CAPACITY_INITIAL);
  /** Implicit session: when it lapses unless it is kept alive again. */
  keptUntil = new Float64Array(CAPACITY_INITIAL);
  ttlMs = new Float64Array(CAPACITY_INITIAL);
  metadata = new Uint32Array(CAPACITY_INITIAL);
  previousInQueue = new Int32Array(CAPACITY_INITIAL);
  nextInQueue = new Int32Array(CAPACITY_INITIAL);
  previousInSession = new Int32Array(CAPACITY_INITIAL);
  nextInSession = new Int32Array(CAPACITY_INITIAL);

  /** Keys are lower bounds: a session's renewal and a keep-alive do not move them. */
  readonly deadlines = new DeadlineHeap();
  private readonly byPlace = new HashIndex();
  locks!: LockTable;
  sessions!: SessionTable;

  findPlace(place: number): number {
    let slot = this.byPlace.find(place >>> 0);
    while (slot !== NONE) {
      if (this.place[slot] === place) return slot;
      slot = this.byPlace.findNext();
    }
    return NONE;
  }

  create(place: number): number {
    const slot = this.take();
    this.place[slot] = place;
    this.previousInQueue[slot] = NONE;
    this.nextInQueue[slot] = NONE;
    this.previousInSession[slot] = NONE;
    this.nextInSession[slot] = NONE;
    this.byPlace.insert(place >>> 0, slot);
    return slot;
  }

  remove(slot: number): void {
    this.byPlace.remove((this.place[slot] as number) >>> 0, slot);
    this.deadlines.remove(slot);
    const metadata = this.metadata[slot] as number;
    if (metadata !== 0) this.store.release(metadata);
    this.give(slot);
  }

  override hashRecord(slot: number, hash: RecordHash): void {
    hash.begin(TAG_WAIT);
    hash.numberAt(this.place, slot);
    this.hashBytes(this.locks.name[this.lock[slot] as number] as number, hash);
    this.sessions.hashIdentity(this.session[slot] as number, hash);
    hash.wordAt(this.principal, slot);
    hash.numberAt(this.queuedAt, slot);
    hash.numberAt(this.until, slot);
    hash.numberAt(this.keptUntil, slot);
    hash.numberAt(this.ttlMs, slot);
    this.hashBytes(this.metadata[slot] as number, hash);
  }

  protected override growColumns(capacity: number): void {
    this.place = growFloat64(this.place, capacity, 0);
    this.lock = growInt32(this.lock, capacity, NONE);
    this.session = growInt32(this.session, capacity, NONE);
    this.principal = growUint32(this.principal, capacity, 0);
    this.result = growInt32(this.result, capacity, NONE);
    this.queuedAt = growFloat64(this.queuedAt, capacity, 0);
    this.until = growFloat64(this.until, capacity, 0);
    this.keptUntil = growFloat64(this.keptUntil, capacity, 0);
    this.ttlMs = growFloat64(this.ttlMs, capacity, 0);
    this.metadata = growUint32(this.metadata, capacity, 0);
    this.previousInQueue = growInt32(this.previousInQueue, capacity, NONE);
    this.nextInQueue = growInt32(this.nextInQueue, capacity, NONE);
    this.previousInSession = growInt32(this.previousInSession, capacity, NONE);
    this.nextInSession = growInt32(this.nextInSession, capacity, NONE);
  }
}
