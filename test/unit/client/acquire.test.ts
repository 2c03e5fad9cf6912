import { getEventListeners } from 'node:events';
import t from 'tap';
import { HoldfastError } from '../../../src/client/errors.js';
import type { Lease } from '../../../src/client/lease.js';
import { CommandKind } from '../../../src/core/locks/command.js';
import { ErrorCode } from '../../../src/wire/errors.js';
import { settle } from './fake-clock.js';
import { refusal } from './fake-cluster.js';
import { advanced, connected, rejected, type TestGround, watchRejections } from './ground.js';

const unhandled = watchRejections();

const kinds = [
  { what: 'in a session', options: {} },
  { what: 'without a session', options: { session: null } },
] as const;

/** Another client's hold of `name`, and how to end it. */
async function heldByOther(ground: TestGround, name: string): Promise<Lease> {
  return advanced(ground.clock, ground.client.acquire(name, { session: null, ttlMs: 86_400_000 }));
}

for (const { what, options } of kinds) {
  t.test(`a waiter ${what} is granted when the holder releases`, async (t) => {
    const ground = await connected();
    const { clock, client } = ground;
    const other = await heldByOther(ground, 'a');
    const acquiring = client.acquire('a', { ...options, waitMs: 60_000 });
    await clock.advance(5_000);
    await advanced(clock, other.release());
    const lease = await advanced(clock, acquiring);
    t.ok(lease.token > other.token);
    t.equal(lease.state, 'held');
    await advanced(clock, client.close());
  });

  t.test(`a wait ${what} of ten TTLs ends in a grant with a full TTL`, async (t) => {
    const ground = await connected();
    const { clock, cluster, client } = ground;
    const other = await heldByOther(ground, 'a');
    const acquiring = client.acquire('a', { ...options, ttlMs: 2_000, waitMs: 60_000 });
    await clock.advance(20_000);
    await advanced(clock, other.release());
    const lease = await advanced(clock, acquiring);
    t.equal(lease.state, 'held');
    t.ok(lease.remainingMs() > 1_000, `${lease.remainingMs()} of 2,000 ms`);
    await clock.advance(10_000);
    t.equal(lease.state, 'held');
    t.equal(cluster.live.length, 1);
    await advanced(clock, client.close());
  });

  t.test(`a wait ${what} that is not granted ends as WAIT_TIMEOUT, never both`, async (t) => {
    const ground = await connected();
    const { clock, cluster, client } = ground;
    await heldByOther(ground, 'a');
    const startMs = clock.nowMs();
    const acquiring = client.acquire('a', { ...options, waitMs: 3_000 });
    await clock.advance(2_999);
    await clock.advance(1);
    cluster.expire();
    const error = await rejected(advanced(clock, acquiring), 'WAIT_TIMEOUT');
    t.equal(error.outcome, 'none');
    t.ok(clock.nowMs() - startMs <= 3_010);
    t.equal(cluster.waits.length, 0);
    await advanced(clock, client.close());
  });

  t.test(`LOCK_BUSY ${what} says who holds, tryAcquire gives null`, async (t) => {
    const ground = await connected();
    const { clock, client } = ground;
    const other = await heldByOther(ground, 'a');
    const acquiring = client.acquire('a', { ...options, waitMs: 0 });
    const error = await rejected(advanced(clock, acquiring), 'LOCK_BUSY');
    t.equal(error.details.holder?.token, other.token);
    t.same(error.details.holder?.metadata, new Uint8Array([1, 2]));
    t.equal(error.retryable, true);
    t.equal(await advanced(clock, client.tryAcquire('a', options)), null);
    const free = await advanced(clock, client.tryAcquire('b', options));
    t.equal(free?.state, 'held');
    await advanced(clock, client.close());
  });

  t.test(`a wait ${what} survives changes of leader under one request id`, async (t) => {
    const ground = await connected(5);
    const { clock, cluster, client } = ground;
    const other = await heldByOther(ground, 'a');
    const acquiring = client.acquire('a', { ...options, waitMs: 60_000 });
    await clock.advance(100);
    for (const leader of [2, 3]) {
      cluster.elect(leader, true);
      await clock.advance(1_000);
    }
    t.equal(cluster.waits.length, 1, 'one place, whatever was sent');
    await advanced(clock, other.release());
    const lease = await advanced(clock, acquiring);
    t.equal(lease.state, 'held');
    t.equal(cluster.live.length, 1);
    await advanced(clock, client.close());
  });

  t.test(`a grant ${what} whose reply was lost is found again, not granted twice`, async (t) => {
    const { clock, cluster, client } = await connected();
    let lost = 0;
    cluster.interfere = ({ command }) => {
      if (command !== CommandKind.Acquire || lost > 0) return undefined;
      lost += 1;
      return 'reset-after';
    };
    const lease = await advanced(clock, client.acquire('a', options));
    t.equal(lease.state, 'held');
    t.equal(cluster.live.length, 1);
    t.equal(cluster.leases.size, 1);
    const sent = cluster.seen(CommandKind.Acquire);
    t.equal(sent.length, 2);
    t.same(sent[0]?.elements[1], sent[1]?.elements[1], 'the same request id');
    t.equal(lease.token, cluster.live[0]?.token);
    await advanced(clock, client.close());
  });

  t.test(
    `an acquire ${what} of unknown outcome is cancelled, and a grant given back`,
    async (t) => {
      const { clock, cluster, client } = await connected();
      await advanced(clock, client.acquire('warm'));
      let acquires = 0;
      cluster.interfere = ({ command }) => {
        if (command === CommandKind.Acquire) acquires += 1;
        return command === CommandKind.Acquire ? 'lose-reply' : undefined;
      };
      const acquiring = client.acquire('a', { ...options, deadlineMs: 400 });
      const error = await rejected(advanced(clock, acquiring), 'UNKNOWN_OUTCOME');
      t.equal(error.outcome, 'unknown');
      t.equal(acquires, 1);
      await clock.advance(100);
      t.equal(cluster.holderOf('a'), undefined, 'the grant nobody heard of was given back');
      t.equal(client.counters.grantsReturned, 1);
      cluster.interfere = () => undefined;
      const again = await advanced(clock, client.acquire('a', options));
      t.equal(again.state, 'held');
      await advanced(clock, client.close());
    },
  );

  t.test(`an acquire ${what} that never arrived can no longer take effect`, async (t) => {
    const { clock, cluster, client } = await connected();
    await advanced(clock, client.acquire('warm'));
    cluster.interfere = ({ command }) =>
      command === CommandKind.Acquire ? { delayMs: 3_000 } : undefined;
    const acquiring = client.acquire('a', { ...options, deadlineMs: 400 });
    await rejected(advanced(clock, acquiring), 'UNKNOWN_OUTCOME');
    await clock.advance(5_000);
    t.equal(cluster.holderOf('a'), undefined, 'the cancel came first and was remembered');
    await advanced(clock, client.close());
  });

  t.test(`an abort ${what} before anything was sent has no effect`, async (t) => {
    const { clock, cluster, client } = await connected();
    await advanced(clock, client.acquire('warm'));
    const before = cluster.requests.length;
    const aborted = AbortSignal.abort('why');
    const error = await rejected(client.acquire('a', { ...options, signal: aborted }), 'CANCELLED');
    t.equal(error.outcome, 'none');
    t.equal(error.cause, 'why');
    const controller = new AbortController();
    const acquiring = client.acquire('b', { ...options, signal: controller.signal });
    controller.abort();
    await rejected(advanced(clock, acquiring), 'CANCELLED');
    await clock.advance(100);
    const later = cluster.requests.slice(before).map(({ command }) => command);
    t.notOk(later.includes(CommandKind.Acquire));
    await advanced(clock, client.close());
  });

  t.test(`an abort ${what} while it waits cancels the place`, async (t) => {
    const ground = await connected();
    const { clock, cluster, client } = ground;
    await heldByOther(ground, 'a');
    const controller = new AbortController();
    const acquiring = client.acquire('a', {
      ...options,
      waitMs: 60_000,
      signal: controller.signal,
    });
    await clock.advance(1_000);
    t.equal(cluster.waits.length, 1);
    controller.abort(new Error('enough'));
    const error = await rejected(advanced(clock, acquiring), 'CANCELLED');
    t.equal(error.outcome, 'none');
    t.equal(error.details.granted, undefined);
    t.equal(cluster.waits.length, 0);
    await advanced(clock, client.close());
  });

  for (let afterMs = 0; afterMs <= 12; afterMs += 1) {
    t.test(`an abort ${what} racing the grant after ${afterMs} ms: one of both`, async (t) => {
      const ground = await connected();
      const { clock, cluster, client } = ground;
      await advanced(clock, client.acquire('warm'));
      const other = await heldByOther(ground, 'a');
      cluster.network.latencyMs = 2;
      cluster.commitMs = 2;
      const controller = new AbortController();
      const signal = controller.signal;
      const acquiring = client.acquire('a', { ...options, waitMs: 60_000, signal });
      const outcome: Promise<Lease | HoldfastError> = acquiring.catch((error: unknown) => {
        if (error instanceof HoldfastError) return error;
        throw error;
      });
      await clock.advance(20);
      const releasing = other.release();
      await clock.advance(afterMs);
      controller.abort();
      const result = await advanced(clock, outcome);
      await advanced(clock, releasing);
      await clock.advance(50);
      if (result instanceof HoldfastError) {
        t.equal(result.code, 'CANCELLED');
        t.equal(cluster.holderOf('a'), undefined, 'cancelled: nobody holds');
        t.equal(result.outcome, result.details.granted === undefined ? 'none' : 'applied');
      } else {
        t.equal(cluster.holderOf('a')?.token, result.token, 'granted: this lease holds');
        t.equal(result.state, 'held');
      }
      t.equal(cluster.waits.length, 0);
      t.ok(cluster.live.length <= 2);
      await advanced(clock, client.close());
    });
  }

  t.test(
    `a grant ${what} that won against the abort is given back, and the caller told`,
    async (t) => {
      const { clock, cluster, client } = await connected();
      await advanced(clock, client.acquire('warm'));
      cluster.interfere = ({ command }) =>
        command === CommandKind.Acquire ? 'lose-reply' : undefined;
      const controller = new AbortController();
      const acquiring = client.acquire('a', { ...options, signal: controller.signal });
      await settle();
      t.equal(cluster.live.length, 2);
      controller.abort();
      const error = await rejected(advanced(clock, acquiring), 'CANCELLED');
      t.equal(error.outcome, 'applied');
      t.ok((error.details.granted?.token ?? 0) > 0);
      t.equal(cluster.holderOf('a'), undefined, 'and it is given back before the caller hears');
      t.equal(client.counters.grantsReturned, 1);
      await advanced(clock, client.close());
    },
  );

  t.test(`an abort ${what} that nobody answers is UNKNOWN_OUTCOME, and repeated`, async (t) => {
    const ground = await connected();
    const { clock, cluster, client } = ground;
    await heldByOther(ground, 'a');
    const controller = new AbortController();
    const signal = controller.signal;
    const acquiring = client.acquire('a', { ...options, waitMs: 60_000, deadlineMs: 500, signal });
    await clock.advance(100);
    let cancels = 0;
    cluster.interfere = ({ command }) => {
      if (command !== CommandKind.Cancel) return undefined;
      cancels += 1;
      return cancels === 1 ? 'lose-request' : undefined;
    };
    controller.abort();
    await rejected(advanced(clock, acquiring), 'UNKNOWN_OUTCOME');
    await clock.advance(100);
    t.equal(cluster.waits.length, 0);
    t.equal(cancels, 2);
    await advanced(clock, client.close());
  });
}

