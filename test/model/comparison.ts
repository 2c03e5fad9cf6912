/**
 * Both machines on one log, compared after every command and every entry.
 *
 * Owns: what counts as a difference, and the report of one: the whole log in plain form. Never:
 * rules. Used by: the property test.
 */

import { EventKind } from '../../src/core/locks/event.js';
import type { Coverage } from './coverage.js';
import { type DraftEntry, LogHistory, NAMES, resolveDraft, smallSettings } from './generator.js';
import { InvariantChecker } from './invariants.js';
import type { ModelCommand, ModelOutcome, ModelStep } from './model-types.js';
import { NaiveMachine } from './naive-machine.js';
import { ProductionMachine } from './production-machine.js';

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

function demandSame(got: unknown, wanted: unknown, place: string): void {
  const lines = differences(got, wanted, place);
  if (lines.length > 0) throw new Error(lines.join('\n'));
}

/** Runs both machines through one log. */
export class Comparison {
  readonly naive = new NaiveMachine(smallSettings());
  readonly production = new ProductionMachine(smallSettings());
  /** What was applied so far. */
  readonly entries: PlainEntry[] = [];
  private readonly history = new LogHistory();
  private readonly invariants = new InvariantChecker();
  private now = 0;

  /** Applies one entry to both; throws with the whole log at the first difference. */
  applyEntry(draft: DraftEntry, coverage: Coverage): void {
    this.now += draft.advanceMs;
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

  private compareEntry(draft: DraftEntry, commands: ModelCommand[]): ModelStep {
    const wanted: ModelOutcome[] = [];
    const got: ModelOutcome[] = [];
    this.naive.beginEntry(this.now);
    this.production.beginEntry(this.now);
    for (const pick of draft.drafts) {
      const command = resolveDraft(this.naive, this.history, pick);
      this.history.record(command);
      commands.push(command);
      const outcome = this.production.applyCommand(command);
      const wantedOutcome = this.naive.applyCommand(command);
      demandSame(outcome, wantedOutcome, 'outcome');
      got.push(outcome);
      wanted.push(wantedOutcome);
    }
    const wantedStep = this.naive.endEntry(wanted);
    const step = this.production.endEntry(got);
    demandSame(step, wantedStep, 'entry');
    for (const name of NAMES) {
      demandSame(this.production.get(name), this.naive.get(name), `read of ${name}`);
    }
    this.invariants.check(step);
    for (const { kind, token } of step.events) {
      if (kind === EventKind.Granted) this.history.tokens.push(token);
    }
    return step;
  }
}
