import { setImmediate as nextTurn } from 'node:timers/promises';
import t from 'tap';
import type { Lease } from '../../../src/client/lease.js';
import { CommandKind } from '../../../src/core/locks/command.js';
import { settle } from './fake-clock.js';
import { advanced, connected, rejected, watchRejections } from './ground.js';

const unhandled = watchRejections();

t.test('work runs under the lock, its result comes back, the lock is free again', async (t) => {
  const { clock, cluster, client } = await connected();
  const working = client.withLock('a', {}, (lease) => {
    t.equal(lease.state, 'held');
    t.equal(cluster.live.length, 1);
    return lease.token;
  });
  const token = await advanced(clock, working);
  t.ok(token > 100);
  t.equal(cluster.live.length, 0);
  await advanced(clock, client.close());
});

t.test('fifty coroutines of one client add a thousand, none of them together', async (t) => {
  const { clock, client } = await connected();
  let counter = 0;
  let inside = 0;
  let most = 0;
  const tokens: number[] = [];
  const coroutine = async (): Promise<void> => {
    for (let round = 0; round < 20; round += 1) {
      await client.withLock('counter', { waitMs: 600_000, ttlMs: 30_000 }, async (lease) => {
        inside += 1;
        most = Math.max(most, inside);
        const read = counter;
        tokens.push(lease.token);
        await nextTurn();
        counter = read + 1;
        inside -= 1;
      });
    }
  };
  await advanced(clock, Promise.all(Array.from({ length: 50 }, coroutine)), 600_000);
  t.equal(counter, 1_000);
  t.equal(most, 1);
  t.same(
    tokens,
    [...tokens].sort((one, other) => one - other),
    'tokens rise in the order of the holds',
  );
  await advanced(clock, client.close());
});

t.test('an error of the work is thrown as it is', async (t) => {
  const { clock, cluster, client } = await connected();
  const failure = new Error('work failed');
  for (const fail of [
    () => {
      throw failure;
    },
    () => Promise.reject(failure),
  ]) {
    const working = client.withLock('a', {}, fail);
    t.equal(await advanced(clock, working).catch((error: unknown) => error), failure);
  }
  t.equal(cluster.live.length, 0);
  t.equal(Reflect.get(failure, 'suppressed'), undefined);
  await advanced(clock, client.close());
});

t.test(
  'a failed release never masks the error of the work: it is suppressed and counted',
  async (t) => {
    const { clock, cluster, client } = await connected();
    cluster.interfere = ({ command }) =>
      command === CommandKind.Release ? 'lose-reply' : undefined;
    const failure = new Error('work failed');
    const options = { deadlineMs: 300 };
    const working = client.withLock('a', options, () => Promise.reject(failure));
    const error = await advanced(clock, working).catch((caught: unknown) => caught);
    t.equal(error, failure);
    t.match(Reflect.get(failure, 'suppressed'), [{ code: 'UNKNOWN_OUTCOME' }]);
    t.notOk(Object.keys(failure).includes('suppressed'), 'it does not show in logs of the error');
    t.equal(client.counters.releaseFailures, 1);
    const odd = ['text', null, Object.freeze(new Error('frozen'))];
    for (const thrown of odd) {
      const oddWork = client.withLock('b', options, () => Promise.reject(thrown));
      t.equal(await advanced(clock, oddWork).catch((caught: unknown) => caught), thrown);
    }
    t.equal(client.counters.releaseFailures, 4);
    cluster.interfere = () => undefined;
    await advanced(clock, client.close());
  },
);

t.test('a release that nobody answers does not take the result away', async (t) => {
  const { clock, cluster, client } = await connected();
  let releases = 0;
  cluster.interfere = ({ command }) => {
    if (command === CommandKind.Release) releases += 1;
    return command === CommandKind.Release && releases === 1 ? 'lose-request' : undefined;
  };
  const working = client.withLock('a', { deadlineMs: 300 }, () => 42);
  t.equal(await advanced(clock, working), 42);
  t.equal(client.counters.releaseFailures, 1);
  await clock.advance(100);
  t.equal(cluster.live.length, 0, 'it is repeated in the background');
  await advanced(clock, client.close());
});