t.test('a grant without a fresh sample is renewed before the client believes in it', async (t) => {
  const ground = await connected();
  const { clock, cluster, client } = ground;
  const other = await heldByOther(ground, 'a');
  const acquiring = client.acquire('a', { session: null, ttlMs: 2_000, waitMs: 60_000 });
  await clock.advance(20_000);
  // The release of the holder is not ours: nothing of this client is committed meanwhile.
  const [held] = cluster.live;
  if (held === undefined) throw new Error('nothing is held');
  t.equal(held.token, other.token);
  let isRenewed = false;
  cluster.interfere = ({ command }) => {
    isRenewed ||= command === CommandKind.Renew;
    return undefined;
  };
  cluster.endLease(held, 2);
  const lease = await advanced(clock, acquiring);
  t.ok(isRenewed);
  t.ok(lease.remainingMs() > 1_900);
  await advanced(clock, client.close());
});

t.test('a lease that ended before it could be believed in is refused, not returned', async (t) => {
  const ground = await connected();
  const { clock, cluster, client } = ground;
  await heldByOther(ground, 'a');
  const acquiring = client.acquire('a', { session: null, ttlMs: 2_000, waitMs: 60_000 });
  await clock.advance(10_000);
  const [held] = cluster.live;
  if (held === undefined) throw new Error('nothing is held');
  cluster.interfere = ({ command }) =>
    command === CommandKind.Renew ? { delayMs: 5_000 } : undefined;
  cluster.endLease(held, 2);
  const error = await rejected(advanced(clock, acquiring), 'STALE_LEASE');
  t.equal(error.details.leaseEnd, 'expired');
  await advanced(clock, client.close());
});

