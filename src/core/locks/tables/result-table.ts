/**
 * One record a named request: pending while its wait stands, then its one stable result (I6).
 *
 * Owns: results by (session, sequence) and by (principal, free-form id), the retention of free-form
 * ones. Never: decides whether an id is forgotten; requests.ts does.
 * Used by: the rules of the lock machine.
 */
import type { ByteStore } from '../../../collections/byte-store.js';
import { DeadlineHeap } from '../../../collections/deadline-heap.js';
import type { RecordHash } from '../../../collections/digest.js';
import { HashIndex, hashBytes, hashPair } from '../../../collections/hash-index.js';
import {
  growFloat64,
  growInt32,
  growUint8,
  growUint32,
} from '../../../collections/slot-allocator.js';
import type { Outcome } from '../outcome.js';
import type { SessionTable } from './session-table.js';
import { CAPACITY_INITIAL, NONE, Table } from './table.js';

const TAG_RESULT = 5;

export const ResultState = {
  /** Its wait stands in a queue. */
  Pending: 0,
  Final: 1,
  /** Sequence only: acknowledged above the floor; the result itself is dropped. */
  Acknowledged: 2,
} as const;

export class ResultTable extends Table {
  state = new Uint8Array(CAPACITY_INITIAL);
  principal = new Uint32Array(CAPACITY_INITIAL);
  /** Session slot for a sequence, NONE for a free-form id. */
  session = new Int32Array(CAPACITY_INITIAL);
  sequence = new Float64Array(CAPACITY_INITIAL);
  /** Byte handle of the free-form id, 0 for a sequence. */
  free = new Uint32Array(CAPACITY_INITIAL);
  /** Digest of the parameters; not looked at where anyParameters is set: cancelled unheard. */
  digest0 = new Int32Array(CAPACITY_INITIAL);
  digest1 = new Int32Array(CAPACITY_INITIAL);
  anyParameters = new Uint8Array(CAPACITY_INITIAL);
  notAfter = new Float64Array(CAPACITY_INITIAL);
  /** Wait slot while pending, else NONE. */
  wait = new Int32Array(CAPACITY_INITIAL);
  /** Rises with each record: breaks ties of retention. */
  ordinal = new Float64Array(CAPACITY_INITIAL);
  private previousInSession = new Int32Array(CAPACITY_INITIAL);
  nextInSession = new Int32Array(CAPACITY_INITIAL);

  code = new Uint8Array(CAPACITY_INITIAL);
  kind = new Uint8Array(CAPACITY_INITIAL);
  cause = new Uint8Array(CAPACITY_INITIAL);
  entryTime = new Float64Array(CAPACITY_INITIAL);
  /** id, secret: eight words a record. */
  words = new Int32Array(CAPACITY_INITIAL * 8);
  token = new Float64Array(CAPACITY_INITIAL);
  revision = new Float64Array(CAPACITY_INITIAL);
  deadline = new Float64Array(CAPACITY_INITIAL);
  ttlMs = new Float64Array(CAPACITY_INITIAL);
  holderSince = new Float64Array(CAPACITY_INITIAL);
  holderPrincipal = new Uint32Array(CAPACITY_INITIAL);
  blob = new Uint32Array(CAPACITY_INITIAL);

  readonly retentions = new DeadlineHeap();
  private readonly bySequence = new HashIndex();
  private readonly byFree = new HashIndex();
  /** The ordinal of the newest record that there ever was. */
  lastOrdinal = 0;
  /** Free-form records. */
  freeCount = 0;
  sessions!: SessionTable;

  /** The seeds keep a client from choosing ids that collide in the index. */
  constructor(
    store: ByteStore,
    hash: RecordHash,
    private readonly seed0: number,
    private readonly seed1: number,
  ) {
    super(store, hash);
  }

  findSequence(session: number, sequence: number): number {
    if (sequence > (this.sessions.highest[session] as number)) return NONE;
    let slot = this.bySequence.find(hashPair(session, sequence, this.seed0));
    while (slot !== NONE) {
      if (this.session[slot] === session && this.sequence[slot] === sequence) return slot;
      slot = this.bySequence.findNext();
    }
    return NONE;
  }

  findFree(principal: number, bytes: Uint8Array, offset: number, length: number): number {
    let slot = this.byFree.find(this.freeHash(principal, bytes, offset, length));
    while (slot !== NONE) {
      const isSame =
        this.principal[slot] === principal &&
        this.store.equals(this.free[slot] as number, bytes, offset, length);
      if (isSame) return slot;
      slot = this.byFree.findNext();
    }
    return NONE;
  }

