/**
 * What a load counts: operations, latencies by kind, answers by code, and one row for each second.
 *
 * Owns: which answers are good, which are refusals that the load expects, and which make the figure
 * invalid. A wrong or a missing reply is always one of the latter. Recording allocates nothing.
 * Never: a socket, a timer; the owner says when a second is over. Used by: every load, the report.
 */
import { CommandKind } from '../src/core/locks/command.js';
import { OutcomeCode } from '../src/core/locks/outcome.js';
import { ErrorCode } from '../src/wire/errors.js';
import { Latency } from './latency.js';

/** Room for every code that can stand in a reply. */
const CODES_MAX = 64;
/** Commands that are measured, in the order of the report. */
export const MEASURED = [CommandKind.Acquire, CommandKind.Release, CommandKind.Renew] as const;
const MEASURED_NAMES: Readonly<Record<number, string>> = {
  [CommandKind.Acquire]: 'acquire',
  [CommandKind.Release]: 'release',
  [CommandKind.Renew]: 'renew',
};

/** One second of a run. */
export interface SecondRow {
  /** Seconds since recording began. */
  readonly second: number;
  readonly ops: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly maxMs: number;
  readonly refusals: number;
}

/** Codes with which a loaded node may refuse without a fault: typed, and nothing has happened. */
export const OVERLOAD_CODES: readonly number[] = [
  ErrorCode.Overloaded,
  OutcomeCode.Limit,
  OutcomeCode.DeadlinePassed,
];

/** A request that is answered well within this has been served: docs/CAPACITY. */
export const SLO_MS = 1_000;

export class Meter {
  isRecording = false;
  /** Operations that were answered well while recording. */
  operations = 0;
  /** … and of these, later than SLO_MS. */
  late = 0;
  /** Refusals that the load expects, while recording. */
  refusals = 0;
  /** Replies that say what cannot be: see `firstWrong`. */
  wrong = 0;
  firstWrong = '';
  /** Requests that were never answered; set at the end of a run. */
  missing = 0;
  readonly seconds: SecondRow[] = [];
  /** Over the whole life of the load: requests handed to the socket, and answers, by command. */
  readonly sent = new Float64Array(CODES_MAX);
  readonly answered = new Float64Array(CODES_MAX);
  /** Answered by the node itself, before the log: not in it. */
  readonly unlogged = new Float64Array(CODES_MAX);
  /** Answered so that they may be in the log or not. */
  readonly doubtful = new Float64Array(CODES_MAX);

  private readonly byKind: Latency[] = [];
  private readonly second = new Latency();
  private readonly codes = new Float64Array(CODES_MAX);
  private readonly isRefusal = new Uint8Array(CODES_MAX);
  private secondRefusals = 0;

  /** @param refusalCodes codes that this load counts apart instead of as errors */
  constructor(refusalCodes: readonly number[] = []) {
    for (const code of refusalCodes) this.isRefusal[code] = 1;
    for (const kind of MEASURED) this.byKind[kind] = new Latency();
  }

  onSent(kind: number): void {
    this.sent[kind] = (this.sent[kind] as number) + 1;
  }

  /**
   * One final answer to a request of the command `kind`, `latencyMs` after its beginning.
   * Queued is not final: it does not come here.
   */
  onAnswer(kind: number, code: number, latencyMs: number): void {
    this.answered[kind] = (this.answered[kind] as number) + 1;
    if (code !== OutcomeCode.Ok) {
      this.onRefused(kind, code < CODES_MAX ? code : 0);
      return;
    }
    if (!this.isRecording) return;
    this.operations += 1;
    if (latencyMs > SLO_MS) this.late += 1;
    this.byKind[kind]?.record(latencyMs);
    this.second.record(latencyMs);
  }

  /** Forgets what was recorded, for another stretch of time; faults stay. */
  restart(): void {
    for (const kind of MEASURED) this.latencyOf(kind).reset();
    this.second.reset();
    this.seconds.length = 0;
    this.operations = 0;
    this.late = 0;
  }

  /** A reply that cannot be: the figure is worth nothing. */
  onWrong(what: string): void {
    this.wrong += 1;
    if (this.firstWrong === '') this.firstWrong = what;
  }

  /** Ends a second and returns its row. */
  endSecond(): SecondRow {
    const row: SecondRow = {
      second: this.seconds.length + 1,
      ops: this.second.count,
      p50Ms: this.second.at(50),
      p99Ms: this.second.at(99),
      maxMs: this.second.maxMs,
      refusals: this.secondRefusals,
    };
    this.second.reset();
    this.secondRefusals = 0;
    this.seconds.push(row);
    return row;
  }

  /** Answers that make the figure invalid, wrong and missing replies included. */
  get errors(): number {
    let sum = this.wrong + this.missing;
    for (let code = 0; code < CODES_MAX; code += 1) {
      if (this.isRefusal[code] === 0) sum += this.codes[code] as number;
    }
    return sum;
  }

  /** Share of the requests that were answered well within SLO_MS; refusals and errors were not. */
  get served(): number {
    const all = this.operations + this.refusals + this.errors;
    return all === 0 ? 0 : (this.operations - this.late) / all;
  }

  /** Answers other than Ok by code, refusals included. */
  answersByCode(): Record<string, number> {
    const found: Record<string, number> = {};
    for (let code = 0; code < CODES_MAX; code += 1) {
      const count = this.codes[code] as number;
      if (count > 0) found[codeName(code)] = count;
    }
    return found;
  }

  /** Everything recorded, of every kind. */
  total(): Latency {
    const sum = new Latency();
    for (const kind of MEASURED) sum.add(this.latencyOf(kind));
    return sum;
  }

  latencyOf(kind: (typeof MEASURED)[number]): Latency {
    return this.byKind[kind] as Latency;
  }

  static kindName(kind: number): string {
    return MEASURED_NAMES[kind] ?? String(kind);
  }

  private onRefused(kind: number, code: number): void {
    if (code === ErrorCode.UnknownOutcome || code === OutcomeCode.Limit) {
      this.doubtful[kind] = (this.doubtful[kind] as number) + 1;
    } else if (code >= ErrorCode.Unauthenticated || code === OutcomeCode.DeadlinePassed) {
      this.unlogged[kind] = (this.unlogged[kind] as number) + 1;
    }
    const isExpected = this.isRefusal[code] === 1;
    if (isExpected && !this.isRecording) return;
    this.codes[code] = (this.codes[code] as number) + 1;
    if (!isExpected) return;
    this.refusals += 1;
    this.secondRefusals += 1;
  }
}

function codeName(code: number): string {
  for (const [name, number] of Object.entries(ErrorCode)) if (number === code) return name;
  return `code ${code}`;
}
