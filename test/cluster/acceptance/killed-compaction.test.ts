/**
 * Death at every chunk boundary of a snapshot that is being made: of the process by SIGKILL, of the
 * worker's thread alone. What stood before stands afterwards.
 */

import fs from 'node:fs';
import path from 'node:path';
import t, { type Test } from 'tap';
import { readManifest } from '../../../src/io/snapshots/snapshot-files.js';
import { listSnapshots, snapshotPlace } from '../../../src/io/snapshots/snapshot-folder.js';
import { EntryDriver } from '../entry-driver.js';
import { Cluster } from '../harness.js';
import { LeaderCaller } from '../leader-caller.js';
import { buildNodeImage } from '../node-image.js';
import { waitFor } from '../wait-for.js';
import { figure } from './figures.js';
import { acquireOperation, type Grant, grantIn } from './operations.js';
import { isFull, sized } from './size.js';

const TTL_MS = 3_600_000;
const NODES = 3;
const LEASES = sized(60, 120);
const SNAPSHOT_ENTRIES = 40;
const WORDS = ['--snapshot-entries', String(SNAPSHOT_ENTRIES), '--log-tail-entries', '5'];

/**
 * The worker looks into a file before each chunk, before the manifest and behind it: `die 3` ends
 * its thread when three chunks are on disk, `hang 3` stops it there until its process is killed.
 */
const STRIKE = `import fs from 'node:fs';
import path from 'node:path';

function strike(boundary: number | string): void {
  const file = process.env['HOLDFAST_STRIKE'] ?? '';
  if (!fs.existsSync(file)) return;
  const [word, at] = fs.readFileSync(file, 'utf8').trim().split(' ');
  if (at !== String(boundary)) return;
  fs.renameSync(file, file + '.reached');
  if (word === 'die') process.exit(9);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
}`;

const program = buildNodeImage(t, 'killed-compaction', [
  {
    file: 'limits.ts',
    find: 'export const SNAPSHOT_CHUNK_BYTES = 1 << 20;',
    replace: 'export const SNAPSHOT_CHUNK_BYTES = 1 << 11;',
  },
  { file: 'workers/compaction.ts', find: "import path from 'node:path';", replace: STRIKE },
  {
    file: 'workers/compaction.ts',
    find: '(chunk) => draft.add(chunk));',
    replace: `(chunk) => {
    strike(draft.chunks.length);
    draft.add(chunk);
  });
  strike('last');`,
  },
  {
    file: 'workers/compaction.ts',
    find: '  return {\n    manifest,',
    replace: "  strike('whole');\n  return {\n    manifest,",
  },
]);

const strikes = new Map<number, string>();
const cluster = await Cluster.start({
  test: t,
  nodes: NODES,
  settings: { resultRetentionMs: TTL_MS },
  nodeProgram: () => program,
  nodeWords: () => WORDS,
  prepareFolder: (nodeId, folder) => strikes.set(nodeId, path.join(folder, 'strike')),
  nodeEnvironment: (nodeId) => ({ HOLDFAST_STRIKE: strikes.get(nodeId) ?? '' }),
});
const grants: Grant[] = [];
const caller = new LeaderCaller(cluster);
const acquires = Array.from({ length: LEASES }, (_, at) =>
  acquireOperation(`r-${at}`, `lock/${at}`, TTL_MS),
);
grants.push(...(await caller.callAll(acquires)).map(grantIn));
const driver = await EntryDriver.open(cluster, 'entries');
const victim = cluster.nodeIds.find((nodeId) => nodeId !== driver.leader) ?? 0;
const folder = cluster.dataFolder(victim);
const strikeFile = strikes.get(victim) ?? '';

async function counterOf(name: string): Promise<number> {
  return (await cluster.status(victim)).counters[name] ?? -1;
}

/** Entries until the victim has made another snapshot and cut its log; the snapshot's index. */
async function makeSnapshot(): Promise<number> {
  const before = await counterOf('log_base_index');
  await driver.giveUntil('a snapshot', async () => (await counterOf('log_base_index')) > before);
  return counterOf('snapshot_index');
}

