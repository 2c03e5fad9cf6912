import t from 'tap';
import { CommandKind } from '../../../src/core/locks/command.js';
import { settle } from './fake-clock.js';
import { openWires } from './fake-cluster.js';
import { advanced, connected, rejected, watchRejections } from './ground.js';

const unhandled = watchRejections();

t.test('close ends what is pending with a typed error and gives everything back', async (t) => {
  const { clock, cluster, client } = await connected();
  const lease = await advanced(clock, client.acquire('a'));
  const alone = await advanced(clock, client.acquire('b', { session: null }));
  const session = await advanced(clock, client.openSession());
  const waiting = rejected(client.acquire('a', { waitMs: 600_000 }), 'SHUTTING_DOWN');
  await settle();
  const reading = rejected(client.get('a'), 'SHUTTING_DOWN');
  const closing = client.close();
  t.equal((await reading).outcome, 'none');
  t.equal((await waiting).outcome, 'unknown');
  await advanced(clock, closing);
  t.equal(cluster.live.length, 0);
  t.ok([...cluster.sessions.values()].every(({ isEnded }) => isEnded));
  for (const held of [lease, alone]) {
    t.equal(held.state, 'released');
    t.equal(held.signal.aborted, true, 'work that still runs is told');
  }
  t.equal(session.state, 'closed');
  t.equal(clock.timers, 0);
  t.same(openWires(cluster), []);
});

t.test('after close every call is refused at once', async (t) => {
  const { clock, client } = await connected();
  const lease = await advanced(clock, client.acquire('a'));
  await advanced(clock, client.close());
  for (const call of [
    client.acquire('a'),
    client.acquire('a', { session: null }),
    client.tryAcquire('a'),
    client.withLock('a', {}, () => t.fail('it ran')),
    client.acquireInOrder(['a']),
    client.openSession(),
    client.get('a'),
    client.ping(),
  ]) {
    const error = await rejected(call, 'SHUTTING_DOWN');
    t.equal(error.outcome, 'none');
    t.equal(error.retryable, false);
  }
  await rejected(lease.renew(), 'LEASE_EXPIRED');
  await client.close();
  t.equal(clock.timers, 0);
});

t.test('close ends by its deadline when nobody answers, and never rejects', async (t) => {
  const { clock, cluster, client } = await connected();
  await advanced(clock, client.acquire('a'));
  await advanced(clock, client.acquire('b', { session: null }));
  for (const address of cluster.endpoints) cluster.network.blackHole(address);
  const startMs = clock.nowMs();
  await advanced(clock, client.close({ deadlineMs: 700 }));
  t.ok(clock.nowMs() - startMs <= 710);
  t.equal(client.counters.releaseFailures, 2);
  t.equal(clock.timers, 0);
});

t.test('an acquire that is granted while the client closes is not left behind', async (t) => {
  const { clock, cluster, client } = await connected();
  await advanced(clock, client.acquire('warm'));
  cluster.commitMs = 20;
  const acquiring = rejected(client.acquire('a'), 'SHUTTING_DOWN');
  await clock.advance(10);
  await advanced(clock, client.close());
  await acquiring;
  await clock.advance(100);
  t.equal(cluster.live.length, 0);
});

t.test('a client can be disposed of', async (t) => {
  const { clock, cluster, client } = await connected();
  await advanced(clock, client.acquire('a'));
  await advanced(clock, client[Symbol.asyncDispose]());
  t.equal(cluster.live.length, 0);
});

