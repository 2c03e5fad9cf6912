/** Snapshots on real nodes: the log stays short, a node that was away comes back by one. */

import t from 'tap';
import { acquireOperation, type Grant, grantIn } from './acceptance/operations.js';
import { RawConnection } from './acceptance/raw-connection.js';
import { Cluster } from './harness.js';
import { waitFor } from './wait-for.js';

const TTL_MS = 3_600_000;
const SNAPSHOT_ENTRIES = 60;
const TAIL_ENTRIES = 20;

const WORDS = [
  '--snapshot-entries',
  String(SNAPSHOT_ENTRIES),
  '--log-tail-entries',
  String(TAIL_ENTRIES),
];

/** Acquires one lock after the other, each in an entry of its own, and notes every grant. */
async function acquireMany(cluster: Cluster, grants: Map<string, Grant>, count: number) {
  const connection = await RawConnection.open(cluster.endpoint(await cluster.leader()));
  for (let at = 0; at < count; at += 1) {
    const name = `snap/${grants.size + 1}`;
    grants.set(name, grantIn(await connection.call(acquireOperation(name, name, TTL_MS))));
  }
  connection.close();
}

async function counter(cluster: Cluster, nodeId: number, name: string): Promise<number> {
  return (await cluster.status(nodeId)).counters[name] ?? -1;
}

/** Asks for every grant again under its request id: same lease, same token. */
async function demandSameGrants(cluster: Cluster, grants: ReadonlyMap<string, Grant>) {
  const connection = await RawConnection.open(cluster.endpoint(await cluster.leader()));
  for (const [name, grant] of grants) {
    const again = grantIn(await connection.call(acquireOperation(name, name, TTL_MS)));
    if (JSON.stringify(again) === JSON.stringify(grant)) continue;
    throw new Error(`${name} was granted ${JSON.stringify(grant)}, now ${JSON.stringify(again)}`);
  }
  connection.close();
}

t.test('snapshots shorten the log, re-seed who was away, and keep every result', async (t) => {
  const settings = { resultRetentionMs: TTL_MS };
  const cluster = await Cluster.start({ test: t, nodes: 3, settings, nodeWords: () => WORDS });
  const grants = new Map<string, Grant>();
  await acquireMany(cluster, grants, 3 * SNAPSHOT_ENTRIES);
  for (const nodeId of cluster.nodeIds) {
    await waitFor(`node ${nodeId} to have dropped log`, async () => {
      return (await counter(cluster, nodeId, 'log_base_index')) > SNAPSHOT_ENTRIES;
    });
    t.equal(await counter(cluster, nodeId, 'snapshots_discarded'), 0);
    t.equal(await counter(cluster, nodeId, 'snapshots_failed'), 0);
  }
  const leader = await cluster.leader();
  const away = cluster.nodeIds.find((nodeId) => nodeId !== leader) as number;
  await cluster.kill(away);
  const before = await counter(cluster, leader, 'log_base_index');
  await acquireMany(cluster, grants, 3 * SNAPSHOT_ENTRIES);
  await waitFor('the leader to have dropped what the other lacks', async () => {
    return (await counter(cluster, leader, 'log_base_index')) > before + 2 * SNAPSHOT_ENTRIES;
  });
  await cluster.restart(away);
  await waitFor('it to install a snapshot', async () => {
    return (await counter(cluster, away, 'snapshots_installed')) === 1;
  });
  await cluster.settled();
  t.equal(await counter(cluster, away, 'snapshots_discarded'), 0);

  await acquireMany(cluster, grants, 2 * SNAPSHOT_ENTRIES);
  await waitFor('the node that was re-seeded to make a snapshot of its own', async () => {
    return (await counter(cluster, away, 'snapshots_taken')) > 0;
  });
  await Promise.all(cluster.nodeIds.map((nodeId) => cluster.kill(nodeId)));
  await Promise.all(cluster.nodeIds.map((nodeId) => cluster.restart(nodeId)));
  await cluster.leader();
  await cluster.settled();
  for (const nodeId of cluster.nodeIds) {
    t.match(cluster.output(nodeId), /restored a snapshot/, `node ${nodeId} started from one`);
  }
  await demandSameGrants(cluster, grants);
  const tokens = [...grants.values()].map(({ token }) => token);
  t.strictSame(
    tokens,
    [...new Set(tokens)].sort((a, b) => a - b),
    'tokens rise',
  );
  await acquireMany(cluster, grants, 1);
  const newest = [...grants.values()].at(-1) as Grant;
  t.ok(newest.token > Math.max(...tokens), 'and go on rising');
});