t.test('a replay counts as a sample only for an id that this process chose', async (t) => {
  const { clock, cluster, client } = await connected();
  const named = { session: null, requestId: 'job-7', ttlMs: 60_000 };
  const first = await advanced(clock, client.acquire('a', named));
  await clock.advance(30_000);
  const renewals = cluster.seen(CommandKind.Renew).length;
  // As another process with the same name would: it sends first now, and hears of the old grant.
  const second = await advanced(clock, client.acquire('a', named));
  t.equal(second.token, first.token, 'one effect under one name');
  t.ok(cluster.seen(CommandKind.Renew).length > renewals, 'renewed before it was believed');
  t.ok(second.remainingMs() > 58_000);
  t.equal(cluster.leases.size, 1);
  await advanced(clock, client.close());
});

t.test('acknowledgements ride on later acquires and the results are forgotten', async (t) => {
  const { clock, cluster, client } = await connected();
  for (let count = 0; count < 50; count += 1) {
    const lease = await advanced(clock, client.acquire(`n/${count}`));
    await advanced(clock, lease.release());
  }
  const marks = cluster.seen(CommandKind.Acquire).map(({ elements }) => elements[3]);
  t.same(
    marks,
    marks.map((_, index) => index),
    'the mark is the number of acquires that were answered',
  );
  const [session] = [...cluster.sessions.values()];
  t.ok((session?.results.size ?? 99) <= 1);
  await advanced(clock, client.close());
});