  createSequence(session: number, sequence: number, principal: number): number {
    const slot = this.createRow(principal);
    this.session[slot] = session;
    this.sequence[slot] = sequence;
    this.free[slot] = 0;
    this.bySequence.insert(hashPair(session, sequence, this.seed0), slot);
    const first = this.sessions.firstResult[session] as number;
    this.nextInSession[slot] = first;
    if (first !== NONE) this.previousInSession[first] = slot;
    this.sessions.firstResult[session] = slot;
    this.sessions.results[session] = (this.sessions.results[session] as number) + 1;
    if (sequence > (this.sessions.highest[session] as number)) {
      this.sessions.highest[session] = sequence;
    }
    return slot;
  }

  createFree(principal: number, bytes: Uint8Array, offset: number, length: number): number {
    const slot = this.createRow(principal);
    this.session[slot] = NONE;
    this.sequence[slot] = 0;
    this.free[slot] = this.store.store(bytes, offset, length);
    this.byFree.insert(this.freeHash(principal, bytes, offset, length), slot);
    this.freeCount += 1;
    return slot;
  }

  private freeHash(principal: number, bytes: Uint8Array, offset: number, length: number): number {
    return hashPair(hashBytes(bytes, offset, length, this.seed0, this.seed1), principal);
  }

  /** A row without an answer yet: the caller writes one, or acknowledges it. */
  private createRow(principal: number): number {
    const slot = this.take();
    this.lastOrdinal += 1;
    this.ordinal[slot] = this.lastOrdinal;
    this.principal[slot] = principal;
    this.state[slot] = ResultState.Pending;
    this.digest0[slot] = 0;
    this.digest1[slot] = 0;
    this.anyParameters[slot] = 0;
    this.notAfter[slot] = -1;
    this.wait[slot] = NONE;
    this.previousInSession[slot] = NONE;
    this.nextInSession[slot] = NONE;
    this.blob[slot] = 0;
    return slot;
  }

  /** Stores an answer that has no more than a code: of a wait that stands, of a cancelled id. */
  writeBare(slot: number, code: number, kind: number, entryTime: number): void {
    this.digest.touch(slot);
    this.code[slot] = code;
    this.kind[slot] = kind;
    this.cause[slot] = 0;
    this.entryTime[slot] = entryTime;
    this.words.fill(0, slot * 8, slot * 8 + 8);
    this.token[slot] = 0;
    this.revision[slot] = 0;
    this.deadline[slot] = 0;
    this.ttlMs[slot] = 0;
    this.holderSince[slot] = 0;
    this.holderPrincipal[slot] = 0;
    this.releaseBlob(slot);
  }

  remove(slot: number): void {
    const session = this.session[slot] as number;
    const free = this.free[slot] as number;
    if (free !== 0) {
      const store = this.store;
      const hash = this.freeHash(
        this.principal[slot] as number,
        store.pageOf(free),
        store.offsetOf(free),
        store.lengthOf(free),
      );
      this.byFree.remove(hash, slot);
      store.release(free);
      this.freeCount -= 1;
      this.retentions.remove(slot);
    } else {
      this.bySequence.remove(hashPair(session, this.sequence[slot] as number, this.seed0), slot);
      this.unlink(slot, session);
    }
    this.releaseBlob(slot);
    this.give(slot);
  }

  private unlink(slot: number, session: number): void {
    const previous = this.previousInSession[slot] as number;
    const next = this.nextInSession[slot] as number;
    if (previous === NONE) this.sessions.firstResult[session] = next;
    else this.nextInSession[previous] = next;
    if (next !== NONE) this.previousInSession[next] = previous;
    this.sessions.results[session] = (this.sessions.results[session] as number) - 1;
  }

  /** Drops the stored answer of an acknowledged sequence; the record only says it was. */
  acknowledge(slot: number): void {
    this.digest.touch(slot);
    this.releaseBlob(slot);
    this.state[slot] = ResultState.Acknowledged;
  }

  private releaseBlob(slot: number): void {
    const blob = this.blob[slot] as number;
    if (blob !== 0) this.store.release(blob);
    this.blob[slot] = 0;
  }

  /** Stores what `outcome` says as this request's result. */
  write(slot: number, outcome: Outcome): void {
    this.digest.touch(slot);
    this.code[slot] = outcome.code;
    this.kind[slot] = outcome.kind;
    this.cause[slot] = outcome.cause;
    this.entryTime[slot] = outcome.entryTime;
    const at = slot * 8;
    this.words[at] = outcome.id0;
    this.words[at + 1] = outcome.id1;
    this.words[at + 2] = outcome.id2;
    this.words[at + 3] = outcome.id3;
    this.words[at + 4] = outcome.secret0;
    this.words[at + 5] = outcome.secret1;
    this.words[at + 6] = outcome.secret2;
    this.words[at + 7] = outcome.secret3;
    this.token[slot] = outcome.token;
    this.revision[slot] = outcome.revision;
    this.deadline[slot] = outcome.deadline;
    this.ttlMs[slot] = outcome.ttlMs;
    this.holderSince[slot] = outcome.holderSince;
    this.holderPrincipal[slot] = outcome.holderPrincipal;
    this.releaseBlob(slot);
    const blob = outcome.blob;
    if (blob.length > 0) this.blob[slot] = this.store.store(blob, 0, blob.length);
  }