t.test('work whose lease was lost is told by the signal, and its caller by an error', async (t) => {
  const { clock, cluster, client } = await connected();
  let aborted = false;
  const working = client.withLock('a', { ttlMs: 3_000 }, async (lease) => {
    await new Promise<void>((resolve) => {
      lease.signal.addEventListener('abort', () => {
        aborted = true;
        resolve();
      });
    });
    return 'half done';
  });
  await clock.advance(100);
  for (const address of cluster.endpoints) cluster.network.blackHole(address);
  const error = await rejected(advanced(clock, working), 'LEASE_EXPIRED');
  t.equal(aborted, true);
  t.equal(error.details.value, 'half done');
  t.equal(error.outcome, 'unknown');
  t.equal(client.counters.staleDisposals, 1);
  await advanced(clock, client.close());
});

t.test('an error of work whose lease was lost is the one that is thrown', async (t) => {
  const { clock, cluster, client } = await connected();
  const failure = new Error('interrupted');
  const working = client.withLock('a', { ttlMs: 3_000 }, (lease) => {
    return new Promise((_resolve, reject) => {
      lease.signal.addEventListener('abort', () => reject(failure));
    });
  });
  await clock.advance(100);
  for (const address of cluster.endpoints) cluster.network.blackHole(address);
  t.equal(await advanced(clock, working).catch((caught: unknown) => caught), failure);
  t.match(Reflect.get(failure, 'suppressed'), [{ code: 'LEASE_EXPIRED' }]);
  await advanced(clock, client.close());
});

t.test('the work does not run when the lock cannot be had', async (t) => {
  const { clock, client } = await connected();
  await advanced(clock, client.acquire('a'));
  const working = client.withLock('a', { waitMs: 0 }, () => t.fail('it ran'));
  await rejected(advanced(clock, working), 'LOCK_BUSY');
  await advanced(clock, client.close());
});

t.test('await using releases; a lease that is over is counted, not thrown', async (t) => {
  const { clock, cluster, client } = await connected();
  const use = async (): Promise<void> => {
    await using lease = await client.acquire('a');
    t.equal(lease.state, 'held');
    t.equal(cluster.live.length, 1);
  };
  await advanced(clock, use());
  t.equal(cluster.live.length, 0);
  const lease = await advanced(clock, client.acquire('a'));
  const [held] = cluster.live;
  if (held === undefined) throw new Error('nothing is held');
  cluster.endLease(held, 5);
  await advanced(clock, lease[Symbol.asyncDispose]());
  t.equal(client.counters.staleDisposals, 1);
  t.equal(client.counters.releaseFailures, 0);
  await advanced(clock, client.close());
});

t.test('the runtime knows how to dispose: nothing has to be defined for it', (t) => {
  t.type(Symbol.asyncDispose, 'symbol');
  t.end();
});

t.test('reentrant locks are entered again in the same async context, and counted', async (t) => {
  const { clock, cluster, client } = await connected();
  const reentrant = { reentrant: true, ttlMs: 3_000 };
  const seen: string[] = [];
  const working = client.withLock('a', reentrant, async (outer) => {
    await nextTurn();
    await client.withLock('a', reentrant, async (inner) => {
      t.equal(inner.token, outer.token);
      await nextTurn();
      const third = await client.acquire('a', reentrant);
      t.equal(third.token, outer.token);
      await third.release();
      t.equal(third.state, 'released');
      t.equal(inner.state, 'held');
      seen.push('inner');
    });
    t.equal(outer.state, 'held', 'an inner release releases nothing');
    t.equal(cluster.live.length, 1);
    seen.push('outer');
  });
  await advanced(clock, working);
  t.same(seen, ['inner', 'outer']);
  t.equal(cluster.seen(CommandKind.Acquire).length, 1);
  t.equal(cluster.seen(CommandKind.Release).length, 1);
  t.equal(cluster.live.length, 0);
  await advanced(clock, client.close());
});

t.test(
  'without being asked for, an inner acquire of the same lock waits like any other',
  async (t) => {
    const { clock, client } = await connected();
    const working = client.withLock('a', {}, () => client.acquire('a', { waitMs: 0 }));
    const error = await rejected(advanced(clock, working), 'LOCK_BUSY');
    t.equal(error.outcome, 'none');
    await advanced(clock, client.close());
  },
);

