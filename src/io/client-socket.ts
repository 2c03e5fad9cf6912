/**
 * One accepted client socket: cuts frames out of its chunks, and is the transport of its replies.
 *
 * Owns: the socket, the frame under way, the reasons why reading is paused, and the end of the
 * connection. Never: the meaning of a frame. A frame's bytes are lent to onFrame until it returns.
 * Made by: tcp-server.ts.
 */
import type { Socket } from 'node:net';
import { CONNECTION_OUT_BYTES_MAX } from '../limits.js';
import { Connection } from '../replica/connection.js';
import type { Transport } from '../replica/ports.js';
import { ErrorCode } from '../wire/errors.js';
import { FRAME_HEADER_BYTES, frameBytesAt } from '../wire/frame.js';
import { FrameAssembler } from '../wire/frame-assembler.js';
import { INVALID, u32At } from '../wire/msgpack-reader.js';
import { encodeRefusal } from '../wire/reply.js';
import { writeOut } from './socket-writer.js';

/** What the owner of a server is told about its connections. */
export interface ConnectionHandlers {
  onOpen(connection: Connection): void;
  /**
   * One frame's body lies at `start` … `end` of `bytes`, lent until this returns. False is a
   * protocol violation: what the handler left in `connection.out` is flushed, then it is closed.
   */
  onFrame(connection: Connection, bytes: Uint8Array, start: number, end: number): boolean;
  /** Whole frames in `connection.out` are about to leave. Absent: nobody looks at them. */
  onFlush?(connection: Connection): void;
  /** Exactly once for each onOpen; `connection.closed` is true. */
  onClose(connection: Connection): void;
}

/** Appends a frame with one refusal to the whole connection (correlation 0). */
export function appendNotice(connection: Connection, code: number, field: string | null): void {
  encodeRefusal(connection.beginItem(), 0, code, null, -1, field === null ? [] : [field]);
  connection.endItem();
}

export class ClientSocket implements Transport {
  readonly connection: Connection;
  /** When the frame under way began; 0 while none is. Ms of performance.now(). */
  frameSinceMs = 0;
  /** When the node closed its side; 0 before. */
  closedSinceMs = 0;
  readonly openedAtMs = performance.now();
  private readonly assembler: FrameAssembler;
  private isLengthZero = false;
  private pausedByReplica = false;
  private pausedByOutput = false;

  constructor(
    id: number,
    principal: number,
    private readonly socket: Socket,
    private readonly handlers: ConnectionHandlers,
  ) {
    this.connection = new Connection(id, principal, this, socket.remoteAddress ?? '');
    this.assembler = new FrameAssembler((bytes, start, end) => this.measure(bytes, start, end));
    socket.on('data', (chunk: Buffer) => this.onChunk(chunk));
    socket.on('drain', () => this.onDrain());
    // An error is followed by 'close', which is what the owner is told.
    socket.on('error', () => undefined);
    socket.on('close', () => this.onGone());
  }

  get backlogBytes(): number {
    return this.socket.writableLength;
  }

  /** True while no byte is taken from the socket, whoever asked for it. */
  get isPaused(): boolean {
    return this.pausedByReplica || this.pausedByOutput;
  }

  flush(): void {
    this.connection.sealFrame();
    if (!this.socket.writable) {
      // It was closed, by either side: a write now would reset the last words away.
      this.connection.out.clear();
      return;
    }
    this.handlers.onFlush?.(this.connection);
    writeOut(this.socket, this.connection.out);
    const unsent = this.socket.writableLength;
    if (unsent > 2 * CONNECTION_OUT_BYTES_MAX) this.socket.destroy();
    else if (unsent > CONNECTION_OUT_BYTES_MAX && !this.pausedByOutput) {
      this.pausedByOutput = true;
      this.socket.pause();
    }
  }

  close(): void {
    if (this.closedSinceMs !== 0 || this.connection.closed) return;
    this.flush();
    this.closedSinceMs = performance.now();
    this.socket.end();
    // What still arrives is read and thrown away: closing over unread bytes is a reset, and a
    // reset takes the last reply with it.
    this.socket.resume();
  }

  pauseReading(): void {
    this.pausedByReplica = true;
    if (this.closedSinceMs === 0) this.socket.pause();
  }

  resumeReading(): void {
    this.pausedByReplica = false;
    this.resumeIfAllowed();
  }

  /** Ends the connection without a word. */
  destroy(): void {
    this.socket.destroy();
  }

  private onDrain(): void {
    this.pausedByOutput = false;
    this.resumeIfAllowed();
  }

  private resumeIfAllowed(): void {
    if (this.isPaused) return;
    // The time that the node did not read is not the sender's.
    if (this.frameSinceMs !== 0) this.frameSinceMs = performance.now();
    this.socket.resume();
  }

  /** A chunk may hold frames behind the one at which reading was paused: they are still handled. */
  private onChunk(chunk: Uint8Array): void {
    if (this.closedSinceMs !== 0) return;
    const { assembler, connection, handlers } = this;
    const wasPending = assembler.pendingBytes > 0;
    let frames = 0;
    assembler.push(chunk);
    while (assembler.next()) {
      frames += 1;
      const start = assembler.frameStart + FRAME_HEADER_BYTES;
      if (!handlers.onFrame(connection, assembler.bytes, start, assembler.frameEnd)) {
        this.close();
      }
      if (this.closedSinceMs !== 0 || connection.closed) return;
    }
    if (assembler.broken) this.refuseLength();
    else if (assembler.pendingBytes === 0) this.frameSinceMs = 0;
    else if (!wasPending || frames > 0) this.frameSinceMs = performance.now();
  }

  private measure(bytes: Uint8Array, start: number, end: number): number {
    const size = frameBytesAt(bytes, start, end);
    if (size === INVALID) this.isLengthZero = u32At(bytes, start) === 0;
    return size;
  }

  private refuseLength(): void {
    if (this.isLengthZero) appendNotice(this.connection, ErrorCode.BadRequest, 'frame');
    else appendNotice(this.connection, ErrorCode.TooLarge, null);
    this.close();
  }

  private onGone(): void {
    this.connection.closed = true;
    this.handlers.onClose(this.connection);
  }
}
