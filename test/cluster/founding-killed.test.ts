/**
 * Killed while a cluster is founded, on real folders: some members have the founding record on
 * disk, one hangs in the sync of it. Whoever is started again ends in the one cluster.
 */

import t, { type Test } from 'tap';
import { StateStore } from '../../src/io/log/state-store.js';
import { hexOf } from '../../src/server/founding.js';
import { readRecord } from '../../src/server/founding-peers.js';
import { hasShim, Shim } from '../shim/fsync-shim.js';
import { Cluster } from './harness.js';
import { waitFor } from './wait-for.js';

const NODES = 3;
const skip = hasShim() ? false : 'there is no C compiler';

/** Folders are ready and nobody is founded: node 1, which will bootstrap, does not run. */
async function unfounded(t: Test): Promise<{ cluster: Cluster; shims: Map<number, Shim> }> {
  const shims = new Map<number, Shim>();
  const cluster = await Cluster.start({
    test: t,
    nodes: NODES,
    waitsForLeader: false,
    prepareFolder: (nodeId, folder) => {
      const shim = new Shim(folder);
      // Its folder cannot be made: it founds nothing.
      if (nodeId === 1) shim.hold();
      shims.set(nodeId, shim);
    },
    nodeEnvironment: (nodeId) => shims.get(nodeId)?.environment ?? {},
  });
  for (let nodeId = 2; nodeId <= NODES; nodeId += 1) {
    await waitFor(`node ${nodeId} to wait`, () => {
      return cluster.output(nodeId).includes('waiting to be founded');
    });
  }
  await cluster.kill(1);
  shims.get(1)?.pass();
  t.notOk(cluster.output(1).includes('"serving"'), 'node 1 has done nothing yet');
  return { cluster, shims };
}

/** The cluster that a node which does not run was founded in, '' for none. */
function foundedIn(cluster: Cluster, nodeId: number): string {
  const store = StateStore.open(cluster.dataFolder(nodeId), nodeId, false);
  const { founding } = store.current;
  const id = founding === null ? '' : hexOf(readRecord(founding).clusterId);
  store.close();
  return id;
}

/** Kills everybody, looks at the disks, starts everybody again with or without --bootstrap. */
async function startAgain(
  t: Test,
  cluster: Cluster,
  shims: ReadonlyMap<number, Shim>,
  isBootstrap: boolean,
): Promise<{ before: string[]; after: string[] }> {
  const ids = cluster.nodeIds;
  await Promise.all(ids.map((nodeId) => cluster.kill(nodeId)));
  for (const shim of shims.values()) shim.pass();
  const before = ids.map((nodeId) => foundedIn(cluster, nodeId));
  for (const nodeId of ids) cluster.launchOnly(nodeId, isBootstrap && nodeId === 1);
  await cluster.leader();
  const statuses = await cluster.settled();
  t.equal(statuses.length, NODES);
  await Promise.all(ids.map((nodeId) => cluster.kill(nodeId)));
  return { before, after: ids.map((nodeId) => foundedIn(cluster, nodeId)) };
}

/** The record is on node 2's disk, and node 3 hangs in the sync of it. */
async function halfStored(t: Test): Promise<{ cluster: Cluster; shims: Map<number, Shim> }> {
  const { cluster, shims } = await unfounded(t);
  shims.get(3)?.hold();
  cluster.launchOnly(1, true);
  await waitFor('node 2 to be founded', () => cluster.output(2).includes('"serving"'));
  await waitFor('node 3 to store the record', () => shims.get(3)?.isHolding);
  return { cluster, shims };
}

t.test(
  'killed before the first store, nobody is founded, and the next founds',
  { skip },
  async (t) => {
    const { cluster, shims } = await unfounded(t);
    shims.get(2)?.hold();
    cluster.launchOnly(1, true);
    await waitFor('node 2 to store the record', () => shims.get(2)?.isHolding);
    const { before, after } = await startAgain(t, cluster, shims, true);
    t.same(before, ['', '', ''], 'nothing was on any disk');
    t.match(after[0], /^[0-9a-f]{32}$/);
    t.same(after, [after[0], after[0], after[0]], 'one cluster');
  },
);

for (const isBootstrap of [true, false]) {
  const how = isBootstrap ? 'with' : 'without';
  t.test(`killed between two stores, a re-run ${how} --bootstrap adopts`, { skip }, async (t) => {
    const { cluster, shims } = await halfStored(t);
    const { before, after } = await startAgain(t, cluster, shims, isBootstrap);
    t.match(before[1], /^[0-9a-f]{32}$/, 'node 2 had it on disk');
    t.equal(before[2], '', 'node 3 had not');
    t.same(after, [before[1], before[1], before[1]], 'what stood was adopted');
  });
}

t.test('killed when only the bootstrapper lacks the record, it adopts it', { skip }, async (t) => {
  const { cluster, shims } = await halfStored(t);
  shims.get(1)?.hold();
  shims.get(3)?.pass();
  await waitFor('node 3 to be founded', () => cluster.output(3).includes('"serving"'));
  await waitFor('node 1 to store the record', () => shims.get(1)?.isHolding);
  const { before, after } = await startAgain(t, cluster, shims, true);
  t.equal(before[0], '', 'node 1 stores last');
  t.match(before[1], /^[0-9a-f]{32}$/);
  t.same(before.slice(1), [before[1], before[1]], 'and the others had it');
  t.same(after, [before[1], before[1], before[1]], 'what stood was adopted');
});
