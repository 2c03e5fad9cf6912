/** A repair takes a member’s snapshot when it is whole, new enough and gives its own digest. */

import fs from 'node:fs';
import path from 'node:path';
import t, { type Test } from 'tap';
import { PeerServer } from '../../../src/io/peers/peer-server.js';
import { readIdentity } from '../../../src/io/scrub/state-check.js';
import { SnapshotLender } from '../../../src/io/snapshots/lender.js';
import { SnapshotFiles } from '../../../src/io/snapshots/snapshot-files.js';
import {
  draftPlace,
  incomingPlace,
  publishSnapshot,
} from '../../../src/io/snapshots/snapshot-folder.js';
import { fetchFrom } from '../../../src/server/repair.js';
import { PEER_VERSION, PeerVerdict } from '../../../src/wire/peer.js';
import { makeGround } from '../io/scrub-ground.js';
import { CLUSTER_ID, machineWith } from '../io/snapshot-maker.js';

const INDEX = 60;

/** A member that lends a snapshot of INDEX; `digest`: what its manifest says. */
async function member(t: Test, folder: string, digest: string) {
  const machine = machineWith(INDEX);
  const files = new SnapshotFiles(draftPlace(folder, INDEX));
  machine.writeSnapshot(500, (chunk) => files.add(chunk));
  const { now: stampMs, revision } = machine;
  const state = { clusterId: CLUSTER_ID, index: INDEX, term: 1, stampMs, revision };
  files.finish({ ...state, digest: digest || machine.digest() });
  publishSnapshot(folder, files.folder, INDEX);
  const identity = () => ({ nodeId: 2, diskId: new Uint8Array(16), founding: null });
  const server = new PeerServer({
    host: '127.0.0.1',
    port: 0,
    nodeId: 2,
    founding: { identity, accept: async () => undefined },
    onNote: () => undefined,
  });
  const port = await server.listen();
  server.lender = new SnapshotLender(folder, INDEX);
  const diskId = new Uint8Array(16).fill(2);
  const asked: number[] = [];
  server.setGate({
    hello: { version: PEER_VERSION, featureLevel: 1, nodeId: 2, clusterId: CLUSTER_ID, diskId },
    judge: ({ nodeId }) => {
      asked.push(nodeId);
      return { verdict: PeerVerdict.Welcome, text: '' };
    },
    onMessage: () => t.fail('a fetch carries no message'),
  });
  t.teardown(() => server.close());
  return { address: { host: '127.0.0.1', port }, asked };
}

async function setUp(t: Test, digest = '') {
  const parent = t.testdir({});
  const { address, asked } = await member(t, path.join(parent, 'member'), digest);
  const dataFolder = await makeGround(t, { last: 20, folder: path.join(parent, 'own') });
  const { state, founding } = readIdentity(dataFolder);
  const task = { dataFolder, state: state!, founding: founding! };
  return { address, asked, task, dataFolder };
}

t.test('the snapshot is fetched as this node, and lies ready', async (t) => {
  const { address, asked, task, dataFolder } = await setUp(t);
  const manifest = await fetchFrom({ ...task, leastIndex: INDEX }, address);
  t.match(manifest, { index: INDEX, digest: machineWith(INDEX).digest() });
  t.ok(fs.existsSync(path.join(incomingPlace(dataFolder, INDEX), 'MANIFEST')));
  t.strictSame(asked, [1]);
});

t.test('one that is too old is not taken', async (t) => {
  const { address, task } = await setUp(t);
  const asking = fetchFrom({ ...task, leastIndex: INDEX + 1 }, address);
  await t.rejects(asking, { message: /it has no snapshot of index 61 or later/ });
});

t.test('one that gives another state than it says is refused and forgotten', async (t) => {
  const { address, task, dataFolder } = await setUp(t, '0'.repeat(32));
  const asking = fetchFrom({ ...task, leastIndex: INDEX }, address);
  await t.rejects(asking, { message: /its snapshot has digest [0-9a-f]{32}, wanted 000/ });
  t.notOk(fs.existsSync(incomingPlace(dataFolder, INDEX)));
});
