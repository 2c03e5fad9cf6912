/**
 * Seats that wait for their turn, oldest first.
 *
 * Owns: their order. Made for as many as there will ever be, so that nothing is made later. Never:
 * a seat twice. Used by: the open loops.
 */
import type { Seat } from './fleet.js';

export class SeatRing {
  count = 0;
  private readonly seats: (Seat | null)[];
  private head = 0;

  constructor(capacity: number) {
    this.seats = new Array<Seat | null>(capacity).fill(null);
  }

  push(seat: Seat): void {
    if (this.count === this.seats.length) throw new Error('a seat waits twice');
    let at = this.head + this.count;
    if (at >= this.seats.length) at -= this.seats.length;
    this.seats[at] = seat;
    this.count += 1;
  }

  /** The oldest, null when there is none. */
  take(): Seat | null {
    if (this.count === 0) return null;
    const seat = this.seats[this.head] as Seat;
    this.seats[this.head] = null;
    this.head = this.head + 1 === this.seats.length ? 0 : this.head + 1;
    this.count -= 1;
    return seat;
  }
}
