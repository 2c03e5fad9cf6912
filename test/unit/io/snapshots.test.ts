/** Snapshots on disk: one counts when it is whole, at every point where a crash may leave it. */

import fs from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { restoreNow } from '../../../src/io/snapshots/restore.js';
import {
  chunkFile,
  findChunkDamage,
  readManifest,
  SnapshotFiles,
} from '../../../src/io/snapshots/snapshot-files.js';
import {
  draftPlace,
  incomingPlace,
  listSnapshots,
  openSnapshots,
  publishSnapshot,
  removeOlder,
  removeSnapshot,
  snapshotPlace,
} from '../../../src/io/snapshots/snapshot-folder.js';
import { CLUSTER_ID, machineWith } from './snapshot-maker.js';

/** Writes the snapshot of a machine at `index`, in chunks of about a hundred bytes. */
function makeDraft(folder: string, index: number): SnapshotFiles {
  const machine = machineWith(index);
  const files = new SnapshotFiles(draftPlace(folder, index));
  machine.writeSnapshot(100, (chunk) => files.add(chunk));
  const { now: stampMs, revision } = machine;
  const state = { clusterId: CLUSTER_ID, index, term: 1, stampMs, revision };
  files.finish({ ...state, digest: machine.digest() });
  return files;
}

function makeSnapshot(folder: string, index: number): void {
  publishSnapshot(folder, makeDraft(folder, index).folder, index);
}

function openIn(folder: string) {
  const notes: string[] = [];
  const manifest = openSnapshots(folder, (text) => notes.push(text));
  return { index: manifest?.index ?? 0, manifest, notes };
}

t.test('a published snapshot is found, and is the machine that it was', async (t) => {
  const folder = t.testdir({});
  t.equal(openIn(folder).index, 0, 'none yet');
  makeSnapshot(folder, 5);
  makeSnapshot(folder, 9);
  const { manifest, notes } = openIn(folder);
  t.strictSame(notes, []);
  t.equal(manifest?.index, 9);
  const restored = restoreNow(snapshotPlace(folder, 9), manifest!, Uint32Array.of(3, 4));
  if (typeof restored === 'string') throw new Error(restored);
  t.equal(restored.digest(), machineWith(9).digest());
  t.equal(restored.appliedIndex, 9);
  removeOlder(folder, 9);
  t.strictSame(listSnapshots(folder), [9]);
});

t.test('a draft counts for nothing and is gone after a start, what is fetched stays', async (t) => {
  const folder = t.testdir({});
  makeSnapshot(folder, 5);
  makeDraft(folder, 9);
  fs.mkdirSync(incomingPlace(folder, 7));
  t.equal(openIn(folder).index, 5);
  t.notOk(fs.existsSync(draftPlace(folder, 9)));
  t.ok(fs.existsSync(incomingPlace(folder, 7)));
});

t.test('a snapshot that is half deleted is none', async (t) => {
  const folder = t.testdir({});
  makeSnapshot(folder, 5);
  makeSnapshot(folder, 9);
  fs.rmSync(path.join(snapshotPlace(folder, 9), 'MANIFEST'));
  t.equal(openIn(folder).index, 5);
  t.notOk(fs.existsSync(snapshotPlace(folder, 9)));
  removeSnapshot(snapshotPlace(folder, 5));
  t.equal(openIn(folder).index, 0);
});

t.test(
  'each chunk that is missing, cut or flipped is named, and the older one is used',
  async (t) => {
    const folder = t.testdir({});
    makeSnapshot(folder, 5);
    makeSnapshot(folder, 9);
    const place = snapshotPlace(folder, 9);
    const manifest = readManifest(place);
    if (typeof manifest === 'string') throw new Error(manifest);
    t.ok(manifest.chunks.length > 5);
    for (let position = 0; position < manifest.chunks.length; position += 1) {
      const file = chunkFile(place, position);
      const name = path.basename(file);
      const whole = fs.readFileSync(file);
      for (const [bytes, words] of [
        [whole.subarray(1), 'bytes, wanted'],
        [Buffer.from(whole).fill(whole[3]! ^ 1, 3, 4), 'wrong checksum'],
      ] as const) {
        fs.writeFileSync(file, bytes);
        t.match(findChunkDamage(place, manifest), new RegExp(`${name}.*${words}`));
      }
      fs.rmSync(file);
      const { index, notes } = openIn(folder);
      t.equal(index, 5);
      t.match(notes, [new RegExp(`${name} is missing`)]);
      fs.writeFileSync(file, whole);
    }
    t.equal(openIn(folder).index, 9, 'whole again');
  },
);

t.test('a manifest that is cut or flipped is refused', async (t) => {
  const folder = t.testdir({});
  makeSnapshot(folder, 9);
  const file = path.join(snapshotPlace(folder, 9), 'MANIFEST');
  const whole = fs.readFileSync(file);
  for (const bytes of [whole.subarray(0, 3), whole.subarray(0, -1), Buffer.alloc(0)]) {
    fs.writeFileSync(file, bytes);
    t.match(openIn(folder), { index: 0, notes: [/manifest/] });
  }
  for (let at = 0; at < whole.length; at += 1) {
    const flipped = Buffer.from(whole);
    flipped[at]! ^= 4;
    fs.writeFileSync(file, flipped);
    t.match(openIn(folder), { index: 0, notes: [/manifest has a wrong checksum/] }, `byte ${at}`);
  }
});

t.test('rows that are whole but not those of the manifest are refused by the digest', async (t) => {
  const folder = t.testdir({});
  makeSnapshot(folder, 9);
  const manifest = openIn(folder).manifest!;
  const place = snapshotPlace(folder, 9);
  const digest = '0'.repeat(32);
  t.match(restoreNow(place, { ...manifest, digest }, new Uint32Array(2)), /digest .*, wanted 0+/);
  t.match(restoreNow(place, { ...manifest, index: 8 }, new Uint32Array(2)), /is of index 9/);
});
