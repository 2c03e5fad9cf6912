/**
 * What a replica measures: outcomes by operation, how long decisions, holds and waits took.
 *
 * Owns: arrays of counts. On the way of an operation it adds to two numbers; everything else is
 * once an entry, an order to the log, or a turn. Never: an allocation for an operation, a label.
 * Filled by: apply, batching, turn, replies, upkeep. Read by: server, when a scrape comes.
 */
import { Buckets, HOLD_BOUNDS_MS, LATENCY_BOUNDS_MS } from '../collections/buckets.js';
import { EventKind } from '../core/locks/event.js';
import type { LockMachine } from '../core/locks/lock-machine.js';
import { LOG_APPENDS_MAX } from '../limits.js';
import type { EventRing } from './event-ring.js';

/** Numbers of commands and codes are below it. */
const NUMBERS_MAX = 64;
const CAUSES_MAX = 16;
const US_PER_MS = 1_000;

export class Meters {
  /** Operations applied, at command × NUMBERS_MAX + code. */
  private readonly outcomes = new Float64Array(NUMBERS_MAX * NUMBERS_MAX);
  /** Operations of the entry that is being applied, by command. */
  private readonly inEntry = new Float64Array(NUMBERS_MAX);
  /** Refusals before the log, by code. */
  readonly refused = new Float64Array(NUMBERS_MAX);
  /** Leases ended, by cause (LeaseEnd). */
  readonly ended = new Float64Array(CAUSES_MAX);
  /** From the turn that saw the first operation of a batch to its outcomes, by command. */
  readonly decisions: (Buckets | null)[] = new Array<Buckets | null>(NUMBERS_MAX).fill(null);
  /** From an order to the log to word that it is on disk. */
  readonly appends = new Buckets(LATENCY_BOUNDS_MS);
  /** From grant to end, and from place to grant, in cluster time; of events still in memory. */
  readonly holds = new Buckets(HOLD_BOUNDS_MS);
  readonly waits = new Buckets(HOLD_BOUNDS_MS);
  /** Stale tokens that guards refused, as they reported it. */
  fencingRefusals = 0;
  /** µs without a known leader. */
  leaderlessUs = 0;
  private readonly orderedUs = new Float64Array(LOG_APPENDS_MAX);
  private countedAppendId = 0;

  /** Called for every operation. */
  onApplied(kind: number, code: number): void {
    const at = kind * NUMBERS_MAX + code;
    this.outcomes[at] = (this.outcomes[at] as number) + 1;
    this.inEntry[kind] = (this.inEntry[kind] as number) + 1;
  }

  /** An entry is through. `tookMs`: since its batch was opened here; -1 for another's entry. */
  onEntry(tookMs: number): void {
    const { inEntry } = this;
    for (let kind = 0; kind < NUMBERS_MAX; kind += 1) {
      const count = inEntry[kind] as number;
      if (count === 0) continue;
      inEntry[kind] = 0;
      if (tookMs >= 0) this.decisionsOf(kind).observe(tookMs, count);
    }
  }

  /** The events of the entry that `machine` has just applied; `events` has recorded them. */
  onEvents(machine: LockMachine, events: EventRing): void {
    const { events: batch, now } = machine;
    for (let at = 0; at < batch.count; at += 1) {
      const { kind, cause, token, place } = batch.at(at);
      if (kind === EventKind.Ended) {
        this.ended[cause] = (this.ended[cause] as number) + 1;
        if (token >= events.oldest) this.holds.observe(now - events.stampOf(token));
      } else if (kind === EventKind.Granted && place >= events.oldest && place > 0) {
        this.waits.observe(now - events.stampOf(place));
      }
    }
  }

  onOrdered(appendId: number, nowUs: number): void {
    if (this.countedAppendId === 0) this.countedAppendId = appendId - 1;
    this.orderedUs[appendId % LOG_APPENDS_MAX] = nowUs;
  }

  /** Everything up to this order is on disk. */
  onDurable(appendId: number, nowUs: number): void {
    while (this.countedAppendId < appendId) {
      this.countedAppendId += 1;
      const us = nowUs - (this.orderedUs[this.countedAppendId % LOG_APPENDS_MAX] as number);
      this.appends.observe(us / US_PER_MS);
    }
  }

  onRefused(code: number): void {
    if (code < NUMBERS_MAX) this.refused[code] = (this.refused[code] as number) + 1;
  }

  /** Calls `visit` with each command and code that was ever decided, and how often. */
  forEachOutcome(visit: (kind: number, code: number, count: number) => void): void {
    for (let at = 0; at < this.outcomes.length; at += 1) {
      const count = this.outcomes[at] as number;
      if (count > 0) visit(Math.floor(at / NUMBERS_MAX), at % NUMBERS_MAX, count);
    }
  }

  private decisionsOf(kind: number): Buckets {
    const known = this.decisions[kind] ?? null;
    if (known !== null) return known;
    const made = new Buckets(LATENCY_BOUNDS_MS);
    this.decisions[kind] = made;
    return made;
  }
}
