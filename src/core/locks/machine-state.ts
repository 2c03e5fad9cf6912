/**
 * The replicated state of one shard's locks, and what one entry needs while it is applied.
 *
 * Owns: every table and counter. Never: a rule; those are the free functions beside this file,
 * which take this state first. Made by: lock-machine.ts. Everything here is a function of the log
 * alone.
 */
import { ByteStore } from '../../collections/byte-store.js';
import { DeadlineHeap } from '../../collections/deadline-heap.js';
import { RecordHash } from '../../collections/digest.js';
import { sipHash128 } from '../../collections/sip-hash.js';
import { CompletionBatch } from './completion.js';
import { EventBatch } from './event.js';
import type { Settings } from './settings.js';
import { DisabledNames } from './tables/disabled-names.js';
import { EndedLeases } from './tables/ended-leases.js';
import { LeaseTable } from './tables/lease-table.js';
import { LockTable } from './tables/lock-table.js';
import { ResultTable } from './tables/result-table.js';
import { SessionTable } from './tables/session-table.js';
import { NONE } from './tables/table.js';
import { WaitTable } from './tables/wait-table.js';

/** What drawn bits are for: two ids of one draw number never share an input. */
export const DrawPurpose = { Lease: 1, Session: 2, SessionSecret: 3 } as const;
export type DrawPurpose = (typeof DrawPurpose)[keyof typeof DrawPurpose];

/** What one principal has at this moment. */
export class PrincipalCounts {
  leases = 0;
  waits = 0;
  sessions = 0;
}

export class MachineState {
  readonly store = new ByteStore();
  readonly hash: RecordHash;
  readonly locks: LockTable;
  readonly leases: LeaseTable;
  readonly sessions: SessionTable;
  readonly waits: WaitTable;
  readonly results: ResultTable;
  readonly ended: EndedLeases;
  readonly disabled: DisabledNames;
  private readonly principals = new Map<number, PrincipalCounts>();
  /** The last principal asked for: most requests in a row are of one. */
  private lastPrincipal = -1;
  private lastCounts = new PrincipalCounts();

  /** The last revision handed out. */
  revision = 0;
  /** Floor F: the highest last revision of any idle lock that was deleted. */
  idleFloor = 0;
  sessionNumber = 0;
  /** Cluster time before which nothing is granted, after a restore (grace.ts); 0: none. */
  grantsFrom = 0;
  /** Free locks with a queue that wait for it, by the place of their first waiter. */
  readonly reserved = new DeadlineHeap();
  /** Index of the last entry applied. */
  appliedIndex = 0;
  /** Stamp of the last entry applied: cluster time in ms. */
  now = 0;
  /** The last sweep freed everything that is overdue: nothing needs to be settled. */
  isDrained = true;

  readonly events = new EventBatch();
  readonly completions = new CompletionBatch();

  /** Names of events that belong to no record: released when the next entry begins. */
  private readonly passingNames: number[] = [];

  /** The entry's 128 random bits, and how many ids were drawn from them. */
  readonly entropy = new Int32Array(4);
  private draws = 0;
  /** Result of draw(). */
  readonly drawn = new Int32Array(4);

  /** The session of the command being applied, or NONE. */
  currentSession = NONE;
  /** Digest of the parameters of the command being applied. */
  parameters0 = 0;
  parameters1 = 0;

  constructor(
    readonly settings: Settings,
    digestKey: Uint32Array,
    hashSeeds: Uint32Array,
  ) {
    this.hash = new RecordHash(
      digestKey[0] as number,
      digestKey[1] as number,
      digestKey[2] as number,
      digestKey[3] as number,
    );
    const seed0 = hashSeeds[0] as number;
    const seed1 = hashSeeds[1] as number;
    this.locks = new LockTable(this.store, this.hash, seed0, seed1);
    this.leases = new LeaseTable(this.store, this.hash);
    this.sessions = new SessionTable(this.store, this.hash);
    this.waits = new WaitTable(this.store, this.hash);
    this.results = new ResultTable(this.store, this.hash, seed0, seed1);
    this.ended = new EndedLeases(this.hash, settings.endedLeasesMax);
    this.disabled = new DisabledNames(this.store);
    this.leases.locks = this.locks;
    this.leases.sessions = this.sessions;
    this.waits.locks = this.locks;
    this.waits.sessions = this.sessions;
    this.results.sessions = this.sessions;
  }

  nextRevision(): number {
    this.revision += 1;
    return this.revision;
  }

  countsOf(principal: number): PrincipalCounts {
    if (principal === this.lastPrincipal) return this.lastCounts;
    let counts = this.principals.get(principal);
    if (counts === undefined) {
      counts = new PrincipalCounts();
      this.principals.set(principal, counts);
    }
    this.lastPrincipal = principal;
    this.lastCounts = counts;
    return counts;
  }

  setEntropy(word0: number, word1: number, word2: number, word3: number): void {
    this.entropy[0] = word0;
    this.entropy[1] = word1;
    this.entropy[2] = word2;
    this.entropy[3] = word3;
    this.draws = 0;
  }

  /** Starts a new draw number; draw() then gives one id for each purpose. */
  nextDraw(): void {
    this.draws += 1;
  }

  /** Four signed words nobody can guess: SipHash-2-4 of the draw, keyed by the random bits. */
  draw(purpose: DrawPurpose): Int32Array {
    const key = this.entropy;
    sipHash128(
      key[0] as number,
      key[1] as number,
      key[2] as number,
      key[3] as number,
      this.draws,
      purpose,
      this.drawn,
    );
    return this.drawn;
  }

  /** Nothing owns this name any more: it lives until the next entry begins. */
  letPass(name: number): number {
    this.passingNames.push(name);
    return name;
  }

  /** The events that showed them have been read. */
  releasePassingNames(): void {
    for (let i = 0; i < this.passingNames.length; i += 1) {
      this.store.release(this.passingNames[i] as number);
    }
    this.passingNames.length = 0;
  }

  /** A copy of some bytes of a command, or 0 when they are absent. */
  keep(bytes: Uint8Array, offset: number, length: number): number {
    return offset < 0 ? 0 : this.store.store(bytes, offset, length);
  }
}
