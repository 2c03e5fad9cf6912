/** A snapshot travels from member to member: whole or not at all, and no chunk twice. */

import fs from 'node:fs';
import path from 'node:path';
import t, { type Test } from 'tap';
import { PeerServer } from '../../../src/io/peers/peer-server.js';
import { fetchSnapshot } from '../../../src/io/peers/snapshot-client.js';
import { SnapshotLender } from '../../../src/io/snapshots/lender.js';
import { restoreNow } from '../../../src/io/snapshots/restore.js';
import { chunkFile, SnapshotFiles } from '../../../src/io/snapshots/snapshot-files.js';
import {
  draftPlace,
  incomingPlace,
  publishSnapshot,
  snapshotPlace,
} from '../../../src/io/snapshots/snapshot-folder.js';
import { PEER_VERSION, type PeerHello, PeerVerdict } from '../../../src/wire/peer.js';
import type { ChunkName } from '../../../src/wire/snapshot-talk.js';
import { CLUSTER_ID, machineWith } from './snapshot-maker.js';

const INDEX = 60;

function helloOf(nodeId: number): PeerHello {
  const diskId = new Uint8Array(16).fill(nodeId);
  return { version: PEER_VERSION, featureLevel: 1, nodeId, clusterId: CLUSTER_ID, diskId };
}

/** A lender that breaks off after so many chunks, or changes one. */
class OddLender extends SnapshotLender {
  /** Chunks given out. */
  given = 0;
  breakAfter = Number.POSITIVE_INFINITY;
  changes = -1;
  onBreak = (): void => undefined;

  override async chunk(name: ChunkName): Promise<Uint8Array> {
    if (this.given === this.breakAfter) this.onBreak();
    this.given += 1;
    const chunk = await super.chunk(name);
    if (name.position === this.changes) chunk[0]! ^= 1;
    return chunk;
  }
}

async function setUp(t: Test) {
  const folders = t.testdir({ leader: {}, follower: {} });
  const leader = path.join(folders, 'leader');
  const dataFolder = path.join(folders, 'follower');
  fs.mkdirSync(path.join(dataFolder, 'snapshots'));
  const machine = machineWith(INDEX);
  const files = new SnapshotFiles(draftPlace(leader, INDEX));
  machine.writeSnapshot(500, (chunk) => files.add(chunk));
  const { now: stampMs, revision } = machine;
  const state = { clusterId: CLUSTER_ID, index: INDEX, term: 1, stampMs, revision };
  const manifest = files.finish({ ...state, digest: machine.digest() });
  publishSnapshot(leader, files.folder, INDEX);
  const lender = new OddLender(leader, INDEX);
  const founding = {
    identity: () => ({ nodeId: 1, diskId: new Uint8Array(16), founding: null }),
    accept: async () => undefined,
  };
  const server = new PeerServer({
    host: '127.0.0.1',
    port: 0,
    nodeId: 1,
    founding,
    onNote: () => undefined,
  });
  const port = await server.listen();
  server.lender = lender;
  server.setGate({
    hello: helloOf(1),
    judge: ({ nodeId }) =>
      nodeId === 2
        ? { verdict: PeerVerdict.Welcome, text: '' }
        : { verdict: PeerVerdict.UnknownNode, text: 'who is that' },
    onMessage: () => t.fail('a fetch carries no message'),
  });
  t.teardown(() => server.close());
  const fetch = (fields: { leastIndex?: number; nodeId?: number } = {}) =>
    fetchSnapshot({
      dataFolder,
      address: { host: '127.0.0.1', port },
      hello: helloOf(fields.nodeId ?? 2),
      leastIndex: fields.leastIndex ?? 1,
      answerMsMax: 2_000,
    });
  return { leader, dataFolder, lender, server, manifest, machine, fetch };
}

t.test('a fetched snapshot is the machine that the leader had', async (t) => {
  const { dataFolder, lender, manifest, machine, fetch } = await setUp(t);
  t.notOk(lender.isLent);
  const result = await fetch({ leastIndex: INDEX });
  t.ok(lender.isLent, 'nothing is compacted under it');
  t.strictSame(result.manifest, manifest);
  t.equal(result.resumed, 0);
  const restored = restoreNow(incomingPlace(dataFolder, INDEX), manifest, new Uint32Array(2));
  t.ok(typeof restored !== 'string' && restored.digest() === machine.digest());
  const again = await fetch();
  t.equal(again.resumed, manifest.chunks.length, 'a second fetch finds everything there');
});

t.test('a fetch that breaks off at any chunk goes on there', async (t) => {
  const { lender, server, manifest, fetch } = await setUp(t);
  const count = manifest.chunks.length;
  t.ok(count >= 10, `${count} chunks`);
  lender.onBreak = () => {
    server.setGate(null);
  };
  const gate = {
    hello: helloOf(1),
    judge: () => ({ verdict: PeerVerdict.Welcome, text: '' }),
    onMessage: () => undefined,
  };
  for (let chunk = 1; chunk < count; chunk += 1) {
    // One more chunk arrives each time, then the connection is gone.
    lender.given = 0;
    lender.breakAfter = 1;
    await t.rejects(fetch(), /other end closed|ECONNRESET/);
    server.setGate(gate);
  }
  lender.breakAfter = Number.POSITIVE_INFINITY;
  lender.given = 0;
  const { resumed } = await fetch();
  t.equal(resumed, count - 1);
  t.equal(lender.given, 1, 'only what was missing was asked for');
});

t.test('a chunk that arrives damaged is refused, and so is one damaged since', async (t) => {
  const { dataFolder, lender, manifest, fetch } = await setUp(t);
  lender.changes = 3;
  await t.rejects(fetch(), /its chunk-000003 has a wrong checksum/);
  t.notOk(fs.existsSync(chunkFile(incomingPlace(dataFolder, INDEX), 3)));
  lender.changes = -1;
  const first = chunkFile(incomingPlace(dataFolder, INDEX), 0);
  fs.writeFileSync(first, fs.readFileSync(first).subarray(1));
  const { resumed } = await fetch();
  t.equal(resumed, 2, 'of three, one was damaged on this disk');
  t.equal(lender.given, manifest.chunks.length + 2);
});

t.test('no member, no snapshot, too old or gone: each is refused by name', async (t) => {
  const { leader, dataFolder, lender, fetch } = await setUp(t);
  await t.rejects(fetch({ nodeId: 9 }), /refuses this node: who is that/);
  await t.rejects(fetch({ leastIndex: INDEX + 1 }), /no snapshot of index 61 or later/);
  fs.rmSync(chunkFile(snapshotPlace(leader, INDEX), 2));
  await t.rejects(fetch(), /snapshot of index 60 is gone/);
  lender.index = 0;
  await t.rejects(fetch(), /no snapshot/);
  t.notOk(fs.existsSync(path.join(incomingPlace(dataFolder, INDEX), 'MANIFEST')));
});

t.test('what was gathered of another snapshot goes when a newer one is fetched', async (t) => {
  const { dataFolder, fetch } = await setUp(t);
  fs.mkdirSync(incomingPlace(dataFolder, 12));
  await fetch();
  t.strictSame(fs.readdirSync(path.join(dataFolder, 'snapshots')), [
    path.basename(incomingPlace(dataFolder, INDEX)),
  ]);
});
