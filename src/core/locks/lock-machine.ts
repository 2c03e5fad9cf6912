/**
 * The replicated lock machine: the door through which committed entries and readers come.
 *
 * Owns: the order sweep → commands within an entry, and which function a command goes to. Pure: the
 * same entries give the same state digest on every node. Never throws for an expected outcome.
 * Called by: replica (apply, reads), the snapshot worker, tests.
 */
import { assert } from '../../collections/assert.js';
import { StateDigest } from '../../collections/digest.js';
import { applyAcquire } from './acquire.js';
import { applyAdmin } from './admin.js';
import { applyCancel } from './cancel.js';
import { type Command, CommandKind } from './command.js';
import type { CompletionBatch } from './completion.js';
import type { EventBatch, LockEvent } from './event.js';
import { applyRelease, applyRenew } from './lease-commands.js';
import { MachineState } from './machine-state.js';
import { type Outcome, OutcomeCode } from './outcome.js';
import {
  type LeaseReading,
  type LockPage,
  type LockReading,
  type LookupState,
  listLocks,
  lookupFree,
  lookupSequence,
  type RuleReading,
  readLease,
  readLock,
  readRule,
} from './readings.js';
import { recallResult, refuseField } from './requests.js';
import {
  applyRestored,
  digestGrace,
  greatestTtl,
  type RestoreTerms,
  restoredState,
} from './restored-state.js';
import { applySessionClose, applySessionOpen, applySessionRenew } from './sessions.js';
import { type SettingName, SettingNumber, type Settings } from './settings.js';
import { writeSnapshot } from './snapshot-writer.js';
import { forgetIdleLocks, sweep } from './sweep.js';
import { SessionState } from './tables/session-table.js';
import { NONE } from './tables/table.js';
import { applyKeepWaits, applySettings } from './upkeep.js';

const TAG_COUNTERS = 8;
const NO_NAME = new Uint8Array(0);

/** How many records of each kind there are, for status and metrics. */
export interface MachineCounts {
  readonly locks: number;
  readonly leases: number;
  readonly waits: number;
  readonly sessions: number;
  readonly results: number;
  readonly disabled: number;
}

/** What a session attach needs to know. */
export interface SessionReading {
  /** Slot of the record: the key under which the replica keeps the attachment. */
  readonly slot: number;
  readonly deadline: number;
  readonly ttlMs: number;
  readonly isLive: boolean;
}

export class LockMachine {
  /**
   * `digestKey`: four u32, the same on every node of the cluster. `hashSeeds`: two u32 that only
   * this node knows; they place records in indexes and are seen in no outcome and no digest.
   * `state`: one that a snapshot was restored to (snapshot-restorer.ts); empty without it.
   */
  constructor(
    settings: Settings,
    digestKey: Uint32Array,
    hashSeeds: Uint32Array = new Uint32Array(2),
    private readonly state = new MachineState({ ...settings }, digestKey, hashSeeds),
  ) {}

  /** Events of the entry being applied, in revision order; valid until the next beginEntry. */
  get events(): EventBatch {
    return this.state.events;
  }
  /** Waits that ended in the entry being applied; valid until the next beginEntry. */
  get completions(): CompletionBatch {
    return this.state.completions;
  }
  get revision(): number {
    return this.state.revision;
  }
  /** Stamp of the last entry applied: cluster time in ms. */
  get now(): number {
    return this.state.now;
  }
  get appliedIndex(): number {
    return this.state.appliedIndex;
  }
  get settings(): Readonly<Settings> {
    return this.state.settings;
  }
  /** True while some record waits for a moment in cluster time: then an idle leader pulses. */
  get hasDeadlines(): boolean {
    const { leases, waits, sessions, results } = this.state;
    if (this.state.grantsFrom > 0) return true;
    return (
      leases.count > 0 || waits.count > 0 || sessions.count > 0 || results.retentions.count > 0
    );
  }
  get counts(): MachineCounts {
    const { locks, leases, waits, sessions, results, disabled } = this.state;
    return {
      locks: locks.count,
      leases: leases.count,
      waits: waits.count,
      sessions: sessions.count,
      results: results.count,
      disabled: disabled.count,
    };
  }

  /**
   * Opens entry `index` with its stamp (ms of cluster time, never falling) and its 128 random bits:
   * forgets idle locks beyond the setting and frees what is overdue.
   */
  beginEntry(
    index: number,
    stampMs: number,
    entropy0: number,
    entropy1: number,
    entropy2: number,
    entropy3: number,
  ): void {
    const { state } = this;
    assert(index === state.appliedIndex + 1, 'apply: entries come in order, each once');
    assert(stampMs >= state.now, 'I8: cluster time never falls along the log');
    state.appliedIndex = index;
    state.now = stampMs;
    state.setEntropy(entropy0, entropy1, entropy2, entropy3);
    state.events.clear();
    state.completions.clear();
    state.releasePassingNames();
    forgetIdleLocks(state);
    sweep(state);
  }

