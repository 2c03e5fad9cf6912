/**
 * Very many leases that nobody renews, all ending within one second of cluster time.
 *
 * Owns: taking them, each with the TTL that puts its deadline into the window, and the waiters
 * behind a sample of them, that of the last deadline included. The sweep frees in order of
 * deadlines, so when the last one's waiter is granted, every lease of the window is free. Lateness
 * is cluster time of the freeing entry less the deadline. Never: a renewal.
 * Used by: the profile expiry, beside a closed loop.
 */
import { CommandKind } from '../src/core/locks/command.js';
import { OutcomeCode } from '../src/core/locks/outcome.js';
import { Fleet, type FleetHandler, type Seat } from './fleet.js';
import { Latency } from './latency.js';
import { makeNames, REQUEST_DEADLINE_MS } from './load.js';
import { Meter } from './meter.js';

const WINDOW_MS = 1_000;
const WAIT_MS = 600_000;
const SETUP_INFLIGHT = 1_024;
/** Between the first acquire and the window: this, and so long for each lease and waiter. */
const LEAD_MS = 4_000;
const LEAD_MS_PER_LEASE = 0.1;
const TAKERS = 100;

export interface ExpiryOptions {
  readonly host: string;
  readonly port: number;
  readonly connections: number;
  readonly leases: number;
  /** One lease of so many has a waiter. */
  readonly sampleEvery: number;
  readonly sessionTtlMs: number;
}

export class Expiry implements FleetHandler {
  readonly meter = new Meter();
  readonly lateness = new Latency();
  /** First and last deadline of the window, cluster time. */
  firstDeadlineMs = Number.POSITIVE_INFINITY;
  lastDeadlineMs = 0;
  /** When the waiter behind the last deadline was granted, cluster time; 0 before. */
  freedMs = 0;
  private readonly takers: Fleet;
  private readonly waiters: Fleet;
  private readonly names: readonly Uint8Array[];
  private readonly deadlines: Float64Array;
  /** Which lease each waiter waits for. */
  private readonly waitsFor: number[] = [];
  private phase: 'taking' | 'queueing' | 'waiting' = 'taking';
  /** Acquires of the takers that were sent; later, waiters that stand in a queue. */
  private sent = 0;
  /** Waiters whose acquire was sent. */
  private queued = 0;
  private windowMs = 0;
  /** Cluster time less performance.now(), by the newest answer. */
  private aheadMs = 0;
  private onPhaseDone: (() => void) | null = null;

  constructor(private readonly options: ExpiryOptions) {
    const { leases, sampleEvery } = options;
    const waiters = Math.ceil(leases / sampleEvery) + 1;
    const shared = { ...options, deadlineMs: REQUEST_DEADLINE_MS };
    const taking = { ...shared, seats: leases, sessions: TAKERS };
    this.takers = new Fleet(taking, this.meter, this);
    this.waiters = new Fleet({ ...shared, seats: waiters, sessions: waiters }, this.meter, this);
    this.names = makeNames(leases, 'expiry');
    this.deadlines = new Float64Array(leases);
  }

  get bytes(): number {
    return this.takers.bytes + this.waiters.bytes;
  }

  /** Takes the leases and queues the waiters; resolves when all that stands. */
  async open(): Promise<void> {
    await this.takers.open();
    await this.waiters.open();
    await this.take();
    this.choose();
    await this.queue();
    if (this.meter.errors > 0) {
      throw new Error(`taking leases: ${JSON.stringify(this.meter.answersByCode())}`);
    }
  }

  /** Ms until the window begins, about; negative when it has begun. */
  get untilWindowMs(): number {
    return this.firstDeadlineMs - (performance.now() + this.aheadMs);
  }

  /** Resolves when every waiter was granted and has let go. */
  freed(): Promise<void> {
    return this.waiters.drain(WAIT_MS);
  }

