/**
 * Runs the replica's turn when it was asked for: soon, or after a while.
 *
 * Owns: at most one immediate and one timer. A turn that runs takes both wishes with it: what was
 * wanted later is wanted again by the turn itself. Never: a turn inside soon() or after().
 * Used by: the replica, through TurnPort.
 */
import type { TurnPort } from '../replica/ports.js';

const US_PER_MS = 1_000;

export class TurnScheduler implements TurnPort {
  private immediate: NodeJS.Immediate | null = null;
  private timer: NodeJS.Timeout | null = null;
  /** Clock reading, in ms, at which the timer fires. */
  private timerAtMs = 0;
  private readonly onDue = () => this.runTurn();
  private isClosed = false;

  /** @param run carries out one turn; it may ask for the next from inside */
  constructor(private readonly run: () => void) {}

  soon(): void {
    if (this.immediate !== null || this.isClosed) return;
    this.immediate = setImmediate(this.onDue);
  }

  after(us: number): void {
    if (this.immediate !== null || this.isClosed) return;
    // Timers count whole ms: the nearest one, and less than half of one is soon.
    const delayMs = Math.round(us / US_PER_MS);
    if (delayMs === 0) {
      this.soon();
      return;
    }
    const atMs = performance.now() + delayMs;
    if (this.timer !== null) {
      // The earlier wish stands.
      if (this.timerAtMs <= atMs) return;
      clearTimeout(this.timer);
    }
    this.timerAtMs = atMs;
    this.timer = setTimeout(this.onDue, delayMs);
  }

  /** No turn runs any more. */
  close(): void {
    this.isClosed = true;
    this.forget();
  }

  private forget(): void {
    if (this.immediate !== null) clearImmediate(this.immediate);
    if (this.timer !== null) clearTimeout(this.timer);
    this.immediate = null;
    this.timer = null;
  }

  private runTurn(): void {
    this.forget();
    this.run();
  }
}
