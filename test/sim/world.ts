/**
 * A simulated machine room: one clock, a queue of things to come, and chance from one seed.
 *
 * Owns: virtual time. Everything that happens is an event with a moment; equal moments keep the
 * order in which they were asked for, so one seed gives one run. Used by: the simulated devices.
 */
import { Prng } from '../../src/collections/prng.js';

interface Event {
  readonly atUs: number;
  readonly order: number;
  readonly run: () => void;
}

export class World {
  nowUs = 0;
  /** A number over every event so far: equal for two runs that went alike. */
  digest = 0;
  /** Events that have run. */
  events = 0;
  readonly prng: Prng;
  private readonly heap: Event[] = [];
  private order = 0;

  constructor(readonly seed: number) {
    this.prng = new Prng(seed);
  }

  /** Runs `run` after `delayUs` of virtual time. */
  after(delayUs: number, run: () => void): void {
    this.order += 1;
    // A moment is a whole µs, so that equal moments are equal on every machine.
    this.push({ atUs: this.nowUs + Math.max(0, Math.round(delayUs)), order: this.order, run });
  }

  /** True with probability `share`, 0 to 1. */
  chance(share: number): boolean {
    return this.prng.nextDouble() < share;
  }

  /** A whole number from `least` to `most`. */
  between(least: number, most: number): number {
    return least + this.prng.below(most - least + 1);
  }

  /** Lets time pass until `untilUs` or until `isDone`. Returns whether `isDone` held. */
  run(untilUs: number, isDone: () => boolean = () => false): boolean {
    while (!isDone()) {
      const next = this.heap[0];
      if (next === undefined || next.atUs > untilUs) {
        this.nowUs = Math.max(this.nowUs, untilUs);
        return isDone();
      }
      this.pop();
      this.nowUs = next.atUs;
      this.events += 1;
      this.digest = Math.imul(this.digest ^ (next.atUs | 0) ^ (next.order << 7), 0x0100_0193);
      next.run();
    }
    return true;
  }

  private push(event: Event): void {
    const { heap } = this;
    let at = heap.length;
    heap.push(event);
    while (at > 0) {
      const parent = (at - 1) >>> 1;
      if (!isBefore(event, heap[parent] as Event)) break;
      heap[at] = heap[parent] as Event;
      at = parent;
    }
    heap[at] = event;
  }

  private pop(): void {
    const { heap } = this;
    const last = heap.pop() as Event;
    if (heap.length === 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      const right = heap[child + 1];
      if (right !== undefined && isBefore(right, heap[child] as Event)) child += 1;
      if (!isBefore(heap[child] as Event, last)) break;
      heap[at] = heap[child] as Event;
      at = child;
    }
    heap[at] = last;
  }
}

function isBefore(a: Event, b: Event): boolean {
  return a.atUs < b.atUs || (a.atUs === b.atUs && a.order < b.order);
}
