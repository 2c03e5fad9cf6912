/**
 * One record a session: until when it lives, and the ends of its lists of leases, waits, results.
 *
 * Owns: sessions by id, by deadline while live, by retention once ended. Never: connections; to
 * which connection a session is attached is not replicated. Used by: the rules of the lock machine.
 */
import { DeadlineHeap } from '../../../collections/deadline-heap.js';
import type { RecordHash } from '../../../collections/digest.js';
import { HashIndex } from '../../../collections/hash-index.js';
import {
  growFloat64,
  growInt32,
  growUint8,
  growUint32,
} from '../../../collections/slot-allocator.js';
import { CAPACITY_INITIAL, NONE, Table } from './table.js';

const TAG_SESSION = 3;

/** Live, or ended and kept only for its unacknowledged results. */
export const SessionState = { Live: 0, Closed: 1, Expired: 2 } as const;
export type SessionState = (typeof SessionState)[keyof typeof SessionState];

export class SessionTable extends Table {
  id0 = new Int32Array(CAPACITY_INITIAL);
  id1 = new Int32Array(CAPACITY_INITIAL);
  id2 = new Int32Array(CAPACITY_INITIAL);
  id3 = new Int32Array(CAPACITY_INITIAL);
  secret0 = new Int32Array(CAPACITY_INITIAL);
  secret1 = new Int32Array(CAPACITY_INITIAL);
  secret2 = new Int32Array(CAPACITY_INITIAL);
  secret3 = new Int32Array(CAPACITY_INITIAL);
  /** Rises by one with each session opened: an order that no slot number decides. */
  number = new Float64Array(CAPACITY_INITIAL);
  principal = new Uint32Array(CAPACITY_INITIAL);
  state = new Uint8Array(CAPACITY_INITIAL);
  ttlMs = new Float64Array(CAPACITY_INITIAL);
  renewedAt = new Float64Array(CAPACITY_INITIAL);
  deadline = new Float64Array(CAPACITY_INITIAL);
  endedAt = new Float64Array(CAPACITY_INITIAL);
  metadata = new Uint32Array(CAPACITY_INITIAL);
  firstLease = new Int32Array(CAPACITY_INITIAL);
  lastLease = new Int32Array(CAPACITY_INITIAL);
  firstWait = new Int32Array(CAPACITY_INITIAL);
  lastWait = new Int32Array(CAPACITY_INITIAL);
  firstResult = new Int32Array(CAPACITY_INITIAL);
  /** Records of this session in the result table, whatever their state. */
  results = new Uint32Array(CAPACITY_INITIAL);
  /** Results that are final and not acknowledged. */
  finals = new Uint32Array(CAPACITY_INITIAL);
  /** Every sequence up to here is either in the result table or forgotten (invariant I6). */
  floor = new Float64Array(CAPACITY_INITIAL);
  /**
   * The highest acknowledgement mark that was applied; never above the floor. No part of the
   * logical record: nothing at or below it is in the table, so it only spares a walk.
   */
  mark = new Float64Array(CAPACITY_INITIAL);
  /**
   * The highest sequence that ever had a record. No part of the logical record either: it answers
   * "never heard" for the next sequence of a client without a look into the index.
   */
  highest = new Float64Array(CAPACITY_INITIAL);

  readonly deadlines = new DeadlineHeap();
  readonly retentions = new DeadlineHeap();
  private readonly byId = new HashIndex();

  find(id0: number, id1: number, id2: number, id3: number): number {
    let slot = this.byId.find(id0);
    while (slot !== NONE) {
      const isSame = this.id1[slot] === id1 && this.id2[slot] === id2 && this.id3[slot] === id3;
      if (isSame && this.id0[slot] === id0) return slot;
      slot = this.byId.findNext();
    }
    return NONE;
  }

