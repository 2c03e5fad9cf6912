/** `verify --folder` and `repair` on folders that the product's own code has written and left. */

import fs from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { COMMANDS } from '../../src/cli/commands/table.js';
import { Program } from '../../src/cli/program.js';
import { historyFolder } from '../../src/io/history/history-folder.js';
import { openLog } from '../../src/io/log/log.js';
import { chunkFile, readManifest } from '../../src/io/snapshots/snapshot-files.js';
import { incomingPlace, snapshotPlace } from '../../src/io/snapshots/snapshot-folder.js';
import { adoptSnapshot } from '../../src/server/repair.js';
import { restoreStart } from '../../src/server/start-state.js';
import type { SnapshotManifest } from '../../src/wire/snapshot-manifest.js';
import { damageEntry, flipAt, makeGround, openGround, treeOf } from '../unit/io/scrub-ground.js';
import { machineWith } from '../unit/io/snapshot-maker.js';

async function run(...words: string[]) {
  let [out, err] = ['', ''];
  const program = new Program(COMMANDS, {
    standardOutput: { write: (text) => (out += text) },
    standardError: { write: (text) => (err += text) },
    version: '0',
  });
  const status = await program.run(words);
  return { status, out, err };
}

const USUAL = { snapshots: [150, 400], last: 620 };
/** Nobody listens there. */
const NOBODY = ['--endpoints', '127.0.0.1:1', '--timeout', '300ms'];

t.test('a sound folder is told with its state, and the status is 0', async (t) => {
  const folder = await makeGround(t, USUAL);
  const before = treeOf(folder);
  const words = await run('verify', '--folder', folder);
  t.equal(words.status, 0, words.err);
  const digest = machineWith(620).digest();
  t.match(words.out, /^node {7}1, in term 1, disk [0-9a-f]{32}$/m);
  t.match(
    words.out,
    new RegExp(`^state {6}index 620, term 1, revision 620, digest ${digest}$`, 'm'),
  );
  t.match(words.out, /known to be committed here: up to 619/);
  t.match(words.out, /the log before them gives as well: 150, 400/);
  t.match(words.out, /\nno fault\n$/);
  const json = await run('verify', '--folder', folder, '--json', '--at', '400');
  t.equal(json.status, 0);
  t.match(JSON.parse(json.out), {
    sound: true,
    node_id: 1,
    cluster_id: '07'.repeat(16),
    history: { first: 1 },
    snapshots: [150, 400],
    state: { index: 400, term: 1, digest: machineWith(400).digest() },
    faults: [],
  });
  t.strictSame(treeOf(folder), before, 'nothing was written');
});

t.test('a fault is told with file, index, meaning and remedy, and the status is 74', async (t) => {
  const folder = await makeGround(t, USUAL);
  const file = damageEntry(folder, 500);
  const words = await run('verify', '--folder', folder);
  t.equal(words.status, 74);
  t.ok(words.out.includes(`log: ${file}: index 500: the record has a wrong checksum\n`), words.out);
  t.match(words.out, / {2}means: .* its next start is refused\n {2}do: .*docs\/OPERATIONS.md/);
  t.match(words.out, /entries behind it, up to 620, cannot be applied/);
  t.match(words.out, /\n1 faults\n$/);
  const json = JSON.parse((await run('verify', '--folder', folder, '--json')).out);
  t.match(json, { sound: false, cut: true, faults: [{ kind: 'log', file, index: 500 }] });
  t.match(json.faults[0].remedy, /another node/);
});

t.test('a folder that is open, and one that is none, are refused', async (t) => {
  const { folder, log } = await openGround(t, { last: 20 });
  for (const command of ['verify', 'repair']) {
    const held = await run(command, '--folder', folder);
    t.equal(held.status, 78);
    t.match(held.err, /FOLDER_IN_USE: Stop process \d+ first/);
    const none = await run(command, '--folder', path.join(folder, 'nothing'), '--json');
    t.equal(none.status, 64);
    t.match(JSON.parse(none.err), { error: { code: 'USAGE', message: /is no data folder/ } });
  }
  await log.close();
  t.equal((await run('verify', '--folder', folder)).status, 0);
});

t.test('options that do not go together are refused', async (t) => {
  for (const words of [
    ['verify', '--folder', 'x', '--scrub'],
    ['verify', '--folder', 'x', '--every-node'],
    ['verify', '--at', '7'],
    ['verify', '--scrub', ...NOBODY],
    ['verify', '--http', 'nowhere', ...NOBODY],
    ['repair'],
  ]) {
    const { status, err } = await run(...words);
    t.equal(status, 64, `${words.join(' ')}: ${err}`);
  }
});

