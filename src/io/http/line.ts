/**
 * A way to ask a replica: this node's own, or the leader's over TCP.
 *
 * Owns: the table of unanswered requests by correlation, and which sessions were attached with what
 * secret. Never: which way to take (lines.ts), JSON. Used by: local-line.ts, leader-line.ts.
 */
import { ErrorCode } from '../../wire/errors.js';
import type { PackValue } from '../../wire/msgpack-writer.js';
import { decodeReplies, type Reply } from '../../wire/response.js';

/** Who waits for a reply. */
export interface Caller {
  /** The final reply, or a queued one before it. */
  onReply(reply: Reply): void;
  /** No reply will come. False: the request never left, so it had no effect. */
  onLost(mayHaveTakenEffect: boolean): void;
}

interface Waiting {
  readonly caller: Caller;
  /** ms of performance.now() after which nobody waits any more. */
  giveUpAtMs: number;
  readonly waitMs: number;
  isQueued: boolean;
}

/** Sessions remembered as attached; past it all are asked for again. */
const ATTACHED_MAX = 10_000;

export abstract class Line {
  /** Secret, in hex, with which a session was attached to this line, by its id in hex. */
  private readonly attached = new Map<string, string>();
  private readonly waiting = new Map<number, Waiting>();
  private last = 0;

  /** Requests that were not answered, those that stand in a queue included. */
  get unanswered(): number {
    return this.waiting.size;
  }

  /**
   * Sends an operation. `waitMs`: how long it may stand in a queue after it was decided.
   * Returns its correlation.
   */
  send(
    operation: readonly PackValue[],
    deadlineMs: number,
    waitMs: number,
    slackMs: number,
    caller: Caller,
  ): number {
    const correlation = this.nextCorrelation();
    const giveUpAtMs = performance.now() + deadlineMs + slackMs;
    this.waiting.set(correlation, { caller, giveUpAtMs, waitMs, isQueued: false });
    this.write(correlation, deadlineMs, operation);
    return correlation;
  }

  /** Nobody waits for this one any more. */
  forget(correlation: number): void {
    this.waiting.delete(correlation);
  }

  isAttached(session: string, secret: string): boolean {
    return this.attached.get(session) === secret;
  }

  noteAttached(session: string, secret: string): void {
    if (this.attached.size >= ATTACHED_MAX) this.attached.clear();
    this.attached.set(session, secret);
  }

  forgetAttached(session: string): void {
    this.attached.delete(session);
  }

  /** Puts the request into a frame that leaves soon. */
  protected abstract write(
    correlation: number,
    deadlineMs: number,
    operation: readonly PackValue[],
  ): void;

  /** The node spoke to the whole connection. */
  protected abstract onNotice(reply: Reply): void;

  /** Hands a frame's replies to their callers. False: no frame of version 1. */
  protected deliver(bytes: Uint8Array, start: number, end: number): boolean {
    const replies = decodeReplies(bytes, start, end);
    if (replies === null) return false;
    for (const reply of replies) {
      if (reply.correlation === 0) this.onNotice(reply);
      else this.hand(reply);
    }
    return true;
  }

  /** Tells those who stand in a queue that nothing will come here. */
  protected loseQueued(): void {
    for (const [correlation, { caller, isQueued }] of this.waiting) {
      if (!isQueued) continue;
      this.waiting.delete(correlation);
      caller.onLost(true);
    }
  }

  protected loseAll(mayHaveTakenEffect: boolean): void {
    const all = [...this.waiting.values()];
    this.waiting.clear();
    for (const { caller } of all) caller.onLost(mayHaveTakenEffect);
  }

  /** Gives up what should have been answered long ago. */
  protected loseLate(nowMs: number): void {
    for (const [correlation, { caller, giveUpAtMs }] of this.waiting) {
      if (giveUpAtMs > nowMs) continue;
      this.waiting.delete(correlation);
      caller.onLost(true);
    }
  }

  private hand(reply: Reply): void {
    const entry = this.waiting.get(reply.correlation);
    if (entry === undefined) return;
    if (reply.code === ErrorCode.Queued) {
      if (!entry.isQueued) entry.giveUpAtMs += entry.waitMs;
      entry.isQueued = true;
    } else {
      this.waiting.delete(reply.correlation);
    }
    entry.caller.onReply(reply);
  }

  private nextCorrelation(): number {
    do {
      this.last = this.last >= 2 ** 32 - 1 ? 1 : this.last + 1;
    } while (this.waiting.has(this.last));
    return this.last;
  }
}
