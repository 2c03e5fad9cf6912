/** A lease that ended behind its session's back is found, and none that lives is lost. */

import t from 'tap';
import { LEASES_CHECKED_MAX } from '../../../src/client/bounds.js';
import { ErrorCode } from '../../../src/wire/errors.js';
import { CommandKind } from '../../../src/wire/request.js';
import { type FakeCluster, refusal } from './fake-cluster.js';
import { advanced, connected, rejected } from './ground.js';

const FORCED = 5;
const TTL_MS = 9_000;
/** A third of the TTL, and the answers. */
const RENEWAL_MS = TTL_MS / 3 + 100;

function force(cluster: FakeCluster, name: string): void {
  const lease = cluster.holderOf(name);
  if (lease === undefined) throw new Error(`${name} is not held`);
  cluster.endLease(lease, FORCED);
}

t.test('a lease of a session that an operator ended is lost at the next renewal', async (t) => {
  const { clock, cluster, client } = await connected();
  const session = await advanced(clock, client.openSession({ ttlMs: TTL_MS }));
  const [a, b] = await Promise.all([
    advanced(clock, client.acquire('a', { session, ttlMs: TTL_MS })),
    advanced(clock, client.acquire('b', { session, ttlMs: TTL_MS })),
  ]);
  force(cluster, 'a');
  t.equal(a.state, 'held', 'nobody has said so yet');
  await clock.advance(RENEWAL_MS);
  t.equal(a.state, 'lost');
  t.match(a.signal.reason, { code: 'STALE_LEASE', details: { leaseEnd: 'forced' } });
  t.equal(b.state, 'held');
  t.equal(session.state, 'open');
  await clock.advance(5 * RENEWAL_MS);
  t.equal(b.state, 'held', 'nothing that lives is lost');
  await rejected(a.renew(), 'STALE_LEASE');
  await advanced(clock, client.close());
  t.equal(clock.timers, 0);
});

t.test('the next holder of the same name is not taken for the old one', async (t) => {
  const { clock, cluster, client } = await connected();
  const a = await advanced(clock, client.acquire('a', { ttlMs: TTL_MS }));
  const waiting = client.acquire('a', { ttlMs: TTL_MS, waitMs: 60_000 });
  await clock.advance(50);
  force(cluster, 'a');
  const b = await advanced(clock, waiting);
  // The shared session lives for 30 s: its renewals follow the shortest TTL of its leases.
  await clock.advance(RENEWAL_MS);
  t.equal(a.state, 'lost');
  t.equal(b.state, 'held');
  t.ok(b.token > a.token);
  await advanced(clock, client.close());
});

t.test('of many leases each renewal looks at some, in turn, until all are known', async (t) => {
  const { clock, cluster, client } = await connected();
  const names = Array.from({ length: LEASES_CHECKED_MAX + 10 }, (_, at) => `n/${at}`);
  const acquires = names.map((name) => client.acquire(name, { ttlMs: TTL_MS }));
  const leases = await advanced(clock, Promise.all(acquires));
  for (const name of names) force(cluster, name);
  const asked = (): number => cluster.seen(CommandKind.Check).length;
  const before = asked();
  await clock.advance(RENEWAL_MS);
  t.equal(asked() - before, LEASES_CHECKED_MAX);
  t.equal(leases.filter(({ state }) => state === 'lost').length, LEASES_CHECKED_MAX);
  await clock.advance(RENEWAL_MS);
  t.ok(leases.every(({ state }) => state === 'lost'));
  await advanced(clock, client.close());
});

t.test('a look that is refused or not answered costs nothing', async (t) => {
  const { clock, cluster, client } = await connected();
  const a = await advanced(clock, client.acquire('a', { ttlMs: TTL_MS }));
  cluster.interfere = ({ command }) => (command === CommandKind.Check ? 'lose-request' : undefined);
  await clock.advance(2 * RENEWAL_MS);
  t.ok(cluster.seen(CommandKind.Check).length > 0);
  t.equal(a.state, 'held');
  cluster.interfere = ({ command }) =>
    command === CommandKind.Check ? { reply: refusal(ErrorCode.Forbidden) } : undefined;
  await clock.advance(2 * RENEWAL_MS);
  t.equal(a.state, 'held');
  await advanced(clock, client.close());
  t.equal(clock.timers, 0);
});