t.test('singles above a pending wait are acknowledged one by one', async (t) => {
  const ground = await connected();
  const { clock, cluster, client } = ground;
  await heldByOther(ground, 'busy');
  const waiting = client.acquire('busy', { waitMs: 600_000 });
  await clock.advance(10);
  for (let count = 0; count < 200; count += 1) {
    await advanced(clock, client.acquire(`n/${count}`));
  }
  const acknowledged = cluster.seen(CommandKind.Acquire).map(({ elements }) => elements[3]);
  t.same(acknowledged.at(-1), [0, 200], 'the wait is sequence 1: the mark stays below it');
  const [session] = [...cluster.sessions.values()];
  t.ok((session?.results.size ?? 99) <= 2, 'the wait and the last result');
  await rejected(advanced(clock, Promise.all([client.close(), waiting])), 'SHUTTING_DOWN');
});

t.test('more acquires than the window wait their turn and are all granted', async (t) => {
  const { clock, cluster, client } = await connected();
  cluster.commitMs = 3;
  const acquires = Array.from({ length: 3_000 }, (_, index) => client.acquire(`n/${index}`));
  const leases = await advanced(clock, Promise.all(acquires));
  t.equal(new Set(leases.map(({ token }) => token)).size, 3_000);
  await advanced(clock, client.close());
});

t.test('a window that the cluster keeps smaller is waited for, not an error', async (t) => {
  const { clock, cluster, client } = await connected();
  cluster.windowMax = 8;
  const acquires = Array.from({ length: 60 }, (_, index) => client.acquire(`n/${index}`));
  const leases = await advanced(clock, Promise.all(acquires));
  t.equal(leases.length, 60);
  await advanced(clock, client.close());
});

t.test(
  'an acquire that finds the window full until its deadline fails without effect',
  async (t) => {
    const { clock, cluster, client } = await connected();
    await advanced(clock, client.acquire('warm'));
    cluster.interfere = ({ command }) =>
      command === CommandKind.Acquire ? 'lose-request' : undefined;
    const filling = Array.from({ length: 1_024 }, (_, index) =>
      client.acquire(`n/${index}`, { deadlineMs: 5_000 }).catch((error: unknown) => error),
    );
    const error = await rejected(
      advanced(clock, client.acquire('late', { deadlineMs: 500 })),
      'LIMIT',
    );
    t.equal(error.outcome, 'none');
    const controller = new AbortController();
    const aborting = client.acquire('later', { signal: controller.signal });
    await settle();
    controller.abort();
    await rejected(advanced(clock, aborting), 'CANCELLED');
    cluster.interfere = () => undefined;
    await advanced(clock, Promise.all(filling));
    await clock.advance(5_000);
    const lease = await advanced(clock, client.acquire('at last'));
    t.equal(lease.state, 'held', 'the cancels have made room again');
    await advanced(clock, client.close());
  },
);

