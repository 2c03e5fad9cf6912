/**
 * One client connection as the replica sees it: who it is, what it still has to be told.
 *
 * Owns: the out buffer, the frame that is open in it, and the counts that bound it. Never: a
 * socket; that is its transport. Made by: io/tcp-server.ts. Used by: replica (requests, replies).
 */
import { beginFrame, endFrame, isFrameFull } from '../wire/frame.js';
import { OutBuffer } from '../wire/out-buffer.js';
import type { Transport } from './ports.js';

export class Connection {
  readonly out = new OutBuffer();
  /** The principal's number; every request of the connection acts for it. */
  principal: number;
  /** True once hello was answered; before it nothing else is. */
  greeted = false;
  /** True while the connection is in the replica's list of those to flush this turn. */
  dirty = false;
  /** Requests received and not decided. */
  unanswered = 0;
  /** Queued acquires whose final result this connection is owed. */
  waiting = 0;
  readingPaused = false;
  closed = false;

  private framePosition = 0;
  private frameItems = 0;

  constructor(
    /** Unique in this process, never reused. */
    readonly id: number,
    principal: number,
    readonly transport: Transport,
    /** Peer address for logs and limits. */
    readonly remoteAddress: string,
  ) {
    this.principal = principal;
  }

  /** Makes sure that a frame is open; the caller appends exactly one item, then calls endItem. */
  beginItem(): OutBuffer {
    if (this.frameItems === 0) this.framePosition = beginFrame(this.out);
    return this.out;
  }

  endItem(): void {
    this.frameItems += 1;
    if (isFrameFull(this.out, this.framePosition)) this.sealFrame();
  }

  /** Ends the open frame; a transport calls it before the out buffer leaves. */
  sealFrame(): void {
    if (this.frameItems === 0) return;
    endFrame(this.out, this.framePosition, this.frameItems);
    this.frameItems = 0;
  }
}
