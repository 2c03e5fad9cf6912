/**
 * Very many watches, and a steady stream of events that each prefix's watchers are all told.
 *
 * Owns: the watchers, spread over all nodes, what each was told, the schedule of operations. Lag
 * is from the sending of the operation that caused an event to its arrival at a watcher, so the
 * commit is in it. Never: an event that nobody asked for; a watch that is COMPACTED is a fault.
 * Used by: the profile watch-fanout.
 */
import { CommandKind } from '../src/core/locks/command.js';
import { EventKind } from '../src/core/locks/event.js';
import { OutcomeCode } from '../src/core/locks/outcome.js';
import { NESTING_DEPTH_MAX } from '../src/limits.js';
import type { Endpoint } from '../src/server/options.js';
import { ErrorCode } from '../src/wire/errors.js';
import { unpackValue } from '../src/wire/msgpack.js';
import { skipAt } from '../src/wire/msgpack-reader.js';
import type { ReplyReader } from '../src/wire/reply-reader.js';
import { Fleet, type FleetHandler, type Seat } from './fleet.js';
import { Latency } from './latency.js';
import { LEASE_TTL_MS, type Load, REQUEST_DEADLINE_MS } from './load.js';
import { Meter } from './meter.js';
import { HELLO, RawConnection } from './raw-connection.js';

const PREFIXES = 100;
const TICK_MS = 1;
const MS_PER_S = 1_000;
const FIRST_WATCH = 2;
const WATCH_DEADLINE_MS = 60_000;
/** Revisions whose sending time is remembered; a power of two. */
const SENT_KEPT = 1 << 18;
const SETTLE_MS_MAX = 30_000;
const LOOK_MS = 20;
const SEATS = 4_096;

export interface FanOutOptions {
  readonly leader: Endpoint;
  /** Nodes that serve the watchers. */
  readonly nodes: readonly Endpoint[];
  readonly connections: number;
  readonly watchers: number;
  /** Operations, and so events, a second. */
  readonly rate: number;
  readonly sessionTtlMs: number;
}

/** One watch: which prefix, how far it has been told, what it saw. */
class Watched {
  lastRevision = 0;
  told = 0;
  isBegun = false;

  constructor(readonly prefix: number) {}
}

/** Connections that watch: each a share of the watches. */
class WatchLane {
  readonly watches: Watched[] = [];
  private readonly connection: RawConnection;

  constructor(
    endpoint: Endpoint,
    private readonly load: FanOut,
  ) {
    this.connection = new RawConnection(endpoint.host, endpoint.port, {
      onReply: (reader, bytes) => this.onReply(reader, bytes),
      onClose: () => load.onLost(),
    });
  }

  get bytes(): number {
    return this.connection.bytesReceived;
  }

  watch(prefix: number): void {
    const correlation = FIRST_WATCH + this.watches.length;
    this.watches.push(new Watched(prefix));
    this.connection.begin();
    const operation = [CommandKind.Watch, null, prefixOf(prefix)];
    this.connection.send(correlation, WATCH_DEADLINE_MS, operation);
    this.connection.end();
  }

  close(): void {
    this.connection.close();
  }

  private onReply(reader: ReplyReader, bytes: Uint8Array): void {
    if (reader.correlation === HELLO || reader.correlation === 0) return;
    const watch = this.watches[reader.correlation - FIRST_WATCH];
    if (watch === undefined || reader.code !== ErrorCode.Watching) {
      this.load.meter.onWrong(`a watch was answered ${reader.code}`);
      return;
    }
    watch.isBegun = true;
    this.load.onPart(watch, reader, bytes);
  }
}

function prefixOf(prefix: number): string {
  return `fan/${prefix}/`;
}

/** The event rows of a part: its first field. */
function rowsIn(reader: ReplyReader, bytes: Uint8Array): readonly (readonly unknown[])[] {
  const { fieldsStart, fieldsEnd } = reader;
  const end = skipAt(bytes, fieldsStart, fieldsEnd, NESTING_DEPTH_MAX);
  return unpackValue(bytes, fieldsStart, end) as readonly (readonly unknown[])[];
}

/** When something was sent, by a number that rises. */
class SentTimes {
  private readonly numbers = new Float64Array(SENT_KEPT);
  private readonly times = new Float64Array(SENT_KEPT);

  note(number: number, ms: number): void {
    const slot = number & (SENT_KEPT - 1);
    this.numbers[slot] = number;
    this.times[slot] = ms;
  }

  /** `otherwise` when it was not noted, or is forgotten. */
  at(number: number, otherwise: number): number {
    const slot = number & (SENT_KEPT - 1);
    return this.numbers[slot] === number ? (this.times[slot] as number) : otherwise;
  }
}

