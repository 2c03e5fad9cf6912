/**
 * One HTTP request that the replicated shard answers: sent once, answered once.
 *
 * Owns: the attach of its session before it, what becomes of it when its caller hangs up, and the
 * words when no reply comes. Never: sends an operation twice; an attach that another connection
 * took away is repeated, since the operation behind it was refused before the log.
 * Made by: http-door.ts.
 */
import { CommandKind } from '../../core/locks/command.js';
import { FORWARD_SLACK_MS } from '../../limits.js';
import { ErrorCode } from '../../wire/errors.js';
import { hexOf } from '../../wire/event-json.js';
import { type Asked, answerOf } from '../../wire/http-answers.js';
import type { Route } from '../../wire/http-routes.js';
import type { PackValue } from '../../wire/msgpack-writer.js';
import type { Reply } from '../../wire/response.js';
import { answerError, answerJson, answerRefusal, type Place } from './answer.js';
import type { Caller, Line } from './line.js';
import type { HttpCall } from './uws-server.js';

/** What an exchange is to do. */
export interface Errand {
  readonly route: Route;
  readonly operation: readonly PackValue[];
  readonly asked: Asked;
  readonly deadlineMs: number;
  readonly waitMs: number;
  /** The session that the operation names, with its secret; null for none. */
  readonly session: { readonly id: Uint8Array; readonly secret: Uint8Array } | null;
}

export class Exchange implements Caller {
  private correlation = 0;
  /** Place in the queue, 0 while it stands in none. */
  private place = 0;
  private hasAttachedAgain = false;

  constructor(
    private readonly call: HttpCall,
    private readonly line: Line,
    private readonly errand: Errand,
    /** Who answers, asked when it does. */
    private readonly here: () => Place,
    /** Called once with the status, 0 when the caller has gone. */
    private readonly onDone: (status: number) => void,
  ) {}

  start(): void {
    this.call.onGone = () => this.onGone();
    const { session } = this.errand;
    if (session === null || this.line.isAttached(hexOf(session.id), hexOf(session.secret))) {
      this.send();
    } else {
      this.attach();
    }
  }

  onReply(reply: Reply): void {
    if (reply.code === ErrorCode.Queued) {
      this.place = Number(reply.fields[0] ?? 0);
      if (this.call.isGone) this.abandon();
      return;
    }
    if (reply.code === ErrorCode.Forbidden && this.errand.session !== null) {
      this.line.forgetAttached(hexOf(this.errand.session.id));
      if (!this.hasAttachedAgain) {
        this.hasAttachedAgain = true;
        this.attach();
        return;
      }
    }
    this.answer(reply);
  }

  onLost(mayHaveTakenEffect: boolean): void {
    const { route, asked } = this.errand;
    const named = asked.key === '' ? {} : { request_id: asked.key };
    const isRead = route.kind === 'read';
    if (mayHaveTakenEffect && !isRead) {
      const words = 'the leader was lost before it answered: ask again under the same request id';
      this.done(answerError(this.call, this.here(), ErrorCode.UnknownOutcome, words, named));
      return;
    }
    const words = 'the leader cannot be reached';
    this.done(answerError(this.call, this.here(), ErrorCode.NotLeader, words, named));
  }

  private send(): void {
    const { operation, deadlineMs, waitMs } = this.errand;
    this.correlation = this.line.send(operation, deadlineMs, waitMs, FORWARD_SLACK_MS, this);
  }

  private attach(): void {
    const { session, deadlineMs } = this.errand;
    if (session === null) return;
    const { id, secret } = session;
    const operation = [CommandKind.SessionAttach, id, secret];
    this.line.send(operation, deadlineMs, 0, FORWARD_SLACK_MS, {
      onReply: (reply) => {
        if (this.call.isGone) {
          this.done(0);
        } else if (reply.code === ErrorCode.Ok) {
          this.line.noteAttached(hexOf(id), hexOf(secret));
          this.send();
        } else {
          this.answer(reply);
        }
      },
      // An attach has no effect that anybody would miss.
      onLost: () => this.onLost(false),
    });
  }

  private answer(reply: Reply): void {
    const { call, errand } = this;
    const { route, asked } = errand;
    this.noteSession(reply);
    if (call.isOver) {
      this.done(0);
      return;
    }
    if (reply.code === ErrorCode.Ok) {
      answerJson(call, this.here(), 200, answerOf(route.id, reply, asked));
      this.done(200);
    } else {
      const named = asked.key === '' ? {} : { request_id: asked.key };
      this.done(answerRefusal(call, this.here(), reply, named));
    }
  }

  /** Who opens a session speaks for it at once; one that was closed is forgotten. */
  private noteSession(reply: Reply): void {
    if (reply.code !== ErrorCode.Ok) return;
    const { route, session } = this.errand;
    const [id, secret] = reply.fields;
    if (route.id === 'session-open' && !reply.isReplay) {
      this.line.noteAttached(hexOf(id), hexOf(secret));
    }
    if (route.id === 'session-close' && session !== null) {
      this.line.forgetAttached(hexOf(session.id));
    }
  }

  /** The caller hung up. A place in a queue is left to lapse (I7); the log hears nothing. */
  private onGone(): void {
    if (this.place > 0) this.abandon();
  }

  private abandon(): void {
    const { line, correlation, place } = this;
    line.forget(correlation);
    const operation = [CommandKind.Abandon, correlation, place];
    const nobody = { onReply: () => undefined, onLost: () => undefined };
    line.send(operation, this.errand.deadlineMs, 0, FORWARD_SLACK_MS, nobody);
    this.done(0);
  }

  private done(status: number): void {
    this.onDone(status);
  }
}
