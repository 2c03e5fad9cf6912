/**
 * One connection to one node: requests out in frames, replies in by correlation, in any order.
 *
 * Owns: the table of unanswered calls, batching (all requests of one turn are one frame and one
 * write), and back-pressure. Never: retries, or looks for another node; when it ends it hands what
 * is unanswered to its listener. Used by: leader.ts, leader-search.ts.
 */
import { FRAME_OPERATIONS_MAX, REQUEST_DEADLINE_MAX_MS } from '../limits.js';
import {
  beginFrame,
  CORRELATION_MAX,
  endFrame,
  FRAME_HEADER_BYTES,
  frameBytesAt,
  isFrameFull,
} from '../wire/frame.js';
import { FrameAssembler } from '../wire/frame-assembler.js';
import { OutBuffer } from '../wire/out-buffer.js';
import { encodeRequest } from '../wire/request.js';
import { decodeReplies, type Reply } from '../wire/response.js';
import type { Ambient } from './ambient.js';
import type { Call } from './call.js';
import type { Instant } from './clock.js';
import { ErrorCode, HoldfastError } from './errors.js';
import { type Dial, type Endpoint, formatEndpoint, type Transport } from './transport.js';
import { reasonOf } from './unreachable.js';

const CLOSED_BY_NODE = 'the node closed it';

/** Who is told what a connection lives through. */
export interface ConnectionListener {
  onReply(connection: Connection, call: Call, reply: Reply): void;
  /** The node spoke to the whole connection (correlation 0). */
  onNotice(connection: Connection, reply: Reply): void;
  /** It is over. `calls` were sent or waiting to be, in order, and are now the listener's. */
  onClosed(connection: Connection, calls: Call[], error: HoldfastError): void;
}

export class Connection {
  /** Keys of the sessions that are attached to this connection. */
  readonly attached = new Set<string>();
  readonly address: string;
  listener: ConnectionListener;
  /** When bytes came last, in ms of the awake counter. */
  heardAtMs: number;

  readonly #ambient: Ambient;
  readonly #transport: Transport;
  readonly #out = new OutBuffer();
  readonly #assembler = new FrameAssembler(frameBytesAt);
  readonly #pending = new Map<number, Call>();
  #batch: Call[] = [];
  #correlation = 0;
  #isOpen = false;
  #isBlocked = false;
  #isClosed = false;
  #isFlushAsked = false;
  #endReason = '';

