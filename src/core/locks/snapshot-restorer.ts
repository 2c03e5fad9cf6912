/**
 * Builds a lock machine from the rows of a snapshot, a bounded number of rows at a time.
 *
 * Owns: the machine under construction, and the checks that keep a bad row from becoming a bad
 * state. Everything that is derived (indexes, heaps, lists, counts, the digest) is made here anew;
 * slots differ from those of the machine that wrote. Never: a device or a checksum; chunks come
 * verified. Used by: replica (start, install), the snapshot worker.
 */
import { StateDigest } from '../../collections/digest.js';
import { RowReader } from '../../collections/row-bytes.js';
import { LockMachine } from './lock-machine.js';
import { MachineState } from './machine-state.js';
import { appendToSession, leaseDeadline, linkWait, waitDeadline } from './ownership.js';
import { reserveLock } from './reserved-locks.js';
import { areSettingsValid, defaultSettings, type SettingName, settingNameOf } from './settings.js';
import { NO_ROW, ROW_ORDER, RowKind } from './snapshot-rows.js';
import { ResultState } from './tables/result-table.js';
import { SessionState } from './tables/session-table.js';
import { NONE } from './tables/table.js';

const SETTINGS_MAX = 1_000;
const NO_CHUNK = new RowReader(new Uint8Array(0));

export class MachineRestorer {
  private state: MachineState | null = null;
  private input = NO_CHUNK;
  private rows = 0;
  private lastKind = 0;
  private isEnded = false;
  private wrong = '';

  /** Both as for LockMachine; the key must be that of the cluster, or the digest differs. */
  constructor(
    private readonly digestKey: Uint32Array,
    private readonly hashSeeds: Uint32Array,
  ) {}

  /** What is wrong with the rows, '' while nothing is; then nothing else may be asked. */
  get fault(): string {
    return this.wrong;
  }

  /** Takes the next chunk, when the one before is read to its end; `step` reads it. */
  add(chunk: Uint8Array): void {
    if (!this.input.isAtEnd) this.refuse('a chunk came before the last was read');
    this.input = new RowReader(chunk);
  }

  /**
   * Reads at most `rowsMax` rows of the chunk. True when the chunk is read to its end, or a fault
   * was found.
   */
  step(rowsMax: number): boolean {
    for (let row = 0; row < rowsMax && this.wrong === '' && !this.input.isAtEnd; row += 1) {
      this.readRow();
    }
    if (this.wrong === '' && this.state !== null) settleDigests(this.state);
    return this.wrong !== '' || this.input.isAtEnd;
  }

  /** The machine once every chunk is read, or null with `fault` set. */
  finish(): LockMachine | null {
    if (this.wrong === '' && !this.isEnded) this.refuse('the rows end before their last one');
    if (this.wrong !== '' || this.state === null) return null;
    const { settings, locks, leases, reserved } = this.state;
    if (leases.count + locks.idleCount + reserved.count !== locks.count) {
      this.refuse('a lock that is neither held nor idle');
      return null;
    }
    return new LockMachine(settings, this.digestKey, this.hashSeeds, this.state);
  }

  private refuse(reason: string): void {
    if (this.wrong === '') this.wrong = reason;
  }

  private readRow(): void {
    const { input } = this;
    const kind = input.u8();
    if (this.isEnded) this.refuse('rows come after the last one');
    else if (isBefore(kind, this.lastKind))
      this.refuse(`a row of kind ${kind} after ${this.lastKind}`);
    else if (kind === RowKind.Head) this.readHead();
    else if (this.state === null) this.refuse('the first row is no head');
    else this.readRecord(kind, this.state);
    if (input.isBroken) this.refuse(`a row of kind ${kind} does not end`);
    this.lastKind = kind;
    this.rows += 1;
  }

  private readRecord(kind: number, state: MachineState): void {
    switch (kind) {
      case RowKind.Grace:
        if (!readGrace(state, this.input)) this.refuse('a grace twice, or without an end');
        return;
      case RowKind.Session:
        readSession(state, this.input);
        return;
      case RowKind.Lock:
        if (!readLock(state, this.input)) this.refuse('a lock twice, or without a name');
        return;
      case RowKind.Lease:
        if (!readLease(state, this.input)) this.refuse('a lease of a lock that is not free');
        return;
      case RowKind.Wait:
        if (!readWait(state, this.input)) this.refuse('a wait without its lock or session');
        return;
      case RowKind.Result:
        if (!readResult(state, this.input)) this.refuse('a result without its session or wait');
        return;
      case RowKind.Ended:
        readEnded(state, this.input);
        return;
      case RowKind.Disabled:
        if (!readDisabled(state, this.input)) this.refuse('a disabled name that is no name');
        return;
      case RowKind.End:
        this.isEnded = true;
        if (this.input.number() !== this.rows) this.refuse(`rows: ${this.rows}, not as many`);
        return;
      default:
        this.refuse(`a row of kind ${kind}, which this build does not know`);
    }
  }