  async close(): Promise<void> {
    await this.waiters.close();
    await this.takers.close();
  }

  /** Leases whose deadline lies within one second of the first. */
  get inWindow(): number {
    let count = 0;
    for (const deadline of this.deadlines) {
      if (deadline <= this.firstDeadlineMs + WINDOW_MS) count += 1;
    }
    return count;
  }

  get waiterCount(): number {
    return this.waitsFor.length;
  }

  onAnswer(seat: Seat, kind: number, code: number): void {
    if (code !== OutcomeCode.Ok) return;
    if (kind === CommandKind.Release) return;
    this.aheadMs = seat.entryMs - performance.now();
    if (this.phase === 'taking') {
      this.deadlines[seat.index] = seat.deadlineMs;
      this.takeNext();
      return;
    }
    // Found free: the window began before every waiter stood in its queue.
    if (seat.place === 0) this.onQueued();
    const lease = this.waitsFor[seat.index] as number;
    this.lateness.record(seat.entryMs - (this.deadlines[lease] as number));
    if (this.deadlines[lease] === this.lastDeadlineMs) this.freedMs = seat.entryMs;
    seat.lane.release(seat, performance.now());
  }

  onQueued(): void {
    this.sent += 1;
    if (this.sent < this.waitsFor.length) this.queueNext();
    if (this.sent === this.waitsFor.length) this.onPhaseDone?.();
  }

  private async take(): Promise<void> {
    const done = new Promise<void>((resolve) => {
      this.onPhaseDone = resolve;
    });
    // The first answer tells the cluster's time, the others are aimed by it.
    this.windowMs = LEAD_MS + this.options.leases * LEAD_MS_PER_LEASE;
    this.takeNext();
    await done;
  }

  private takeNext(): void {
    const { leases } = this.options;
    if (this.sent === 1) this.windowMs += performance.now() + this.aheadMs;
    const inflight = this.sent === 0 ? 1 : SETUP_INFLIGHT;
    while (this.sent < leases && this.takers.waiting < inflight) {
      const nowMs = performance.now();
      const target = this.windowMs + (this.sent / leases) * WINDOW_MS;
      const ttlMs = this.sent === 0 ? target : target - (nowMs + this.aheadMs);
      const seat = this.takers.seats[this.sent] as Seat;
      const name = this.names[this.sent] as Uint8Array;
      this.sent += 1;
      seat.lane.acquire(seat, name, Math.max(1_000, Math.round(ttlMs)), 0, nowMs);
    }
    if (this.sent === leases && this.takers.waiting === 0) this.onPhaseDone?.();
  }

  /** Every so many leases, and the one that ends last. */
  private choose(): void {
    let last = 0;
    for (let i = 0; i < this.deadlines.length; i += 1) {
      const deadline = this.deadlines[i] as number;
      if (deadline < this.firstDeadlineMs) this.firstDeadlineMs = deadline;
      if (deadline >= this.lastDeadlineMs) {
        this.lastDeadlineMs = deadline;
        last = i;
      }
    }
    for (let i = 0; i < this.deadlines.length; i += this.options.sampleEvery) {
      if (i !== last) this.waitsFor.push(i);
    }
    this.waitsFor.push(last);
  }

  private async queue(): Promise<void> {
    this.phase = 'queueing';
    this.sent = 0;
    this.queued = 0;
    const done = new Promise<void>((resolve) => {
      this.onPhaseDone = resolve;
    });
    for (let i = 0; i < SETUP_INFLIGHT; i += 1) this.queueNext();
    await done;
    this.phase = 'waiting';
  }

  private queueNext(): void {
    const lease = this.waitsFor[this.queued];
    if (lease === undefined) return;
    const seat = this.waiters.seats[this.queued] as Seat;
    this.queued += 1;
    const name = this.names[lease] as Uint8Array;
    seat.lane.acquire(seat, name, 30_000, WAIT_MS, performance.now());
  }
}