  /** Carries one command out; `outcome` is reset and filled. */
  apply(command: Command, outcome: Outcome): void {
    const { state } = this;
    state.events.position += 1;
    outcome.reset();
    outcome.kind = command.kind;
    outcome.entryTime = state.now;
    switch (command.kind) {
      case CommandKind.Acquire:
        applyAcquire(state, command, outcome);
        return;
      case CommandKind.Release:
        applyRelease(state, command, outcome);
        return;
      case CommandKind.Renew:
        applyRenew(state, command, outcome);
        return;
      case CommandKind.SessionRenew:
        applySessionRenew(state, command, outcome);
        return;
      case CommandKind.SessionOpen:
        applySessionOpen(state, command, outcome);
        return;
      case CommandKind.SessionClose:
        applySessionClose(state, command, outcome);
        return;
      case CommandKind.Cancel:
        applyCancel(state, command, outcome);
        return;
      case CommandKind.KeepWaits:
        applyKeepWaits(state, command, outcome);
        return;
      case CommandKind.Settings:
        applySettings(state, command, outcome);
        return;
      case CommandKind.ForceRelease:
      case CommandKind.Disable:
      case CommandKind.Enable:
      case CommandKind.ExpireSession:
      case CommandKind.ReportRefusal:
        applyAdmin(state, command, outcome);
        return;
      case CommandKind.Restored:
        applyRestored(state, command, outcome);
        return;
      default:
        refuseField(outcome, OutcomeCode.BadRequest, 'command');
    }
  }

  /** Closes the entry. Events and completions stay readable until the next one begins. */
  endEntry(): void {
    const { locks, leases, sessions, waits, results } = this.state;
    locks.digest.settleSome();
    leases.digest.settleSome();
    sessions.digest.settleSome();
    waits.digest.settleSome();
    results.digest.settleSome();
  }

  /** Bytes of the lock name that an event is about; `name` is its handle, 0 for no lock. */
  nameLength(name: number): number {
    return name === 0 ? 0 : this.state.store.lengthOf(name);
  }

  /** Writes that name into `target` from `offset` on. */
  copyName(name: number, target: Uint8Array, offset: number): void {
    if (name === 0) return;
    const { store } = this.state;
    const page = store.pageOf(name);
    const from = store.offsetOf(name);
    const length = store.lengthOf(name);
    for (let at = 0; at < length; at += 1) target[offset + at] = page[from + at] as number;
  }

  /** A copy of the lock name an event is about. */
  eventName(event: LockEvent): Uint8Array {
    return event.name === 0 ? NO_NAME : this.state.store.copyOf(event.name);
  }

  /**
   * 128 bits, in hex, over every logical record and counter: equal on two nodes exactly when their
   * states are (docs/ARCHITECTURE.md).
   */
  digest(): string {
    const { state } = this;
    const sum = new StateDigest();
    state.locks.digest.addTo(sum);
    state.leases.digest.addTo(sum);
    state.sessions.digest.addTo(sum);
    state.waits.digest.addTo(sum);
    state.results.digest.addTo(sum);
    state.ended.addTo(sum);
    const { hash, settings } = state;
    state.disabled.addTo(sum, hash);
    hash.begin(TAG_COUNTERS);
    hash.number(state.revision);
    hash.number(state.idleFloor);
    hash.number(state.sessionNumber);
    for (const name of Object.keys(SettingNumber) as SettingName[]) {
      hash.number(SettingNumber[name]);
      hash.number(settings[name]);
    }
    hash.finish();
    sum.add(hash.h0, hash.h1, hash.h2, hash.h3);
    digestGrace(state, sum);
    return sum.toHex();
  }

  /**
   * Hashes up to `recordsMax` changed records of each kind, so that digest() has little left to do.
   * True when it has.
   */
  settleDigest(recordsMax: number): boolean {
    const { locks, leases, sessions, waits, results, ended } = this.state;
    const left =
      locks.digest.settleMost(recordsMax) +
      leases.digest.settleMost(recordsMax) +
      sessions.digest.settleMost(recordsMax) +
      waits.digest.settleMost(recordsMax) +
      results.digest.settleMost(recordsMax) +
      ended.settleMost(recordsMax);
    return left < recordsMax;
  }

