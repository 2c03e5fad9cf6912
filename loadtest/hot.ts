/**
 * One lock that everybody wants: who gets it lets go at once and queues again.
 *
 * Owns: as many seats as there are waiters and one more, and the check that grants follow the
 * queue's order. A hand-over is one grant: release, commit, grant to the next. Never: a try.
 * Used by: the profile hot.
 */
import { CommandKind } from '../src/core/locks/command.js';
import { Fleet, type FleetHandler, type Seat } from './fleet.js';
import { isLeaderGone, LEASE_TTL_MS, type Load, REQUEST_DEADLINE_MS } from './load.js';
import { Meter } from './meter.js';

/** Longer than any queue here takes. */
const WAIT_MS = 600_000;

export interface HotOptions {
  readonly host: string;
  readonly port: number;
  readonly connections: number;
  readonly waiters: number;
  readonly sessionTtlMs: number;
}

export class Hot implements Load, FleetHandler {
  readonly meter = new Meter();
  /** Grants while recording. */
  handOvers = 0;
  private readonly fleet: Fleet;
  private readonly name = Buffer.from('load/hot');
  /** The place granted last, by connection: replies of one connection come in the log's order. */
  private readonly lastPlaces: Float64Array;
  private isStopping = false;

  constructor(options: HotOptions) {
    const seats = options.waiters + 1;
    this.fleet = new Fleet(
      { ...options, seats, sessions: seats, deadlineMs: REQUEST_DEADLINE_MS },
      this.meter,
      this,
    );
    this.lastPlaces = new Float64Array(options.connections);
  }

  get bytes(): number {
    return this.fleet.bytes;
  }

  open(): Promise<void> {
    return this.fleet.open();
  }

  start(): void {
    for (const seat of this.fleet.seats) this.enter(seat);
  }

  /** Who is granted from now on lets go and does not come back, until nobody waits. */
  async stop(): Promise<void> {
    this.isStopping = true;
    await this.fleet.drain(WAIT_MS);
  }

  close(): Promise<void> {
    return this.fleet.close();
  }

  onAnswer(seat: Seat, kind: number, code: number): void {
    if (isLeaderGone(code)) return;
    if (kind === CommandKind.Acquire && seat.isHolding) {
      this.onGranted(seat);
      seat.lane.release(seat, performance.now());
    } else if (!this.isStopping) {
      this.enter(seat);
    }
  }

  onQueued(): void {
    // Its grant comes in time.
  }

  private enter(seat: Seat): void {
    seat.lane.acquire(seat, this.name, LEASE_TTL_MS, WAIT_MS, performance.now());
  }

  private onGranted(seat: Seat): void {
    if (this.meter.isRecording) this.handOvers += 1;
    if (seat.place === 0) return; // it found the lock free
    const { number } = seat.lane;
    const last = this.lastPlaces[number] as number;
    if (seat.place <= last) this.meter.onWrong(`place ${seat.place} granted after ${last}`);
    this.lastPlaces[number] = seat.place;
  }
}
