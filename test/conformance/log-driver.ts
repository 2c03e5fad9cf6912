/**
 * Drives a LogPort in tests: numbers its orders, and turns its events into promises.
 *
 * Owns: append ids and read ids of one open log. Used by: log-port.ts and the tests of the log.
 */
import { crc32 } from 'node:zlib';
import type { HardState } from '../../src/core/raft/effects.js';
import { Entry, EntryKind } from '../../src/core/raft/message.js';
import type { AppendOrder, LogEvents, LogPort, LogState } from '../../src/replica/ports.js';

/** A log that was opened, as its maker hands it out. */
export interface OpenLog {
  readonly log: LogPort;
  readonly state: LogState;
  setEvents(events: LogEvents): void;
}

/** An entry of a batch whose data is `bytes` times the low byte of `index + term`. */
export function makeEntry(index: number, term: number, bytes = 100): Entry {
  return new Entry(index, term, EntryKind.Batch, new Uint8Array(bytes).fill(index + term));
}

/** Entries `from` … `to` of one term. */
export function makeEntries(from: number, to: number, term: number, bytes = 100): Entry[] {
  const entries: Entry[] = [];
  for (let index = from; index <= to; index++) entries.push(makeEntry(index, term, bytes));
  return entries;
}

/** A short plain form of entries that tests compare. */
export function plain(entries: readonly Entry[]): string[] {
  return entries.map(({ index, term, kind, data }) => {
    return `${index} of term ${term}, kind ${kind}: ${data.length} bytes, crc ${crc32(data)}`;
  });
}

export interface OrderFields {
  readonly resetTo?: number;
  readonly truncateFrom?: number;
  readonly entries?: readonly Entry[];
  readonly hardState?: HardState;
  readonly commitIndex?: number;
}

export class LogDriver {
  /** Every id that onDurable named, as it came. */
  readonly durableIds: number[] = [];
  readonly log: LogPort;
  readonly state: LogState;
  /** True while append or read runs: no event may come then. */
  isInside = false;
  eventsInside = 0;
  private lastAppendId = 0;
  private lastReadId = 0;
  private readonly waiting: { id: number; resolve: () => void }[] = [];
  private readonly reads = new Map<number, (entries: readonly Entry[]) => void>();

  constructor(opened: OpenLog) {
    this.log = opened.log;
    this.state = opened.state;
    opened.setEvents({
      onDurable: (id) => this.onDurable(id),
      onRead: (id, entries) => this.onRead(id, entries),
    });
  }

  /** Gives an order. Returns its id. */
  give(fields: OrderFields): number {
    this.lastAppendId += 1;
    const {
      resetTo = 0,
      truncateFrom = 0,
      entries = [],
      hardState = null,
      commitIndex = 0,
    } = fields;
    const appendId = this.lastAppendId;
    const order: AppendOrder = { appendId, resetTo, truncateFrom, entries, hardState, commitIndex };
    this.isInside = true;
    this.log.append(order);
    this.isInside = false;
    return appendId;
  }

  /** Resolves when the order `id` is durable; it may be already. */
  durable(id: number): Promise<void> {
    if ((this.durableIds.at(-1) ?? 0) >= id) return Promise.resolve();
    return new Promise((resolve) => this.waiting.push({ id, resolve }));
  }

  /** Gives an order and waits until it is durable. */
  append(fields: OrderFields): Promise<void> {
    return this.durable(this.give(fields));
  }

  read(from: number, to: number, bytesMax = 1 << 30): Promise<readonly Entry[]> {
    this.lastReadId += 1;
    const readId = this.lastReadId;
    return new Promise((resolve) => {
      this.reads.set(readId, resolve);
      this.isInside = true;
      this.log.read(readId, from, to, bytesMax);
      this.isInside = false;
    });
  }

  private onDurable(id: number): void {
    if (this.isInside) this.eventsInside += 1;
    this.durableIds.push(id);
    while ((this.waiting[0]?.id ?? Number.POSITIVE_INFINITY) <= id) {
      this.waiting.shift()!.resolve();
    }
  }

  private onRead(id: number, entries: readonly Entry[]): void {
    if (this.isInside) this.eventsInside += 1;
    this.reads.get(id)?.(entries);
    this.reads.delete(id);
  }
}
