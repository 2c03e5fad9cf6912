/**
 * Bugs to plant in what operators and guards do.
 *
 * Owns: this part of the list. Used by: plants.ts.
 */
import type { Plant } from './plants.js';

export const OPERATOR_PLANTS: readonly Plant[] = [
  {
    name: 'operators: a force-release hands over with the next entry that looks',
    file: 'core/locks/admin.ts',
    find: 'outcome.revision = endLease(state, holder, LeaseEnd.Forced);',
    replace: 'outcome.revision = endOnly(state, holder, LeaseEnd.Forced);',
    also: [
      {
        file: 'core/locks/admin.ts',
        find: "import { endLease, settleLock } from './ownership.js';",
        replace: "import { endOnly, settleLock } from './ownership.js';",
      },
      {
        file: 'core/locks/ownership.ts',
        find: 'function endOnly(state',
        replace: 'export function endOnly(state',
      },
    ],
  },
  {
    name: 'operators: the barrier token is that of the next grant',
    file: 'core/locks/admin.ts',
    find: 'outcome.revision = endLease(state, holder, LeaseEnd.Forced);',
    replace: 'endLease(state, holder, LeaseEnd.Forced);\n  outcome.revision = state.revision;',
  },
  {
    name: 'operators: a force-release does not look which token is meant',
    file: 'core/locks/admin.ts',
    find: 'if (command.token !== -1 && command.token !== leases.token[holder]) return false;',
    replace: '',
  },
  {
    name: 'operators: a refused force-release ends the lease',
    file: 'core/locks/admin.ts',
    find: 'outcome.code = OutcomeCode.Conflict;',
    replace:
      'outcome.code = OutcomeCode.Conflict;\n' +
      '    if (holder !== NONE) endLease(state, holder, LeaseEnd.Forced);',
  },
  {
    name: 'operators: a force-release looks at a lock that is not settled',
    file: 'core/locks/admin.ts',
    find: 'if (lock !== NONE) settleLock(state, lock);\n  const holder',
    replace: 'const holder',
  },
  {
    name: 'operators: a disabled prefix covers itself alone',
    file: 'core/locks/tables/disabled-names.ts',
    find: 'if (rule.isPrefix ? length < ruled : length !== ruled) return false;',
    replace: 'if (length !== ruled) return false;',
  },
  {
    name: 'operators: a disabled name does not hand over to who waits',
    file: 'core/locks/ownership.ts',
    find: '  if (wait === NONE) {\n    locks.becomeIdle(lock);',
    replace:
      '  if (wait !== NONE && state.disabled.count > 0) return;\n' +
      '  if (wait === NONE) {\n    locks.becomeIdle(lock);',
  },
  {
    name: 'operators: enabling takes away the wrong rule',
    file: 'core/locks/admin.ts',
    find: 'disabled.remove(rule);',
    replace: 'disabled.remove(disabled.at(0));',
  },
  {
    name: 'operators: an expelled session keeps its leases',
    file: 'core/locks/sessions.ts',
    find: 'endAll(state, session, OutcomeCode.SessionExpired, LeaseEnd.Forced);',
    replace: '',
  },
  {
    name: 'operators: a repeated force-release is carried out again',
    file: 'core/locks/admin.ts',
    find: '  storeResult(state, command, outcome);',
    replace: '  if (outcome.code !== OutcomeCode.Ok) storeResult(state, command, outcome);',
  },
  {
    name: 'operators: a snapshot forgets what is disabled',
    file: 'core/locks/snapshot-writer.ts',
    find: 'position < disabled.count;',
    replace: 'position < 0 * disabled.count;',
  },
  {
    name: 'operators: rules are not in the digest, and one is lost by a snapshot',
    file: 'core/locks/snapshot-writer.ts',
    find: 'let position = 0; position < disabled.count;',
    replace: 'let position = 1; position < disabled.count;',
    also: [
      {
        file: 'core/locks/lock-machine.ts',
        find: 'state.disabled.addTo(sum, hash);',
        replace: '',
      },
    ],
  },
];
