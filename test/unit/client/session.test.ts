import t from 'tap';
import { LEASES_CHECKED_MAX } from '../../../src/client/bounds.js';
import { CommandKind } from '../../../src/core/locks/command.js';
import { ErrorCode } from '../../../src/wire/errors.js';
import { settle } from './fake-clock.js';
import { refusal } from './fake-cluster.js';
import { advanced, connected, rejected, watchRejections } from './ground.js';

const unhandled = watchRejections();

t.test('a session is usable without a lock: open, kept alive, closed', async (t) => {
  const { clock, cluster, client } = await connected();
  const opening = client.openSession({ ttlMs: 3_000, metadata: 'me' });
  const session = await advanced(clock, opening);
  t.equal(session.state, 'open');
  t.equal(session.ttlMs, 3_000);
  t.match(session.id, /^[0-9a-f]{32}$/);
  t.equal(session.leaseCount, 0);
  await clock.advance(60_000);
  t.equal(session.state, 'open');
  t.ok(session.remainingMs() > 1_900);
  await session.ready();
  await advanced(clock, session.close());
  t.equal(session.state, 'closed');
  t.equal(session.remainingMs(), 0);
  t.equal(session.signal.aborted, false, 'a close is no loss');
  t.equal([...cluster.sessions.values()][0]?.isEnded, true);
  await advanced(clock, session.close());
  t.equal(cluster.seen(CommandKind.SessionClose).length, 1);
  await rejected(session.ready(), 'LEASE_EXPIRED');
  await advanced(clock, client.close());
});

t.test('one renewal loop keeps a session and a thousand leases', async (t) => {
  const { clock, cluster, client } = await connected();
  const session = await advanced(clock, client.openSession({ ttlMs: 6_000 }));
  const acquires = Array.from({ length: 1_000 }, (_, index) =>
    client.acquire(`n/${index}`, { session, ttlMs: 6_000 }),
  );
  const leases = await advanced(clock, Promise.all(acquires));
  t.equal(session.leaseCount, 1_000);
  const before = cluster.requests.length;
  await clock.advance(30_000);
  const sent = cluster.requests.slice(before);
  const looks = sent.filter(({ command }) => command === CommandKind.Check);
  const renewals = sent.filter(({ command }) => command === CommandKind.SessionRenew);
  t.ok(renewals.length <= 21, `${renewals.length} renewals kept a thousand leases for five TTLs`);
  t.equal(looks.length, renewals.length * LEASES_CHECKED_MAX, 'each followed by a few reads');
  t.equal(renewals.length + looks.length, sent.length);
  t.equal(leases.filter(({ state }) => state === 'held').length, 1_000);
  await advanced(clock, client.close());
});

t.test('closing a session ends its leases and tells the work under them', async (t) => {
  const { clock, cluster, client } = await connected();
  const session = await advanced(clock, client.openSession());
  const lease = await advanced(clock, client.acquire('a', { session }));
  const waiting = client.acquire('a', { session, waitMs: 60_000 });
  await settle();
  await advanced(clock, session.close());
  t.equal(lease.state, 'released');
  t.equal(lease.signal.aborted, true);
  t.equal(cluster.live.length, 0);
  t.equal(session.leaseCount, 0);
  await rejected(advanced(clock, waiting), 'CANCELLED');
  await rejected(advanced(clock, client.acquire('b', { session })), 'SESSION_EXPIRED');
  await advanced(clock, client.close());
});

t.test('a session that the cluster ended is lost with its leases and its waits', async (t) => {
  const { clock, cluster, client } = await connected();
  const session = await advanced(clock, client.openSession({ ttlMs: 3_000 }));
  const lease = await advanced(clock, client.acquire('a', { session }));
  const waiting = rejected(client.acquire('a', { session, waitMs: 600_000 }), 'SESSION_EXPIRED');
  await settle();
  const [held] = [...cluster.sessions.values()];
  if (held === undefined) throw new Error('no session');
  cluster.endSession(held, 3);
  await advanced(clock, waiting);
  t.equal(session.state, 'lost', 'a wait that ended with its session says so at once');
  t.equal(lease.state, 'lost');
  t.match(session.signal.reason, { code: 'SESSION_EXPIRED' });
  t.match(lease.signal.reason, { code: 'SESSION_EXPIRED' });
  t.equal(client.counters.sessionsLost, 1);
  await advanced(clock, session.close());
  t.equal(session.state, 'lost');
  await advanced(clock, client.close());
});

