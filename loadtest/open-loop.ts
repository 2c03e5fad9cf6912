/**
 * The open loop: acquires, releases and renewals by a fixed schedule, latency from the moment due.
 *
 * Owns: a set of leases that is held all the time, each renewed by its own command in turn, and
 * seats that acquire and release. What cannot be sent for want of a free seat stays due and is sent
 * when one is free: its latency has the delay in it. Never: a correction, a retry of a refusal.
 * Used by: the profiles open-loop, interview and burst.
 */
import { CommandKind } from '../src/core/locks/command.js';
import { OutcomeCode } from '../src/core/locks/outcome.js';
import { Fleet, type FleetHandler, type Seat } from './fleet.js';
import { LEASE_TTL_MS, type Load, makeNames, REQUEST_DEADLINE_MS, RoundRobin } from './load.js';
import { Meter, OVERLOAD_CODES } from './meter.js';
import { Schedule } from './schedule.js';
import { SeatRing } from './seat-ring.js';

/** How often the schedule is looked at: the load generator adds at most this to a latency. */
const PUMP_MS = 1;
/** Requests out at once while leases are taken before the load begins. */
const SETUP_INFLIGHT = 512;
/** Share of the churning seats that hold a lease when the load begins. */
const CHURN_HELD_SHARE = 0.5;
/** Held leases looked at for one that has no renewal out. */
const RENEW_LOOKS_MAX = 64;

export interface OpenLoopOptions {
  readonly host: string;
  readonly port: number;
  readonly connections: number;
  readonly sessions: number;
  readonly names: number;
  readonly sessionTtlMs: number;
  readonly acquiresPerSecond: number;
  readonly renewalsPerSecond: number;
  /** Leases held all the time. */
  readonly held: number;
  /** Seats that acquire and release in turn. */
  readonly churning: number;
}

export class OpenLoop implements Load, FleetHandler {
  readonly meter = new Meter(OVERLOAD_CODES);
  /** Held leases that were lost; known after stop(). */
  lost = 0;
  private readonly fleet: Fleet;
  private readonly heldNames: readonly Uint8Array[];
  private readonly churnNames: RoundRobin;
  private readonly idle: SeatRing;
  private readonly holding: SeatRing;
  private readonly acquires: Schedule;
  private readonly releases: Schedule;
  private readonly renewals: Schedule;
  private nextRenewed = 0;
  private timer: NodeJS.Timeout | null = null;
  /** Seats that setup or the last check still have to send, and who waits for their end. */
  private readonly queue: Seat[] = [];
  private onPhaseDone: (() => void) | null = null;
  private isRunning = false;

  constructor(private readonly options: OpenLoopOptions) {
    const { held, churning, acquiresPerSecond, renewalsPerSecond } = options;
    const seats = held + churning;
    this.fleet = new Fleet(
      { ...options, seats, deadlineMs: REQUEST_DEADLINE_MS },
      this.meter,
      this,
    );
    const names = makeNames(options.names);
    this.heldNames = names.slice(0, held);
    this.churnNames = new RoundRobin(names.slice(held));
    this.idle = new SeatRing(churning);
    this.holding = new SeatRing(churning);
    this.acquires = new Schedule(acquiresPerSecond);
    this.releases = new Schedule(acquiresPerSecond);
    this.renewals = new Schedule(renewalsPerSecond);
  }

  get bytes(): number {
    return this.fleet.bytes;
  }

  /** Opens the sessions and takes the leases that are held from the beginning. */
  async open(): Promise<void> {
    await this.fleet.open();
    const { held, churning } = this.options;
    const first = held + Math.floor(churning * CHURN_HELD_SHARE);
    await this.phase(this.fleet.seats.slice(0, first));
    for (let i = first; i < held + churning; i += 1) this.idle.push(this.fleet.seats[i] as Seat);
    if (this.meter.errors > 0) throw new Error(`setting up: ${this.meter.errors} errors`);
  }

  start(): void {
    const nowMs = performance.now();
    this.acquires.start(nowMs);
    this.releases.start(nowMs);
    this.renewals.start(nowMs);
    this.isRunning = true;
    this.pump();
  }