t.test('get shows holder and queue, list goes page by page in byte order', async (t) => {
  const { clock, cluster, client } = await connected();
  const lease = await advanced(clock, client.acquire('x/5'));
  for (const index of [3, 1, 4, 2]) await advanced(clock, client.acquire(`x/${index}`));
  await advanced(clock, client.acquire('y'));
  const waiting = rejected(client.acquire('x/5', { waitMs: 60_000 }), 'SHUTTING_DOWN');
  await settle();
  const view = await advanced(clock, client.get('x/5'));
  t.equal(view.holder?.token, lease.token);
  t.equal(view.holder?.inSession, true);
  t.equal(view.waiters, 1);
  t.equal(view.queue.length, 1);
  t.equal(view.ageMs, null);
  const free = await advanced(clock, client.get('free', { stale: true, atLeastRevision: 5 }));
  t.equal(free.holder, null);
  t.same(cluster.seen(CommandKind.Get).at(-1)?.elements, [CommandKind.Get, 'free', true, 5]);
  const listed = async (pageSize?: number): Promise<string[]> => {
    const names: string[] = [];
    const options = pageSize === undefined ? {} : { pageSize };
    for await (const lock of client.list('x/', options)) names.push(lock.name);
    return names;
  };
  t.same(await advanced(clock, listed(2)), ['x/1', 'x/2', 'x/3', 'x/4', 'x/5']);
  t.equal(cluster.seen(CommandKind.List).length, 3);
  t.same(await advanced(clock, listed()), ['x/1', 'x/2', 'x/3', 'x/4', 'x/5']);
  await rejected(listed(0), 'BAD_REQUEST');
  await advanced(clock, Promise.all([client.close(), waiting]));
});

t.test('check, members, status, ping and transfer ask what they say', async (t) => {
  const { clock, cluster, client } = await connected();
  const lease = await advanced(clock, client.acquire('a'));
  t.same(await advanced(clock, client.check('a', lease.token)), {
    verdict: 'current',
    currentToken: lease.token,
  });
  t.match(await advanced(clock, client.check('a', 1)), { verdict: 'stale' });
  const members = await advanced(clock, client.members());
  t.same(
    members.map(({ address }) => address),
    cluster.endpoints,
  );
  t.match(await advanced(clock, client.status()), { counters: { serving: 1 } });
  await advanced(clock, client.ping());
  await advanced(clock, client.transferLeadership(2));
  t.same(cluster.seen(CommandKind.Transfer)[0]?.elements, [CommandKind.Transfer, 2]);
  await rejected(client.check('a', -1), 'BAD_REQUEST');
  await rejected(client.get('a', { atLeastRevision: 0.5 }), 'BAD_REQUEST');
  await advanced(clock, client.close());
});

t.test('lookup tells what became of a request', async (t) => {
  const { clock, client } = await connected();
  const named = { session: null, requestId: 'job-7' };
  t.same(await advanced(clock, client.lookup('job-7')), { state: 'unknown' });
  const lease = await advanced(clock, client.acquire('a', named));
  const done = await advanced(clock, client.lookup('job-7'));
  t.match(done, { state: 'done', error: null, grant: { token: lease.token } });
  const busy = client.acquire('a', { ...named, requestId: 'job-8', waitMs: 0 });
  await rejected(advanced(clock, busy), 'LOCK_BUSY');
  const refused = await advanced(clock, client.lookup('job-8'));
  t.match(refused, { state: 'done', grant: null, error: { code: 'LOCK_BUSY' } });
  const waiting = rejected(
    client.acquire('a', { ...named, requestId: 'job-9', waitMs: 60_000 }),
    'SHUTTING_DOWN',
  );
  await settle();
  t.match(await advanced(clock, client.lookup('job-9')), { state: 'queued' });
  const session = await advanced(clock, client.openSession());
  await advanced(clock, client.acquire('b', { session }));
  const sequence = await advanced(clock, client.lookup({ session: session.id, sequence: 1 }));
  t.match(sequence, { state: 'done', error: null });
  for (const request of ['', 'x'.repeat(65), { session: 'no', sequence: 1 }]) {
    await rejected(client.lookup(request), 'BAD_REQUEST');
  }
  await rejected(client.lookup({ session: session.id, sequence: 0 }), 'BAD_REQUEST');
  await advanced(clock, Promise.all([client.close(), waiting]));
});

