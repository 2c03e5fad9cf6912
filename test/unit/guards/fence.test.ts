import { setImmediate as nextTurn } from 'node:timers/promises';
import t from 'tap';
import { HoldfastError, isHoldfastError } from '../../../src/client/errors.js';
import { checkFence, type Fence, fenceOf, judge } from '../../../src/guards/fence.js';
import { isStaleToken, StaleTokenError } from '../../../src/guards/stale-token.js';
import { Tally } from '../../../src/guards/tally.js';

t.test('I3: what was accepted passes again, and nothing below it', async (t) => {
  t.same(judge(0, 1, 'exclusive'), { isAccepted: true, mark: 1 });
  t.same(judge(41, 41, 'exclusive'), { isAccepted: true, mark: 41 });
  t.same(judge(41, 42, 'exclusive'), { isAccepted: true, mark: 42 });
  t.same(judge(42, 41, 'exclusive'), { isAccepted: false, mark: 42 });
});

t.test('I3: a shared token passes from the mark on, and does not raise it', async (t) => {
  t.same(judge(41, 41, 'shared'), { isAccepted: true, mark: 41 });
  t.same(judge(41, 99, 'shared'), { isAccepted: true, mark: 41 });
  t.same(judge(41, 40, 'shared'), { isAccepted: false, mark: 41 });
});

t.test('a fence is complete or refused', async (t) => {
  t.same(checkFence({ lock: 'a', token: 7 }), { lock: 'a', token: 7, kind: 'exclusive' });
  t.equal(checkFence({ lock: 'a', token: 7, kind: 'shared' }).kind, 'shared');
  for (const token of [0, -1, 0.5, Number.NaN, 2 ** 53, Number.POSITIVE_INFINITY]) {
    t.throws(() => checkFence({ lock: 'a', token }), { code: 'BAD_REQUEST' }, String(token));
  }
  const text = '7' as unknown as number;
  t.throws(() => checkFence({ lock: 'a', token: text }), { code: 'BAD_REQUEST' });
  t.throws(() => checkFence({ lock: '', token: 1 }), { code: 'BAD_REQUEST' });
});

t.test('a semaphore token is refused by the types, and by the check', async (t) => {
  // @ts-expect-error: a semaphore's token orders nothing, so no fence has that kind
  const fence: Fence = { lock: 'pool', token: 7, kind: 'semaphore' };
  t.throws(() => checkFence(fence), { code: 'BAD_REQUEST', message: /semaphore/ });
  t.throws(() => fenceOf({ name: 'pool', token: 7, mode: 'semaphore' }), /semaphore/);
});

t.test('a lock that is declared best-effort has no fence', async (t) => {
  const lease = { name: 'cache', token: 7 };
  t.same(fenceOf(lease), { lock: 'cache', token: 7, kind: 'exclusive' });
  t.same(fenceOf({ ...lease, mode: 'shared', fencing: 'required' }).kind, 'shared');
  const refused = { code: 'BAD_REQUEST', message: /best-effort/ };
  t.throws(() => fenceOf({ ...lease, fencing: 'best-effort' }), refused);
  t.throws(() => fenceOf({ ...lease, fencing: 'unheard of' }), { code: 'BAD_REQUEST' });
});

t.test('a refusal says who was seen, and that nothing was done', async (t) => {
  const error = new StaleTokenError('postgres', { lock: 'jobs/7', token: 41 }, 42);
  t.ok(isStaleToken(error));
  t.ok(isHoldfastError(error, 'STALE_TOKEN'));
  t.match(error, {
    seen: 42,
    offered: 41,
    outcome: 'none',
    retryable: false,
    number: error.number,
  });
  t.match(error.message, /postgres.*jobs\/7.*41.*42/);
  t.notOk(isStaleToken(new HoldfastError(error.number)), 'the code alone names no tokens');
});

t.test('a tally counts, tells its observer, and outlives what that throws', async (t) => {
  const told: unknown[] = [];
  const tally = new Tally('redis', {
    onAccepted: (event) => told.push(event),
    onRefused: () => {
      throw new Error('broken observer');
    },
    onRaised: async () => {
      throw new Error('an observer that breaks later');
    },
  });
  tally.onAccepted({ lock: 'a', token: 5 }, 4);
  tally.onRefused({ lock: 'a', token: 3 }, 5);
  tally.onRaised({ lock: 'a', token: 9 }, 9);
  tally.onUnknown({ lock: 'a', token: 9 });
  t.same(told, [{ resource: 'redis', lock: 'a', offered: 5, seen: 4 }]);
  t.match(tally, { accepted: 1, refused: 1, raised: 1, unknown: 1, observerErrors: 1 });
  await nextTurn();
  t.equal(tally.observerErrors, 2, 'a rejection is no unhandled one');
});