t.test('each refusal has its own code', async (t) => {
  const { clock, cluster, client } = await connected();
  await advanced(clock, client.acquire('warm'));
  const codes: [number, string, string][] = [
    [ErrorCode.Deadlock, 'DEADLOCK', 'none'],
    [ErrorCode.Disabled, 'DISABLED', 'none'],
    [ErrorCode.ModeMismatch, 'MODE_MISMATCH', 'none'],
    [ErrorCode.Conflict, 'CONFLICT', 'none'],
    [ErrorCode.RequestMismatch, 'REQUEST_MISMATCH', 'none'],
    [ErrorCode.RequestForgotten, 'REQUEST_FORGOTTEN', 'unknown'],
    [ErrorCode.DeadlinePassed, 'DEADLINE_PASSED', 'none'],
    [ErrorCode.TooLarge, 'TOO_LARGE', 'none'],
    [ErrorCode.Unauthenticated, 'UNAUTHENTICATED', 'none'],
    [ErrorCode.CrossShard, 'CROSS_SHARD', 'none'],
  ];
  for (const [number, code, outcome] of codes) {
    cluster.interfere = ({ command }) =>
      command === CommandKind.Acquire ? { reply: cluster.refused(number) } : undefined;
    const error = await rejected(advanced(clock, client.acquire('a')), code);
    t.equal(error.outcome, outcome, code);
    t.equal(error.number, number);
  }
  cluster.interfere = ({ command }) =>
    command === CommandKind.Acquire ? { reply: refusal(ErrorCode.Limit, ['waiters']) } : undefined;
  const limit = await rejected(advanced(clock, client.acquire('a')), 'LIMIT');
  t.equal(limit.details.field, 'waiters');
  cluster.interfere = ({ command }) =>
    command === CommandKind.Acquire ? { reply: refusal(250) } : undefined;
  const unknown = await rejected(advanced(clock, client.acquire('a')), 'UNKNOWN_OUTCOME');
  t.equal(unknown.number, 250, 'a code of a newer node is told as it came');
  await advanced(clock, client.close());
});

t.test('what a node says of the last attempt does not settle one that was lost', async (t) => {
  const { clock, cluster, client } = await connected();
  let acquires = 0;
  cluster.interfere = ({ command }) => {
    if (command !== CommandKind.Acquire) return undefined;
    acquires += 1;
    return acquires === 1 ? 'reset-after' : { reply: refusal(ErrorCode.DeadlinePassed) };
  };
  const acquiring = client.acquire('a', { session: null });
  const error = await rejected(advanced(clock, acquiring), 'DEADLINE_PASSED');
  t.equal(error.outcome, 'unknown');
  await clock.advance(1_000);
  t.equal(cluster.live.length, 0, 'and what it may have done is undone');
  await advanced(clock, client.close());
});

t.test('many acquires share one signal without a warning, and leave no listener', async (t) => {
  const ground = await connected();
  const { clock, cluster, client } = ground;
  const warnings: Error[] = [];
  const onWarning = (warning: Error): void => void warnings.push(warning);
  process.on('warning', onWarning);
  await heldByOther(ground, 'a');
  const controller = new AbortController();
  const { signal } = controller;
  const acquires = Array.from({ length: 50 }, () =>
    rejected(client.acquire('a', { waitMs: 60_000, signal }), 'CANCELLED'),
  );
  await clock.advance(10);
  t.equal(cluster.waits.length, 50);
  t.equal(getEventListeners(signal, 'abort').length, 1);
  controller.abort();
  await advanced(clock, Promise.all(acquires));
  t.equal(getEventListeners(signal, 'abort').length, 0);
  t.same(warnings, []);
  process.off('warning', onWarning);
  const other = new AbortController();
  await advanced(clock, client.acquire('b', { signal: other.signal }));
  t.equal(getEventListeners(other.signal, 'abort').length, 0, 'nor after a grant');
  await advanced(clock, client.close());
});

t.test('no rejection went unhandled', (t) => {
  t.same(unhandled, []);
  t.end();
});
