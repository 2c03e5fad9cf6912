/**
 * The HTTP door's connection to this node's own replica, in memory.
 *
 * Owns: one Connection and the frames through it. Its replies are decoded when the turn flushes it.
 * Never: a socket. Made by: lines.ts.
 */
import { Connection } from '../../replica/connection.js';
import type { Transport } from '../../replica/ports.js';
import { ErrorCode } from '../../wire/errors.js';
import { beginFrame, endFrame, FRAME_HEADER_BYTES, frameBytesAt } from '../../wire/frame.js';
import type { PackValue } from '../../wire/msgpack-writer.js';
import { OutBuffer } from '../../wire/out-buffer.js';
import { encodeRequest } from '../../wire/request.js';
import type { Reply } from '../../wire/response.js';
import { Line } from './line.js';

/** What the door uses of a replica. */
export interface AskedReplica {
  connectionOpened(connection: Connection): void;
  connectionClosed(connection: Connection): void;
  receive(connection: Connection, bytes: Uint8Array, start: number, end: number): boolean;
  /** Whole frames in `connection.out` are about to leave. Absent: nobody looks at them. */
  onFlush?(connection: Connection): void;
}

/** Frames of one connection to a replica in this process; a reply's bytes are the callee's. */
export class InnerConnection implements Transport {
  readonly connection: Connection;
  private readonly scratch = new OutBuffer();

  constructor(
    private readonly replica: AskedReplica,
    principal: number,
    private readonly onFrame: (bytes: Uint8Array, start: number, end: number) => void,
    private readonly backlog: () => number = () => 0,
  ) {
    // Ids of connections only have to differ among those of one port: none is read by its id.
    this.connection = new Connection(0, principal, this, 'http');
    this.connection.greeted = true;
    replica.connectionOpened(this.connection);
  }

  get backlogBytes(): number {
    return this.backlog();
  }

  send(correlation: number, deadlineMs: number, operation: readonly PackValue[]): void {
    const { scratch } = this;
    scratch.clear();
    const position = beginFrame(scratch);
    encodeRequest(scratch, correlation, deadlineMs, operation);
    endFrame(scratch, position, 1);
    this.replica.receive(this.connection, scratch.bytes, FRAME_HEADER_BYTES, scratch.length);
  }

  /** A caller may ask again from inside: so the bytes are taken out first. */
  flush(): void {
    const { connection } = this;
    connection.sealFrame();
    this.replica.onFlush?.(connection);
    const bytes = connection.out.take();
    let at = 0;
    while (at < bytes.length) {
      const end = at + frameBytesAt(bytes, at, bytes.length);
      this.onFrame(bytes, at + FRAME_HEADER_BYTES, end);
      at = end;
    }
  }

  close(): void {
    if (this.connection.closed) return;
    this.connection.closed = true;
    this.replica.connectionClosed(this.connection);
  }

  pauseReading(): void {
    // The door bounds what it asks (HTTP_CALLS_MAX): there is nothing to stop reading.
  }

  resumeReading(): void {
    // Nothing was stopped.
  }
}

export class LocalLine extends Line {
  private readonly inner: InnerConnection;

  constructor(replica: AskedReplica, principal: number) {
    super();
    this.inner = new InnerConnection(replica, principal, (bytes, start, end) => {
      this.deliver(bytes, start, end);
    });
  }

  close(): void {
    this.inner.close();
    this.loseAll(true);
  }

  protected override write(
    correlation: number,
    deadlineMs: number,
    operation: readonly PackValue[],
  ): void {
    this.inner.send(correlation, deadlineMs, operation);
  }

  /** This node leads no more: it keeps no wait alive, so its callers have to ask elsewhere. */
  protected override onNotice(reply: Reply): void {
    if (reply.code === ErrorCode.NotLeader) this.loseQueued();
  }
}
