/**
 * A cluster whose leader dies again and again, and clients that go on as soon as anybody leads.
 *
 * Owns: connections to every node, kept up; a few callers that acquire and release without pause
 * and ask again under the same request id until they are answered. Measures the longest time
 * between two acknowledged operations around each death. Never: the killing; runner.ts does that.
 * Used by: the profile failover.
 */
import { CommandKind } from '../src/core/locks/command.js';
import { OutcomeCode } from '../src/core/locks/outcome.js';
import { ErrorCode } from '../src/wire/errors.js';
import { unsignedAt } from '../src/wire/msgpack-reader.js';
import type { PackValue } from '../src/wire/msgpack-writer.js';
import type { ReplyReader } from '../src/wire/reply-reader.js';
import { LEASE_TTL_MS } from './load.js';
import { Meter } from './meter.js';
import { HELLO, RawConnection } from './raw-connection.js';

const ID_BYTES = 16;
const DEADLINE_MS = 5_000;
/** A request that was refused or lost is sent again after this. */
const AGAIN_MS = 4;
const FIRST_CALLER = 2;
const REDIAL_MS = 20;

interface Place {
  readonly host: string;
  readonly port: number;
}

class Caller {
  attempt = 0;
  request = '';
  beganMs = 0;
  lease: Uint8Array | null = null;
  isWaiting = false;

  constructor(readonly index: number) {}
}

/** One node as a client sees it. */
class Link {
  connection: RawConnection | null = null;
  isGreeted = false;
}

export class Failover {
  readonly meter = new Meter();
  private lastAckMs = 0;
  private longestMs = 0;
  acknowledged = 0;
  /** Requests that had to be sent more than once. */
  repeats = 0;
  private readonly callers: Caller[] = [];
  private readonly links: Link[] = [];
  private target = 0;
  private isStopped = false;
  private bytesGone = 0;
  private readonly timers = new Set<NodeJS.Timeout>();

  constructor(
    private readonly places: readonly Place[],
    callers: number,
  ) {
    for (let i = 0; i < callers; i += 1) this.callers.push(new Caller(i));
    for (let i = 0; i < places.length; i += 1) {
      this.links.push(new Link());
    }
  }

  get bytes(): number {
    let sum = this.bytesGone;
    for (const { connection } of this.links) {
      if (connection !== null) sum += connection.bytesSent + connection.bytesReceived;
    }
    return sum;
  }

  start(): void {
    for (let at = 0; at < this.places.length; at += 1) this.dial(at);
    for (const caller of this.callers) this.next(caller);
  }

  /** Forgets what was, and begins to watch for the longest gap. */
  watch(): void {
    this.lastAckMs = performance.now();
    this.longestMs = 0;
  }

  /** The longest time without an acknowledged operation since watch(), ms. */
  longestGapMs(): number {
    return Math.max(this.longestMs, performance.now() - this.lastAckMs);
  }

  sinceLastAckMs(): number {
    return performance.now() - this.lastAckMs;
  }

