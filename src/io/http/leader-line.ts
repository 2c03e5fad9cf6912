/**
 * One pipelined binary connection to the node that leads, for what HTTP callers ask of this one.
 *
 * Owns: the socket, its greeting, one write a turn of the event loop. Nothing is sent before the
 * greeting was answered, so what is lost before had no effect. Never: sent again by itself.
 * Made by: lines.ts.
 */
import net from 'node:net';
import { CommandKind } from '../../core/locks/command.js';
import { CONNECTION_OUT_BYTES_MAX, FRAME_OPERATIONS_MAX, KEEPALIVE_MS } from '../../limits.js';
import { ErrorCode } from '../../wire/errors.js';
import {
  beginFrame,
  endFrame,
  FRAME_HEADER_BYTES,
  FRAME_VERSION,
  frameBytesAt,
  isFrameFull,
} from '../../wire/frame.js';
import { FrameAssembler } from '../../wire/frame-assembler.js';
import type { PackValue } from '../../wire/msgpack-writer.js';
import { OutBuffer } from '../../wire/out-buffer.js';
import { encodeRequest } from '../../wire/request.js';
import { decodeReplies, type Reply } from '../../wire/response.js';
import { writeOut } from '../socket-writer.js';
import { Line } from './line.js';

const GREETING_MS_MAX = 2_000;

export class LeaderLine extends Line {
  /** True once it takes nothing more: the leader is another, or the stream has ended. */
  isRetired = false;
  private readonly socket: net.Socket;
  private readonly assembler = new FrameAssembler(frameBytesAt);
  private readonly out = new OutBuffer();
  private framePosition = 0;
  private frameItems = 0;
  private isGreeted = false;
  private isEnded = false;
  private isFlushAsked = false;

  constructor(
    readonly nodeId: number,
    host: string,
    port: number,
  ) {
    super();
    this.socket = net.connect({ host, port, noDelay: true, keepAlive: true });
    this.socket.setKeepAlive(true, KEEPALIVE_MS);
    this.socket.on('connect', () => this.greet());
    this.socket.on('data', (chunk: Buffer) => this.onBytes(chunk));
    this.socket.on('error', () => undefined); // 'close' follows, and tells the callers
    this.socket.on('close', () => this.end());
    this.socket.setTimeout(GREETING_MS_MAX, () => {
      if (!this.isGreeted) this.end();
    });
  }

  /** True when so much is unsent that nothing more is taken. */
  get isFull(): boolean {
    return this.socket.writableLength + this.out.length > CONNECTION_OUT_BYTES_MAX;
  }

  /** Ends the connection; callers are told what is known. */
  end(): void {
    if (this.isEnded) return;
    this.isEnded = true;
    this.isRetired = true;
    this.socket.destroy();
    this.loseAll(this.isGreeted);
  }

  tick(nowMs: number): void {
    this.loseLate(nowMs);
  }

  protected override write(
    correlation: number,
    deadlineMs: number,
    operation: readonly PackValue[],
  ): void {
    const { out } = this;
    if (this.frameItems === 0) this.framePosition = beginFrame(out);
    encodeRequest(out, correlation, deadlineMs, operation);
    this.frameItems += 1;
    const isFull = this.frameItems === FRAME_OPERATIONS_MAX || isFrameFull(out, this.framePosition);
    if (isFull) this.sealFrame();
    if (this.isFlushAsked) return;
    this.isFlushAsked = true;
    setImmediate(() => this.flush());
  }

  /** It leads no more, or is stopping. */
  protected override onNotice(_reply: Reply): void {
    this.isRetired = true;
  }

  private greet(): void {
    const hello = new OutBuffer();
    const position = beginFrame(hello);
    encodeRequest(hello, 1, GREETING_MS_MAX, [CommandKind.Hello, FRAME_VERSION, 'http-forward']);
    endFrame(hello, position, 1);
    this.socket.write(hello.take());
  }

  /** The first frame is the greeting, or a notice that says why there is none. */
  private onGreeting(bytes: Uint8Array, start: number, end: number): void {
    const reply = decodeReplies(bytes, start, end)?.[0];
    if (reply === undefined || reply.correlation === 0 || reply.code !== ErrorCode.Ok) {
      this.end();
      return;
    }
    this.isGreeted = true;
    this.socket.setTimeout(0);
    this.flush();
  }

  private sealFrame(): void {
    if (this.frameItems > 0) endFrame(this.out, this.framePosition, this.frameItems);
    this.frameItems = 0;
  }

  private flush(): void {
    this.isFlushAsked = false;
    if (!this.isGreeted || this.isEnded) return;
    this.sealFrame();
    writeOut(this.socket, this.out);
  }

  private onBytes(chunk: Buffer): void {
    const { assembler } = this;
    assembler.push(chunk);
    while (!this.isEnded && assembler.next()) {
      const start = assembler.frameStart + FRAME_HEADER_BYTES;
      if (!this.isGreeted) {
        this.onGreeting(assembler.bytes, start, assembler.frameEnd);
      } else if (!this.deliver(assembler.bytes, start, assembler.frameEnd)) {
        this.end();
      }
    }
    if (assembler.broken) this.end();
  }
}
