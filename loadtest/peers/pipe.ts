/**
 * A byte stream to a peer: what is written in one turn leaves in one write, frames come back whole.
 *
 * Owns: the socket, the buffer that is being filled, the cutting of frames. Never: a protocol; its
 * user encodes into `out` and is called with each frame. Used by: the peers of this folder.
 */
import net from 'node:net';
import { FrameAssembler, type FrameBytesAt } from '../../src/wire/frame-assembler.js';
import { OutBuffer } from '../../src/wire/out-buffer.js';
import { LOOPBACK } from './peer.js';

const CONNECT_MS_MAX = 60_000;
const RETRY_MS = 100;
const FREE_BUFFERS_MAX = 8;

export type OnFrame = (bytes: Uint8Array, start: number, end: number) => void;

export class Pipe {
  out = new OutBuffer();
  isClosed = false;
  private readonly assembler: FrameAssembler;
  private readonly free: OutBuffer[] = [];
  private readonly written: OutBuffer[] = [];
  private isFlushAsked = false;
  private readonly onFlush = (): void => this.flush();
  private readonly onWritten = (): void => this.giveBack();

  private constructor(
    private readonly socket: net.Socket,
    frameBytesAt: FrameBytesAt,
    private readonly onFrame: OnFrame,
  ) {
    this.assembler = new FrameAssembler(frameBytesAt);
    socket.on('data', (chunk: Buffer) => this.onChunk(chunk));
    socket.on('close', () => {
      this.isClosed = true;
    });
  }

  /** Connects, again and again while the peer does not listen yet. */
  static async open(port: number, frameBytesAt: FrameBytesAt, onFrame: OnFrame): Promise<Pipe> {
    const untilMs = performance.now() + CONNECT_MS_MAX;
    for (;;) {
      const socket = await connect(port);
      if (socket !== null) return new Pipe(socket, frameBytesAt, onFrame);
      if (performance.now() > untilMs) throw new Error(`nobody listens on port ${port}`);
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }

  /** Something was encoded into `out`: it leaves at the end of the turn. */
  touch(): void {
    if (this.isFlushAsked) return;
    this.isFlushAsked = true;
    setImmediate(this.onFlush);
  }

  close(): void {
    this.socket.destroy();
  }

  private flush(): void {
    this.isFlushAsked = false;
    const { out } = this;
    if (out.length === 0 || this.socket.destroyed) return;
    this.written.push(out);
    this.out = this.free.pop() ?? new OutBuffer();
    this.socket.write(out.bytes.subarray(0, out.length), this.onWritten);
  }

  private giveBack(): void {
    const done = this.written.shift();
    if (done === undefined) return;
    done.clear();
    if (this.free.length < FREE_BUFFERS_MAX) this.free.push(done);
  }

  private onChunk(chunk: Uint8Array): void {
    const { assembler } = this;
    assembler.push(chunk);
    while (assembler.next()) {
      this.onFrame(assembler.bytes, assembler.frameStart, assembler.frameEnd);
    }
    if (assembler.broken) this.socket.destroy();
  }
}

function connect(port: number): Promise<net.Socket | null> {
  return new Promise((resolve) => {
    const socket = net.connect({ host: LOOPBACK, port, noDelay: true });
    socket.once('connect', () => {
      socket.removeAllListeners('error');
      socket.on('error', () => undefined); // 'close' follows
      resolve(socket);
    });
    socket.once('error', () => resolve(null));
  });
}
