/**
 * The checks of the guard suite see what they are there to see: a record of each kind of failure.
 */
import t from 'tap';
import { faultsOf, type StoryRecord } from '../../guards/story.js';

const GOOD: StoryRecord = {
  tokenA: 41,
  tokenB: 42,
  said: { type: 'refused', seen: 42, offered: 41 },
  value: 'by B',
  refused: 1,
  mark: 42,
};

t.test('a refusal that is counted, and B’s value, are no fault', async (t) => {
  t.same(faultsOf(GOOD), []);
  t.same(faultsOf({ ...GOOD, refused: null }), [], 'a store that cannot count');
});

t.test('each thing that can be wrong is seen', async (t) => {
  const bad: [Partial<StoryRecord>, RegExp][] = [
    [{ said: { type: 'wrote' }, value: 'by A' }, /A was told.*wrote/],
    [{ said: { type: 'failed', code: 'ECONNRESET', message: 'cut' } }, /A was told.*ECONNRESET/],
    [{ said: { type: 'refused', seen: 40, offered: 41 } }, /41 after 40/],
    [{ value: 'by A' }, /the value is by A/],
    [{ value: 'seed' }, /the value is seed/],
    [{ refused: 0 }, /counted no refusal/],
    [{ mark: 41 }, /the mark is 41/],
    [{ tokenB: 41 }, /41 is not above A's 41/],
  ];
  for (const [change, fault] of bad) {
    t.match(faultsOf({ ...GOOD, ...change }).join('\n'), fault, String(fault));
  }
});
