/**
 * One greeted connection on which a test sends operations by hand and sees every reply.
 *
 * Owns: the socket and the matching of replies by correlation. Never: a retry, another node, an
 * error for a refusal; a refusal is a reply like any other. Used by: the acceptance tests, where
 * the client's own patience would hide what a node said.
 */
import { connect, type Socket } from 'node:net';
import { type Endpoint, parseEndpoint } from '../../../src/client/transport.js';
import { ErrorCode } from '../../../src/wire/errors.js';
import {
  beginFrame,
  endFrame,
  FRAME_HEADER_BYTES,
  FRAME_VERSION,
  frameBytesAt,
} from '../../../src/wire/frame.js';
import { FrameAssembler } from '../../../src/wire/frame-assembler.js';
import type { PackValue } from '../../../src/wire/msgpack-writer.js';
import { OutBuffer } from '../../../src/wire/out-buffer.js';
import { CommandKind, encodeRequest } from '../../../src/wire/request.js';
import { decodeReplies, type Reply } from '../../../src/wire/response.js';

/** A request that is under way. Both reject when the connection ends first. */
export interface RawRequest {
  /** The first reply: Queued, or the final one. */
  readonly first: Promise<Reply>;
  /** The final reply, whatever its code. */
  readonly final: Promise<Reply>;
}

interface Waiting {
  onFirst(reply: Reply): void;
  onFinal(reply: Reply): void;
  onEnd(error: Error): void;
}

const DEADLINE_DEFAULT_MS = 30_000;

/** Reads `host:port`. */
export function endpointOf(text: string): Endpoint {
  const endpoint = parseEndpoint(text);
  if (endpoint === null) throw new Error(`endpoint is ${text}, wanted host:port`);
  return endpoint;
}

export class RawConnection {
  /** Replies with correlation 0. */
  readonly notices: Reply[] = [];
  private readonly socket: Socket;
  private readonly assembler = new FrameAssembler(frameBytesAt);
  private readonly waiting = new Map<number, Waiting>();
  private correlation = 0;
  private endedBy: Error | null = null;

  private constructor(endpoint: Endpoint) {
    this.socket = connect({ ...endpoint, noDelay: true });
    this.socket.on('data', (bytes: Buffer) => this.onBytes(bytes));
    this.socket.on('error', (error) => this.end(error));
    this.socket.on('close', () => this.end(new Error('the connection was closed')));
  }

  /** Connects to `host:port` and says hello. Rejects when the node is not reached. */
  static async open(endpoint: string): Promise<RawConnection> {
    const connection = new RawConnection(endpointOf(endpoint));
    const hello = await connection.call([CommandKind.Hello, FRAME_VERSION, 'acceptance', null]);
    if (hello.code !== ErrorCode.Ok) throw new Error(`hello was answered ${hello.code}`);
    return connection;
  }

  /** Sends one operation. `deadlineMs` is the time that the node is told it has. */
  request(operation: readonly PackValue[], deadlineMs = DEADLINE_DEFAULT_MS): RawRequest {
    this.correlation += 1;
    const { correlation } = this;
    let waiting: Waiting | undefined;
    const final = new Promise<Reply>((onFinal, rejectFinal) => {
      waiting = { onFirst: () => undefined, onFinal, onEnd: rejectFinal };
    });
    const first = new Promise<Reply>((onFirst, rejectFirst) => {
      const { onFinal, onEnd } = waiting as Waiting;
      const end = (error: Error): void => {
        rejectFirst(error);
        onEnd(error);
      };
      this.waiting.set(correlation, { onFirst, onFinal, onEnd: end });
    });
    // A test may look at one of the two only.
    first.catch(() => undefined);
    final.catch(() => undefined);
    if (this.endedBy === null) this.send(operation, deadlineMs);
    else this.waiting.get(correlation)?.onEnd(this.endedBy);
    return { first, final };
  }

  /** Sends one operation; resolves with its final reply. */
  call(operation: readonly PackValue[], deadlineMs = DEADLINE_DEFAULT_MS): Promise<Reply> {
    return this.request(operation, deadlineMs).final;
  }

  get isOpen(): boolean {
    return this.endedBy === null;
  }

  close(): void {
    this.socket.destroy();
  }

  private send(operation: readonly PackValue[], deadlineMs: number): void {
    const out = new OutBuffer();
    const position = beginFrame(out);
    encodeRequest(out, this.correlation, deadlineMs, operation);
    endFrame(out, position, 1);
    this.socket.write(out.take());
  }

  private onBytes(bytes: Uint8Array): void {
    const { assembler } = this;
    assembler.push(bytes);
    while (assembler.next()) {
      const start = assembler.frameStart + FRAME_HEADER_BYTES;
      const replies = decodeReplies(assembler.bytes, start, assembler.frameEnd);
      if (replies === null) throw new Error('a node sent a frame that cannot be read');
      for (const reply of replies) this.onReply(reply);
    }
    if (assembler.broken) throw new Error('a node sent a frame of an impossible length');
  }

  private onReply(reply: Reply): void {
    const waiting = this.waiting.get(reply.correlation);
    if (waiting === undefined) {
      this.notices.push(reply);
      return;
    }
    waiting.onFirst(reply);
    if (reply.code === ErrorCode.Queued) return;
    this.waiting.delete(reply.correlation);
    waiting.onFinal(reply);
  }

  private end(error: Error): void {
    if (this.endedBy !== null) return;
    this.endedBy = error;
    for (const waiting of this.waiting.values()) waiting.onEnd(error);
    this.waiting.clear();
  }
}
