/**
 * A small steady load beside a drill: one lock after the other is taken and given back, and what
 * each node tells of it is read from its audit stream.
 *
 * Owns: its client, its readers, and the operations that it has done. It never stops for an outage:
 * that is what shows in its figures. Never: an opinion; service.ts has the rule.
 * Used by: run-drill.ts, canary.ts.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { type Client, connect, HoldfastError } from '../../client/index.js';
import { type Endpoint, formatEndpoint } from '../../server/options.js';
import { openPages } from '../audit/source.js';
import { type Operation, type Service, serviceOf } from './service.js';
import { until } from './until.js';

/** Between two operations, so that the load stays small. */
const PAUSE_MS = 10;
/** An operation that is not answered by then counts as failed. */
const ANSWER_MS_MAX = 1_000;
/** A page of the audit stream waits so long for an event. */
const PAGE_WAIT_MS = 1_000;
/** What a window has not been told by then, it counts as late. */
const STRAGGLERS_MS = 500;
const PAGE_EVENTS = 256;
/** With fewer operations a window tells nothing; it is not longer than this for that. */
const OPERATIONS_LEAST = 20;
const WINDOW_MS_MAX = 5_000;

interface Done {
  readonly sentMs: number;
  readonly answeredMs: number;
  /** 0 when it failed. */
  readonly revision: number;
}

/** What one node has told, by revision. */
type Told = ReadonlyMap<number, number>;

export class SteadyLoad {
  private readonly done: Done[] = [];
  private readonly told: Map<number, number>[] = [];
  private readonly stop = new AbortController();
  private readonly loops: Promise<void>[] = [];

  private constructor(
    private readonly client: Client,
    private readonly prefix: string,
  ) {}

  /** Starts it, with locks below `prefix`; resolves when it has been served. */
  static async start(endpoints: readonly Endpoint[], prefix: string): Promise<SteadyLoad> {
    const addresses = endpoints.map(formatEndpoint);
    const client = await connect({ endpoints: addresses, clientName: 'drill-load' });
    const load = new SteadyLoad(client, prefix);
    for (const endpoint of endpoints) load.loops.push(load.read(endpoint));
    load.loops.push(load.work());
    try {
      await until('the load to be served', () => load.done.some(({ revision }) => revision > 0));
      return load;
    } catch (error) {
      await load.close();
      throw error;
    }
  }

  /** Requests that were sent again after a refusal, and after a lost connection. */
  get repeated(): { readonly retries: number; readonly resends: number } {
    const { retries, resends } = this.client.counters;
    return { retries, resends };
  }

  /** The service in the next `ms`, or for as long as it takes until a window tells something. */
  async window(ms: number): Promise<Service> {
    const fromMs = performance.now();
    const first = this.done.length;
    const isOver = (): boolean => {
      const tookMs = performance.now() - fromMs;
      const isTelling = this.done.length - first >= OPERATIONS_LEAST;
      return tookMs >= WINDOW_MS_MAX || (tookMs >= ms && isTelling);
    };
    while (!isOver()) await delay(PAUSE_MS);
    const inside = this.done.filter(({ sentMs }) => sentMs >= fromMs);
    const untilMs = performance.now() + STRAGGLERS_MS;
    while (performance.now() < untilMs && inside.some((each) => this.lagOf(each) === null)) {
      await delay(PAUSE_MS);
    }
    return serviceOf(inside.map((each) => this.operationOf(each)));
  }

  /** The longest time in ms without a success since `fromMs`, of performance.now(). */
  longestGap(fromMs: number): number {
    let longest = 0;
    let previous = fromMs;
    for (const { answeredMs, revision } of this.done) {
      if (revision === 0 || answeredMs < fromMs) continue;
      longest = Math.max(longest, answeredMs - previous);
      previous = answeredMs;
    }
    return Math.max(longest, performance.now() - previous);
  }

  /** Resolves once an operation that was sent after `momentMs` has succeeded. */
  async servedAfter(momentMs: number, timeoutMs: number): Promise<void> {
    const isServed = (): boolean => {
      const last = this.done.findLast(({ revision }) => revision > 0);
      return last !== undefined && last.sentMs > momentMs;
    };
    await until('an operation of the load to succeed', isServed, timeoutMs);
  }

  /** Ends it; what it holds is given back, where somebody answers. Idempotent. */
  async close(): Promise<void> {
    this.stop.abort();
    await Promise.all(this.loops);
    await this.client.close();
  }

  private async work(): Promise<void> {
    for (let number = 1; !this.stop.signal.aborted; number += 1) {
      const name = `${this.prefix}${number % 1_000}`;
      const options = { waitMs: 0, deadlineMs: ANSWER_MS_MAX };
      const lease = await this.time(async () => {
        const taken = await this.client.acquire(name, options);
        return { revision: taken.revision, taken };
      });
      await delay(PAUSE_MS);
      if (lease === null) continue;
      await this.time(() => lease.taken.release(ANSWER_MS_MAX));
      await delay(PAUSE_MS);
    }
  }

  /** Does one operation and notes it; null when it failed. */
  private async time<T extends { readonly revision: number }>(
    operate: () => Promise<T>,
  ): Promise<T | null> {
    const sentMs = performance.now();
    try {
      const result = await operate();
      this.done.push({ sentMs, answeredMs: performance.now(), revision: result.revision });
      return result;
    } catch (error) {
      if (!(error instanceof HoldfastError)) throw error;
      this.done.push({ sentMs, answeredMs: performance.now(), revision: 0 });
      return null;
    }
  }

  /** Notes when one node tells each event, until the load ends; over outages of the node. */
  private async read(endpoint: Endpoint): Promise<void> {
    const { signal } = this.stop;
    const options = { endpoints: [endpoint], timeoutMs: ANSWER_MS_MAX, isTimeoutGiven: true };
    const pages = openPages(options, signal);
    const told = new Map<number, number>();
    this.told.push(told);
    for (let next: number | null = null; !signal.aborted; ) {
      try {
        const wish = { prefix: this.prefix, limit: PAGE_EVENTS, waitMs: PAGE_WAIT_MS };
        const page = await pages.page({ ...wish, from: next });
        const nowMs = performance.now();
        for (const event of page?.events ?? []) told.set(Number(event['revision']), nowMs);
        next = page?.next ?? next;
      } catch (error) {
        if (!(error instanceof HoldfastError)) throw error;
        if (error.code === 'COMPACTED') next = null; // it begins anew; what lies between is late
        await delay(PAUSE_MS);
      }
    }
    pages.close();
  }

  private operationOf(done: Done): Operation {
    const { sentMs, answeredMs, revision } = done;
    return { sentMs, answeredMs, isSuccess: revision > 0, lagMs: this.lagOf(done) };
  }

  /** Until the slowest node has told it; null when one has not yet. */
  private lagOf({ answeredMs, revision }: Done): number | null {
    if (revision === 0) return 0;
    const lags = this.told.map((told: Told) => told.get(revision));
    if (lags.some((atMs) => atMs === undefined)) return null;
    return Math.max(0, ...lags.map((atMs) => Number(atMs) - answeredMs));
  }
}
