/**
 * Which answers, events and paths a run of the generator reached, and which it must reach.
 *
 * Owns: the counts and their labels; a test that cannot reach a path is a
 * defect. Used by: the property test.
 */

import { CommandKind } from '../../src/core/locks/command.js';
import { EventKind } from '../../src/core/locks/event.js';
import { LeaseEnd, OutcomeCode } from '../../src/core/locks/outcome.js';
import type { ModelCommand, ModelEvent, ModelOutcome, ModelStep } from './model-types.js';
import { REQUIRED } from './required-coverage.js';

type Names = ReadonlyMap<number, string>;

function namesOf(table: Readonly<Record<string, number>>): Names {
  return new Map(Object.entries(table).map(([name, number]) => [number, name]));
}

const COMMANDS = namesOf(CommandKind);
const CODES = namesOf(OutcomeCode);
const ENDS = namesOf(LeaseEnd);
const EVENTS = namesOf(EventKind);

function nameIn(names: Names, number: number): string {
  return names.get(number) ?? `${number}`;
}

/** `Acquire LockBusy`, `Acquire Ok replay`, `Renew StaleLease Expired`, `Acquire Limit waiters`. */
export function answerLabel(command: ModelCommand, outcome: ModelOutcome): string {
  const words = [nameIn(COMMANDS, command.kind), nameIn(CODES, outcome.code)];
  const { code } = outcome;
  const hasField = code === OutcomeCode.BadRequest || code === OutcomeCode.Limit;
  if (hasField) words.push(outcome.blob);
  if (code === OutcomeCode.StaleLease) words.push(nameIn(ENDS, outcome.cause));
  if (command.kind === CommandKind.Cancel && code === OutcomeCode.Ok) {
    words.push(nameIn(CODES, outcome.cause));
  }
  if (outcome.replay) words.push('replay');
  return words.join(' ');
}

function eventLabel(event: ModelEvent): string {
  const isEnd = event.kind === EventKind.Ended || event.kind === EventKind.Expelled;
  const kind = nameIn(EVENTS, event.kind);
  if (event.kind === EventKind.Disabled || event.kind === EventKind.Enabled) {
    return `event ${kind} ${event.place === 1 ? 'prefix' : 'name'}`;
  }
  const hasCause = isEnd || event.cause !== 0;
  return `event ${kind}${hasCause ? ` ${nameIn(isEnd ? ENDS : CODES, event.cause)}` : ''}`;
}

/** Counts over a whole run. */
export class Coverage {
  readonly counts = new Map<string, number>();

  add(label: string, times = 1): void {
    this.counts.set(label, (this.counts.get(label) ?? 0) + times);
  }

  /** Counts what one entry gave. */
  addStep(commands: readonly ModelCommand[], step: ModelStep): void {
    for (const [index, command] of commands.entries()) {
      const outcome = step.outcomes[index];
      if (outcome !== undefined) this.add(answerLabel(command, outcome));
    }
    for (const event of step.events) this.add(eventLabel(event));
    for (const { outcome } of step.completions) {
      this.add(`wait ended ${nameIn(CODES, outcome.code)}`);
    }
  }

  addPaths(paths: ReadonlyMap<string, number>): void {
    for (const [path, times] of paths) this.add(path, times);
  }

  /** What has to happen and did not. */
  missing(): string[] {
    return REQUIRED.filter((label) => (this.counts.get(label) ?? 0) === 0);
  }

  /** One line for each count, rarest first. */
  report(): string[] {
    return [...this.counts]
      .sort(([, a], [, b]) => a - b)
      .map(([label, count]) => `${count} × ${label}`);
  }
}
