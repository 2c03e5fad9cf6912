/**
 * Plain requests to one named node, for what the lock client has no use for: status of each node,
 * transfers, sessions that outlive the process.
 *
 * Owns: one connection, greeted. Never: retries, another node, a lease that somebody relies on (the
 * client has the safe deadlines). Used by: node-status.ts, leader-call.ts.
 */
import { connect, type Socket } from 'node:net';
import { ErrorCode, HoldfastError } from '../client/errors.js';
import { errorOf, type Greeting, greetingOf } from '../client/reply.js';
import { NO_ANSWER, reasonOf, SAYS_NOTHING, SPEAKS_NOT } from '../client/unreachable.js';
import { REQUEST_DEADLINE_MAX_MS } from '../limits.js';
import { type Endpoint, formatEndpoint } from '../server/options.js';
import {
  beginFrame,
  endFrame,
  FRAME_HEADER_BYTES,
  FRAME_VERSION,
  frameBytesAt,
} from '../wire/frame.js';
import { FrameAssembler } from '../wire/frame-assembler.js';
import { type PackValue, writeValue } from '../wire/msgpack-writer.js';
import { OutBuffer } from '../wire/out-buffer.js';
import { CommandKind } from '../wire/request.js';
import { decodeReplies, type Reply } from '../wire/response.js';

/** A node that lives answers a greeting within this. */
const SILENCE_MS_LEAST = 500;
const CLIENT_NAME = 'holdfast-cli';

interface Waiting {
  resolve(reply: Reply): void;
  reject(error: HoldfastError): void;
}

/** A greeted connection to one node. Close it. */
export class NodeCall {
  /** Set by open(). */
  greeting: Greeting | null = null;
  private readonly socket: Socket;
  private readonly assembler = new FrameAssembler(frameBytesAt);
  private readonly waiting = new Map<number, Waiting>();
  private readonly address: string;
  private readonly timer: NodeJS.Timeout;
  private isOpen = false;
  private correlation = 0;
  private ended: HoldfastError | null = null;

  private constructor(
    endpoint: Endpoint,
    private readonly timeoutMs: number,
  ) {
    this.address = formatEndpoint(endpoint);
    this.socket = connect({ ...endpoint, noDelay: true });
    this.socket.on('connect', () => {
      this.isOpen = true;
    });
    this.socket.on('data', (bytes: Buffer) => this.onBytes(bytes));
    this.socket.on('error', (error) => this.end(this.closedBecause(reasonOf(error))));
    this.socket.on('close', () => this.end(this.closedBecause('the node closed it')));
    this.timer = setTimeout(() => this.end(this.silence()), timeoutMs);
  }

  /**
   * Connects and says hello. The time-out is for everything that is done on this connection.
   * Rejects with a HoldfastError: NO_QUORUM when the node is not reached, or its refusal.
   */
  static async open(endpoint: Endpoint, timeoutMs: number): Promise<NodeCall> {
    const call = new NodeCall(endpoint, timeoutMs);
    try {
      const reply = await call.request([CommandKind.Hello, FRAME_VERSION, CLIENT_NAME, null]);
      call.greeting = greetingOf(reply);
      return call;
    } catch (error) {
      call.close();
      throw error;
    }
  }

  /** Sends one operation; resolves with its final reply, rejects with the refusal. */
  request(operation: readonly PackValue[]): Promise<Reply> {
    if (this.ended !== null) return Promise.reject(this.ended);
    this.correlation += 1;
    const out = new OutBuffer();
    const position = beginFrame(out);
    // A node closes the connection on a deadline that is no integer.
    const deadlineMs = Math.max(1, Math.min(Math.ceil(this.timeoutMs), REQUEST_DEADLINE_MAX_MS));
    writeValue(out, [this.correlation, deadlineMs, operation]);
    endFrame(out, position, 1);
    const { correlation } = this;
    return new Promise((resolve, reject) => {
      this.waiting.set(correlation, { resolve, reject });
      this.socket.write(out.take());
    });
  }

  close(): void {
    this.end('closed');
  }

  /** A connection that ends before the greeting was answered says something about the port. */
  private closedBecause(reason: string): string {
    return this.isOpen && this.greeting === null ? SPEAKS_NOT : reason;
  }

  private silence(): string {
    const isLong = this.timeoutMs >= SILENCE_MS_LEAST;
    return this.isOpen && this.greeting === null && isLong ? SAYS_NOTHING : NO_ANSWER;
  }

  private onBytes(bytes: Uint8Array): void {
    const { assembler } = this;
    assembler.push(bytes);
    let replies: Reply[] | null = [];
    while (assembler.next()) {
      const start = assembler.frameStart + FRAME_HEADER_BYTES;
      replies = decodeReplies(assembler.bytes, start, assembler.frameEnd);
      if (replies === null) break;
      for (const reply of replies) this.onReply(reply);
    }
    if (replies === null || assembler.broken) {
      this.end(this.closedBecause('it sent a frame that cannot be read'));
    }
  }

  private onReply(reply: Reply): void {
    const waiting = this.waiting.get(reply.correlation);
    if (waiting === undefined || reply.code === ErrorCode.Queued) return;
    this.waiting.delete(reply.correlation);
    if (reply.code === ErrorCode.Ok) waiting.resolve(reply);
    else waiting.reject(errorOf(reply, false));
  }

  private end(reason: string): void {
    if (this.ended !== null) return;
    const silent = [{ address: this.address, reason }];
    const details = this.greeting === null ? { silent } : {};
    const message = `${this.address}: ${reason}`;
    this.ended = new HoldfastError(ErrorCode.NoQuorum, { message, details });
    clearTimeout(this.timer);
    this.socket.destroy();
    for (const waiting of this.waiting.values()) waiting.reject(this.ended);
    this.waiting.clear();
  }
}
