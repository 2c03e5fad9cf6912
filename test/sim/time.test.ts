import t from 'tap';
import { marginMs } from '../../src/client/deadline.js';
import { OutcomeCode } from '../../src/core/locks/outcome.js';
import { type Reply, SimClient } from './sim-client.js';
import { SimCluster, type SimNode } from './sim-cluster.js';
import { World } from './world.js';

const US_PER_MS = 1_000;
const SECOND_US = 1_000_000;
/** The assumed bound of clock rates (I8). */
const RHO = 0.01;

function servingNode(cluster: SimCluster, world: World): SimNode {
  world.run(world.nowUs + 10 * SECOND_US, () => cluster.serving() !== undefined);
  const node = cluster.serving();
  if (node === undefined) throw new Error('nobody serves');
  return node;
}

function answer(world: World, client: SimClient, correlation: number): Reply {
  world.run(world.nowUs + 5 * SECOND_US, () => client.replyTo(correlation) !== undefined);
  const reply = client.replyTo(correlation);
  if (reply === undefined) throw new Error(`request ${correlation} is not answered`);
  return reply;
}

/** Asks the leader of the moment until it answers with something else than a refusal to serve. */
function ask(cluster: SimCluster, client: SimClient, operation: readonly unknown[]): Reply {
  const { world } = cluster;
  for (;;) {
    client.connect(servingNode(cluster, world));
    const reply = answer(world, client, client.send(operation));
    if (reply[1] < 40) return reply;
    world.run(world.nowUs + 20 * US_PER_MS);
  }
}

t.test('under load cluster time runs within 1 % of real time', (t) => {
  const world = new World(11);
  const cluster = new SimCluster(world);
  const client = new SimClient(cluster, 1);
  client.connect(servingNode(cluster, world));
  const first = answer(world, client, client.send([36, 'first', null, null, null, 'a', 60_000]));
  const startedUs = world.nowUs;
  let sent = 0;
  const load = (): void => {
    for (let i = 0; i < 4; i += 1) {
      sent += 1;
      client.send([36, `load-${sent}`, null, null, null, `lock-${sent}`, 1_000]);
    }
    if (world.nowUs < startedUs + 10 * SECOND_US) world.after(US_PER_MS, load);
  };
  load();
  world.run(startedUs + 10 * SECOND_US);
  const last = answer(world, client, client.send([36, 'last', null, null, null, 'z', 60_000]));
  const clusterMs = (last[2] as number) - (first[2] as number);
  const trueMs = (world.nowUs - startedUs) / US_PER_MS;
  const drift = Math.abs(clusterMs / trueMs - 1);
  t.comment(`${sent} operations in ${trueMs} ms, cluster time ${clusterMs} ms`);
  t.ok(drift < 0.01, `drift ${(drift * 100).toFixed(3)} %`);
  t.end();
});

t.test('10,000 leases, clocks at opposite ends of rho: nobody believes too long', (t) => {
  let smallestUs = Number.POSITIVE_INFINITY;
  let judged = 0;
  for (const [nodeRate, clientRate] of [[1 + RHO, 1 - RHO] as const, [1 - RHO, 1 + RHO] as const]) {
    const world = new World(12);
    const cluster = new SimCluster(world);
    for (const node of cluster.nodes) node.clockRate = nodeRate;
    const client = new SimClient(cluster, 1);
    client.connect(servingNode(cluster, world));
    const leases: { sentUs: number; first: number; second: number }[] = [];
    for (let i = 0; i < 5_000; i += 1) {
      const ttlMs = 1_000 + world.prng.below(4_000);
      const name = `lock-${i}`;
      const sentUs = world.nowUs;
      const first = client.send([36, `a-${i}`, null, null, null, name, ttlMs]);
      const second = client.send([36, `b-${i}`, null, null, null, name, ttlMs, 60_000]);
      leases.push({ sentUs, first, second });
      if (i % 20 === 19) world.run(world.nowUs + 5 * US_PER_MS);
    }
    world.run(30 * SECOND_US);
    for (const lease of leases) {
      if (client.replyTo(lease.second)?.[1] !== OutcomeCode.Ok) t.fail('a waiter is not granted');
      const reply = client.replyTo(lease.first) as Reply;
      const leaseMs = (reply[7] as number) - (reply[2] as number);
      const safeMs = leaseMs - marginMs(leaseMs);
      const believesUntilUs = lease.sentUs + (safeMs * US_PER_MS) / clientRate;
      smallestUs = Math.min(smallestUs, client.arrivedUs(lease.second) - believesUntilUs);
      judged += 1;
    }
  }
  t.equal(judged, 10_000);
  t.comment(`smallest gap ${(smallestUs / US_PER_MS).toFixed(3)} ms`);
  t.ok(smallestUs > 0, 'the earlier holder had stopped before the next grant arrived');
  t.end();
});

