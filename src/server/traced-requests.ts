/**
 * Requests that carry a trace id: when this node received each of them, and what became of it.
 *
 * Owns: the times between receipt and reply, and the search for a traced request in what is logged
 * and in what leaves. It looks from outside at what goes into the replica and comes out of it; a
 * node that sends spans nowhere has none. Never: a span (span-export.ts), a decision, a changed
 * byte. Past TRACED_REQUESTS_MAX a request is counted and not followed. Made by: node.ts.
 */
import { LOGGED_COMMAND_MIN } from '../core/locks/command.js';
import { EntryKind } from '../core/raft/message.js';
import { NESTING_DEPTH_MAX, TRACE_ID_BYTES } from '../limits.js';
import type { Connection } from '../replica/connection.js';
import type { AppendOrder } from '../replica/ports.js';
import { EntryReader } from '../wire/entry.js';
import { ErrorCode } from '../wire/errors.js';
import { FRAME_HEADER_BYTES, FrameReader, frameBytesAt, frameItemsAt } from '../wire/frame.js';
import {
  arrayAt,
  arrayHeaderBytes,
  idAt,
  integerBytes,
  skipAt,
  unsignedAt,
} from '../wire/msgpack-reader.js';

/** Traced requests that are followed at once, those that stand in a queue included. */
export const TRACED_REQUESTS_MAX = 4_096;
/** Elements of a logged operation before its trace id: command, request, session, acknowledged. */
const ELEMENTS_BEFORE_TRACE = 4;

/** One request; times are ms of the clock, 0 for what has not happened. */
export class TracedRequest {
  /** Log index of its entry, 0 when it was not logged here. */
  index = 0;
  term = 0;
  /** Its entry went to the log. */
  orderedMs = 0;
  /** The turn that found it committed, and applied it, began. */
  appliesMs = 0;
  /** The reply left; for a request that was queued the first one. */
  repliedMs = 0;
  /** Code of that reply; -1: its connection was gone before. */
  code = -1;
  /** An entry of the log decided, not this node alone. */
  isDecided = false;
  /** The end of a wait: when it was told, and its code. */
  waitedMs = 0;
  waitCode = -1;

  constructor(
    readonly connection: Connection,
    readonly correlation: number,
    readonly command: number,
    readonly traceId: Buffer,
    readonly operation: Buffer,
    readonly receivedMs: number,
  ) {}
}

/** Told of each request once its times are known. */
export interface TraceSink {
  /** The reply left, or the connection was gone. */
  onAnswered(request: TracedRequest): void;
  /** A request that was answered QUEUED before has its final result. */
  onWaited(request: TracedRequest): void;
}

export interface TracedRequestsOptions {
  readonly sink: TraceSink;
  /** ms since an arbitrary start. */
  readonly nowMs: () => number;
}

/** The offset of an operation's trace id; negative when it has none. */
export function traceAt(bytes: Uint8Array, start: number, end: number): number {
  if (arrayAt(bytes, start, end) <= ELEMENTS_BEFORE_TRACE) return -1;
  let at = start + arrayHeaderBytes(bytes[start] as number);
  for (let element = 0; element < ELEMENTS_BEFORE_TRACE; element += 1) {
    at = skipAt(bytes, at, end, NESTING_DEPTH_MAX);
    if (at < 0) return -1;
  }
  return idAt(bytes, at, end);
}

function copyOf(bytes: Uint8Array, start: number, end: number): Buffer {
  return Buffer.from(bytes.subarray(start, end));
}

function keyOf(bytes: Uint8Array, offset: number): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset + offset, TRACE_ID_BYTES).toString('latin1');
}

export class TracedRequests {
  /** Requests that were not followed. */
  unfollowed = 0;
  private readonly open = new Map<Connection, Map<number, TracedRequest>>();
  private count = 0;
  /** Received and not yet seen in an entry, by trace id. */
  private readonly unlogged = new Map<string, TracedRequest[]>();
  private turnMs = 0;
  private readonly frame = new FrameReader();
  private readonly entry = new EntryReader();

  constructor(private readonly options: TracedRequestsOptions) {}

  /** A frame's body, before the replica takes it. */
  onFrame(connection: Connection, bytes: Uint8Array, start: number, end: number): void {
    const { frame } = this;
    if (frame.open(bytes, start, end) !== 0) return;
    while (frame.next()) {
      if (frame.command < LOGGED_COMMAND_MIN) continue;
      const { operationStart, operationEnd } = frame;
      const offset = traceAt(bytes, operationStart, operationEnd);
      if (offset < 0) continue;
      if (this.count >= TRACED_REQUESTS_MAX) {
        this.unfollowed += 1;
        continue;
      }
      const traceId = copyOf(bytes, offset, offset + TRACE_ID_BYTES);
      const operation = copyOf(bytes, operationStart, operationEnd);
      this.follow(connection, traceId, operation);
    }
  }

