import t from 'tap';
import { advanced, connected, watchRejections } from './ground.js';

const unhandled = watchRejections();

t.test('a lease is acquired, renewed by its session and released', async (t) => {
  const { clock, cluster, client } = await connected();
  const lease = await advanced(clock, client.acquire('a', { ttlMs: 3_000 }));
  t.equal(lease.state, 'held');
  t.equal(cluster.live.length, 1);
  await clock.advance(20_000);
  t.equal(lease.state, 'held');
  t.equal(cluster.live.length, 1);
  await advanced(clock, lease.release());
  t.equal(lease.state, 'released');
  t.equal(cluster.live.length, 0);
  await advanced(clock, client.close());
  t.equal(clock.timers, 0, 'a closed client leaves no timer');
  t.same(unhandled, []);
});
