import t from 'tap';
import { SimClient } from './sim-client.js';
import { SimCluster, type SimNode } from './sim-cluster.js';
import { World } from './world.js';

const US_PER_MS = 1_000;
const SECOND_US = 1_000_000;
const SETTINGS = { leaseTtlMsLeast: 50 };

function serving(cluster: SimCluster): SimNode {
  const { world } = cluster;
  world.run(world.nowUs + 10 * SECOND_US, () => cluster.serving() !== undefined);
  const node = cluster.serving();
  if (node === undefined) throw new Error('nobody serves');
  return node;
}

function isolate(cluster: SimCluster, node: SimNode): void {
  for (const other of cluster.nodes) {
    cluster.network.cutLink(node.nodeId, other.nodeId);
    cluster.network.cutLink(other.nodeId, node.nodeId);
  }
}

t.test('I5: who leads again tells the callers of its present term the real result', (t) => {
  const world = new World(31);
  const cluster = new SimCluster(world, { settings: SETTINGS });
  const first = serving(cluster);
  const client = new SimClient(cluster, 1);
  client.connect(first);
  world.run(world.nowUs + 50 * US_PER_MS);
  isolate(cluster, first);
  const lost: number[] = [];
  for (let i = 0; i < 6; i += 1) {
    lost.push(client.send([36, `lost-${i}`, null, null, null, `lost-${i}`, 60_000], 30_000));
    world.run(world.nowUs + 10 * US_PER_MS);
  }
  const others = (): SimNode | undefined =>
    cluster.nodes.find((node) => node !== first && node.replica?.isServing === true);
  t.ok(
    world.run(world.nowUs + 10 * SECOND_US, () => others() !== undefined),
    'another leads',
  );
  cluster.network.heal();
  world.run(world.nowUs + 300 * US_PER_MS);
  const helper = new SimClient(cluster, 2);
  helper.connect(others() as SimNode);
  helper.send([13, first.nodeId]);
  const leadsAgain = (): boolean => first.replica?.isServing === true;
  t.ok(world.run(world.nowUs + 10 * SECOND_US, leadsAgain), 'the first leads again');
  const asked: number[] = [];
  for (let i = 0; i < 6; i += 1) {
    asked.push(client.send([36, `asked-${i}`, null, null, null, `asked-${i}`, 60_000], 30_000));
    world.run(world.nowUs + 10 * US_PER_MS);
  }
  world.run(world.nowUs + 2 * SECOND_US);
  t.same(
    asked.map((correlation) => client.replyTo(correlation)?.[1]),
    [0, 0, 0, 0, 0, 0],
    'what it took in its present term is granted and answered so',
  );
  for (const correlation of lost) {
    t.equal(client.replyTo(correlation)?.[1], 41, 'what was cut is NOT_LEADER, outcome none');
  }
  t.end();
});

t.test('one caller in a hurry does not cost the others of its batch their request', (t) => {
  const world = new World(32);
  const cluster = new SimCluster(world, { settings: SETTINGS });
  const leader = serving(cluster);
  const client = new SimClient(cluster, 1);
  client.connect(leader);
  world.run(world.nowUs + 50 * US_PER_MS);
  isolate(cluster, leader);
  // So many batches wait for a majority that the next one stays open. They come slowly enough for
  // each operation to get a batch of its own.
  for (let i = 0; i < 64; i += 1) {
    client.send([36, `fill-${i}`, null, null, null, `fill-${i}`, 60_000], 30_000);
    world.run(world.nowUs + 1_500);
  }
  const hurried = client.send([36, 'hurried', null, null, null, 'hurried', 60_000], 20);
  const patient = client.send([36, 'patient', null, null, null, 'patient', 60_000], 30_000);
  world.run(world.nowUs + 60 * US_PER_MS);
  t.equal(client.replyTo(hurried)?.[1], 22, 'DEADLINE_PASSED: it was not proposed');
  t.equal(client.replyTo(patient), undefined);
  cluster.network.heal();
  world.run(world.nowUs + 5 * SECOND_US);
  t.equal(client.replyTo(patient)?.[1], 0, 'the other is granted');
  t.end();
});

t.test('a connection with very many waits can still release what they wait for', (t) => {
  const world = new World(33);
  const cluster = new SimCluster(world, { settings: SETTINGS });
  const client = new SimClient(cluster, 1);
  client.connect(serving(cluster));
  const held = client.send([36, 'held', null, null, null, 'held', 600_000]);
  world.run(world.nowUs + 100 * US_PER_MS);
  for (let i = 0; i < 16_384; i += 1) {
    client.send([36, `w-${i}`, null, null, null, 'held', 600_000, 600_000]);
    if (i % 256 === 255) world.run(world.nowUs + 5 * US_PER_MS);
  }
  world.run(world.nowUs + SECOND_US);
  const more = client.send([36, 'more', null, null, null, 'held', 600_000, 600_000]);
  const lease = client.replyTo(held)?.[4];
  const released = client.send([38, null, null, null, null, lease]);
  world.run(world.nowUs + SECOND_US);
  t.equal(client.replyTo(more)?.[1], 21, 'one wait too many is LIMIT');
  t.equal(client.replyTo(released)?.[1], 0, 'the release passes');
  t.end();
});
