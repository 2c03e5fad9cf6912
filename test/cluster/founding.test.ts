import { rmSync } from 'node:fs';
import { createServer } from 'node:net';
import t from 'tap';
import { Cluster } from './harness.js';
import { waitFor } from './wait-for.js';

t.test('five real nodes found themselves, elect, and agree', async (t) => {
  const cluster = await Cluster.start({ test: t });
  const leader = await cluster.leader();
  t.ok(cluster.nodeIds.includes(leader));
  const statuses = await cluster.settled();
  t.equal(new Set(statuses.map((status) => status.digest)).size, 1);
  for (const nodeId of cluster.nodeIds) {
    const serving = cluster
      .output(nodeId)
      .split('\n')
      .filter((line) => line.includes('"serving"'));
    t.equal(serving.length, 1, 'one line says that the node serves');
    t.match(JSON.parse(serving[0] ?? ''), { level: 'info', node: nodeId, durable: true });
  }
});

t.test('killed in the middle of founding, the re-run ends in one cluster', async (t) => {
  const cluster = await Cluster.start({ test: t, nodes: 3, waitsForLeader: false });
  // Whenever this comes, before, between or after the stores, the outcome must be the same.
  await waitFor('node 1 to speak', () => cluster.output(1).includes('"message"'));
  await cluster.kill(1);
  cluster.launchOnly(1, true);
  await cluster.leader();
  const ids = cluster.nodeIds.map(
    (id) => /"cluster":"([0-9a-f]{32})"/.exec(cluster.output(id))?.[1],
  );
  t.equal(new Set(ids).size, 1);
  t.match(ids[0], /^[0-9a-f]{32}$/);
});

t.test('SIGTERM is an orderly end with status 0; --bootstrap again changes nothing', async (t) => {
  const cluster = await Cluster.start({ test: t, nodes: 3 });
  const leader = await cluster.leader();
  t.equal(await cluster.terminate(leader), 'status 0');
  const next = await cluster.leaderOtherThan(leader);
  t.not(next, leader);
  t.match(cluster.output(leader), /"message":"stopped"/);
  cluster.launchOnly(leader, true);
  await waitFor('the node to answer', () => cluster.status(leader));
  await cluster.settled();
});

t.test('a wiped node is refused with 78 and does not touch the cluster', async (t) => {
  const cluster = await Cluster.start({ test: t, nodes: 3 });
  const leader = await cluster.leader();
  const victim = cluster.nodeIds.find((nodeId) => nodeId !== leader) ?? 0;
  await cluster.kill(victim);
  rmSync(cluster.dataFolder(victim), { recursive: true });
  for (const isBootstrap of [false, true]) {
    cluster.launchOnly(victim, isBootstrap);
    t.equal(await cluster.ended(victim), 'status 78');
  }
  t.match(
    cluster.output(victim),
    /Refusing to join cluster .* as node \d.*cannot replace a member/,
  );
  t.equal(await cluster.leader(), leader);
});

t.test('a second process on one folder is refused with 78', async (t) => {
  const cluster = await Cluster.start({
    test: t,
    nodes: 1,
    nodeWords: () => ['--zone', 'rack-1'],
  });
  t.match(cluster.output(1), /"zone":"rack-1"/);
  const second = await Cluster.start({
    test: t,
    nodes: 1,
    nodeWords: () => ['--data', cluster.dataFolder(1)],
    waitsForLeader: false,
  });
  t.equal(await second.ended(1), 'status 78');
  t.match(second.output(1), /FOLDER_LOCKED/);
});

t.test('a port that is taken is refused with 78', async (t) => {
  const server = createServer();
  t.teardown(() => server.close());
  const port = await new Promise<number>((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      resolve(typeof address === 'object' && address !== null ? address.port : 0);
    });
  });
  const cluster = await Cluster.start({
    test: t,
    nodes: 1,
    nodeWords: () => ['--peer', `127.0.0.1:${port}`],
    waitsForLeader: false,
  });
  t.equal(await cluster.ended(1), 'status 78');
  t.match(cluster.output(1), /cannot listen: .*EADDRINUSE/);
});
