/**
 * The bound of what is disabled at once, which random logs do not reach.
 *
 * Both machines get the same 258 commands of Disable; the last but one is refused, and one taken
 * away makes room for one more.
 */

import t from 'tap';
import { OutcomeCode } from '../../src/core/locks/outcome.js';
import { differences } from './comparison.js';
import { smallSettings } from './drafts.js';
import { disable, enable } from './full-machine.js';
import type { ModelCommand } from './model-types.js';
import { NaiveMachine } from './naive-machine.js';
import { ProductionMachine } from './production-machine.js';

const RULES_MAX = 256;

t.test('the 257th name or prefix is refused, and heard again it is refused again', async (t) => {
  const settings = { ...smallSettings(), freeResultsMax: 1_000, resultRetentionMs: 100_000 };
  const naive = new NaiveMachine(settings);
  const production = new ProductionMachine(settings);
  const applyBoth = (stamp: number, ...commands: ModelCommand[]) => {
    const step = production.apply(stamp, commands);
    t.strictSame(differences(step, naive.apply(stamp, commands), 'step'), []);
    return step;
  };
  // Each name twice, as itself and as a prefix: they are two rules.
  for (let rule = 0; rule < RULES_MAX; rule += 1) {
    applyBoth(rule, disable(`n${rule >> 1}`, rule % 2 === 1, `d${rule}`));
  }
  t.equal(production.counts.disabled, RULES_MAX);
  const limit = { code: OutcomeCode.Limit, blob: 'disabled' };
  const tooMany = disable('more', false, 'more');
  t.match(applyBoth(1_000, tooMany).outcomes, [limit]);
  t.match(applyBoth(1_001, disable('n7', true, 'known')).outcomes, [
    { code: OutcomeCode.Ok, revision: 16 },
  ]);
  applyBoth(1_002, enable('n7', true, 'enable'));
  t.match(applyBoth(1_003, tooMany).outcomes, [{ ...limit, replay: true }], 'it was answered once');
  t.match(applyBoth(1_004, disable('more', false, 'again')).outcomes, [{ code: OutcomeCode.Ok }]);
  t.match(applyBoth(1_005, disable('most', true, 'most')).outcomes, [limit]);
  t.equal(production.counts.disabled, RULES_MAX);
});
