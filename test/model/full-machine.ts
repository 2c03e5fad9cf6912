/**
 * A production machine with a record of every kind, by a log that never changes.
 *
 * Owns: that log. Its digest stands for that of a disk that an earlier build wrote.
 * Used by: the tests of digests and snapshots.
 */

import { CommandKind } from '../../src/core/locks/command.js';
import { smallSettings } from './drafts.js';
import type { ModelCommand } from './model-types.js';
import { ProductionMachine } from './production-machine.js';

/** A machine with a record of every kind but a rule of Disable. Its last revision is 4. */
export function fullMachine(): ProductionMachine {
  const machine = new ProductionMachine(smallSettings());
  machine.apply(10, [
    { kind: CommandKind.SessionOpen, principal: 1, request: { kind: 'free', id: 'open' } },
    {
      kind: CommandKind.Acquire,
      principal: 1,
      request: { kind: 'free', id: 'first' },
      name: 'a',
      metadata: 'who',
    },
    {
      kind: CommandKind.Acquire,
      principal: 1,
      request: { kind: 'free', id: 'second' },
      name: 'a',
      waitMs: 1_000,
    },
    { kind: CommandKind.Acquire, principal: 1, request: { kind: 'free', id: 'third' }, name: 'b' },
    { kind: CommandKind.Release, principal: 1, request: { kind: 'none' }, lease: 3 },
  ]);
  return machine;
}

export function disable(name: string, isPrefix: boolean, id: string): ModelCommand {
  const request = { kind: 'free', id } as const;
  const said = { owner: 'ops', metadata: `no more of ${name}` };
  return { kind: CommandKind.Disable, principal: 2, request, name, isPrefix, ...said };
}

export function enable(name: string, isPrefix: boolean, id: string): ModelCommand {
  return { ...disable(name, isPrefix, id), kind: CommandKind.Enable };
}

/** What the three rules of machineWithRules answer. */
export const RULE_REVISIONS = [5, 6, 7] as const;

/** The same with three rules: a prefix, a longer one under it, a name. */
export function machineWithRules(): ProductionMachine {
  const machine = fullMachine();
  machine.apply(12, [
    disable('jobs/', true, 'rule 1'),
    disable('jobs/7', true, 'rule 2'),
    disable('exactly', false, 'rule 3'),
  ]);
  return machine;
}
