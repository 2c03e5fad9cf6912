import t from 'tap';
import { Cluster } from './harness.js';

t.test('five real nodes found themselves, elect, and agree', async (t) => {
  const cluster = await Cluster.start({ test: t });
  const leader = await cluster.leader();
  t.ok(cluster.nodeIds.includes(leader));
  const statuses = await cluster.settled();
  t.equal(new Set(statuses.map((status) => status.digest)).size, 1);
});