t.test('options that can never be right are refused before anything is sent', async (t) => {
  const { clock, cluster, client } = await connected();
  const before = cluster.requests.length;
  const session = null;
  const wrong: [string, Parameters<typeof client.acquire>][] = [
    ['name', ['']],
    ['name', ['x'.repeat(513)]],
    ['name', ['é'.repeat(257)]],
    ['name', ['a\u0000b']],
    ['name', ['a\u007f']],
    ['name', ['a\u0085']],
    ['name', ['\ud800']],
    ['ttl_ms', ['a', { ttlMs: 0 }]],
    ['ttl_ms', ['a', { ttlMs: -1 }]],
    ['ttl_ms', ['a', { ttlMs: Number.NaN }]],
    ['ttl_ms', ['a', { ttlMs: 2 ** 53 }]],
    ['ttl_ms', ['a', { ttlMs: 1.5 }]],
    ['wait_ms', ['a', { waitMs: -1 }]],
    ['wait_ms', ['a', { waitMs: Number.POSITIVE_INFINITY }]],
    ['deadline_ms', ['a', { deadlineMs: 0 }]],
    ['deadline_ms', ['a', { deadlineMs: 60_001 }]],
    ['deadline_ms', ['a', { deadlineMs: Number.NaN }]],
    ['metadata', ['a', { metadata: 'x'.repeat(1_025) }]],
    ['metadata', ['a', { metadata: new Uint8Array(1_025) }]],
    ['request', ['a', { session, requestId: '' }]],
    ['request', ['a', { session, requestId: 'x'.repeat(65) }]],
    ['request', ['a', { requestId: 'x' }]],
    ['not_after', ['a', { notAfterMs: 5 }]],
    ['expected_revision', ['a', { expectedRevision: 5, waitMs: 1 }]],
    ['expected_revision', ['a', { expectedRevision: -5 }]],
    ['owner', ['a', { owner: 'x'.repeat(129) }]],
    ['lock_delay_ms', ['a', { lockDelayMs: -1 }]],
    ['hold_ms_max', ['a', { holdMsMax: 0 }]],
    ['trace', ['a', { traceId: new Uint8Array(15) }]],
  ];
  for (const [field, words] of wrong) {
    const error = await rejected(client.acquire(...words), 'BAD_REQUEST');
    t.equal(error.details.field, field);
    t.equal(error.outcome, 'none');
  }
  t.equal(cluster.requests.length, before);
  await advanced(clock, client.close());
});

t.test('options stand where the protocol has their places', async (t) => {
  const { clock, cluster, client } = await connected();
  const acquiring = client.acquire('a', {
    session: null,
    requestId: 'job',
    traceId: new Uint8Array(16).fill(3),
    ttlMs: 5_000,
    waitMs: 0,
    expectedRevision: 7,
    owner: 'me',
    metadata: 'hi',
    notAfterMs: 99_000,
    lockDelayMs: 1,
    holdMsMax: 2,
  });
  await advanced(clock, acquiring);
  const [sent] = cluster.seen(CommandKind.Acquire);
  t.same(sent?.elements, [
    CommandKind.Acquire,
    'job',
    null,
    null,
    Buffer.alloc(16, 3),
    'a',
    5_000,
    0,
    null,
    null,
    null,
    7,
    'me',
    Buffer.from('hi'),
    99_000,
    1,
    2,
  ]);
  await advanced(clock, client.close());
});

t.test('a million ms are a million ms: long deadlines and waits are not cut', async (t) => {
  const { clock, cluster, client } = await connected();
  const other = await advanced(clock, client.acquire('a', { session: null, ttlMs: 86_400_000 }));
  const acquiring = client.acquire('a', { waitMs: 3_600_000, ttlMs: 1_000 });
  await clock.advance(3_500_000);
  t.equal(cluster.waits.length, 1);
  await advanced(clock, other.release());
  t.equal((await advanced(clock, acquiring)).state, 'held');
  await advanced(clock, client.close());
});

t.test('no rejection went unhandled', (t) => {
  t.same(unhandled, []);
  t.end();
});