t.test('a session whose renewals are unanswered is lost at its safe deadline', async (t) => {
  const { clock, cluster, client } = await connected();
  const session = await advanced(clock, client.openSession({ ttlMs: 3_000 }));
  const lease = await advanced(clock, client.acquire('a', { session, ttlMs: 60_000 }));
  t.ok(lease.remainingMs() <= 3_000, 'no lease outlives its session');
  const leftMs = session.remainingMs();
  const lostAt: number[] = [];
  const startMs = clock.nowMs();
  session.signal.addEventListener('abort', () => lostAt.push(clock.nowMs() - startMs));
  for (const address of cluster.endpoints) cluster.network.blackHole(address);
  const waiting = rejected(client.acquire('b', { session, waitMs: 600_000 }), 'SESSION_EXPIRED');
  await clock.advance(4_000);
  t.equal(lostAt.length, 1);
  t.ok((lostAt[0] ?? 0) <= leftMs + 1);
  t.equal(lease.state, 'lost');
  await waiting;
  await advanced(clock, client.close());
});

t.test('a lost session is closed at the cluster as soon as it can be reached', async (t) => {
  const { clock, cluster, client } = await connected();
  const session = await advanced(clock, client.openSession({ ttlMs: 3_000 }));
  await advanced(clock, client.acquire('a', { session, ttlMs: 86_400_000 }));
  cluster.interfere = ({ command }) =>
    command === CommandKind.SessionRenew ? 'lose-reply' : undefined;
  await clock.until(() => session.state === 'lost', 4_000);
  await clock.advance(50);
  t.equal(cluster.live.length, 0);
  t.equal([...cluster.sessions.values()][0]?.isEnded, true);
  await advanced(clock, client.close());
});

t.test(
  'after a change of leader a session is attached before anything is sent in it',
  async (t) => {
    const { clock, cluster, client } = await connected(5);
    const session = await advanced(clock, client.openSession({ ttlMs: 3_000 }));
    const before = cluster.requests.length;
    const acquires = Array.from({ length: 20 }, (_, index) =>
      client.acquire(`n/${index}`, { session }),
    );
    cluster.elect(3, true);
    await advanced(clock, Promise.all(acquires));
    const commands = cluster.requests
      .slice(before)
      .filter(({ wire, command }) => {
        return wire.address === cluster.address(3) && command !== CommandKind.Hello;
      })
      .map(({ command }) => command);
    t.equal(commands[0], CommandKind.SessionAttach);
    t.equal(commands.filter((command) => command === CommandKind.SessionAttach).length, 1);
    t.ok(commands.includes(CommandKind.SessionRenew), 'an attach is no sample: it renews at once');
    t.equal(session.state, 'open');
    await advanced(clock, client.close());
  },
);

t.test('an attach that is refused for now is tried again', async (t) => {
  const { clock, cluster, client } = await connected(5);
  const session = await advanced(clock, client.openSession({ ttlMs: 3_000 }));
  let attaches = 0;
  cluster.interfere = ({ command }) => {
    if (command !== CommandKind.SessionAttach) return undefined;
    attaches += 1;
    return attaches <= 2 ? { reply: refusal(ErrorCode.Overloaded, [], 5) } : undefined;
  };
  cluster.elect(3, true);
  await advanced(clock, client.acquire('a', { session }));
  t.equal(attaches, 3);
  await advanced(clock, client.close());
});

t.test('a session that another connection took is attached again', async (t) => {
  const { clock, cluster, client } = await connected();
  const session = await advanced(clock, client.openSession());
  for (const wire of cluster.network.wires) wire.attached.clear();
  const lease = await advanced(clock, client.acquire('a', { session }));
  t.equal(lease.state, 'held');
  t.equal(cluster.seen(CommandKind.SessionAttach).length, 1);
  await advanced(clock, client.close());
});

