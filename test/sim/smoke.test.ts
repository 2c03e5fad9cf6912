import t from 'tap';
import { SimClient } from './sim-client.js';
import { SimCluster } from './sim-cluster.js';
import { World } from './world.js';

const SECOND_US = 1_000_000;

t.test('five simulated nodes elect, grant, queue, hand over and agree', (t) => {
  const world = new World(1);
  const cluster = new SimCluster(world);
  t.ok(
    world.run(5 * SECOND_US, () => cluster.serving() !== undefined),
    'somebody serves',
  );
  const leader = cluster.serving();
  if (leader === undefined) throw new Error('no leader');
  const client = new SimClient(cluster, 1);
  client.connect(leader);
  const opened = client.send([32, 'open-1', null, null, null, 5_000, null]);
  const isAnswered =
    (correlation: number, count = 1) =>
    (): boolean =>
      (client.replies.get(correlation)?.length ?? 0) >= count;
  t.ok(world.run(world.nowUs + SECOND_US, isAnswered(opened)), 'the session is opened');
  const session = client.replyTo(opened)?.[4] as Uint8Array;
  t.equal(session.length, 16);
  const first = client.send([36, 1, session, null, null, 'nightly', 2_000]);
  const second = client.send([36, 2, session, null, null, 'nightly', 2_000, 60_000]);
  t.ok(world.run(world.nowUs + SECOND_US, isAnswered(second)), 'both are answered');
  t.equal(client.replyTo(first)?.[1], 0);
  t.equal(client.replyTo(second)?.[1], 1, 'the second is queued');
  const lease = client.replyTo(first)?.[4];
  const released = client.send([38, 3, session, null, null, lease]);
  t.ok(world.run(world.nowUs + SECOND_US, isAnswered(second, 2)), 'handed over');
  t.equal(client.replyTo(released)?.[1], 0);
  t.equal(client.replyTo(second)?.[1], 0);
  const tokens = [client.replyTo(first)?.[5], client.replyTo(second)?.[5]] as [number, number];
  t.ok(tokens[1] > tokens[0], 'the token rises');
  world.run(world.nowUs + 20 * SECOND_US);
  const got = client.send([6, 'nightly']);
  t.ok(world.run(world.nowUs + SECOND_US, isAnswered(got)), 'get is answered');
  const [, , , , row] = client.replyTo(got) ?? [];
  t.match(row, ['nightly', Number, null], 'the lease has expired with its session');
  const statuses = cluster.nodes.map((node) => node.replica?.status());
  const least = Math.min(...statuses.map((each) => each?.appliedIndex ?? 0));
  t.ok(least > 50, 'pulses carry cluster time');
  t.end();
});
