/**
 * Both machines on one log, compared after every command and every entry.
 *
 * Owns: what counts as a difference, and the report of one: the whole log in plain form. Never:
 * rules. Used by: the property test.
 */

import { EventKind } from '../../src/core/locks/event.js';
import type { Coverage } from './coverage.js';
import { type DraftEntry, type DraftLog, NAMES } from './drafts.js';
import { InvariantChecker } from './invariants.js';
import type { ModelCommand, ModelOutcome, ModelStep } from './model-types.js';
import { NaiveMachine } from './naive-machine.js';
import { lookUp } from './naive-snapshot.js';
import { ProductionMachine } from './production-machine.js';
import { LogHistory, resolveDraft, roundUp } from './resolve-draft.js';

/** One entry as it was applied. */
export interface PlainEntry {
  readonly stamp: number;
  readonly commands: ModelCommand[];
}

/** A log, one line for each entry and command. */
export function describeLog(entries: readonly PlainEntry[]): string {
  const lines: string[] = [];
  for (const { stamp, commands } of entries) {
    lines.push(`entry at ${stamp}`);
    for (const command of commands) lines.push(`  ${JSON.stringify(command)}`);
  }
  return lines.join('\n');
}

/** Where two plain values differ, one line for each place. */
export function differences(got: unknown, wanted: unknown, place: string): string[] {
  if (Object.is(got, wanted)) return [];
  const areObjects = typeof got === 'object' && typeof wanted === 'object';
  if (!areObjects || got === null || wanted === null) {
    return [`${place}: got ${JSON.stringify(got)}, wanted ${JSON.stringify(wanted)}`];
  }
  const keys = new Set([...Object.keys(got), ...Object.keys(wanted)]);
  return [...keys].flatMap((key) => {
    const inGot: unknown = Reflect.get(got, key);
    return differences(inGot, Reflect.get(wanted, key), `${place}.${key}`);
  });
}

function demandSame(got: unknown, wanted: unknown, place: string, about?: ModelCommand): void {
  if (JSON.stringify(got) === JSON.stringify(wanted)) return;
  const lines = differences(got, wanted, place);
  if (about !== undefined) lines.push(`about ${JSON.stringify(about)}`);
  throw new Error(lines.join('\n'));
}

/** Runs both machines through one log. */
export class Comparison {
  readonly naive: NaiveMachine;
  readonly production: ProductionMachine;
  /** What was applied so far. */
  readonly entries: PlainEntry[] = [];
  private readonly history: LogHistory;
  private readonly invariants = new InvariantChecker();
  private now: number;

  constructor({ settings, gridMs, startMs }: Omit<DraftLog, 'entries'>) {
    this.history = new LogHistory(gridMs);
    this.now = startMs;
    this.naive = new NaiveMachine(settings);
    this.production = new ProductionMachine(settings);
  }

  /** The whole log so far, for a report. */
  describe(): string {
    return describeLog(this.entries);
  }

  /** Applies one entry to both; throws with the whole log at the first difference. */
  applyEntry(draft: DraftEntry, coverage: Coverage): void {
    this.now += roundUp(draft.advanceMs, this.history.gridMs);
    const commands: ModelCommand[] = [];
    this.entries.push({ stamp: this.now, commands });
    try {
      const step = this.compareEntry(draft, commands);
      coverage.addStep(commands, step);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      throw new Error(`${reason}\n${describeLog(this.entries)}`);
    }
  }

  /** A list, page by page, is in byte order and shows every lock that is held or waited for. */
  private compareLists(): void {
    const { naive } = this;
    const busy = [...naive.leases, ...naive.waits].map(({ name }) => name);
    const names = [...new Set(busy)].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
    const prefix = `a${naive.now % 2 === 0 ? '/' : ''}`;
    const wanted = names.filter((name) => name.startsWith(prefix));
    demandSame(this.production.list('', 2), names, 'list of all');
    demandSame(this.production.list(prefix, 1), wanted, `list of ${prefix}`);
  }

  private compareEntry(draft: DraftEntry, commands: ModelCommand[]): ModelStep {
    const wanted: ModelOutcome[] = [];
    const got: ModelOutcome[] = [];
    this.naive.beginEntry(this.now);
    this.production.beginEntry(this.now);
    for (const pick of draft.drafts) {
      const command = resolveDraft(this.naive, this.history, pick);
      commands.push(command);
      const outcome = this.production.applyCommand(command);
      const wantedOutcome = this.naive.applyCommand(command);
      demandSame(outcome, wantedOutcome, 'outcome');
      this.history.record(command, outcome);
      got.push(outcome);
      wanted.push(wantedOutcome);
    }
    const wantedStep = this.naive.endEntry(wanted);
    const step = this.production.endEntry(got);
    demandSame(step, wantedStep, 'entry');
    for (const name of NAMES) {
      demandSame(this.production.get(name), this.naive.get(name), `read of ${name}`);
    }
    for (const command of commands) {
      demandSame(this.production.lookup(command), lookUp(this.naive, command), 'lookup', command);
    }
    this.compareLists();
    this.invariants.check(step);
    for (const { kind, token } of step.events) {
      if (kind === EventKind.Granted) this.history.tokens.push(token);
    }
    return step;
  }
}
