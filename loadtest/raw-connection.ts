/**
 * One client connection for programs that send a great many requests and look at every reply.
 *
 * Owns: a socket, the frame that is being filled, the frames that arrive. Requests of one turn of
 * the event loop leave in one frame and one write. Never: retries, sessions, an object for a reply;
 * the reader it passes on is reused. Used by: the load generator and the long-running checks.
 */
import net from 'node:net';
import { CommandKind } from '../src/core/locks/command.js';
import { beginFrame, endFrame, FRAME_HEADER_BYTES, frameBytesAt } from '../src/wire/frame.js';
import { FrameAssembler } from '../src/wire/frame-assembler.js';
import type { PackValue } from '../src/wire/msgpack-writer.js';
import { OutBuffer } from '../src/wire/out-buffer.js';
import { ReplyReader } from '../src/wire/reply-reader.js';
import { encodeRequest } from '../src/wire/request.js';

/** Requests after which a frame is sent without waiting for the turn to end. */
const FRAME_REQUESTS_MAX = 1_024;
/** Buffers kept for the next frames; a write that is done gives its buffer back. */
const FREE_BUFFERS_MAX = 16;

/** Correlation of the hello that every connection begins with. */
export const HELLO = 1;

export interface RawHandlers {
  /** `reader` stands on a reply; its field bytes are `bytes` fieldsStart … fieldsEnd. */
  onReply(reader: ReplyReader, bytes: Uint8Array): void;
  onClose(): void;
}

export class RawConnection {
  bytesSent = 0;
  bytesReceived = 0;
  private out = new OutBuffer();
  private readonly free: OutBuffer[] = [];
  /** Buffers whose write is not done, oldest first: writes are done in order. */
  private readonly written: OutBuffer[] = [];
  private readonly socket: net.Socket;
  private readonly assembler = new FrameAssembler(frameBytesAt);
  private readonly reader = new ReplyReader();
  private framePosition = 0;
  private requests = 0;
  private isFlushAsked = false;
  private readonly onFlush = (): void => this.flush();
  private readonly onWritten = (): void => this.giveBack();

  constructor(
    host: string,
    port: number,
    private readonly handlers: RawHandlers,
  ) {
    this.socket = net.connect({ host, port, noDelay: true });
    this.socket.on('data', (chunk: Buffer) => this.onChunk(chunk));
    this.socket.on('error', () => undefined); // 'close' follows and is what the owner is told
    this.socket.on('close', () => handlers.onClose());
    this.begin();
    this.send(HELLO, -1, [CommandKind.Hello, 1, 'loadtest']);
    this.end();
  }

  /** Makes sure that a frame is open; the caller encodes one request into it, then end(). */
  begin(): OutBuffer {
    if (this.requests === 0) this.framePosition = beginFrame(this.out);
    return this.out;
  }

  end(): void {
    this.requests += 1;
    if (this.requests >= FRAME_REQUESTS_MAX) this.flush();
    else if (!this.isFlushAsked) {
      this.isFlushAsked = true;
      setImmediate(this.onFlush);
    }
  }

  /** Encodes any request, off the hot path; between begin() and end(). */
  send(correlation: number, deadlineMs: number, operation: readonly PackValue[]): void {
    encodeRequest(this.out, correlation, deadlineMs, operation);
  }

  close(): void {
    this.socket.destroy();
  }

  private flush(): void {
    this.isFlushAsked = false;
    if (this.requests === 0 || this.socket.destroyed) return;
    const { out } = this;
    endFrame(out, this.framePosition, this.requests);
    this.requests = 0;
    this.bytesSent += out.length;
    this.written.push(out);
    this.out = this.free.pop() ?? new OutBuffer();
    this.socket.write(out.bytes.subarray(0, out.length), this.onWritten);
  }

  /** The socket has taken the oldest frame, or was destroyed: its buffer may be filled again. */
  private giveBack(): void {
    const done = this.written.shift();
    if (done === undefined) return;
    done.clear();
    if (this.free.length < FREE_BUFFERS_MAX) this.free.push(done);
  }

  private onChunk(chunk: Uint8Array): void {
    this.bytesReceived += chunk.length;
    const { assembler, reader, handlers } = this;
    assembler.push(chunk);
    while (assembler.next()) {
      const start = assembler.frameStart + FRAME_HEADER_BYTES;
      reader.open(assembler.bytes, start, assembler.frameEnd);
      while (reader.next()) handlers.onReply(reader, assembler.bytes);
      if (reader.broken) break;
    }
    if (assembler.broken || reader.broken) this.close();
  }
}