t.test('a cluster of which no node answers is not verified', async (t) => {
  const { status, err } = await run('verify', ...NOBODY);
  t.equal(status, 69);
  t.match(err, /NO_QUORUM/);
});

t.test('damage in the history alone is set aside by repair, without asking anybody', async (t) => {
  const folder = await makeGround(t, USUAL);
  damageEntry(folder, 60);
  const { status, out } = await run('repair', '--folder', folder, ...NOBODY);
  t.equal(status, 0);
  t.match(out, /audit stream of this node begins with its newest snapshot/);
  t.notOk(fs.existsSync(historyFolder(folder)));
  t.ok(fs.existsSync(path.join(folder, 'damaged-1', 'history')), 'nothing is deleted');
  t.equal((await run('verify', '--folder', folder)).status, 0);
  t.match((await run('repair', '--folder', folder)).out, /nothing to repair/);
});

t.test('a folder that does not know its vote is refused by repair', async (t) => {
  const folder = await makeGround(t, { last: 30 });
  fs.truncateSync(path.join(folder, 'state', 'data.mdb'), 5_000);
  const { status, err } = await run('repair', '--folder', folder, ...NOBODY);
  t.equal(status, 74);
  t.match(err, /BEYOND_REPAIR: Leave the node of .* stopped/);
});

t.test('without a leader nothing is repaired and nothing changed', async (t) => {
  const folder = await makeGround(t, USUAL);
  damageEntry(folder, 500);
  const before = treeOf(folder);
  const { status, err } = await run('repair', '--folder', folder, ...NOBODY);
  t.equal(status, 69, err);
  t.strictSame(
    treeOf(folder).filter((line) => !line.startsWith('LOCK')),
    before,
  );
});

/** Opens the folder as a node does at its start. */
async function start(folder: string) {
  const { log, state, snapshot } = await openLog({
    folder,
    nodeId: 1,
    onFatal: (reason) => t.fail(reason),
  });
  const { firstIndex, hardState } = state;
  const from = { dataFolder: folder, snapshot, firstIndex, hashSeeds: new Uint32Array(2) };
  try {
    const restored = restoreStart(from, { info: () => undefined });
    return { index: restored?.index, digest: restored?.machine.digest(), firstIndex, hardState };
  } finally {
    await log.close();
  }
}

t.test('an adopted snapshot is what the node starts from, at each point of a crash', async (t) => {
  const parent = t.testdir({});
  const other = await makeGround(t, {
    snapshots: [300, 700],
    last: 710,
    folder: path.join(parent, 'other'),
  });
  const damaged = await makeGround(t, { ...USUAL, folder: path.join(parent, 'damaged') });
  damageEntry(damaged, 500);
  flipAt(chunkFile(snapshotPlace(damaged, 400), 0), 50);
  const manifest = readManifest(snapshotPlace(other, 700)) as SnapshotManifest;
  const wanted = { index: 700, firstIndex: 701, digest: machineWith(700).digest() };
  let refused = 0;
  for (let point = 0, isThrough = false; !isThrough; point += 1) {
    const folder = path.join(parent, `try-${point}`);
    fs.cpSync(damaged, folder, { recursive: true });
    const incoming = incomingPlace(folder, 700);
    fs.cpSync(snapshotPlace(other, 700), incoming, { recursive: true });
    isThrough = crashAt(point, () => adoptSnapshot(folder, manifest));
    try {
      t.match(await start(folder), wanted);
    } catch (error) {
      // Refused, or the new state: never one in between.
      if ((error as { code?: string }).code !== 'LOG_CORRUPT' || isThrough) throw error;
      refused += 1;
      fs.rmSync(incoming, { recursive: true, force: true });
      fs.cpSync(snapshotPlace(other, 700), incoming, { recursive: true });
      adoptSnapshot(folder, manifest);
    }
    t.match(await start(folder), { ...wanted, hardState: { term: 1, votedFor: 1 } }, `${point}`);
  }
  t.ok(refused > 8, `${refused} points`);
});

const CALLS = ['mkdirSync', 'renameSync', 'fsyncSync', 'rmSync', 'openSync'] as const;

/** Runs `work`; so many calls of the file system pass, then each throws. False: it was cut off. */
function crashAt(after: number, work: () => void): boolean {
  const saved = CALLS.map((name) => [name, fs[name]] as const);
  let calls = 0;
  for (const [name, real] of saved) {
    Object.assign(fs, {
      [name]: (...given: unknown[]) => {
        if (calls >= after) throw new Error('crashed');
        calls += 1;
        return (real as (...args: unknown[]) => unknown)(...given);
      },
    });
  }
  try {
    work();
    return true;
  } catch (error) {
    if ((error as Error).message !== 'crashed') throw error;
    return false;
  } finally {
    Object.assign(fs, Object.fromEntries(saved));
  }
}
