/**
 * A second lock machine, written from docs/SEMANTICS.md alone: obviously right rather than fast.
 *
 * Owns: arrays of plain records that every rule searches and sorts anew. Never: an index, a cached
 * deadline, a line shared with src/core/locks beyond the numbers of commands and outcomes. Used by:
 * the property test that holds the production machine against it.
 */

import { CommandKind } from '../../src/core/locks/command.js';
import { EventKind } from '../../src/core/locks/event.js';
import { LeaseEnd, OutcomeCode } from '../../src/core/locks/outcome.js';
import type { Settings } from '../../src/core/locks/settings.js';
import {
  type ModelCommand,
  type ModelCompletion,
  type ModelEvent,
  type ModelLock,
  type ModelOutcome,
  type ModelStep,
  outcomeOf,
} from './model-types.js';
import { executeCommand } from './naive-commands.js';
import {
  type DisabledRule,
  type EndedLease,
  isTimedOut,
  type LeaseRecord,
  type LockRecord,
  leaseDeadline,
  type RequestRecord,
  type SessionRecord,
  type WaitRecord,
  waitCarriedUntil,
  waitDeadline,
} from './naive-records.js';
import { answerRequest, freeResultDeadAt } from './naive-requests.js';

function without<T>(items: T[], item: T): T[] {
  return items.filter((other) => other !== item);
}

/** The whole state and its rules. One instance applies one log. */
export class NaiveMachine {
  readonly settings: Settings;
  now = 0;
  revision = 0;
  /** F: the last revision that deleted idle locks share. */
  sharedFloor = 0;
  locks: LockRecord[] = [];
  leases: LeaseRecord[] = [];
  waits: WaitRecord[] = [];
  sessions: SessionRecord[] = [];
  /** Sessions ever opened; the newest has this number. */
  sessionsOpened = 0;
  /** Free-form ids, keyed by principal and id. */
  free = new Map<string, RequestRecord>();
  /** Newest last. */
  ended: EndedLease[] = [];
  /** What is disabled, oldest first. */
  rules: DisabledRule[] = [];
  /** How often each path of the rules was taken, by a name for it. */
  readonly paths = new Map<string, number>();
  private events: ModelEvent[] = [];
  private completions: ModelCompletion[] = [];

  constructor(settings: Settings) {
    this.settings = { ...settings };
  }

  /** Applies one entry at `stamp` (cluster time, ms, never falling) and says all that it gave. */
  apply(stamp: number, commands: readonly ModelCommand[]): ModelStep {
    this.beginEntry(stamp);
    const outcomes = commands.map((command) => this.applyCommand(command));
    return this.endEntry(outcomes);
  }

  /** The first part of an entry: idle locks beyond the bound go, then the sweep. */
  beginEntry(stamp: number): void {
    this.now = stamp;
    this.events = [];
    this.completions = [];
    this.deleteIdleLocks();
    this.sweep();
  }

  /** One command of the entry. */
  applyCommand(command: ModelCommand): ModelOutcome {
    return answerRequest(this, command, (request) => executeCommand(this, command, request));
  }

  /** Ends the entry that answered `outcomes`. */
  endEntry(outcomes: ModelOutcome[]): ModelStep {
    return { outcomes, completions: this.completions, events: this.events };
  }

  /** What a read of `name` shows at the last stamp: dead holders and waiters are not there. */
  get(name: string): ModelLock {
    const holder = this.holderOf(name);
    const isHeld = holder !== undefined && leaseDeadline(holder) > this.now;
    const alive = this.waitersOf(name).filter((wait) => waitDeadline(wait) > this.now);
    return {
      token: isHeld ? holder.token : 0,
      since: isHeld ? holder.granted : 0,
      deadline: isHeld ? leaseDeadline(holder) : 0,
      places: alive.map((wait) => wait.place),
    };
  }

  /** Counts a path that the test wants to see taken. */
  note(path: string): void {
    this.paths.set(path, (this.paths.get(path) ?? 0) + 1);
  }

  // Finding.

  holderOf(name: string): LeaseRecord | undefined {
    return this.leases.find((lease) => lease.name === name);
  }

  waitersOf(name: string): WaitRecord[] {
    return this.waits.filter((wait) => wait.name === name).sort((a, b) => a.place - b.place);
  }