  constructor(ambient: Ambient, dial: Dial, endpoint: Endpoint, listener: ConnectionListener) {
    this.#ambient = ambient;
    this.listener = listener;
    this.address = formatEndpoint(endpoint);
    this.heardAtMs = ambient.clock.nowMs();
    this.#transport = dial(endpoint, {
      onOpen: () => this.#onOpen(),
      onBytes: (bytes) => this.#onBytes(bytes),
      onDrain: () => this.#onDrain(),
      onClose: (error) => this.#end(error === undefined ? CLOSED_BY_NODE : reasonOf(error)),
    });
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** True once the transport was open, also when it has ended since. */
  get wasOpen(): boolean {
    return this.#isOpen;
  }

  /** Why it ended, in few words; '' while it has not. */
  get endReason(): string {
    return this.#endReason;
  }

  /** Calls that were handed over and not answered, those that stand in a queue included. */
  get unanswered(): number {
    return this.#pending.size;
  }

  /** Milliseconds since anything was heard. */
  silentMs(): number {
    return this.#ambient.clock.nowMs() - this.heardAtMs;
  }

  /** Takes a call into this turn's frame. */
  send(call: Call): void {
    const correlation = this.#nextCorrelation();
    call.connection = this;
    call.correlation = correlation;
    this.#pending.set(correlation, call);
    this.#batch.push(call);
    if (this.#isFlushAsked) return;
    this.#isFlushAsked = true;
    process.nextTick(() => this.#flush());
  }

  /** A call was settled otherwise: its answer is no longer awaited here. */
  forget(call: Call): void {
    if (call.connection !== this) return;
    call.connection = undefined;
    this.#pending.delete(call.correlation);
  }

  /** Gives up every unanswered call, in the order they were sent. */
  takeUnanswered(): Call[] {
    const calls = [...this.#pending.values()];
    for (const call of calls) {
      this.forget(call);
      call.attemptLost();
    }
    return calls;
  }

  /** Ends the connection. The listener hears of it before this returns. */
  close(reason: string): void {
    this.#end(reason);
  }

  #nextCorrelation(): number {
    do {
      this.#correlation = this.#correlation === CORRELATION_MAX ? 1 : this.#correlation + 1;
    } while (this.#pending.has(this.#correlation));
    return this.#correlation;
  }

  #onOpen(): void {
    this.#isOpen = true;
    this.heardAtMs = this.#ambient.clock.nowMs();
    this.#flush();
  }

  #onDrain(): void {
    this.#isBlocked = false;
    this.#flush();
  }

  #flush(): void {
    this.#isFlushAsked = false;
    if (!this.#isOpen || this.#isBlocked || this.#isClosed || this.#batch.length === 0) return;
    const batch = this.#batch;
    this.#batch = [];
    if (this.#pending.size === batch.length) this.heardAtMs = this.#ambient.clock.nowMs();
    this.#encode(batch, this.#ambient.clock.read());
    if (this.#out.length === 0) return;
    this.#isBlocked = !this.#transport.write(this.#out.take());
  }

  #encode(batch: readonly Call[], sentAt: Instant): void {
    const out = this.#out;
    let frame = -1;
    let items = 0;
    for (const call of batch) {
      if (call.isSettled || call.connection !== this) continue;
      if (frame < 0) frame = beginFrame(out);
      const leftMs = Math.max(1, Math.floor(call.remainingMs()));
      const deadlineMs = Math.min(leftMs, REQUEST_DEADLINE_MAX_MS);
      encodeRequest(out, call.correlation, deadlineMs, call.encode(sentAt));
      items += 1;
      if (items < FRAME_OPERATIONS_MAX && !isFrameFull(out, frame)) continue;
      endFrame(out, frame, items);
      frame = -1;
      items = 0;
    }
    if (frame >= 0) endFrame(out, frame, items);
  }

  #onBytes(bytes: Uint8Array): void {
    if (this.#isClosed) return;
    this.heardAtMs = this.#ambient.clock.nowMs();
    const assembler = this.#assembler;
    assembler.push(bytes);
    while (!this.#isClosed && assembler.next()) {
      const start = assembler.frameStart + FRAME_HEADER_BYTES;
      const replies = decodeReplies(assembler.bytes, start, assembler.frameEnd);
      if (replies === null) {
        this.#onBadFrame();
        return;
      }
      for (const reply of replies) this.#onReply(reply);
    }
    if (assembler.broken) this.#onBadFrame();
  }

  #onBadFrame(): void {
    this.#ambient.counters.badFrames += 1;
    this.#end('it sent a frame that cannot be read');
  }

  #onReply(reply: Reply): void {
    if (reply.correlation === 0) {
      this.#ambient.counters.notices += 1;
      this.listener.onNotice(this, reply);
      return;
    }
    const call = this.#pending.get(reply.correlation);
    if (call === undefined) {
      this.#ambient.counters.lateReplies += 1;
      return;
    }
    if (reply.code !== ErrorCode.Queued) this.forget(call);
    this.listener.onReply(this, call, reply);
  }

  #end(reason: string): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#endReason = reason;
    this.#batch = [];
    this.#transport.close();
    // What was never connected has sent nothing: there is no outcome to wonder about.
    const number = this.#isOpen ? ErrorCode.UnknownOutcome : ErrorCode.NoQuorum;
    const what = this.#isOpen ? 'ended' : 'was not made';
    const message = `connection to ${this.address} ${what}: ${reason}`;
    const error = new HoldfastError(number, { message, retryable: true });
    this.listener.onClosed(this, this.takeUnanswered(), error);
  }
}
