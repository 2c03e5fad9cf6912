/**
 * The closed loop: each seat acquires a lock of its own, releases it, and begins again.
 *
 * Owns: one session a seat and what it does next. Operations are real: distinct names, request
 * ids, checked replies. Never: a wait, a retry. Used by: runner.ts, and as the load behind expiry.
 */
import { Fleet, type FleetHandler, type Seat } from './fleet.js';
import {
  isLeaderGone,
  LEASE_TTL_MS,
  type Load,
  makeNames,
  REQUEST_DEADLINE_MS,
  RoundRobin,
} from './load.js';
import { Meter } from './meter.js';

export interface ClosedLoopOptions {
  readonly host: string;
  readonly port: number;
  readonly connections: number;
  readonly inflight: number;
  readonly names: number;
  readonly sessionTtlMs: number;
  /** First part of every name: two loads on one cluster must not meet. */
  readonly stem?: string;
}

export class ClosedLoop implements Load, FleetHandler {
  readonly meter = new Meter();
  private readonly fleet: Fleet;
  private readonly names: RoundRobin;
  private isStopping = false;

  constructor(options: ClosedLoopOptions) {
    const { inflight } = options;
    this.fleet = new Fleet(
      { ...options, seats: inflight, sessions: inflight, deadlineMs: REQUEST_DEADLINE_MS },
      this.meter,
      this,
    );
    this.names = new RoundRobin(makeNames(options.names, options.stem));
  }

  get bytes(): number {
    return this.fleet.bytes;
  }

  open(): Promise<void> {
    return this.fleet.open();
  }

  start(): void {
    for (const seat of this.fleet.seats) this.next(seat);
  }

  async stop(): Promise<void> {
    this.isStopping = true;
    await this.fleet.drain(2 * REQUEST_DEADLINE_MS);
  }

  close(): Promise<void> {
    return this.fleet.close();
  }

  onAnswer(seat: Seat, _kind: number, code: number): void {
    if (!this.isStopping && !isLeaderGone(code)) this.next(seat);
  }

  onQueued(): void {
    this.meter.onWrong('a try was queued');
  }

  private next(seat: Seat): void {
    const { lane } = seat;
    const nowMs = performance.now();
    if (seat.isHolding) lane.release(seat, nowMs);
    else lane.acquire(seat, this.names.take(), LEASE_TTL_MS, 0, nowMs);
  }
}