  /** Fills `outcome` with the stored result; `replay` stays the caller's. */
  read(slot: number, outcome: Outcome): void {
    outcome.code = this.code[slot] as number;
    outcome.kind = this.kind[slot] as number;
    outcome.cause = this.cause[slot] as number;
    outcome.entryTime = this.entryTime[slot] as number;
    const at = slot * 8;
    outcome.id0 = this.words[at] as number;
    outcome.id1 = this.words[at + 1] as number;
    outcome.id2 = this.words[at + 2] as number;
    outcome.id3 = this.words[at + 3] as number;
    outcome.secret0 = this.words[at + 4] as number;
    outcome.secret1 = this.words[at + 5] as number;
    outcome.secret2 = this.words[at + 6] as number;
    outcome.secret3 = this.words[at + 7] as number;
    outcome.token = this.token[slot] as number;
    outcome.revision = this.revision[slot] as number;
    outcome.deadline = this.deadline[slot] as number;
    outcome.ttlMs = this.ttlMs[slot] as number;
    outcome.holderSince = this.holderSince[slot] as number;
    outcome.holderPrincipal = this.holderPrincipal[slot] as number;
    const blob = this.blob[slot] as number;
    if (blob !== 0) outcome.blob = this.store.copyOf(blob);
  }

  override hashRecord(slot: number, hash: RecordHash): void {
    hash.begin(TAG_RESULT);
    hash.word(this.state[slot] as number);
    hash.wordAt(this.principal, slot);
    this.sessions.hashIdentity(this.session[slot] as number, hash);
    hash.numberAt(this.sequence, slot);
    this.hashBytes(this.free[slot] as number, hash);
    hash.word(this.digest0[slot] as number);
    hash.word(this.digest1[slot] as number);
    hash.word(this.anyParameters[slot] as number);
    hash.numberAt(this.notAfter, slot);
    if (this.state[slot] !== ResultState.Acknowledged) this.hashAnswer(slot, hash);
  }

  private hashAnswer(slot: number, hash: RecordHash): void {
    hash.word(this.code[slot] as number);
    hash.word(this.kind[slot] as number);
    hash.word(this.cause[slot] as number);
    hash.numberAt(this.entryTime, slot);
    for (let i = 0; i < 8; i += 1) hash.word(this.words[slot * 8 + i] as number);
    hash.numberAt(this.token, slot);
    hash.numberAt(this.revision, slot);
    hash.numberAt(this.deadline, slot);
    hash.numberAt(this.ttlMs, slot);
    hash.numberAt(this.holderSince, slot);
    hash.wordAt(this.holderPrincipal, slot);
    this.hashBytes(this.blob[slot] as number, hash);
  }

  protected override growColumns(capacity: number): void {
    this.state = growUint8(this.state, capacity, 0);
    this.principal = growUint32(this.principal, capacity, 0);
    this.session = growInt32(this.session, capacity, NONE);
    this.sequence = growFloat64(this.sequence, capacity, 0);
    this.free = growUint32(this.free, capacity, 0);
    this.digest0 = growInt32(this.digest0, capacity, 0);
    this.digest1 = growInt32(this.digest1, capacity, 0);
    this.anyParameters = growUint8(this.anyParameters, capacity, 0);
    this.notAfter = growFloat64(this.notAfter, capacity, 0);
    this.wait = growInt32(this.wait, capacity, NONE);
    this.ordinal = growFloat64(this.ordinal, capacity, 0);
    this.previousInSession = growInt32(this.previousInSession, capacity, NONE);
    this.nextInSession = growInt32(this.nextInSession, capacity, NONE);
    this.code = growUint8(this.code, capacity, 0);
    this.kind = growUint8(this.kind, capacity, 0);
    this.cause = growUint8(this.cause, capacity, 0);
    this.entryTime = growFloat64(this.entryTime, capacity, 0);
    this.words = growInt32(this.words, capacity * 8, 0);
    this.token = growFloat64(this.token, capacity, 0);
    this.revision = growFloat64(this.revision, capacity, 0);
    this.deadline = growFloat64(this.deadline, capacity, 0);
    this.ttlMs = growFloat64(this.ttlMs, capacity, 0);
    this.holderSince = growFloat64(this.holderSince, capacity, 0);
    this.holderPrincipal = growUint32(this.holderPrincipal, capacity, 0);
    this.blob = growUint32(this.blob, capacity, 0);
  }
}
