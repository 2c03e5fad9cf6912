/**
 * One client of the retry check: acquires and releases in its session, and asks again later.
 *
 * Owns: its sequences, its acknowledgement mark, the answers it may ask for again, and the verdict
 * on each repeated answer. Never: sockets; lane.ts carries its requests. Used by: retries.ts.
 */
import type { Prng } from '../../src/collections/prng.js';
import { OutcomeCode } from '../../src/core/locks/outcome.js';

/** Answers kept for asking again; the mark never passes the oldest of them. */
const KEPT = 48;

/** One request that was answered: enough to send it again and to compare. */
export interface Asked {
  readonly sequence: number;
  /** Lease id for a release, null for an acquire of `name`. */
  readonly lease: Uint8Array | null;
  readonly name: Uint8Array;
  /** Code, cluster time and field bytes of the first answer. */
  answer: string;
}

export interface Verdicts {
  operations: number;
  identical: number;
  forgotten: number;
  readonly faults: string[];
}

export class RetryWorker {
  session: Uint8Array = new Uint8Array(0);
  secret: Uint8Array = new Uint8Array(0);
  /** The request under way, and whether it repeats an answered one or a forgotten one. */
  current: Asked | null = null;
  purpose: 'new' | 'again' | 'forgotten' = 'new';
  mark = 0;
  private sequence = 0;
  private held: Asked | null = null;
  private lease: Uint8Array | null = null;
  private readonly kept: Asked[] = [];
  /** One request below the mark, to be refused. */
  private dropped: Asked | null = null;

  constructor(
    readonly index: number,
    private readonly prng: Prng,
    private readonly verdicts: Verdicts,
    /** Share of requests that are repeats. */
    private readonly retryShare: number,
  ) {}

  /** The next request to send. */
  next(): Asked {
    const chance = this.prng.nextDouble();
    if (chance < this.retryShare && this.kept.length > 0) {
      this.purpose = 'again';
      this.current = this.kept[this.prng.below(this.kept.length)] as Asked;
    } else if (chance < this.retryShare * 1.2 && this.dropped !== null) {
      this.purpose = 'forgotten';
      this.current = this.dropped;
    } else {
      this.purpose = 'new';
      this.sequence += 1;
      this.current = this.lease === null ? this.acquire() : this.release(this.lease);
    }
    return this.current;
  }

  /** A request below the mark, for the check on a quiet cluster; null when there is none. */
  forgottenRequest(): Asked | null {
    this.purpose = 'forgotten';
    this.current = this.dropped;
    return this.dropped;
  }

  private acquire(): Asked {
    const name = Buffer.from(`worker/${this.index}/${this.prng.below(100)}`);
    return { sequence: this.sequence, lease: null, name, answer: '' };
  }

  private release(lease: Uint8Array): Asked {
    const held = this.held as Asked;
    return { sequence: this.sequence, lease, name: held.name, answer: '' };
  }

  /**
   * The final answer to `current`. `leaseId` are the first 16 bytes of an acquire's first field.
   */
  onAnswer(code: number, answer: string, leaseId: Uint8Array | null): void {
    const asked = this.current as Asked;
    this.current = null;
    if (this.purpose === 'again') this.judgeAgain(asked, answer);
    else if (this.purpose === 'forgotten') this.judgeForgotten(asked, code);
    else this.onNew(asked, code, answer, leaseId);
  }

  private judgeAgain(asked: Asked, answer: string): void {
    if (answer === asked.answer) {
      this.verdicts.identical += 1;
      return;
    }
    const { faults } = this.verdicts;
    faults.push(`worker ${this.index} #${asked.sequence}: ${asked.answer}, again ${answer}`);
  }

  private judgeForgotten(asked: Asked, code: number): void {
    if (code === OutcomeCode.RequestForgotten) this.verdicts.forgotten += 1;
    else this.verdicts.faults.push(`worker ${this.index} #${asked.sequence} forgotten: ${code}`);
  }

  private onNew(asked: Asked, code: number, answer: string, leaseId: Uint8Array | null): void {
    this.verdicts.operations += 1;
    if (code !== OutcomeCode.Ok) {
      this.verdicts.faults.push(`worker ${this.index} #${asked.sequence}: code ${code}`);
    }
    asked.answer = answer;
    if (asked.lease === null) {
      this.held = asked;
      this.lease = leaseId;
    } else {
      this.lease = null;
    }
    this.kept.push(asked);
    if (this.kept.length <= KEPT) return;
    const oldest = this.kept.shift() as Asked;
    this.mark = oldest.sequence;
    this.dropped = oldest;
  }
}