  leasesOfSession(session: SessionRecord): LeaseRecord[] {
    return this.leases
      .filter((lease) => lease.session === session)
      .sort((a, b) => a.token - b.token);
  }

  waitsOfSession(session: SessionRecord): WaitRecord[] {
    return this.waits.filter((wait) => wait.session === session).sort((a, b) => a.place - b.place);
  }

  /** The lock's last revision; F when there is no such lock. */
  lastRevisionOf(name: string): number {
    return this.locks.find((lock) => lock.name === name)?.lastRevision ?? this.sharedFloor;
  }

  /** The oldest rule that covers `name`. */
  ruleFor(name: string): DisabledRule | undefined {
    const covering = this.rules.filter((rule) => {
      return rule.isPrefix ? name.startsWith(rule.name) : name === rule.name;
    });
    return covering.reduce<DisabledRule | undefined>((oldest, rule) => {
      return oldest === undefined || rule.revision < oldest.revision ? rule : oldest;
    }, undefined);
  }

  // Effects.

  /** Emits an event of the next revision, which is returned. */
  emit(
    kind: number,
    { name, principal }: { readonly name: string; readonly principal: number },
    fields: { readonly token?: number; readonly place?: number; readonly cause?: number },
  ): number {
    this.revision += 1;
    const { token = 0, place = 0, cause = 0 } = fields;
    this.events.push({ kind, revision: this.revision, name, token, place, cause, principal });
    return this.revision;
  }

  private lockOf(name: string): LockRecord {
    let lock = this.locks.find((other) => other.name === name);
    if (lock === undefined) {
      lock = { name, lastRevision: 0 };
      this.locks.push(lock);
    }
    return lock;
  }

  /**
   * Grants a free lock now; the token is the revision of the event.
   *
   * @param place of the waiter that gets it, 0 when nobody waited
   */
  grant(
    lease: Omit<LeaseRecord, 'token' | 'granted' | 'floor' | 'ownRenewal'>,
    place = 0,
  ): LeaseRecord {
    const token = this.emit(EventKind.Granted, lease, { token: this.revision + 1, place });
    this.lockOf(lease.name).lastRevision = token;
    const granted = { ...lease, token, granted: this.now, floor: 0, ownRenewal: this.now };
    this.leases.push(granted);
    return granted;
  }

  /** Puts a wait at the end of the queue of `name`. */
  enqueue(wait: Omit<WaitRecord, 'place' | 'queued' | 'lapse'>): WaitRecord {
    const place = this.emit(EventKind.Queued, wait, { place: this.revision + 1 });
    const lapse = this.now + this.settings.implicitLapseMs;
    const queued = { ...wait, place, queued: this.now, lapse };
    this.waits.push(queued);
    return queued;
  }

  /** Ends a lease without handing its lock over. */
  private endLeaseOnly(lease: LeaseRecord, how: number): number {
    this.leases = without(this.leases, lease);
    const revision = this.emit(EventKind.Ended, lease, { token: lease.token, cause: how });
    this.lockOf(lease.name).lastRevision = revision;
    const { token, principal } = lease;
    this.ended.push({ token, principal, how, revision });
    this.forgetEnded();
    return revision;
  }

  /** Keeps the newest ended leases, as many as the setting says. */
  forgetEnded(): void {
    while (this.ended.length > this.settings.endedLeasesMax) {
      this.ended.shift();
      this.note('ended lease forgotten');
    }
  }

  /** Ends a lease, hands its lock over, and returns the revision of the end. */
  endLease(lease: LeaseRecord, how: number): number {
    const revision = this.endLeaseOnly(lease, how);
    this.handOver(lease.name);
    return revision;
  }

  private isDead(lease: LeaseRecord): boolean {
    return this.now >= leaseDeadline(lease);
  }

  private causeOfDeath(lease: LeaseRecord): number {
    const isSessionDead = lease.session !== null && this.now >= lease.session.deadline;
    return isSessionDead ? LeaseEnd.SessionExpired : LeaseEnd.Expired;
  }

  private finishWait(wait: WaitRecord, outcome: ModelOutcome): void {
    this.waits = without(this.waits, wait);
    wait.request.state = 'final';
    wait.request.outcome = outcome;
    wait.request.deadAt = freeResultDeadAt(this, wait.request);
    this.completions.push({ place: wait.place, outcome });
  }