t.test('another async context is not inside: it waits', async (t) => {
  const { clock, client } = await connected();
  const reentrant = { reentrant: true, waitMs: 0 };
  let letGo: () => void = () => t.fail('too early');
  const holding = client.withLock('a', reentrant, () => {
    return new Promise<void>((resolve) => {
      letGo = resolve;
    });
  });
  await settle();
  await rejected(advanced(clock, client.acquire('a', reentrant)), 'LOCK_BUSY');
  letGo();
  await advanced(clock, holding);
  await advanced(clock, client.close());
});

t.test('a context that outlives its lock is no longer inside', async (t) => {
  const { clock, cluster, client } = await connected();
  let outliving: Promise<Lease> | undefined;
  let start: () => void = () => t.fail('too early');
  const started = new Promise<void>((resolve) => {
    start = resolve;
  });
  const working = client.withLock('a', {}, () => {
    outliving = started.then(() => client.acquire('a', { reentrant: true }));
  });
  await advanced(clock, working);
  t.equal(cluster.live.length, 0);
  start();
  if (outliving === undefined) throw new Error('the work did not run');
  const lease = await advanced(clock, outliving);
  t.equal(lease.state, 'held');
  t.equal(cluster.seen(CommandKind.Acquire).length, 2);
  await advanced(clock, client.close());
});

t.test('a hold that was lost is not entered again', async (t) => {
  const { clock, client } = await connected();
  let inner = '';
  const working = client.withLock('a', { ttlMs: 3_000 }, async () => {
    clock.stall(3_000);
    inner = (await rejected(client.acquire('a', { reentrant: true }), 'LEASE_EXPIRED')).code;
  });
  await rejected(advanced(clock, working), 'LEASE_EXPIRED');
  t.equal(inner, 'LEASE_EXPIRED');
  await advanced(clock, client.close());
});

t.test(
  'several locks are acquired in the order of their bytes and released together',
  async (t) => {
    const { clock, cluster, client } = await connected();
    const names = ['b', 'a/', 'é', 'a', 'B', 'a/b', '𐐷', '\u{ffee}'];
    const set = await advanced(clock, client.acquireInOrder(names));
    const order = cluster.seen(CommandKind.Acquire).map(({ elements }) => elements[5]);
    t.same(order, ['B', 'a', 'a/', 'a/b', 'b', 'é', '\u{ffee}', '𐐷']);
    t.ok(set.isHeld);
    t.ok(set.remainingMs() > 0);
    t.equal(set.get('é').name, 'é');
    t.throws(() => set.get('nobody'), { code: 'BAD_REQUEST' });
    await advanced(clock, set.release());
    t.equal(cluster.live.length, 0);
    t.notOk(set.isHeld);
    await advanced(clock, client.close());
  },
);

t.test('when one of several cannot be had, the others are given back', async (t) => {
  const { clock, cluster, client } = await connected();
  await advanced(clock, client.acquire('c', { ttlMs: 60_000 }));
  const startMs = clock.nowMs();
  const acquiring = client.acquireInOrder(['d', 'c', 'b', 'a'], { deadlineMs: 2_000 });
  await clock.advance(2_100);
  cluster.expire();
  const error = await rejected(advanced(clock, acquiring), 'WAIT_TIMEOUT');
  t.equal(error.suppressed.length, 0);
  t.ok(clock.nowMs() - startMs < 2_300);
  t.same(
    cluster.live.map(({ name }) => name),
    ['c'],
  );
  for (const names of [[], ['a', 'a']]) {
    await rejected(client.acquireInOrder(names), 'BAD_REQUEST');
  }
  await advanced(clock, client.close());
});

t.test('the signal of several locks is that of the first that is lost', async (t) => {
  const { clock, cluster, client } = await connected();
  const set = await advanced(clock, client.acquireInOrder(['a', 'b'], { session: null }));
  const [held] = cluster.live;
  if (held === undefined) throw new Error('nothing is held');
  cluster.endLease(held, 5);
  t.equal(set.signal.aborted, false);
  await rejected(advanced(clock, set.get('a').renew()), 'STALE_LEASE');
  t.equal(set.signal.aborted, true);
  t.notOk(set.isHeld);
  await rejected(advanced(clock, set.release()), 'STALE_LEASE');
  t.equal(cluster.live.length, 0);
  await advanced(clock, set[Symbol.asyncDispose]());
  await advanced(clock, client.close());
});

t.test('no rejection went unhandled', (t) => {
  t.same(unhandled, []);
  t.end();
});