export class FanOut implements Load, FleetHandler {
  readonly meter = new Meter();
  readonly lag = new Latency();
  /** Events that watchers were told while the load ran. */
  deliveries = 0;
  private readonly lanes: WatchLane[] = [];
  private readonly fleet: Fleet;
  private readonly names: readonly Uint8Array[];
  private readonly idle: Seat[] = [];
  /** Acquires by the revision of their grant, releases by the token that they end. */
  private readonly acquires = new SentTimes();
  private readonly releases = new SentTimes();
  /** Events of each prefix, as the answers told. */
  private readonly made = new Float64Array(PREFIXES);
  private timer: NodeJS.Timeout | null = null;
  private startedMs = 0;
  private due = 0;
  private isClosing = false;

  constructor(private readonly options: FanOutOptions) {
    const { leader, sessionTtlMs } = options;
    const shape = { ...leader, connections: 8, seats: SEATS, sessions: SEATS, sessionTtlMs };
    const fleet = { ...shape, deadlineMs: REQUEST_DEADLINE_MS };
    this.fleet = new Fleet(fleet, this.meter, this);
    this.names = Array.from({ length: SEATS }, (_, at) =>
      Buffer.from(`${prefixOf(at % PREFIXES)}${at}`),
    );
  }

  get bytes(): number {
    return this.lanes.reduce((sum, lane) => sum + lane.bytes, this.fleet.bytes);
  }

  get watches(): Watched[] {
    return this.lanes.flatMap((lane) => lane.watches);
  }

  async open(): Promise<void> {
    const { nodes, connections, watchers } = this.options;
    for (let at = 0; at < connections; at += 1) {
      this.lanes.push(new WatchLane(nodes[at % nodes.length] as Endpoint, this));
    }
    for (let at = 0; at < watchers; at += 1) {
      const lane = this.lanes[at % connections] as WatchLane;
      lane.watch(Math.floor(at / connections) % PREFIXES);
    }
    await this.until(() => this.watches.every((watch) => watch.isBegun));
    await this.fleet.open();
    this.idle.push(...this.fleet.seats);
  }

  start(): void {
    this.startedMs = performance.now();
    this.timer = setInterval(() => this.tick(), TICK_MS);
  }

  async stop(): Promise<void> {
    if (this.timer !== null) clearInterval(this.timer);
    await this.fleet.drain(2 * REQUEST_DEADLINE_MS);
    await this.until(() => this.missing === 0).catch(() => undefined);
  }

  async close(): Promise<void> {
    this.isClosing = true;
    for (const lane of this.lanes) lane.close();
    await this.fleet.close();
  }

  /** Deliveries that are owed and have not come. */
  get missing(): number {
    let missing = 0;
    for (const { prefix, told } of this.watches) missing += (this.made[prefix] as number) - told;
    return missing;
  }

  onLost(): void {
    if (!this.isClosing) this.meter.onWrong('a watching connection was lost');
  }

  onPart(watch: Watched, reader: ReplyReader, bytes: Uint8Array): void {
    const rows = rowsIn(reader, bytes);
    const nowMs = performance.now();
    for (const row of rows) {
      const [revision, kind, name] = row as readonly [number, number, string];
      const isNext = revision > watch.lastRevision && name.startsWith(prefixOf(watch.prefix));
      if (!isNext) this.meter.onWrong(`a watch was told ${JSON.stringify(row)}`);
      watch.lastRevision = revision;
      if (kind !== EventKind.Granted && kind !== EventKind.Ended) continue;
      watch.told += 1;
      if (!this.meter.isRecording) continue;
      this.deliveries += 1;
      this.lag.record(nowMs - this.sentAt(row));
    }
  }

  onAnswer(seat: Seat, kind: number, code: number): void {
    this.idle.push(seat);
    if (code !== OutcomeCode.Ok) return;
    const prefix = seat.index % PREFIXES;
    this.made[prefix] = (this.made[prefix] as number) + 1;
    if (kind === CommandKind.Acquire) this.acquires.note(seat.token, seat.beganMs);
  }

  onQueued(): void {
    this.meter.onWrong('a try was queued');
  }

  /** A grant may be told before its answer: then its seat's acquire is still out. */
  private sentAt(row: readonly unknown[]): number {
    const [revision, kind, name, token] = row as readonly [number, number, string, number];
    const seat = this.fleet.seats[Number(name.slice(name.lastIndexOf('/') + 1))] as Seat;
    const times = kind === EventKind.Granted ? this.acquires : this.releases;
    return times.at(kind === EventKind.Granted ? revision : token, seat.beganMs);
  }

  private tick(): void {
    const nowMs = performance.now();
    const wanted = Math.floor(((nowMs - this.startedMs) / MS_PER_S) * this.options.rate);
    for (; this.due < wanted; this.due += 1) {
      const seat = this.idle.shift();
      if (seat === undefined) return;
      if (seat.isHolding) {
        this.releases.note(seat.token, nowMs);
        seat.lane.release(seat, nowMs);
        continue;
      }
      seat.lane.acquire(seat, this.names[seat.index] as Uint8Array, LEASE_TTL_MS, 0, nowMs);
    }
  }

  private async until(holds: () => boolean): Promise<void> {
    const untilMs = performance.now() + SETTLE_MS_MAX;
    while (!holds()) {
      if (performance.now() > untilMs) throw new Error('watch-fanout: the watches did not settle');
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
  }
}
