import t from 'tap';
import { CommandKind } from '../../../src/core/locks/command.js';
import { ErrorCode } from '../../../src/wire/errors.js';
import { settle } from './fake-clock.js';
import { advanced, connected, rejected, watchRejections } from './ground.js';

const unhandled = watchRejections();

/** Both kinds of lease: in the shared session, and without a session. */
const kinds = [
  { what: 'in a session', options: {} },
  { what: 'without a session', options: { session: null } },
] as const;

for (const { what, options } of kinds) {
  t.test(`a lease ${what} is renewed for as long as it is held`, async (t) => {
    const { clock, cluster, client } = await connected();
    const lease = await advanced(clock, client.acquire('a', { ttlMs: 3_000, ...options }));
    let least = Number.POSITIVE_INFINITY;
    for (let second = 0; second < 60; second += 1) {
      await clock.advance(1_000);
      t.equal(lease.state, 'held');
      least = Math.min(least, lease.remainingMs());
    }
    t.ok(least >= 3_000 * (2 / 3) - 75 - 20, `${least} ms were always left`);
    t.equal(cluster.live.length, 1);
    await advanced(clock, client.close());
  });

  t.test(`renewals ${what} come at most a third of the TTL apart, with jitter`, async (t) => {
    const { clock, cluster, client } = await connected();
    await advanced(clock, client.acquire('a', { ttlMs: 3_000, ...options }));
    const times: number[] = [];
    cluster.interfere = ({ command }) => {
      const isRenewal = command === CommandKind.Renew || command === CommandKind.SessionRenew;
      if (isRenewal) times.push(clock.nowMs());
      return undefined;
    };
    await clock.advance(30_000);
    const gaps = times.slice(1).map((time, index) => time - (times[index] ?? 0));
    t.ok(gaps.length >= 29);
    t.ok(gaps.every((gap) => gap <= 1_001 && gap >= 749));
    t.ok(new Set(gaps.map(Math.round)).size > 5, 'they are not in step');
    await advanced(clock, client.close());
  });

  t.test(`under a black-holed connection a lease ${what} ends at the safe deadline`, async (t) => {
    const { clock, cluster, client } = await connected();
    const lease = await advanced(clock, client.acquire('a', { ttlMs: 3_000, ...options }));
    await clock.advance(10_000);
    const aborted: number[] = [];
    lease.signal.addEventListener('abort', () => aborted.push(clock.nowMs()));
    const cutAtMs = clock.nowMs();
    const leftMs = lease.remainingMs();
    for (const address of cluster.endpoints) cluster.network.blackHole(address);
    await clock.until(() => lease.state === 'jeopardy', 2_000);
    t.ok(clock.nowMs() - cutAtMs < 1_500, 'jeopardy comes well before the loss');
    const becomingReady = lease.ready();
    await clock.until(() => lease.state === 'lost', 4_000);
    const lostAfterMs = clock.nowMs() - cutAtMs;
    t.ok(lostAfterMs <= leftMs + 1, `lost after ${lostAfterMs} of ${leftMs} ms`);
    t.ok(cluster.live.length === 1, 'the cluster still holds it: the client was first');
    t.same(aborted, [clock.nowMs()]);
    const error = await rejected(becomingReady, 'LEASE_EXPIRED');
    t.equal(lease.signal.reason, error);
    t.equal(lease.remainingMs(), 0);
    await rejected(lease.renew(), 'LEASE_EXPIRED');
    await rejected(lease.release(), 'LEASE_EXPIRED');
    t.equal(client.counters.leasesLost, 1);
    await advanced(clock, client.close());
  });

  t.test(`a leader change alone is jeopardy for a lease ${what}, then held`, async (t) => {
    const { clock, cluster, client } = await connected(5);
    const lease = await advanced(clock, client.acquire('a', { ttlMs: 3_000, ...options }));
    const { token } = lease;
    for (const leader of [2, 3, 4, 5, 1]) {
      const former = cluster.leaderId;
      cluster.network.down.clear();
      cluster.elect(0, false);
      cluster.network.down.add(cluster.address(former));
      cluster.network.reset(cluster.address(former));
      await settle();
      t.equal(lease.state, 'jeopardy');
      const becomingReady = lease.ready();
      await clock.advance(600);
      t.equal(lease.state, 'jeopardy');
      cluster.leaderId = leader;
      await advanced(clock, becomingReady, 2_000);
      t.equal(lease.state, 'held');
      await clock.advance(1_500);
      t.equal(lease.state, 'held');
    }
    t.equal(lease.token, token);
    t.equal(lease.signal.aborted, false);
    t.equal(client.counters.leasesLost, 0);
    await advanced(clock, client.close());
  });

  t.test(`a blocked event loop never leaves a lease ${what} held past its deadline`, async (t) => {
    const { clock, client } = await connected();
    const lease = await advanced(clock, client.acquire('a', { ttlMs: 3_000, ...options }));
    const { signal } = lease;
    clock.stall(3_000);
    t.equal(signal.aborted, false, 'no timer has run yet');
    t.equal(lease.state, 'lost', 'but the question reads the clock');
    t.equal(signal.aborted, true);
    await advanced(clock, client.close());
  });

  t.test(`a stall shorter than what is left costs a lease ${what} nothing`, async (t) => {
    const { clock, client } = await connected();
    const lease = await advanced(clock, client.acquire('a', { ttlMs: 3_000, ...options }));
    for (let stall = 0; stall < 10; stall += 1) {
      await clock.advance(700);
      clock.stall(1_000);
      await clock.advance(100);
      t.equal(lease.state, 'held');
    }
    await advanced(clock, client.close());
  });

  t.test(`a suspend that outlasts a lease ${what} loses it at the first look`, async (t) => {
    const { clock, cluster, client } = await connected();
    const lease = await advanced(clock, client.acquire('a', { ttlMs: 3_000, ...options }));
    clock.suspend(60_000);
    t.equal(lease.state, 'lost');
    t.equal(cluster.live.length, 0, 'as it is at the cluster');
    await advanced(clock, client.close());
  });

  t.test(
    `after a suspend the signal of a lease ${what} fires within a tick, unasked`,
    async (t) => {
      const { clock, client } = await connected();
      const lease = await advanced(clock, client.acquire('a', { ttlMs: 60_000, ...options }));
      const { signal } = lease;
      clock.suspend(3_600_000);
      await clock.advance(101);
      t.equal(signal.aborted, true);
      await advanced(clock, client.close());
    },
  );

  t.test(`what the client stops believing in ${what} is given back to the others`, async (t) => {
    const { clock, cluster, client } = await connected();
    const lease = await advanced(clock, client.acquire('a', { ttlMs: 20_000, ...options }));
    cluster.interfere = ({ command }) =>
      command === CommandKind.Renew || command === CommandKind.SessionRenew
        ? 'lose-reply'
        : undefined;
    await clock.until(() => lease.state === 'lost', 21_000);
    await clock.advance(100);
    const [held] = [...cluster.leases.values()];
    t.equal(held?.end?.cause, 1, 'released: renewals that were heard do not keep it alive');
    t.equal(client.counters.debtsPaid, 1);
    await advanced(clock, client.close());
  });

  t.test(`a lease ${what} that the cluster says has ended is lost at once`, async (t) => {
    const { clock, cluster, client } = await connected();
    const lease = await advanced(clock, client.acquire('a', { ttlMs: 3_000, ...options }));
    const [held] = cluster.live;
    if (held === undefined) throw new Error('nothing is held');
    cluster.endLease(held, 5);
    const error = await rejected(advanced(clock, lease.renew()), 'STALE_LEASE');
    t.equal(error.details.leaseEnd, 'forced');
    t.equal(lease.state, 'lost');
    t.equal(lease.signal.reason, error);
    t.equal(client.counters.debtsPaid, 0, 'nothing is owed for it');
    await advanced(clock, client.close());
  });

  t.test(`release of a lease ${what} is idempotent and sent once`, async (t) => {
    const { clock, cluster, client } = await connected();
    const lease = await advanced(clock, client.acquire('a', options));
    const one = lease.release();
    const other = lease.release();
    t.equal(lease.state, 'released');
    t.same(await advanced(clock, one), await advanced(clock, other));
    t.equal(cluster.seen(CommandKind.Release).length, 1);
    t.equal(lease.signal.aborted, false, 'a release is no loss');
    await rejected(lease.ready(), 'LEASE_EXPIRED');
    await rejected(lease.renew(), 'STALE_LEASE');
    await advanced(clock, client.close());
  });

  t.test(`a resent release of a lease ${what} never ends a newer hold`, async (t) => {
    const { clock, cluster, client } = await connected();
    const first = await advanced(clock, client.acquire('a', options));
    let lost = 0;
    cluster.interfere = ({ command }) => {
      if (command !== CommandKind.Release || lost > 0) return undefined;
      lost += 1;
      return 'reset-after';
    };
    const releasing = first.release();
    const second = await advanced(clock, client.acquire('a', options));
    await advanced(clock, releasing);
    t.equal(cluster.live.length, 1);
    t.equal(cluster.live[0]?.token, second.token);
    t.equal(second.state, 'held');
    await advanced(clock, client.close());
  });

  t.test(`a release ${what} that nobody answered is repeated in the background`, async (t) => {
    const { clock, cluster, client } = await connected();
    const lease = await advanced(clock, client.acquire('a', { ttlMs: 3_000, ...options }));
    let releases = 0;
    cluster.interfere = ({ command }) => {
      if (command === CommandKind.Release) releases += 1;
      return releases === 1 ? 'lose-request' : undefined;
    };
    await rejected(advanced(clock, lease.release(500)), 'UNKNOWN_OUTCOME');
    t.equal(lease.state, 'released');
    t.equal(cluster.live.length, 0);
    t.equal(client.counters.debtsPaid, 1);
    await advanced(clock, client.close());
  });
}

