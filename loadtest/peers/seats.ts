/**
 * The closed loop that every peer is driven by: acquire a lock of one's own, release it, again.
 *
 * Owns: the seats, their names in turn, the tally. A peer says how a seat's next operation is sent
 * and calls back when it was answered. Nothing is made for an operation. Used by: the peers.
 */
import { makeNames, RoundRobin } from '../load.js';
import type { Tally } from './peer.js';

const NAMES = 100_000;
const DRAIN_MS_MAX = 30_000;

export class PeerSeat {
  isHolding = false;
  name: Uint8Array = new Uint8Array(0);
  beganMs = 0;

  constructor(readonly index: number) {}
}

export class PeerLoop {
  private tally: Tally | null = null;
  private seats: PeerSeat[] = [];
  private out = 0;
  private isStopping = false;
  private onIdle: (() => void) | null = null;
  private readonly names = new RoundRobin(makeNames(NAMES, 'lock'));

  /** @param send sends the next operation of a seat: a release when it holds, else an acquire */
  constructor(private readonly send: (seat: PeerSeat) => void) {}

  seat(index: number): PeerSeat | undefined {
    return this.seats[index];
  }

  start(inflight: number, tally: Tally): void {
    this.tally = tally;
    this.isStopping = false;
    this.seats = [];
    for (let index = 0; index < inflight; index += 1) this.seats.push(new PeerSeat(index));
    for (const seat of this.seats) this.next(seat);
  }

  /** Sends nothing more but the releases of what is held; resolves when nothing is out. */
  stop(): Promise<void> {
    this.isStopping = true;
    if (this.out === 0) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const fail = (): void => reject(new Error(`${this.out} operations were never answered`));
      const late = setTimeout(fail, DRAIN_MS_MAX);
      this.onIdle = () => {
        clearTimeout(late);
        resolve();
      };
    });
  }

  /** The operation of a seat was answered. */
  onAnswer(seat: PeerSeat, isGood: boolean): void {
    this.out -= 1;
    this.tally?.onDone(isGood, performance.now() - seat.beganMs);
    seat.isHolding = isGood && !seat.isHolding;
    if (!this.isStopping || seat.isHolding) this.next(seat);
    else if (this.out === 0) this.onIdle?.();
  }

  private next(seat: PeerSeat): void {
    if (!seat.isHolding) seat.name = this.names.take();
    seat.beganMs = performance.now();
    this.out += 1;
    this.send(seat);
  }
}
