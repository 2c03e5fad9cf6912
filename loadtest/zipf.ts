/**
 * Names drawn by Zipf's law: some are wanted by many at once, and those acquires wait.
 *
 * Owns: as many requests being decided as the closed loop has, and beside them the acquires that
 * stand in a queue: a queued acquire is decided, so its place in flight goes to the next name. A
 * wait that is not granted in time ends with WAIT_TIMEOUT, which is counted apart and is no
 * operation. Never: a name drawn again because it is busy. Used by: the profile zipf.
 */
import { CommandKind } from '../src/core/locks/command.js';
import { OutcomeCode } from '../src/core/locks/outcome.js';
import { Fleet, type FleetHandler, type Seat } from './fleet.js';
import {
  isLeaderGone,
  LEASE_TTL_MS,
  type Load,
  makeNames,
  REQUEST_DEADLINE_MS,
  Zipf,
} from './load.js';
import { Meter } from './meter.js';
import { SeatRing } from './seat-ring.js';

const EXPONENT = 0.99;
const SEED = 1;
/** How long an acquire stands in its queue at most. */
export const ZIPF_WAIT_MS = 1_000;

export interface ZipfOptions {
  readonly host: string;
  readonly port: number;
  readonly connections: number;
  /** Requests being decided at once. */
  readonly inflight: number;
  /** Acquires that may stand in queues beside them. */
  readonly parked: number;
  readonly names: number;
  readonly sessionTtlMs: number;
}

export class ZipfLoad implements Load, FleetHandler {
  readonly meter = new Meter([OutcomeCode.WaitTimeout]);
  /** Most acquires that stood in queues at once. */
  parkedMost = 0;
  private parked = 0;
  private readonly fleet: Fleet;
  private readonly names: readonly Uint8Array[];
  private readonly zipf: Zipf;
  private readonly idle: SeatRing;
  private readonly inflight: number;
  private isStopping = false;

  constructor(options: ZipfOptions) {
    const seats = options.inflight + options.parked;
    this.inflight = options.inflight;
    this.fleet = new Fleet(
      { ...options, seats, sessions: seats, deadlineMs: REQUEST_DEADLINE_MS },
      this.meter,
      this,
    );
    this.names = makeNames(options.names, 'zipf');
    this.zipf = new Zipf(options.names, EXPONENT, SEED);
    this.idle = new SeatRing(seats);
  }

  get bytes(): number {
    return this.fleet.bytes;
  }

  async open(): Promise<void> {
    await this.fleet.open();
    for (const seat of this.fleet.seats) this.idle.push(seat);
  }

  start(): void {
    this.fill();
  }

  async stop(): Promise<void> {
    this.isStopping = true;
    await this.fleet.drain(ZIPF_WAIT_MS + 2 * REQUEST_DEADLINE_MS);
  }

  close(): Promise<void> {
    return this.fleet.close();
  }

  onAnswer(seat: Seat, kind: number, code: number): void {
    if (kind === CommandKind.Acquire && seat.place !== 0) this.parked -= 1;
    if (isLeaderGone(code)) return;
    if (seat.isHolding) {
      seat.lane.release(seat, performance.now());
      return;
    }
    this.idle.push(seat);
    this.fill();
  }

  onQueued(): void {
    this.parked += 1;
    if (this.parked > this.parkedMost) this.parkedMost = this.parked;
    this.fill();
  }

  /** Starts acquires until enough requests are being decided, or every seat is taken. */
  private fill(): void {
    while (!this.isStopping && this.fleet.waiting - this.parked < this.inflight) {
      const seat = this.idle.take();
      if (seat === null) return;
      const name = this.names[this.zipf.draw()] as Uint8Array;
      seat.lane.acquire(seat, name, LEASE_TTL_MS, ZIPF_WAIT_MS, performance.now());
    }
  }
}
