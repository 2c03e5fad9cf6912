/** A backup is fetched from a node that serves: waited for, checked, and named last. */

import fs from 'node:fs';
import path from 'node:path';
import t, { type Test } from 'tap';
import { checkBackup } from '../../../src/io/backup/backup-folder.js';
import { judgeBackup } from '../../../src/io/peers/membership.js';
import { PeerServer } from '../../../src/io/peers/peer-server.js';
import { fetchSnapshot } from '../../../src/io/peers/snapshot-client.js';
import { SnapshotLender } from '../../../src/io/snapshots/lender.js';
import { chunkFile, SnapshotFiles } from '../../../src/io/snapshots/snapshot-files.js';
import { snapshotPlace } from '../../../src/io/snapshots/snapshot-folder.js';
import { type BackupPlan, takeBackup } from '../../../src/server/backup.js';
import { encodeFounding } from '../../../src/wire/founding.js';
import { PEER_VERSION } from '../../../src/wire/peer.js';
import { waitFor } from '../../cluster/wait-for.js';
import { flipAt, foundingOf } from '../io/scrub-ground.js';
import { CLUSTER_ID, machineWith } from '../io/snapshot-maker.js';

const INDEX = 200;
const DISK_ID = new Uint8Array(16).fill(1);

/** A peer port as node 1 of a founded cluster has it; its snapshot is made when it is wanted. */
async function node(t: Test, { isFounded = true, makes = true } = {}) {
  const dataFolder = path.join(t.testdir({}), 'node');
  const wanted: number[] = [];
  const lender = new SnapshotLender(dataFolder, 0);
  const record = foundingOf(DISK_ID);
  const server = new PeerServer({
    host: '127.0.0.1',
    port: 0,
    nodeId: 1,
    founding: {
      identity: () => {
        const founding = isFounded ? encodeFounding(record) : null;
        return { nodeId: 1, diskId: DISK_ID, founding };
      },
      accept: async () => undefined,
    },
    onNote: () => undefined,
  });
  const port = await server.listen();
  t.teardown(() => server.close());
  server.lender = lender;
  const membership = { nodeId: 1, clusterId: CLUSTER_ID, members: [], clusterFeatureLevel: 1 };
  const hello = { version: PEER_VERSION, featureLevel: 1, nodeId: 1, clusterId: CLUSTER_ID };
  server.setGate({
    hello: { ...hello, diskId: DISK_ID },
    judge: (given, isBackup) => {
      if (!isBackup) t.fail('a backup says what it is');
      return judgeBackup(given, membership);
    },
    onMessage: () => t.fail('a backup carries no message'),
  });
  server.onSnapshotWanted = (leastIndex) => {
    wanted.push(leastIndex);
    if (!makes || lender.index !== 0) return;
    const machine = machineWith(INDEX);
    const files = new SnapshotFiles(snapshotPlace(dataFolder, INDEX));
    machine.writeSnapshot(5_000, (chunk) => files.add(chunk));
    files.finish({
      clusterId: CLUSTER_ID,
      index: INDEX,
      term: 2,
      stampMs: machine.now,
      revision: machine.revision,
      digest: machine.digest(),
    });
    lender.index = INDEX;
  };
  const to = path.join(t.testdirName, 'backup');
  const address = { host: '127.0.0.1', port };
  const notes: string[] = [];
  const onNote = (text: string) => notes.push(text);
  const plan: BackupPlan = { to, peers: [address], leastIndex: 150, waitMs: 5_000, onNote };
  return { server, dataFolder, lender, wanted, plan, to, address, notes, hello };
}

t.test('a snapshot that is not there yet is asked for, fetched, checked and named', async (t) => {
  const { plan, to, wanted, lender } = await node(t);
  const record = await takeBackup(plan);
  t.strictSame(wanted, [150], 'once: then it is there');
  const digest = machineWith(INDEX).digest();
  t.match(record, { index: INDEX, term: 2, nodeId: 1, digest, clusterId: '07'.repeat(16) });
  t.match(record.members, [{ nodeId: 1 }, { nodeId: 2 }, { nodeId: 3 }]);
  const { faults, machine } = checkBackup(to);
  t.strictSame(faults, []);
  t.equal(machine?.digest(), digest);
  t.equal(fs.statSync(to).mode & 0o777, 0o700, 'it holds secrets');
  t.strictSame(fs.readdirSync(t.testdirName).sort(), ['backup', 'node']);
  await waitFor('the node to be free for its next snapshot', () => !lender.isLent);
  await t.rejects(takeBackup(plan), { code: 'FOLDER_NOT_EMPTY' });
});

t.test(
  'a node that is down is passed over; if none gives one in time, it is said why',
  async (t) => {
    const { plan, to, address, notes } = await node(t, { makes: false });
    const nobody = { host: '127.0.0.1', port: 1 };
    const slow = { ...plan, peers: [nobody, address], waitMs: 600 };
    await t.rejects(takeBackup(slow), {
      code: 'NO_SNAPSHOT',
      message: /127.0.0.1:1 did not answer.*it has no snapshot of index 150 or later/,
    });
    t.strictSame(notes, ['waiting for a snapshot of index 150']);
    t.notOk(fs.existsSync(to));
    t.strictSame(fs.readdirSync(t.testdirName), [], 'nothing is left of it');
  },
);

t.test('a node that is not founded, or of another cluster, gives nothing', async (t) => {
  const { plan } = await node(t, { isFounded: false });
  await t.rejects(takeBackup({ ...plan, waitMs: 0 }), { message: /it is not founded/ });
  const { dataFolder, address, hello } = await node(t);
  const other = { ...hello, clusterId: new Uint8Array(16).fill(8), diskId: DISK_ID };
  const task = { dataFolder, address, hello: other, leastIndex: 1, isBackup: true };
  await t.rejects(fetchSnapshot(task), /refuses this node.*of cluster 08/);
});

t.test('a chunk that is damaged on the node never becomes a backup', async (t) => {
  const { plan, to, server, dataFolder } = await node(t);
  const make = server.onSnapshotWanted!;
  server.onSnapshotWanted = (leastIndex) => {
    make(leastIndex);
    flipAt(chunkFile(snapshotPlace(dataFolder, INDEX), 1), 10);
  };
  await t.rejects(takeBackup({ ...plan, waitMs: 500 }), {
    code: 'NO_SNAPSHOT',
    message: /chunk-000001 has a wrong checksum/,
  });
  t.notOk(fs.existsSync(to));
});
