/**
 * One HTTP request that is answered by several reads of this node: explain without a lock's name.
 *
 * Owns: which step is under way. Never: a step of its own (wire/explain-steps.ts), an effect: all
 * are reads, so a caller that hangs up leaves nothing behind. Made by: http-door.ts.
 */
import { FORWARD_SLACK_MS } from '../../limits.js';
import { ERROR_CODE_MIN, ErrorCode } from '../../wire/errors.js';
import type { ExplainStep, ExplainSteps } from '../../wire/explain-steps.js';
import type { Reply } from '../../wire/response.js';
import { answerError, answerJson, answerRefusal, type Place } from './answer.js';
import type { Caller, Line } from './line.js';
import type { HttpCall } from './uws-server.js';

export class ExplainExchange implements Caller {
  private step: ExplainStep | null = null;
  private readonly untilMs: number;

  constructor(
    private readonly call: HttpCall,
    private readonly line: Line,
    private readonly steps: ExplainSteps,
    deadlineMs: number,
    private readonly here: () => Place,
    /** Called once with the status, 0 when the caller has gone. */
    private readonly onDone: (status: number) => void,
  ) {
    this.untilMs = performance.now() + deadlineMs;
  }

  start(): void {
    this.goOn(null);
  }

  onReply(reply: Reply): void {
    const isRefused = reply.code >= ERROR_CODE_MIN;
    if (this.call.isOver) this.onDone(0);
    else if (!isRefused) this.goOn(reply);
    else if (this.step?.mayBeRefused === true && reply.code === ErrorCode.Compacted)
      this.goOn(null);
    else this.onDone(answerRefusal(this.call, this.here(), reply, {}));
  }

  onLost(): void {
    const words = 'this node did not answer in time';
    this.onDone(answerError(this.call, this.here(), ErrorCode.NoQuorum, words));
  }

  private goOn(reply: Reply | null): void {
    const next = this.step === null ? this.steps.next() : this.steps.next(reply);
    if (next.done === true) {
      answerJson(this.call, this.here(), 200, next.value);
      this.onDone(200);
      return;
    }
    this.step = next.value;
    const leftMs = Math.max(1, Math.floor(this.untilMs - performance.now()));
    this.line.send(next.value.operation, leftMs, 0, FORWARD_SLACK_MS, this);
  }
}