  /** The waiter leaves without a grant. */
  leave(wait: WaitRecord, code: number): void {
    const revision = this.emit(EventKind.Left, wait, { place: wait.place, cause: code });
    const kind = CommandKind.Acquire;
    this.finishWait(wait, outcomeOf({ code, kind, entryTime: this.now, revision }));
  }

  private leaveDead(wait: WaitRecord): void {
    if (wait.queued + wait.waitMs === waitCarriedUntil(wait)) this.note('wait ended on a tie');
    this.leave(wait, isTimedOut(wait) ? OutcomeCode.WaitTimeout : OutcomeCode.SessionExpired);
  }

  private isWaitDead(wait: WaitRecord): boolean {
    return this.now >= waitDeadline(wait);
  }

  /** Gives a lock without a holder to its first live waiter. */
  private handOver(name: string): void {
    for (const wait of this.waitersOf(name)) {
      if (this.isWaitDead(wait)) {
        this.note('hand-over passes a dead waiter');
        this.leaveDead(wait);
        continue;
      }
      if (this.ruleFor(name) !== undefined) this.note('hand-over of a disabled name');
      const { principal, session, ttlMs, metadata } = wait;
      this.note(session === null ? 'hand-over to an implicit wait' : 'hand-over in a session');
      const lease = this.grant({ name, principal, session, ttlMs, metadata }, wait.place);
      this.finishWait(wait, this.grantedOutcome(lease));
      return;
    }
  }

  grantedOutcome(lease: LeaseRecord): ModelOutcome {
    return outcomeOf({
      code: OutcomeCode.Ok,
      kind: CommandKind.Acquire,
      entryTime: this.now,
      subject: `lease ${lease.token}`,
      token: lease.token,
      revision: lease.token,
      deadline: leaseDeadline(lease),
      ttlMs: lease.ttlMs,
    });
  }

  /** A keep-alive of the implicit wait at `place`; a dead or other one is passed over. */
  keepAlive(place: number): void {
    const wait = this.waits.find((other) => other.place === place);
    if (wait === undefined || wait.session !== null || this.isWaitDead(wait)) return;
    this.note('implicit wait kept');
    wait.lapse = this.now + this.settings.implicitLapseMs;
  }

  // Settling: what is overdue is ended before an operation looks.

  settleLease(token: number | undefined): void {
    const lease = this.leases.find((other) => other.token === token);
    if (lease === undefined || !this.isDead(lease)) return;
    this.note('settled lease');
    this.endLease(lease, this.causeOfDeath(lease));
  }

  settleLock(name: string): void {
    const holder = this.holderOf(name);
    if (holder !== undefined && this.isDead(holder)) {
      this.note('settled holder');
      this.endLeaseOnly(holder, this.causeOfDeath(holder));
    }
    for (const wait of this.waitersOf(name)) {
      if (!this.isWaitDead(wait)) continue;
      this.note('settled waiter');
      this.leaveDead(wait);
    }
    if (this.holderOf(name) === undefined) this.handOver(name);
  }

  settleSession(session: SessionRecord): void {
    if (session.state !== 'live' || this.now < session.deadline) return;
    for (const wait of this.waitsOfSession(session)) {
      this.note('settled session with a wait');
      this.leaveDead(wait);
    }
    for (const lease of this.leasesOfSession(session)) {
      this.note('settled session with a lease');
      this.endLease(lease, this.causeOfDeath(lease));
    }
    this.note('settled session');
    this.endSession(session, 'expired');
  }

  endSession(session: SessionRecord, state: 'expired' | 'closed'): void {
    session.state = state;
    session.deadAt = this.now + this.settings.resultRetentionMs;
  }

  /** A renewed session loses the leases that ran out by themselves. */
  endOverdueLeases(session: SessionRecord): void {
    for (const lease of this.leasesOfSession(session)) this.settleLease(lease.token);
  }