  /** Multiplies every rate by `factor` of what the options say, from now on. */
  setLoad(factor: number): void {
    const nowMs = performance.now();
    const { acquiresPerSecond, renewalsPerSecond } = this.options;
    this.acquires.setRate(nowMs, acquiresPerSecond * factor);
    this.releases.setRate(nowMs, acquiresPerSecond * factor);
    this.renewals.setRate(nowMs, renewalsPerSecond * factor);
  }

  /** Waits for what is out, then renews every held lease once more: each must still be there. */
  async stop(): Promise<void> {
    this.isRunning = false;
    if (this.timer !== null) clearTimeout(this.timer);
    await this.fleet.drain(2 * REQUEST_DEADLINE_MS);
    if (this.meter.missing > 0) return;
    const held = this.fleet.seats.slice(0, this.options.held);
    this.lost = held.length;
    await this.phase(held);
  }

  close(): Promise<void> {
    return this.fleet.close();
  }

  onAnswer(seat: Seat, kind: number, code: number): void {
    if (!this.isRunning) {
      this.onPhaseAnswer(seat, kind, code);
      return;
    }
    if (seat.index < this.options.held) return;
    if (seat.isHolding) this.holding.push(seat);
    else this.idle.push(seat);
  }

  onQueued(): void {
    this.meter.onWrong('a try was queued');
  }

  private readonly pump = (): void => {
    if (!this.isRunning) return;
    const nowMs = performance.now();
    this.pumpAcquires(nowMs);
    this.pumpReleases(nowMs);
    this.pumpRenewals(nowMs);
    this.timer = setTimeout(this.pump, PUMP_MS);
  };

  private pumpAcquires(nowMs: number): void {
    for (;;) {
      const dueMs = this.acquires.next(nowMs);
      if (dueMs < 0) return;
      const seat = this.idle.take();
      if (seat === null) {
        this.acquires.putBack();
        return;
      }
      seat.lane.acquire(seat, this.churnNames.take(), LEASE_TTL_MS, 0, dueMs);
    }
  }

  private pumpReleases(nowMs: number): void {
    for (;;) {
      const dueMs = this.releases.next(nowMs);
      if (dueMs < 0) return;
      const seat = this.holding.take();
      if (seat === null) {
        this.releases.putBack();
        return;
      }
      seat.lane.release(seat, dueMs);
    }
  }

  private pumpRenewals(nowMs: number): void {
    for (;;) {
      const dueMs = this.renewals.next(nowMs);
      if (dueMs < 0) return;
      const seat = this.takeRenewed();
      if (seat === null) {
        this.renewals.putBack();
        return;
      }
      seat.lane.renew(seat, dueMs);
    }
  }

  /** The next held lease without a renewal out; null when all that were looked at have one. */
  private takeRenewed(): Seat | null {
    for (let looks = 0; looks < RENEW_LOOKS_MAX; looks += 1) {
      const seat = this.fleet.seats[this.nextRenewed] as Seat;
      this.nextRenewed = this.nextRenewed + 1 === this.options.held ? 0 : this.nextRenewed + 1;
      if (seat.kind === 0) return seat;
    }
    return null;
  }

  /** Each of `seats` acquires what it lacks or renews what it has, a bounded number at once. */
  private phase(seats: readonly Seat[]): Promise<void> {
    if (seats.length === 0) return Promise.resolve();
    this.queue.push(...seats);
    return new Promise((resolve) => {
      this.onPhaseDone = resolve;
      for (let i = 0; i < SETUP_INFLIGHT; i += 1) this.sendPhase();
    });
  }

  private sendPhase(): void {
    const seat = this.queue.pop();
    if (seat === undefined) {
      if (this.fleet.waiting === 0) this.onPhaseDone?.();
      return;
    }
    const nowMs = performance.now();
    if (seat.isHolding) {
      seat.lane.renew(seat, nowMs);
      return;
    }
    const isHeld = seat.index < this.options.held;
    const name = isHeld ? (this.heldNames[seat.index] as Uint8Array) : this.churnNames.take();
    seat.lane.acquire(seat, name, LEASE_TTL_MS, 0, nowMs);
  }

  private onPhaseAnswer(seat: Seat, kind: number, code: number): void {
    if (this.onPhaseDone === null) return; // draining
    if (kind === CommandKind.Renew && code === OutcomeCode.Ok) this.lost -= 1;
    const isChurning = seat.index >= this.options.held;
    if (kind === CommandKind.Acquire && isChurning && seat.isHolding) this.holding.push(seat);
    this.sendPhase();
  }
}