t.test('a renewal with a shorter TTL never moves the deadline back', async (t) => {
  const { clock, client } = await connected();
  const lease = await advanced(clock, client.acquire('a', { ttlMs: 20_000 }));
  const { deadlineMs } = lease;
  await advanced(clock, lease.renew({ ttlMs: 2_000, metadata: 'new' }));
  t.equal(lease.ttlMs, 2_000);
  t.ok(lease.deadlineMs >= deadlineMs);
  await clock.advance(60_000);
  t.equal(lease.state, 'held', 'and the renewals follow the new pace');
  await advanced(clock, client.close());
});

t.test('a longer TTL than the shared session has raises that of the session', async (t) => {
  const { clock, cluster, client } = await connected();
  await advanced(clock, client.acquire('a'));
  const lease = await advanced(clock, client.acquire('b', { ttlMs: 120_000 }));
  t.equal(lease.ttlMs, 120_000);
  t.ok(lease.remainingMs() > 110_000);
  t.equal(cluster.sessions.size, 1);
  await advanced(clock, client.close());
});

t.test(
  'a session without leases is renewed at its own pace, one with at the shortest',
  async (t) => {
    const { clock, cluster, client } = await connected();
    const long = await advanced(clock, client.acquire('a', { ttlMs: 30_000 }));
    const counted = async (ms: number): Promise<number> => {
      const before = cluster.seen(CommandKind.SessionRenew).length;
      await clock.advance(ms);
      return cluster.seen(CommandKind.SessionRenew).length - before;
    };
    t.ok((await counted(30_000)) <= 5);
    const short = await advanced(clock, client.acquire('b', { ttlMs: 1_000 }));
    t.ok((await counted(30_000)) >= 80);
    t.equal(short.state, 'held');
    await advanced(clock, short.release());
    await clock.advance(1_000);
    t.ok((await counted(30_000)) <= 5);
    t.equal(long.state, 'held');
    await advanced(clock, client.close());
  },
);