  private readHead(): void {
    const { input } = this;
    if (this.state !== null) this.refuse('a second head');
    const appliedIndex = input.number();
    const now = input.number();
    const revision = input.number();
    const idleFloor = input.number();
    const sessionNumber = input.number();
    const lastOrdinal = input.number();
    const settings = defaultSettings();
    const missing = new Set(Object.keys(settings));
    const count = input.u32();
    for (let i = 0; i < count && i < SETTINGS_MAX; i += 1) {
      const name: SettingName | undefined = settingNameOf(input.u32());
      const value = input.number();
      if (name === undefined) this.refuse('a setting that this build does not know');
      else settings[name] = value;
      missing.delete(name ?? '');
    }
    if (missing.size > 0) this.refuse(`the setting ${[...missing][0]} is missing`);
    else if (!areSettingsValid(settings)) this.refuse('settings out of their range');
    if (this.wrong !== '') return;
    const state = new MachineState(settings, this.digestKey, this.hashSeeds);
    state.appliedIndex = appliedIndex;
    state.now = now;
    state.revision = revision;
    state.idleFloor = idleFloor;
    state.sessionNumber = sessionNumber;
    state.results.lastOrdinal = lastOrdinal;
    this.state = state;
  }
}

/** True when rows of `kind` come before those of `other`. */
function isBefore(kind: number, other: number): boolean {
  const order = ROW_ORDER.indexOf(kind);
  return order >= 0 && order < ROW_ORDER.indexOf(other);
}

/** Hashes the records that came, so that the digest costs nothing at the end. */
function settleDigests(state: MachineState): void {
  const sum = new StateDigest();
  state.sessions.digest.addTo(sum);
  state.locks.digest.addTo(sum);
  state.leases.digest.addTo(sum);
  state.waits.digest.addTo(sum);
  state.results.digest.addTo(sum);
  state.ended.addTo(sum);
}

/** The string just found, as a handle that its record owns; 0 when it is absent. */
function readBytes(state: MachineState, input: RowReader): number {
  input.string();
  if (input.stringOffset < 0) return 0;
  return state.store.store(input.bytes, input.stringOffset, input.stringBytes);
}

function readGrace(state: MachineState, input: RowReader): boolean {
  const grantsFrom = input.number();
  if (state.grantsFrom !== 0 || grantsFrom <= 0) return false;
  state.grantsFrom = grantsFrom;
  return true;
}

function readSession(state: MachineState, input: RowReader): void {
  const { sessions } = state;
  // A fresh table gives out slots in order: the row's position is its slot.
  const slot = sessions.create(input.u32(), input.u32(), input.u32(), input.u32());
  sessions.secret0[slot] = input.u32();
  sessions.secret1[slot] = input.u32();
  sessions.secret2[slot] = input.u32();
  sessions.secret3[slot] = input.u32();
  const number = input.number();
  sessions.number[slot] = number;
  const principal = input.u32();
  sessions.principal[slot] = principal;
  sessions.state[slot] = input.u8();
  sessions.ttlMs[slot] = input.number();
  sessions.renewedAt[slot] = input.number();
  const deadline = input.number();
  sessions.deadline[slot] = deadline;
  sessions.endedAt[slot] = input.number();
  sessions.floor[slot] = input.number();
  sessions.mark[slot] = input.number();
  const retention = input.number();
  sessions.metadata[slot] = readBytes(state, input);
  if (sessions.state[slot] === SessionState.Live) {
    sessions.deadlines.push(slot, Math.max(0, deadline), number);
    state.countsOf(principal).sessions += 1;
  } else {
    sessions.retentions.push(slot, Math.max(0, retention), number);
  }
}

function readLock(state: MachineState, input: RowReader): boolean {
  const { locks } = state;
  const isIdle = input.u8() === 1;
  const lastRevision = input.number();
  input.string();
  const { bytes, stringOffset, stringBytes } = input;
  if (stringOffset < 0 || locks.find(bytes, stringOffset, stringBytes) !== NONE) return false;
  const slot = locks.create(bytes, stringOffset, stringBytes);
  locks.lastRevision[slot] = lastRevision;
  if (isIdle) locks.becomeIdle(slot);
  return true;
}

/** True when `row` is the position of a live record of a table with `count` of them, or none. */
function isPosition(row: number, count: number): boolean {
  return row === NO_ROW || row < count;
}

function slotOf(row: number): number {
  return row === NO_ROW ? NONE : row;
}

