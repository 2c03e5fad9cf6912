/**
 * One client connection as the replica sees it: who it is, what it still has to be told.
 *
 * Owns: the out buffer and the counts that bound it. Never: a socket; that is its transport.
 * Made by: io/tcp-server.ts. Used by: replica (requests, replies).
 */
import { OutBuffer } from '../wire/out-buffer.js';
import type { Transport } from './ports.js';

export class Connection {
  readonly out = new OutBuffer();
  /** The principal's number; every request of the connection acts for it. */
  principal: number;
  /** True once hello was answered; before it nothing else is. */
  greeted = false;
  /** True while `out` holds replies of this turn: in the replica's list of dirty connections. */
  dirty = false;
  /** Requests received and not finally answered. */
  unanswered = 0;
  readingPaused = false;
  closed = false;

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
}