t.test('a session unknown to the new leader is lost, with what waits for it', async (t) => {
  const { clock, cluster, client } = await connected(5);
  const session = await advanced(clock, client.openSession({ ttlMs: 30_000 }));
  const acquiring = rejected(client.acquire('a', { session }), 'SESSION_EXPIRED');
  cluster.elect(3, true);
  cluster.sessions.clear();
  await advanced(clock, acquiring);
  t.equal(session.state, 'lost');
  await advanced(clock, client.close());
});

t.test('an open that is sent twice opens one session', async (t) => {
  const { clock, cluster, client } = await connected();
  let opens = 0;
  cluster.interfere = ({ command }) => {
    if (command !== CommandKind.SessionOpen) return undefined;
    opens += 1;
    return opens === 1 ? 'reset-after' : undefined;
  };
  const session = await advanced(clock, client.openSession());
  t.equal(opens, 2);
  t.equal(cluster.sessions.size, 1);
  const lease = await advanced(clock, client.acquire('a', { session }));
  t.equal(lease.state, 'held', 'and it was attached to the connection it is used on');
  await advanced(clock, client.close());
});

t.test('the shared session is opened once, by the first acquire, for all', async (t) => {
  const { clock, cluster, client } = await connected();
  t.equal(cluster.sessions.size, 0);
  const acquires = Array.from({ length: 50 }, (_, index) => client.acquire(`n/${index}`));
  await advanced(clock, Promise.all(acquires));
  t.equal(cluster.sessions.size, 1);
  t.equal(cluster.seen(CommandKind.SessionOpen).length, 1);
  await advanced(clock, client.close());
});

t.test('a lost shared session is opened anew by the next acquire', async (t) => {
  const { clock, cluster, client } = await connected();
  const lease = await advanced(clock, client.acquire('a', { ttlMs: 3_000 }));
  const [held] = [...cluster.sessions.values()];
  if (held === undefined) throw new Error('no session');
  cluster.endSession(held, 3);
  const acquiring = client.acquire('b');
  await rejected(advanced(clock, acquiring), 'SESSION_EXPIRED');
  t.equal(lease.state, 'lost');
  const again = await advanced(clock, client.acquire('b'));
  t.equal(again.state, 'held');
  t.equal(cluster.sessions.size, 2);
  await advanced(clock, client.close());
});

t.test(
  'a caller leaves the opening of the shared session by its own deadline or signal',
  async (t) => {
    const { clock, cluster, client } = await connected();
    cluster.interfere = ({ command }) =>
      command === CommandKind.SessionOpen ? { delayMs: 2_000 } : undefined;
    const patient = client.acquire('a');
    const hasty = rejected(client.acquire('b', { deadlineMs: 300 }), 'DEADLINE_PASSED');
    const controller = new AbortController();
    const aborted = rejected(client.acquire('c', { signal: controller.signal }), 'CANCELLED');
    await clock.advance(100);
    controller.abort();
    await advanced(clock, aborted);
    await advanced(clock, hasty);
    const lease = await advanced(clock, patient);
    t.equal(lease.state, 'held');
    t.equal(cluster.live.length, 1);
    await advanced(clock, client.close());
  },
);

t.test('a session is disposed of, and a failure to close it is counted', async (t) => {
  const { clock, cluster, client } = await connected();
  const session = await advanced(clock, client.openSession({ ttlMs: 3_000 }));
  cluster.interfere = ({ command }) =>
    command === CommandKind.SessionClose ? 'lose-reply' : undefined;
  await advanced(clock, session[Symbol.asyncDispose]());
  t.equal(session.state, 'closed');
  t.equal(client.counters.releaseFailures, 1);
  await advanced(clock, client.close());
});

t.test('a session with a TTL out of range is refused', async (t) => {
  const { clock, cluster, client } = await connected();
  for (const ttlMs of [0, -1, Number.NaN, 0.5, 2 ** 53, Number.POSITIVE_INFINITY]) {
    const error = await rejected(client.openSession({ ttlMs }), 'BAD_REQUEST');
    t.equal(error.details.field, 'ttl_ms');
  }
  t.equal(cluster.seen(CommandKind.SessionOpen).length, 0);
  await advanced(clock, client.close());
});

t.test('no rejection went unhandled', (t) => {
  t.same(unhandled, []);
  t.end();
});