function readLease(state: MachineState, input: RowReader): boolean {
  const { leases, locks, sessions } = state;
  const slot = leases.create(input.u32(), input.u32(), input.u32(), input.u32());
  const lock = input.u32();
  const sessionRow = input.u32();
  const session = slotOf(sessionRow);
  const principal = input.u32();
  const token = input.number();
  leases.lock[slot] = lock;
  leases.session[slot] = session;
  leases.principal[slot] = principal;
  leases.token[slot] = token;
  leases.grantedAt[slot] = input.number();
  leases.renewedAt[slot] = input.number();
  leases.ttlMs[slot] = input.number();
  leases.deadlineFloor[slot] = input.number();
  leases.metadata[slot] = readBytes(state, input);
  if (lock >= locks.count || !isPosition(sessionRow, sessions.count)) return false;
  if (locks.holder[lock] !== NONE || locks.isIdleAt(lock)) return false;
  locks.holder[lock] = slot;
  if (session !== NONE) appendToSession(state, slot, session);
  leases.deadlines.push(slot, Math.max(0, leaseDeadline(state, slot)), token);
  state.countsOf(principal).leases += 1;
  return true;
}

function readWait(state: MachineState, input: RowReader): boolean {
  const { waits, locks, sessions } = state;
  const place = input.number();
  const slot = waits.create(place);
  const lock = input.u32();
  const sessionRow = input.u32();
  const principal = input.u32();
  waits.lock[slot] = lock;
  waits.session[slot] = slotOf(sessionRow);
  waits.principal[slot] = principal;
  waits.result[slot] = NONE;
  waits.queuedAt[slot] = input.number();
  waits.until[slot] = input.number();
  waits.keptUntil[slot] = input.number();
  waits.ttlMs[slot] = input.number();
  waits.metadata[slot] = readBytes(state, input);
  if (lock >= locks.count || !isPosition(sessionRow, sessions.count)) return false;
  linkWait(state, slot);
  if (locks.holder[lock] === NONE && !keepReserved(state, lock)) return false;
  waits.deadlines.push(slot, Math.max(0, waitDeadline(state, slot)), place);
  state.countsOf(principal).waits += 1;
  return true;
}

/** Waiters without a holder are there only in the grace of a restored state. */
function keepReserved(state: MachineState, lock: number): boolean {
  if (state.grantsFrom === 0 || state.locks.isIdleAt(lock)) return false;
  if (!state.reserved.has(lock)) reserveLock(state, lock);
  return true;
}

function readResult(state: MachineState, input: RowReader): boolean {
  const { results, sessions, waits } = state;
  const resultState = input.u8();
  const principal = input.u32();
  const sessionRow = input.u32();
  const sequence = input.number();
  input.string();
  const { stringOffset, stringBytes } = input;
  const isFree = stringOffset >= 0;
  if (isFree !== (sessionRow === NO_ROW) || !isPosition(sessionRow, sessions.count)) return false;
  const slot = isFree
    ? results.createFree(principal, input.bytes, stringOffset, stringBytes)
    : results.createSequence(sessionRow, sequence, principal);
  // The new record took the next ordinal; its own is in the row, and the newest in the head.
  results.lastOrdinal -= 1;
  const ordinal = input.number();
  results.ordinal[slot] = ordinal;
  results.state[slot] = resultState;
  results.digest0[slot] = input.u32();
  results.digest1[slot] = input.u32();
  results.anyParameters[slot] = input.u8();
  results.notAfter[slot] = input.number();
  const retention = input.number();
  if (retention >= 0) results.retentions.push(slot, retention, ordinal);
  const place = input.number();
  if (resultState !== ResultState.Acknowledged) readAnswer(state, slot, input);
  if (!isFree && resultState === ResultState.Final) {
    sessions.finals[sessionRow] = (sessions.finals[sessionRow] as number) + 1;
  }
  if (place < 0) return resultState !== ResultState.Pending;
  const wait = waits.findPlace(place);
  if (wait === NONE || waits.result[wait] !== NONE) return false;
  waits.result[wait] = slot;
  results.wait[slot] = wait;
  return resultState === ResultState.Pending;
}

function readAnswer(state: MachineState, slot: number, input: RowReader): void {
  const { results } = state;
  results.code[slot] = input.u8();
  results.kind[slot] = input.u8();
  results.cause[slot] = input.u8();
  results.entryTime[slot] = input.number();
  for (let i = 0; i < 8; i += 1) results.words[slot * 8 + i] = input.u32();
  results.token[slot] = input.number();
  results.revision[slot] = input.number();
  results.deadline[slot] = input.number();
  results.ttlMs[slot] = input.number();
  results.holderSince[slot] = input.number();
  results.holderPrincipal[slot] = input.u32();
  results.blob[slot] = readBytes(state, input);
}

function readEnded(state: MachineState, input: RowReader): void {
  const id0 = input.u32();
  const id1 = input.u32();
  const id2 = input.u32();
  const id3 = input.u32();
  const principal = input.u32();
  const cause = input.u8();
  state.ended.add(id0, id1, id2, id3, principal, cause, input.number());
}

function readDisabled(state: MachineState, input: RowReader): boolean {
  const isPrefix = input.u8() === 1;
  const revision = input.number();
  const since = input.number();
  const principal = input.u32();
  const name = readBytes(state, input);
  const actor = readBytes(state, input);
  const reason = readBytes(state, input);
  if (name === 0) return false;
  state.disabled.add({ name, isPrefix, revision, since, principal, actor, reason });
  return true;
}