  /** A slot with its id indexed and its lists empty; the caller sets the rest. */
  create(id0: number, id1: number, id2: number, id3: number): number {
    const slot = this.take();
    this.id0[slot] = id0;
    this.id1[slot] = id1;
    this.id2[slot] = id2;
    this.id3[slot] = id3;
    this.state[slot] = SessionState.Live;
    this.endedAt[slot] = 0;
    this.firstLease[slot] = NONE;
    this.lastLease[slot] = NONE;
    this.firstWait[slot] = NONE;
    this.lastWait[slot] = NONE;
    this.firstResult[slot] = NONE;
    this.results[slot] = 0;
    this.finals[slot] = 0;
    this.floor[slot] = 0;
    this.mark[slot] = 0;
    this.highest[slot] = 0;
    this.byId.insert(id0, slot);
    return slot;
  }

  remove(slot: number): void {
    this.byId.remove(this.id0[slot] as number, slot);
    this.deadlines.remove(slot);
    this.retentions.remove(slot);
    const metadata = this.metadata[slot] as number;
    if (metadata !== 0) this.store.release(metadata);
    this.give(slot);
  }

  /** Writes the session's id, or its absence, into the hash of a record that belongs to it. */
  hashIdentity(slot: number, hash: RecordHash): void {
    if (slot === NONE) {
      hash.number(-1);
      return;
    }
    hash.numberAt(this.number, slot);
  }

  override hashRecord(slot: number, hash: RecordHash): void {
    hash.begin(TAG_SESSION);
    hash.word(this.id0[slot] as number);
    hash.word(this.id1[slot] as number);
    hash.word(this.id2[slot] as number);
    hash.word(this.id3[slot] as number);
    hash.word(this.secret0[slot] as number);
    hash.word(this.secret1[slot] as number);
    hash.word(this.secret2[slot] as number);
    hash.word(this.secret3[slot] as number);
    hash.numberAt(this.number, slot);
    hash.wordAt(this.principal, slot);
    hash.word(this.state[slot] as number);
    hash.numberAt(this.ttlMs, slot);
    hash.numberAt(this.renewedAt, slot);
    hash.numberAt(this.deadline, slot);
    hash.numberAt(this.endedAt, slot);
    hash.numberAt(this.floor, slot);
    this.hashBytes(this.metadata[slot] as number, hash);
  }

  protected override growColumns(capacity: number): void {
    this.id0 = growInt32(this.id0, capacity, 0);
    this.id1 = growInt32(this.id1, capacity, 0);
    this.id2 = growInt32(this.id2, capacity, 0);
    this.id3 = growInt32(this.id3, capacity, 0);
    this.secret0 = growInt32(this.secret0, capacity, 0);
    this.secret1 = growInt32(this.secret1, capacity, 0);
    this.secret2 = growInt32(this.secret2, capacity, 0);
    this.secret3 = growInt32(this.secret3, capacity, 0);
    this.number = growFloat64(this.number, capacity, 0);
    this.principal = growUint32(this.principal, capacity, 0);
    this.state = growUint8(this.state, capacity, 0);
    this.ttlMs = growFloat64(this.ttlMs, capacity, 0);
    this.renewedAt = growFloat64(this.renewedAt, capacity, 0);
    this.deadline = growFloat64(this.deadline, capacity, 0);
    this.endedAt = growFloat64(this.endedAt, capacity, 0);
    this.metadata = growUint32(this.metadata, capacity, 0);
    this.firstLease = growInt32(this.firstLease, capacity, NONE);
    this.lastLease = growInt32(this.lastLease, capacity, NONE);
    this.firstWait = growInt32(this.firstWait, capacity, NONE);
    this.lastWait = growInt32(this.lastWait, capacity, NONE);
    this.firstResult = growInt32(this.firstResult, capacity, NONE);
    this.results = growUint32(this.results, capacity, 0);
    this.finals = growUint32(this.finals, capacity, 0);
    this.floor = growFloat64(this.floor, capacity, 0);
    this.mark = growFloat64(this.mark, capacity, 0);
    this.highest = growFloat64(this.highest, capacity, 0);
  }
}