/** Entries until the worker has come to the boundary. */
async function reach(word: 'die' | 'hang', boundary: number | string): Promise<void> {
  fs.rmSync(`${strikeFile}.reached`, { force: true });
  fs.writeFileSync(`${strikeFile}.draft`, `${word} ${boundary}\n`);
  fs.renameSync(`${strikeFile}.draft`, strikeFile);
  await driver.giveUntil(`${word} ${boundary}`, () => fs.existsSync(`${strikeFile}.reached`));
}

/** Chunks of the draft on the victim's disk, and whether it has a manifest; null without one. */
function draftOnDisk(): { chunks: number; hasManifest: boolean } | null {
  const parent = path.join(folder, 'snapshots');
  const draft = fs.readdirSync(parent).find((name) => name.startsWith('draft-'));
  if (draft === undefined) return null;
  const files = fs.readdirSync(path.join(parent, draft));
  const chunks = files.filter((name) => name.startsWith('chunk-')).length;
  return { chunks, hasManifest: files.includes('MANIFEST') };
}

async function demandSameGrants(t: Test): Promise<void> {
  const again = (await caller.callAll(acquires)).map(grantIn);
  t.strictSame(again, grants, 'every lease and token is what it was');
}

const stands = await makeSnapshot();
const manifest = readManifest(snapshotPlace(folder, stands));
if (typeof manifest === 'string') throw new Error(manifest);
const chunkCount = manifest.chunks.length;
const all: (number | string)[] = [...Array(chunkCount).keys(), 'last', 'whole'];
const some = [0, Math.floor(chunkCount / 2), 'last', 'whole'];

t.test('a node killed at a chunk boundary starts from the snapshot before', async (t) => {
  t.ok(chunkCount >= 5, `${chunkCount} chunks`);
  const boundaries = isFull ? all : some;
  for (const boundary of boundaries) {
    await reach('hang', boundary);
    const index = await counterOf('snapshot_index');
    const draft = draftOnDisk();
    const chunks = typeof boundary === 'number' ? boundary : chunkCount;
    t.same(draft, { chunks, hasManifest: boundary === 'whole' }, `boundary ${boundary}`);
    await cluster.kill(victim);
    const said = cluster.output(victim).length;
    t.strictSame(listSnapshots(folder), [index], 'the one before stands');
    await cluster.restart(victim);
    const restored = /"index":(\d+)[^\n]*"restored a snapshot"/.exec(
      cluster.output(victim).slice(said),
    );
    t.equal(Number(restored?.[1]), index, 'it is what the node started from');
    const statuses = await cluster.settled(60_000);
    t.equal(new Set(statuses.map(({ digest }) => digest)).size, 1, 'the digest is the others’');
    t.equal(draftOnDisk(), null, 'nothing is left of the draft');
    t.ok((await makeSnapshot()) > index, 'the next one can be made');
  }
  figure(t, 'nodes killed at chunk boundaries', boundaries.length);
  await demandSameGrants(t);
});

t.test('a worker that dies alone costs its draft, and the node serves on', async (t) => {
  const boundaries = isFull ? all : [Math.floor(chunkCount / 2), 'whole'];
  const said = cluster.output(victim).length;
  for (const boundary of boundaries) {
    const failed = await counterOf('snapshots_failed');
    await reach('die', boundary);
    const index = await counterOf('snapshot_index');
    const base = await counterOf('log_base_index');
    await waitFor('the node to notice', async () => (await counterOf('snapshots_failed')) > failed);
    t.equal(
      await counterOf('snapshot_index'),
      index,
      `boundary ${boundary}: the one before counts`,
    );
    t.equal(await counterOf('log_base_index'), base, 'the log is kept');
    t.strictSame(listSnapshots(folder), [index], 'and so is the snapshot');
    t.ok((await makeSnapshot()) > index, 'the next one can be made');
  }
  figure(t, 'worker threads ended at chunk boundaries', boundaries.length);
  const lines = cluster.output(victim).slice(said).split('\n');
  const told = lines.filter((line) => line.includes('a snapshot could not be made'));
  t.equal(told.length, boundaries.length, 'each was told');
  t.match(told[0], /"level":"error".*worker exited with code: 9/);
  await cluster.settled(60_000);
  await cluster.kill(victim);
  await cluster.restart(victim);
  await cluster.settled(60_000);
  await demandSameGrants(t);
  driver.close();
  caller.close();
});