function changeLeader(cluster: SimCluster, how: 'transfer' | 'crash'): number {
  const { world } = cluster;
  const old = servingNode(cluster, world);
  const atUs = world.nowUs;
  if (how === 'crash') {
    cluster.crash(old);
    world.after(250 * US_PER_MS, () => cluster.start(old));
  } else {
    const client = new SimClient(cluster, 99);
    client.connect(old);
    client.send([13, (old.nodeId % cluster.nodes.length) + 1]);
  }
  const isChanged = (): boolean => {
    const now = cluster.serving();
    return now !== undefined && now !== old;
  };
  if (!world.run(world.nowUs + 10 * SECOND_US, isChanged)) throw new Error('no new leader');
  return world.nowUs - atUs;
}

for (const how of ['transfer', 'crash'] as const) {
  t.test(`twenty leader changes at half a TTL (${how}): renewed lives, orphan dies`, (t) => {
    const ttlMs = 2_000;
    const world = new World(13);
    const cluster = new SimCluster(world);
    const client = new SimClient(cluster, 1);
    const kept = ask(cluster, client, [36, 'kept', null, null, null, 'kept', ttlMs]);
    const orphan = ask(cluster, client, [36, 'orphan', null, null, null, 'orphan', ttlMs]);
    const heirAsked = ask(cluster, client, [36, 'heir', null, null, null, 'orphan', ttlMs, 60_000]);
    t.equal(heirAsked[1], OutcomeCode.Queued);
    const orphanUs = world.nowUs;
    let boundUs = (ttlMs + 200) * US_PER_MS;
    let freedUs = 0;
    for (let change = 0; change < 20; change += 1) {
      const gapUs = changeLeader(cluster, how);
      if (freedUs === 0) boundUs += gapUs + 200 * US_PER_MS;
      const untilUs = world.nowUs + (ttlMs / 2) * US_PER_MS - gapUs;
      while (world.nowUs < untilUs) {
        const renewed = ask(cluster, client, [37, null, null, null, null, kept[4]]);
        if (renewed[1] !== OutcomeCode.Ok) t.fail(`renewal ${change} answered ${renewed[1]}`);
        const heir = ask(cluster, client, [36, 'heir', null, null, null, 'orphan', ttlMs, 60_000]);
        if (freedUs === 0 && heir[1] === OutcomeCode.Ok) freedUs = world.nowUs;
        world.run(world.nowUs + 100 * US_PER_MS);
      }
    }
    const got = ask(cluster, client, [6, 'kept']);
    t.match(got[4], ['kept', Number, [kept[5]]], 'the renewed lease has the same token');
    t.ok(freedUs > 0, 'the orphan is freed');
    const lateMs = (freedUs - orphanUs) / US_PER_MS - ttlMs;
    t.comment(`orphan freed ${lateMs.toFixed(0)} ms late, bound ${boundUs / US_PER_MS - ttlMs}`);
    t.ok(freedUs - orphanUs >= ttlMs * US_PER_MS * 0.99, 'not early');
    t.ok(freedUs - orphanUs <= boundUs, 'within the bound of I8');
    t.equal(orphan[1], OutcomeCode.Ok);
    t.end();
  });
}
