/**
 * A TCP client that sends exact bytes and keeps what comes back.
 *
 * Owns: the socket, destroyed at teardown. Used by: the tests of the client and the peer port.
 */
import net from 'node:net';
import type { Test } from 'tap';
import { waitFor } from '../../cluster/wait-for.js';

export class RawClient {
  readonly socket: net.Socket;
  isEnded = false;
  private readonly chunks: Buffer[] = [];
  private receivedBytes = 0;

  constructor(t: Test, port: number) {
    this.socket = net.connect({ host: '127.0.0.1', port, noDelay: true });
    this.socket.on('data', (chunk: Buffer) => {
      this.chunks.push(chunk);
      this.receivedBytes += chunk.length;
    });
    // The other side may reset the connection; `isEnded` is what tests look at.
    this.socket.on('error', () => undefined);
    this.socket.on('close', () => {
      this.isEnded = true;
    });
    t.teardown(() => this.socket.destroy());
  }

  send(bytes: Uint8Array): void {
    this.socket.write(bytes);
  }

  get received(): Buffer {
    return Buffer.concat(this.chunks);
  }

  /** Resolves when at least `count` bytes came back. */
  async bytes(count: number): Promise<Buffer> {
    await waitFor(`${count} bytes`, () => this.receivedBytes >= count);
    return this.received;
  }

  /** Resolves when the connection is gone, with everything that came before. */
  async ended(): Promise<Buffer> {
    await waitFor('the end of the connection', () => this.isEnded);
    return this.received;
  }
}

/** A length in four bytes, big-endian, and the body. */
export function frameOf(body: Uint8Array): Buffer {
  const frame = Buffer.alloc(4 + body.length);
  frame.writeUInt32BE(body.length);
  frame.set(body, 4);
  return frame;
}
