/**
 * A clock that a test moves by hand: awake time, uptime, timers, and chance from a seed.
 *
 * advance() runs what is due in order and lets promises and the network settle in between. Timers can
 * be late (stall), the machine can be suspended (suspend), and nothing waits for real time.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock, Instant, Timer } from '../../../src/client/clock.js';

interface Planned {
  readonly atMs: number;
  readonly order: number;
  readonly onTime: () => void;
}

const TURNS_TO_SETTLE = 12;

/** Lets promises, ticks and the fake network come to rest. */
export async function settle(): Promise<void> {
  for (let turn = 0; turn < TURNS_TO_SETTLE; turn += 1) await nextTurn();
}

export class FakeClock implements Clock {
  readonly uptimeQuantumMs = 10;
  awakeMs = 1_000_000;
  uptimeMs = 5_000_000;
  /** Real ms a local ms lasts is 1 / rate: a clock that runs fast has a rate above 1. */
  rate = 1;
  private readonly planned = new Set<Planned>();
  private order = 0;
  private seed = 12_345;
  private ids = 0;

  read(): Instant {
    return { awakeMs: this.awakeMs, uptimeMs: Math.floor(this.uptimeMs / 10) * 10 };
  }

  nowMs(): number {
    return this.awakeMs;
  }

  startTimer(afterMs: number, onTime: () => void): Timer {
    if (!(afterMs >= 0 && afterMs <= 2 ** 31 - 1)) throw new Error(`timer of ${afterMs} ms`);
    this.order += 1;
    const planned = { atMs: this.awakeMs + afterMs, order: this.order, onTime };
    this.planned.add(planned);
    return { cancel: () => void this.planned.delete(planned) };
  }

  random(): number {
    this.seed = (this.seed * 1_103_515_245 + 12_345) % 2 ** 31;
    return this.seed / 2 ** 31;
  }

  randomId(): Uint8Array {
    this.ids += 1;
    const id = new Uint8Array(16);
    new DataView(id.buffer).setUint32(12, this.ids);
    id[0] = 0xf1;
    return id;
  }

  /** Timers that are armed. */
  get timers(): number {
    return this.planned.size;
  }

  /** Moves time on; what is due runs at its time, in order. */
  async advance(ms: number): Promise<void> {
    await settle();
    const untilMs = this.awakeMs + ms;
    for (let next = this.next(untilMs); next !== undefined; next = this.next(untilMs)) {
      this.move(Math.max(0, next.atMs - this.awakeMs));
      this.planned.delete(next);
      next.onTime();
      await settle();
    }
    this.move(untilMs - this.awakeMs);
    await settle();
  }

  /** The event loop is blocked: time passes and no timer runs. */
  stall(ms: number): void {
    this.move(ms);
  }

  /** The machine is suspended: only uptime passes. */
  suspend(ms: number): void {
    this.uptimeMs += ms;
  }

  /** Moves time on until `holds`, in steps of a ms. Throws when it never does. */
  async until(holds: () => boolean, maxMs: number): Promise<void> {
    await settle();
    for (let passed = 0; !holds(); passed += 1) {
      if (passed > maxMs) throw new Error(`still not so after ${maxMs} ms`);
      await this.advance(1);
    }
  }

  private move(ms: number): void {
    this.awakeMs += ms;
    this.uptimeMs += ms;
  }

  private next(untilMs: number): Planned | undefined {
    let first: Planned | undefined;
    for (const planned of this.planned) {
      if (planned.atMs > untilMs) continue;
      const isEarlier = first === undefined || planned.atMs < first.atMs;
      const isTie = first !== undefined && planned.atMs === first.atMs;
      if (isEarlier || (isTie && first !== undefined && planned.order < first.order))
        first = planned;
    }
    return first;
  }
}
