/**
 * The binary protocol in WebSocket messages: one client connection, like one over TCP.
 *
 * Owns: whole frames in each message, both ways, with their length before them; and the end of a
 * connection that cannot be stopped from sending: a WebSocket has no way to pause its peer, so one
 * that asks too much at once is told OVERLOADED and closed. Never: the meaning of a frame.
 * Made by: http-door.ts.
 */
import { Connection } from '../../replica/connection.js';
import type { Transport } from '../../replica/ports.js';
import { ErrorCode } from '../../wire/errors.js';
import { FRAME_HEADER_BYTES, frameBytesAt } from '../../wire/frame.js';
import type { ConnectionHandlers } from '../client-socket.js';
import { appendNotice } from '../client-socket.js';
import type { SocketHandle, SocketListener } from './uws-server.js';

const NORMAL_CLOSURE = 1_000;
const UNSUPPORTED_DATA = 1_003;

export class FrameSocket implements SocketListener, Transport {
  private connection: Connection | null = null;
  private socket: SocketHandle | null = null;
  private isFull = false;

  constructor(
    private readonly id: number,
    private readonly principal: number,
    private readonly handlers: ConnectionHandlers,
  ) {}

  get backlogBytes(): number {
    return this.socket?.backlogBytes ?? 0;
  }

  onOpen(socket: SocketHandle): void {
    this.socket = socket;
    this.connection = new Connection(this.id, this.principal, this, 'websocket');
    this.handlers.onOpen(this.connection);
  }

  onMessage(bytes: Uint8Array, isBinary: boolean): void {
    const { connection, handlers } = this;
    if (connection === null || connection.closed) return;
    if (!isBinary) {
      this.socket?.end(UNSUPPORTED_DATA, 'send frames of the binary protocol');
      return;
    }
    let at = 0;
    while (at < bytes.length) {
      const size = frameBytesAt(bytes, at, bytes.length);
      const isWhole = size > 0 && at + size <= bytes.length;
      if (!isWhole || this.isFull) {
        appendNotice(
          connection,
          this.isFull ? ErrorCode.Overloaded : ErrorCode.BadRequest,
          'frame',
        );
        this.close();
        return;
      }
      const end = at + size;
      if (!handlers.onFrame(connection, bytes, at + FRAME_HEADER_BYTES, end)) {
        this.close();
        return;
      }
      at = end;
    }
  }

  onDrain(): void {
    // What is unsent is asked for by backlogBytes; nothing waits for the moment.
  }

  onClose(): void {
    const { connection } = this;
    if (connection === null) return;
    connection.closed = true;
    this.handlers.onClose(connection);
  }

  flush(): void {
    const { connection, socket } = this;
    if (connection === null || socket === null || connection.out.length === 0) return;
    connection.sealFrame();
    this.handlers.onFlush?.(connection);
    // The library copies what it cannot send at once, so the buffer is ours again.
    socket.send(connection.out.bytes.subarray(0, connection.out.length));
    connection.out.clear();
  }

  close(): void {
    this.flush();
    this.socket?.end(NORMAL_CLOSURE, '');
  }

  pauseReading(): void {
    this.isFull = true;
  }

  resumeReading(): void {
    this.isFull = false;
  }
}