  /** The connection's out buffer is about to leave. */
  onFlush(connection: Connection): void {
    const open = this.open.get(connection);
    if (open === undefined) return;
    const { bytes, length } = connection.out;
    for (let at = 0; at < length; ) {
      const size = frameBytesAt(bytes, at, length);
      if (size <= 0) return;
      this.readReplies(open, bytes, at + FRAME_HEADER_BYTES, at + size);
      at += size;
    }
  }

  onClosed(connection: Connection): void {
    const open = this.open.get(connection);
    if (open === undefined) return;
    this.open.delete(connection);
    this.count -= open.size;
    const nowMs = this.options.nowMs();
    for (const request of open.values()) {
      if (request.repliedMs !== 0) continue;
      this.forgetUnlogged(request);
      request.repliedMs = nowMs;
      this.options.sink.onAnswered(request);
    }
  }

  /** Entries go to the log. */
  onOrdered({ entries }: AppendOrder): void {
    if (this.unlogged.size === 0) return;
    for (const { kind, index, term, data } of entries) {
      if (kind === EntryKind.Batch) this.find(index, term, data);
    }
  }

  /** A turn of the replica begins: what it applies was committed by now, and not by the last. */
  onTurn(): void {
    if (this.count > 0) this.turnMs = this.options.nowMs();
  }

  private follow(connection: Connection, traceId: Buffer, operation: Buffer): void {
    const { correlation, command } = this.frame;
    const nowMs = this.options.nowMs();
    const request = new TracedRequest(connection, correlation, command, traceId, operation, nowMs);
    let open = this.open.get(connection);
    if (open === undefined) {
      open = new Map();
      this.open.set(connection, open);
    }
    const former = open.get(correlation);
    if (former !== undefined) this.forgetUnlogged(former);
    else this.count += 1;
    open.set(correlation, request);
    const key = keyOf(traceId, 0);
    const alike = this.unlogged.get(key);
    if (alike === undefined) this.unlogged.set(key, [request]);
    else alike.push(request);
  }

  /** Finds the traced requests in one entry: an entry has the very bytes that were received. */
  private find(index: number, term: number, data: Uint8Array): void {
    const { entry, unlogged } = this;
    if (!entry.open(data)) return;
    const nowMs = this.options.nowMs();
    while (unlogged.size > 0 && entry.next()) {
      const offset = traceAt(data, entry.start, entry.end);
      const alike = offset < 0 ? undefined : unlogged.get(keyOf(data, offset));
      if (alike === undefined) continue;
      const operation = data.subarray(entry.start, entry.end);
      const request = alike.find((each) => each.operation.equals(operation));
      if (request === undefined) continue;
      this.forgetUnlogged(request);
      request.index = index;
      request.term = term;
      request.orderedMs = nowMs;
    }
  }

  private forgetUnlogged(request: TracedRequest): void {
    const key = keyOf(request.traceId, 0);
    const left = this.unlogged.get(key)?.filter((each) => each !== request) ?? [];
    if (left.length === 0) this.unlogged.delete(key);
    else this.unlogged.set(key, left);
  }

  /** Items are [correlation, code, cluster_time|nil, …]. */
  private readReplies(
    open: Map<number, TracedRequest>,
    bytes: Uint8Array,
    start: number,
    end: number,
  ): void {
    let at = frameItemsAt(bytes, start, end);
    while (at >= 0 && at < end) {
      const next = skipAt(bytes, at, end, NESTING_DEPTH_MAX);
      at += arrayHeaderBytes(bytes[at] as number);
      const correlation = unsignedAt(bytes, at, end);
      const request = open.get(correlation);
      if (request !== undefined) {
        at += integerBytes(bytes[at] as number);
        const code = unsignedAt(bytes, at, end);
        at += integerBytes(bytes[at] as number);
        this.onReply(open, request, code, unsignedAt(bytes, at, end) >= 0);
      }
      at = next;
    }
  }

  private onReply(
    open: Map<number, TracedRequest>,
    request: TracedRequest,
    code: number,
    isDecided: boolean,
  ): void {
    const { sink, nowMs } = this.options;
    if (code !== ErrorCode.Queued) this.end(open, request);
    if (request.repliedMs !== 0) {
      request.waitedMs = nowMs();
      request.waitCode = code;
      sink.onWaited(request);
      return;
    }
    this.forgetUnlogged(request);
    request.repliedMs = nowMs();
    request.code = code;
    request.isDecided = isDecided;
    if (isDecided && request.index !== 0) {
      request.appliesMs = Math.max(this.turnMs, request.orderedMs);
    }
    sink.onAnswered(request);
  }

  private end(open: Map<number, TracedRequest>, request: TracedRequest): void {
    open.delete(request.correlation);
    this.count -= 1;
    if (open.size === 0) this.open.delete(request.connection);
  }
}