  /** Cluster time before which nothing is granted, 0 for no such time. */
  get grantsFrom(): number {
    return this.state.grantsFrom;
  }

  /** The largest TTL in the state, ms. */
  get greatestTtlMs(): number {
    return greatestTtl(this.state);
  }

  /** The machine that a new cluster begins with when this one's state is restored (I2). */
  restored(terms: RestoreTerms, digestKey: Uint32Array): LockMachine {
    const hashSeeds = new Uint32Array(2);
    const state = restoredState(this.state, terms, digestKey, hashSeeds);
    return new LockMachine(state.settings, digestKey, hashSeeds, state);
  }

  /**
   * The whole state as rows in chunks of about `chunkBytesMax` bytes, each `emit`'s until it
   * returns. Runs to its end: not on a thread that serves.
   */
  writeSnapshot(chunkBytesMax: number, emit: (chunk: Uint8Array) => void): void {
    writeSnapshot(this.state, chunkBytesMax, emit);
  }

  /** The lock's holder and first `queueMax` waiters, or null when it has no record. */
  get(bytes: Uint8Array, offset: number, length: number, queueMax: number): LockReading | null {
    return readLock(this.state, bytes, offset, length, queueMax);
  }

  /** The oldest rule that disables the lock of this name, or null. */
  readRule(bytes: Uint8Array, offset: number, length: number): RuleReading | null {
    return readRule(this.state, bytes, offset, length);
  }

  /** Held or waited-for locks under a prefix, in byte order: see listLocks. */
  list(prefix: Uint8Array, cursor: Uint8Array | null, limit: number, visitsMax: number): LockPage {
    return listLocks(this.state, prefix, cursor, limit, visitsMax);
  }

  /** The session with this id, if `principal` owns it; four words of 32 bits. */
  findSession(
    principal: number,
    id0: number,
    id1: number,
    id2: number,
    id3: number,
  ): SessionReading | null {
    const { sessions, now } = this.state;
    const slot = sessions.find(id0, id1, id2, id3);
    if (slot === NONE || sessions.principal[slot] !== principal) return null;
    const { retentions } = sessions;
    if (retentions.has(slot) && retentions.deadlineOf(slot) <= now) return null;
    const deadline = sessions.deadline[slot] as number;
    return {
      slot,
      deadline,
      ttlMs: sessions.ttlMs[slot] as number,
      isLive: sessions.state[slot] === SessionState.Live && deadline > now,
    };
  }

  /** Slot of the session with this id, whoever owns it, or -1. No allocation: the hot path asks. */
  sessionSlot(id0: number, id1: number, id2: number, id3: number): number {
    return this.state.sessions.find(id0, id1, id2, id3);
  }

  /** Number of the session in a slot: tells a reused slot from the session that had it before. */
  sessionNumberAt(slot: number): number {
    return this.state.sessions.number[slot] as number;
  }

  isSecretOf(
    slot: number,
    secret0: number,
    secret1: number,
    secret2: number,
    secret3: number,
  ): boolean {
    const { sessions } = this.state;
    const difference =
      ((sessions.secret0[slot] as number) ^ secret0) |
      ((sessions.secret1[slot] as number) ^ secret1) |
      ((sessions.secret2[slot] as number) ^ secret2) |
      ((sessions.secret3[slot] as number) ^ secret3);
    return difference === 0;
  }

  /** What became of a sequence in a session slot; fills `outcome` when done or queued. */
  lookupSequence(slot: number, sequence: number, outcome: Outcome): LookupState {
    outcome.reset();
    return lookupSequence(this.state, slot, sequence, outcome);
  }

  /** What became of a principal's free-form id; fills `outcome` when done or queued. */
  lookupFree(principal: number, id: Uint8Array, outcome: Outcome): LookupState {
    outcome.reset();
    return lookupFree(this.state, principal, id, outcome);
  }

  /** What became of a command whose entry this node skipped: see recallResult. */
  recall(command: Command, outcome: Outcome): boolean {
    outcome.reset();
    return recallResult(this.state, command, outcome);
  }

  /** What became of a principal's lease. */
  readLease(principal: number, id0: number, id1: number, id2: number, id3: number): LeaseReading {
    return readLease(this.state, principal, id0, id1, id2, id3);
  }

  /** True while a wait stands at this place. */
  hasWait(place: number): boolean {
    return this.state.waits.findPlace(place) !== NONE;
  }

  /** Room left for free-form results: admission subtracts what is in flight (I6). */
  get freeResultsLeft(): number {
    return this.state.settings.freeResultsMax - this.state.results.freeCount;
  }
}