  /** A closed session: waits leave in the order of place, leases end in the order of token. */
  closeSession(session: SessionRecord): void {
    for (const wait of this.waitsOfSession(session)) {
      const isDead = this.isWaitDead(wait);
      this.note(isDead ? 'closed over a dead wait' : 'closed over a wait');
      if (isDead) this.leaveDead(wait);
      else this.leave(wait, OutcomeCode.Cancelled);
    }
    for (const lease of this.leasesOfSession(session)) {
      const isDead = this.isDead(lease);
      this.note(isDead ? 'closed over a dead lease' : 'closed over a lease');
      this.endLease(lease, isDead ? this.causeOfDeath(lease) : LeaseEnd.SessionClosed);
    }
    this.endSession(session, 'closed');
  }

  /** A session that an operator ends, in the same orders; what was dead ended by itself. */
  expelSession(session: SessionRecord): void {
    for (const wait of this.waitsOfSession(session)) {
      const isDead = this.isWaitDead(wait);
      this.note(isDead ? 'expelled over a dead wait' : 'expelled over a wait');
      if (isDead) this.leaveDead(wait);
      else this.leave(wait, OutcomeCode.SessionExpired);
    }
    for (const lease of this.leasesOfSession(session)) {
      const isDead = this.isDead(lease);
      this.note(isDead ? 'expelled over a dead lease' : 'expelled over a lease');
      this.endLease(lease, isDead ? LeaseEnd.Expired : LeaseEnd.Forced);
    }
    this.endSession(session, 'expired');
  }

  // The parts of an entry before its commands.

  private deleteIdleLocks(): void {
    const idle = this.locks
      .filter(({ name }) => this.holderOf(name) === undefined && this.waitersOf(name).length === 0)
      .sort((a, b) => a.lastRevision - b.lastRevision);
    const excess = Math.max(0, idle.length - this.settings.idleLocksMax);
    for (const lock of idle.slice(0, excess)) {
      this.note('idle lock deleted');
      this.locks = without(this.locks, lock);
      this.sharedFloor = Math.max(this.sharedFloor, lock.lastRevision);
    }
  }

  private sweep(): void {
    const leases = this.leases
      .filter((lease) => this.isDead(lease))
      .sort((a, b) => leaseDeadline(a) - leaseDeadline(b) || a.token - b.token);
    for (const lease of this.bounded('lease', leases)) {
      this.endLease(lease, this.causeOfDeath(lease));
    }
    const waits = this.waits
      .filter((wait) => this.isWaitDead(wait))
      .sort((a, b) => waitDeadline(a) - waitDeadline(b) || a.place - b.place);
    for (const wait of this.bounded('wait', waits)) this.leaveDead(wait);
    this.sweepSessions();
    this.sweepResults();
  }

  private sweepSessions(): void {
    const overdue = this.sessions
      .filter((session) => session.state === 'live' && this.now >= session.deadline)
      .sort((a, b) => a.deadline - b.deadline || a.number - b.number);
    const stop = overdue.findIndex((session) => {
      return this.leasesOfSession(session).length + this.waitsOfSession(session).length > 0;
    });
    const free = stop === -1 ? overdue : overdue.slice(0, stop);
    for (const session of this.bounded('session', free)) this.endSession(session, 'expired');
    if (stop !== -1) this.note('sweep of sessions stopped at one that still has something');
  }

  private sweepResults(): void {
    const results = [...this.free]
      .filter(([, record]) => this.now >= record.deadAt)
      .sort(([, a], [, b]) => a.deadAt - b.deadAt);
    for (const [key] of this.bounded('result', results)) this.free.delete(key);
    const ended = this.sessions
      .filter((session) => session.state !== 'live' && this.now >= session.deadAt)
      .sort((a, b) => a.deadAt - b.deadAt || a.number - b.number);
    this.bounded('ended session', ended);
    let freed = 0;
    for (const session of ended) {
      if (freed >= this.settings.expiriesPerEntryMax) break;
      // A session goes whole, and counts for each result that goes with it.
      freed += 1 + session.table.size;
      this.sessions = without(this.sessions, session);
    }
  }

  /** The first of `overdue`, as many as one sweep frees. */
  private bounded<T>(what: string, overdue: T[]): T[] {
    const most = this.settings.expiriesPerEntryMax;
    if (overdue.length > 0) this.note(`swept ${what}`);
    if (overdue.length > most) this.note(`sweep of ${what} bounded`);
    return overdue.slice(0, most);
  }
}
