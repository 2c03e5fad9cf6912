/**
 * A clock that a test moves by hand: awake time, uptime, timers, and chance from a seed.
 *
 * advance() runs what is due in order and lets promises and the network settle in between. Timers
 * can be late (stall), the machine can be suspended (suspend), and nothing waits for real time.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { Clock, Instant, Timer } from '../../../src/client/clock.js';

interface Planned {
  readonly atMs: number;
  readonly order: number;
  readonly onTime: () => void;
  isCancelled: boolean;
}

function isBefore(one: Planned, other: Planned): boolean {
  return one.atMs < other.atMs || (one.atMs === other.atMs && one.order < other.order);
}

/** A binary heap, so that tests with ten thousand timers stay fast. */
class TimerHeap {
  private readonly items: Planned[] = [];

  get first(): Planned | undefined {
    return this.items[0];
  }

  push(planned: Planned): void {
    const { items } = this;
    let at = items.push(planned) - 1;
    for (let up = (at - 1) >> 1; at > 0 && isBefore(planned, items[up]!); up = (at - 1) >> 1) {
      items[at] = items[up]!;
      at = up;
    }
    items[at] = planned;
  }

  pop(): void {
    const { items } = this;
    const last = items.pop();
    if (last === undefined || items.length === 0) return;
    let at = 0;
    for (let child = 1; child < items.length; child = 2 * at + 1) {
      const right = child + 1;
      if (right < items.length && isBefore(items[right]!, items[child]!)) child = right;
      if (!isBefore(items[child]!, last)) break;
      items[at] = items[child]!;
      at = child;
    }
    items[at] = last;
  }
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
  private readonly heap = new TimerHeap();
  private armed = 0;
  private order = 0;
  private seed = 12_345;
  private ids = 0;

  read(): Instant {
    return { awakeMs: this.awakeMs, uptimeMs: Math.floor(this.uptimeMs / 10) * 10 };
  }

  nowMs(): number {
    return this.awakeMs;
  }

  /** A timer of the test's own world, which is not counted among those of the client. */
  later(afterMs: number, onTime: () => void): void {
    this.startTimer(afterMs, () => {
      this.armed += 1;
      onTime();
    });
    this.armed -= 1;
  }

  startTimer(afterMs: number, onTime: () => void): Timer {
    if (!(afterMs >= 0 && afterMs <= 2 ** 31 - 1)) throw new Error(`timer of ${afterMs} ms`);
    this.order += 1;
    const atMs = this.awakeMs + afterMs;
    const planned: Planned = { atMs, order: this.order, onTime, isCancelled: false };
    this.heap.push(planned);
    this.armed += 1;
    return {
      cancel: () => {
        if (!planned.isCancelled) this.armed -= 1;
        planned.isCancelled = true;
      },
    };
  }

  /** Starts chance anew. */
  seedChance(seed: number): void {
    this.seed = seed;
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
    return this.armed;
  }

  /** Moves time on; what is due runs at its time, in order. */
  async advance(ms: number): Promise<void> {
    await settle();
    const untilMs = this.awakeMs + ms;
    for (let next = this.next(untilMs); next !== undefined; next = this.next(untilMs)) {
      this.move(Math.max(0, next.atMs - this.awakeMs));
      this.heap.pop();
      next.isCancelled = true;
      this.armed -= 1; // later() has taken its own off when it was planned
      next.onTime();
      if (this.heap.first?.atMs !== next.atMs) await settle();
    }
    this.move(untilMs - this.awakeMs);
    await settle();
  }

  /** Moves on to the next timer, or by `ms` when none is due before. */
  async step(ms: number): Promise<void> {
    const next = this.next(this.awakeMs + ms);
    await this.advance(next === undefined ? ms : Math.max(0, next.atMs - this.awakeMs));
  }

  /** The event loop is blocked: time passes and no timer runs. */
  stall(ms: number): void {
    this.move(ms);
  }

  /** The machine is suspended: only uptime passes. */
  suspend(ms: number): void {
    this.uptimeMs += ms;
  }

  /** Moves time on from timer to timer until `holds`. Throws when it never does. */
  async until(holds: () => boolean, maxMs: number): Promise<void> {
    await settle();
    const untilMs = this.awakeMs + maxMs;
    while (!holds()) {
      if (this.awakeMs > untilMs) throw new Error(`still not so after ${maxMs} ms`);
      await this.step(10);
    }
  }

  private move(ms: number): void {
    this.awakeMs += ms;
    this.uptimeMs += ms;
  }

  private next(untilMs: number): Planned | undefined {
    for (let first = this.heap.first; first !== undefined; first = this.heap.first) {
      if (!first.isCancelled) return first.atMs <= untilMs ? first : undefined;
      this.heap.pop();
    }
    return undefined;
  }
}