  /** Resolves when every caller has its answer. */
  async stop(timeoutMs: number): Promise<void> {
    this.isStopped = true;
    const untilMs = performance.now() + timeoutMs;
    while (this.callers.some((caller) => caller.isWaiting) && performance.now() < untilMs) {
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
    this.meter.missing = this.callers.filter((caller) => caller.isWaiting).length;
    for (const timer of this.timers) clearTimeout(timer);
    for (const link of this.links) {
      const { connection } = link;
      link.connection = null;
      connection?.close();
    }
  }

  private dial(at: number): void {
    const { host, port } = this.places[at] as Place;
    const link = this.links[at] as Link;
    const connection: RawConnection = new RawConnection(host, port, {
      onReply: (reader, bytes) => this.onReply(at, reader, bytes),
      onClose: () => {
        if (link.connection !== connection) return;
        this.bytesGone += connection.bytesSent + connection.bytesReceived;
        link.connection = null;
        link.isGreeted = false;
        if (this.target === at) this.look(at + 1);
        if (!this.isStopped) this.after(REDIAL_MS, () => this.dial(at));
      },
    });
    link.connection = connection;
  }

  private after(ms: number, work: () => void): void {
    const timer = setTimeout(() => {
      this.timers.delete(timer);
      work();
    }, ms);
    this.timers.add(timer);
  }

  /** Everybody asks the node at `at` from now on. */
  private look(at: number): void {
    this.target = at % this.places.length;
    for (const caller of this.callers) if (caller.isWaiting) this.again(caller);
  }

  private next(caller: Caller): void {
    caller.attempt += 1;
    caller.request = `failover-${process.pid}-${caller.index}-${caller.attempt}`;
    caller.beganMs = performance.now();
    caller.isWaiting = true;
    this.send(caller);
  }

  private again(caller: Caller): void {
    const { attempt } = caller;
    this.after(AGAIN_MS, () => {
      if (caller.isWaiting && caller.attempt === attempt) this.send(caller);
    });
  }

  private send(caller: Caller): void {
    const link = this.links[this.target] as Link;
    if (link.connection === null || !link.isGreeted) {
      this.target = (this.target + 1) % this.places.length;
      this.again(caller);
      return;
    }
    const { request, lease, index } = caller;
    const name = `failover/${index}`;
    const kind = lease === null ? CommandKind.Acquire : CommandKind.Release;
    const operation: PackValue[] =
      lease === null
        ? [kind, request, null, null, null, name, LEASE_TTL_MS, 0]
        : [kind, request, null, null, null, lease];
    this.meter.onSent(kind);
    link.connection.begin();
    link.connection.send(this.correlationOf(caller), DEADLINE_MS, operation);
    link.connection.end();
  }

  private onReply(at: number, reader: ReplyReader, bytes: Uint8Array): void {
    const { correlation, code } = reader;
    if (correlation === HELLO) {
      (this.links[at] as Link).isGreeted = true;
      return;
    }
    const caller = this.callers[(correlation - FIRST_CALLER) % this.callers.length];
    if (correlation === 0 || caller === undefined || !caller.isWaiting) return;
    // An answer to an earlier attempt, from a node that everybody has left.
    if (correlation !== this.correlationOf(caller)) return;
    if (code === OutcomeCode.Ok) this.onAcknowledged(caller, reader, bytes);
    else this.onRefused(caller, at, reader, bytes);
  }

  private correlationOf(caller: Caller): number {
    return FIRST_CALLER + caller.index + caller.attempt * this.callers.length;
  }

  private onAcknowledged(caller: Caller, reader: ReplyReader, bytes: Uint8Array): void {
    const nowMs = performance.now();
    const kind = caller.lease === null ? CommandKind.Acquire : CommandKind.Release;
    caller.isWaiting = false;
    this.acknowledged += 1;
    if (reader.isReplay) this.repeats += 1;
    this.longestMs = Math.max(this.longestMs, nowMs - this.lastAckMs);
    this.lastAckMs = nowMs;
    this.meter.onAnswer(kind, OutcomeCode.Ok, nowMs - caller.beganMs);
    const at = reader.fieldsStart + 2;
    caller.lease = kind === CommandKind.Acquire ? bytes.slice(at, at + ID_BYTES) : null;
    if (!this.isStopped) this.next(caller);
  }

  private onRefused(caller: Caller, at: number, reader: ReplyReader, bytes: Uint8Array): void {
    const { code } = reader;
    if (code < ErrorCode.Unauthenticated) this.meter.onWrong(`a caller was answered ${code}`);
    if (at === this.target) this.target = this.hint(at, reader, bytes);
    this.again(caller);
  }

  /** Whom to ask after a refusal: the leader that NOT_LEADER names, or the next node. */
  private hint(at: number, reader: ReplyReader, bytes: Uint8Array): number {
    const next = (at + 1) % this.places.length;
    if (reader.code !== ErrorCode.NotLeader) return next;
    // message nil, retry_after_ms nil, then the leader's id; nodes stand in the order of ids.
    const leader = unsignedAt(bytes, reader.fieldsStart + 2, reader.fieldsEnd);
    return leader >= 1 && leader <= this.places.length ? leader - 1 : next;
  }
}
