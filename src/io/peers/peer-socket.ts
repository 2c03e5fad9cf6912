/**
 * One connection between nodes, at either end: checked frames in, one write a flush out.
 *
 * Owns: the socket, the frame under way and the out buffer. A frame that is too long or whose
 * checksum is wrong ends the connection: what follows it cannot be trusted. Never: what a body
 * means; it is lent to the owner until onBody returns. Used by: peer-server.ts, peer-dialer.ts,
 * founding-client.ts.
 */
import type { Socket } from 'node:net';
import { crc32 } from 'node:zlib';
import { PEER_FRAME_BYTES_MAX, PEER_GREETING_BYTES_MAX } from '../../limits.js';
import { FrameAssembler } from '../../wire/frame-assembler.js';
import { INVALID } from '../../wire/msgpack-reader.js';
import { OutBuffer } from '../../wire/out-buffer.js';
import { isPeerFrameIntact, PEER_HEADER_BYTES, peerFrameBytesAt } from '../../wire/peer.js';
import { writeOut } from '../socket-writer.js';

/** The checksum of peer frames, as wire/peer.ts wants it. */
export function checksum(bytes: Uint8Array): number {
  return crc32(bytes);
}

export interface PeerSocketOwner {
  /** A body with a right checksum at `start` … `end`. False: it makes no sense, close. */
  onBody(bytes: Uint8Array, start: number, end: number): boolean;
  /** Once, however the connection ended; `reason` is for a log line. */
  onEnd(reason: string): void;
}

export class PeerSocket {
  readonly out = new OutBuffer();
  /** True once the other end has passed its hello: from then on frames may be large. */
  isGreeted = false;
  private reason = 'the other end closed';
  private isEnded = false;
  private readonly assembler: FrameAssembler;

  constructor(
    private readonly socket: Socket,
    private readonly owner: PeerSocketOwner,
  ) {
    this.assembler = new FrameAssembler((bytes, start, end) => this.measure(bytes, start, end));
    socket.on('data', (chunk: Buffer) => this.onChunk(chunk));
    socket.on('error', (error) => {
      this.reason = error.message;
    });
    socket.on('close', () => {
      this.isEnded = true;
      this.owner.onEnd(this.reason);
    });
  }

  /** Bytes not yet taken by the kernel, the out buffer included. */
  get unsentBytes(): number {
    return this.out.length + this.socket.writableLength;
  }

  flush(): void {
    if (this.isEnded) this.out.clear();
    else writeOut(this.socket, this.out);
  }

  /** Flushes, then closes; for the last words to one that is refused. */
  finish(reason: string): void {
    this.reason = reason;
    this.flush();
    this.socket.destroySoon();
  }

  /** Closes at once. */
  destroy(reason: string): void {
    if (this.isEnded || this.socket.destroyed) return;
    this.reason = reason;
    this.socket.destroy();
  }

  private measure(bytes: Uint8Array, start: number, end: number): number {
    const size = peerFrameBytesAt(bytes, start, end);
    const bodyMax = this.isGreeted ? PEER_FRAME_BYTES_MAX : PEER_GREETING_BYTES_MAX;
    return size - PEER_HEADER_BYTES > bodyMax ? INVALID : size;
  }

  private onChunk(chunk: Uint8Array): void {
    const { assembler } = this;
    if (this.socket.destroyed) return;
    assembler.push(chunk);
    while (assembler.next()) {
      const { bytes, frameStart, frameEnd } = assembler;
      if (!isPeerFrameIntact(bytes, frameStart, frameEnd, checksum)) {
        this.destroy('a frame has a wrong checksum');
        return;
      }
      if (!this.owner.onBody(bytes, frameStart + PEER_HEADER_BYTES, frameEnd)) {
        this.destroy('a frame makes no sense');
        return;
      }
      if (this.socket.destroyed) return;
    }
    if (assembler.broken) this.destroy('a frame is empty or too long');
  }
}