t.test('a lease overdue when its session was renewed is not believed in again', async (t) => {
  const { clock, cluster, client } = await connected();
  const lease = await advanced(clock, client.acquire('a', { ttlMs: 3_000 }));
  // The cluster's clock leaps, against all assumptions: its answer contradicts the local bound.
  cluster.leapMs = 3_000;
  await clock.advance(1_001);
  t.equal(lease.state, 'lost');
  t.match(lease.signal.reason, { code: 'LEASE_EXPIRED' });
  t.equal(client.counters.leasesLost, 1);
  await advanced(clock, client.close());
});

t.test('the pace survives refusals of renewals without a storm', async (t) => {
  const { clock, cluster, client } = await connected();
  const lease = await advanced(clock, client.acquire('a', { ttlMs: 3_000, session: null }));
  cluster.interfere = ({ command }) =>
    command === CommandKind.Renew ? { reply: cluster.refused(ErrorCode.Forbidden) } : undefined;
  await clock.until(() => lease.state === 'lost', 4_000);
  const renewals = cluster.seen(CommandKind.Renew).length;
  t.ok(renewals >= 2 && renewals < 60, `${renewals} renewals in three seconds`);
  await advanced(clock, client.close());
});

t.test('a node that is slow to commit is not given up: it answers pings', async (t) => {
  const { clock, cluster, client } = await connected();
  const lease = await advanced(clock, client.acquire('a', { ttlMs: 6_000 }));
  cluster.interfere = ({ command }) =>
    command === CommandKind.SessionRenew ? { delayMs: 1_500 } : undefined;
  let jeopardies = 0;
  for (let tick = 0; tick < 600; tick += 1) {
    await clock.advance(100);
    if (lease.state === 'jeopardy') jeopardies += 1;
    if (lease.state === 'lost') t.fail(`lost at tick ${tick}`);
  }
  t.ok(jeopardies > 0, 'though each late renewal is jeopardy for a while');
  t.equal(client.counters.connectionsLost, 0);
  t.equal(client.counters.connectionsSilent, 0);
  await advanced(clock, client.close());
});

for (const ttlMs of [1_000, 3_000, 30_000]) {
  t.test(
    `a leader that falls silent costs a TTL of ${ttlMs} ms nothing but jeopardy`,
    async (t) => {
      const { clock, cluster, client } = await connected(5);
      const lease = await advanced(clock, client.acquire('a', { ttlMs, session: null }));
      await clock.advance(ttlMs * 2);
      // Just after a renewal: the next one finds the former leader black-holed and another elected.
      await clock.until(() => lease.remainingMs() > ttlMs * 0.95, ttlMs);
      cluster.network.blackHole(cluster.address(1));
      cluster.leaderId = 3;
      await clock.until(() => lease.state === 'jeopardy', ttlMs);
      await advanced(clock, lease.ready());
      t.equal(lease.state, 'held');
      t.equal(client.counters.connectionsSilent, 1);
      await advanced(clock, client.close());
    },
  );
}

t.test('no rejection went unhandled', (t) => {
  t.same(unhandled, []);
  t.end();
});
