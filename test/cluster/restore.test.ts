/** A backup into the data folders of a new cluster: what is refused, what is written, when. */

import fs from 'node:fs';
import path from 'node:path';
import t, { type Test } from 'tap';
import { planDev } from '../../src/cli/commands/dev.js';
import { BASE_PORT_DEFAULT, localNodes } from '../../src/cli/local-cluster.js';
import { RESTORE_LEAP, REVISIONS_PER_SECOND } from '../../src/core/locks/restored-state.js';
import { openLog } from '../../src/io/log/log.js';
import { checkFolder } from '../../src/io/scrub/folder-check.js';
import { RESTORED_REVISION_MAX } from '../../src/limits.js';
import { type RestorePlan, restoreBackup } from '../../src/server/restore.js';
import { restoreStart } from '../../src/server/start-state.js';
import { recoverUnsafely } from '../../src/server/unsafe-recover.js';
import { makeBackup } from '../unit/io/backup-maker.js';
import { flipAt, makeGround, treeOf } from '../unit/io/scrub-ground.js';

const INDEX = 120;
const MEMBERS = [1, 2, 5].map((nodeId) => ({
  nodeId,
  peer: { host: '127.0.0.1', port: 7_600 + nodeId },
  client: { host: '127.0.0.1', port: 7_400 + nodeId },
}));

const BASE = { members: MEMBERS, revisionFloor: 0, graceMs: null, reason: 'a test' };

function ground(t: Test, parent = t.testdir({})) {
  const from = path.join(parent, 'backup');
  const record = makeBackup(from, INDEX);
  const to = path.join(parent, 'restored');
  const plan: RestorePlan = { ...BASE, from, to };
  return { parent, from, to, record, plan };
}

/** Opens a data folder as a node does at its start. */
async function start(folder: string, nodeId: number) {
  const { log, state, snapshot, identity } = await openLog({
    folder,
    nodeId,
    onFatal: (reason) => t.fail(reason),
  });
  try {
    const { firstIndex, lastIndex, hardState } = state;
    const from = { dataFolder: folder, snapshot, firstIndex, hashSeeds: new Uint32Array(2) };
    const restored = restoreStart(from, { info: () => undefined });
    return { machine: restored?.machine, firstIndex, lastIndex, hardState, identity };
  } finally {
    await log.close();
  }
}

t.test('each refusal says what to do, and leaves nothing', async (t) => {
  const { parent, from, to, plan } = ground(t);
  const before = () => treeOf(parent).filter((line) => !line.startsWith('backup'));
  const clean = before();
  const refused = async (words: RegExp, code: string, changed: Partial<RestorePlan> = {}) => {
    await t.rejects(restoreBackup({ ...plan, ...changed }), { code, message: words });
  };
  await refused(/Name another folder with --to, or move .*backup away/, 'FOLDER_NOT_EMPTY', {
    to: from,
  });
  await refused(/Name another folder/, 'FOLDER_NOT_EMPTY', { to: path.join(from, 'MANIFEST') });
  await refused(/is no backup: BACKUP.json is missing/, 'USAGE', { from: parent });
  await refused(/look at it and at this machine/, 'USAGE', {
    revisionFloor: RESTORED_REVISION_MAX + 1,
  });
  const record = path.join(from, 'BACKUP.json');
  const text = fs.readFileSync(record, 'utf8');
  fs.writeFileSync(record, text.replace('"format": 1', '"format": 2'));
  await refused(/with the release that made it.*format 2, this build knows 1/, 'BACKUP_NEWER');
  fs.writeFileSync(record, text);
  flipAt(path.join(from, 'chunk-000002'), 100);
  await refused(/Take another backup: .*chunk-000002 has a wrong checksum/, 'BACKUP_DAMAGED');
  t.strictSame(before(), clean);
  t.notOk(fs.existsSync(to));
});

t.test('every member starts from its folder, with the same state', async (t) => {
  const { parent, to, record, plan } = ground(t);
  fs.mkdirSync(to);
  const beforeS = Math.floor(Date.now() / 1_000);
  const { cluster } = await restoreBackup(plan);
  t.ok(cluster.revision >= record.revision + RESTORE_LEAP);
  t.ok(cluster.revision >= beforeS * REVISIONS_PER_SECOND);
  const second = cluster.revision / REVISIONS_PER_SECOND;
  t.ok(Math.floor(Date.now() / 1_000) > second, 'it ends in a later second than it names');
  t.equal(cluster.revisionBefore, record.revision);
  t.equal(cluster.graceMs, 3_600_000, 'the largest TTL of the state');
  t.not(cluster.clusterId, record.clusterId);
  t.strictSame(fs.readdirSync(parent).sort(), ['backup', 'restored'], 'no draft is left');
  t.strictSame(fs.readdirSync(to).sort(), ['node-1', 'node-2', 'node-5']);
  const disks = new Set<string>();
  for (const { nodeId } of MEMBERS) {
    const folder = path.join(to, `node-${nodeId}`);
    const { identity, log, faults, replay } = checkFolder(folder);
    t.strictSame(faults, []);
    t.match(log, { first: INDEX + 1, last: INDEX + 1 });
    t.match(replay, { end: { index: INDEX + 1, revision: cluster.revision + 1 } });
    t.strictSame(
      identity.founding?.members.map((member) => member.nodeId),
      [1, 2, 5],
    );
    disks.add(Buffer.from(identity.state!.diskId).toString('hex'));
    const started = await start(folder, nodeId);
    t.match(started, { firstIndex: INDEX + 1, lastIndex: INDEX + 1 });
    t.strictSame(started.hardState, { term: 3, votedFor: 0 });
    t.equal(started.machine?.digest(), cluster.digest);
    t.equal(started.machine?.counts.leases, 0);
  }
  t.equal(disks.size, 3, 'every folder is a disk of its own');
  await t.rejects(restoreBackup(plan), { code: 'FOLDER_NOT_EMPTY' });
  const local = path.join(parent, 'local');
  const nodes = localNodes(local, BASE_PORT_DEFAULT);
  await restoreBackup({ ...plan, to: local, members: nodes });
  t.match(planDev(local, nodes), { isFounding: false, wiped: [] }, 'npm start goes on from there');
});

t.test('a second restore begins above the first, whatever it was asked', async (t) => {
  const { parent, plan } = ground(t);
  const first = await restoreBackup({ ...plan, to: path.join(parent, 'first') });
  const second = await restoreBackup({ ...plan, to: path.join(parent, 'second'), graceMs: 7 });
  t.ok(second.cluster.revision >= first.cluster.revision + REVISIONS_PER_SECOND);
  t.not(second.cluster.clusterId, first.cluster.clusterId);
  t.equal(second.cluster.graceMs, 7);
  const revisionFloor = second.cluster.revision + 2 * RESTORE_LEAP;
  const third = await restoreBackup({ ...plan, to: path.join(parent, 'third'), revisionFloor });
  t.equal(third.cluster.revision, revisionFloor);
});

const CALLS = [
  'mkdirSync',
  'mkdtempSync',
  'renameSync',
  'fsyncSync',
  'rmSync',
  'openSync',
] as const;

/** Runs `work`; so many calls of the file system pass, then each throws. False: it was cut off. */
async function crashAt(after: number, work: () => Promise<unknown>): Promise<boolean> {
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
    await work();
    return true;
  } catch (error) {
    if ((error as Error).message !== 'crashed') throw error;
    return false;
  } finally {
    Object.assign(fs, Object.fromEntries(saved));
  }
}

t.test('cut off at any point, nothing is there that a node would start from', async (t) => {
  const { parent, plan } = ground(t);
  let points = 0;
  let named = 0;
  for (let isThrough = false; !isThrough; points += 1) {
    const place = path.join(parent, `try-${points}`);
    const to = path.join(place, 'restored');
    fs.mkdirSync(place);
    const members = MEMBERS.slice(0, 1);
    isThrough = await crashAt(points, () => restoreBackup({ ...plan, members, to }));
    for (const name of fs.readdirSync(place)) {
      if (name === 'restored') {
        named += 1;
        for (const { nodeId } of members) {
          const folder = path.join(to, `node-${nodeId}`);
          t.strictSame(checkFolder(folder).faults, [], `whole from its name on: ${points}`);
        }
        continue;
      }
      const folder = path.join(place, name, 'node-1');
      await t.rejects(start(folder, 1), { code: 'FOLDER_UNUSABLE', message: /restore again/ });
    }
    fs.rmSync(place, { recursive: true });
  }
  t.ok(points > 30, `${points} points`);
  t.ok(named >= 2 && named < points / 2, `${named} of them behind the rename`);
});

t.test('what is left of a lost majority becomes a cluster, once it is meant', async (t) => {
  const parent = t.testdir({});
  const folder = await makeGround(t, {
    snapshots: [150],
    last: 320,
    folder: path.join(parent, 'node-1'),
  });
  const plan = { ...BASE, to: path.join(parent, 'recovered'), folders: [folder] };
  const before = treeOf(folder);
  const refuse = () => {
    throw new Error('not meant');
  };
  await t.rejects(recoverUnsafely({ ...plan, onSurvey: refuse }), /not meant/);
  t.strictSame(treeOf(folder), before, 'the old folder is only read');
  t.strictSame(fs.readdirSync(parent).sort(), ['node-1']);
  const { survey, cluster } = await recoverUnsafely({ ...plan, onSurvey: () => undefined });
  t.match(survey, {
    clusterId: '07'.repeat(16),
    taken: { nodeId: 1, term: 1, index: 320, committedIndex: 319 },
    missing: [2, 3],
  });
  t.ok(cluster.revision >= 320 + RESTORE_LEAP);
  t.match(await start(path.join(plan.to, 'node-5'), 5), { firstIndex: 321, lastIndex: 321 });
});

t.test('folders that are open, damaged, doubled or a majority are refused', async (t) => {
  const parent = t.testdir({});
  const place = (name: string) => path.join(parent, name);
  const one = await makeGround(t, { last: 50, folder: place('one') });
  const onSurvey = () => undefined;
  const plan = { ...BASE, to: place('recovered'), onSurvey };
  const open = await openLog({ folder: one, nodeId: 1, onFatal: (reason) => t.fail(reason) });
  await t.rejects(recoverUnsafely({ ...plan, folders: [one] }), { code: 'FOLDER_LOCKED' });
  await open.log.close();
  fs.cpSync(one, place('twin'), { recursive: true });
  const twins = { ...plan, folders: [one, place('twin')] };
  await t.rejects(recoverUnsafely(twins), { code: 'USAGE', message: /both of node 1/ });
  const damaged = place('twin');
  fs.truncateSync(path.join(damaged, 'state', 'data.mdb'), 5_000);
  await t.rejects(recoverUnsafely({ ...plan, folders: [damaged] }), {
    code: 'FOLDER_DAMAGED',
    message: /Leave it out/,
  });
  const { plan: restore } = ground(t, parent);
  const whole = await restoreBackup({ ...restore, to: place('whole') });
  const [first = '', second = ''] = whole.cluster.folders;
  await t.rejects(recoverUnsafely({ ...plan, folders: [first, second] }), {
    code: 'MAJORITY_SURVIVES',
    message: /Start these nodes instead/,
  });
  const mixed = { ...plan, folders: [one, first] };
  await t.rejects(recoverUnsafely(mixed), { code: 'USAGE', message: /folders of one cluster/ });
  const unfounded = await makeGround(t, { last: 5, folder: place('new'), isFounded: false });
  await t.rejects(recoverUnsafely({ ...plan, folders: [unfounded] }), { code: 'FOLDER_DAMAGED' });
  t.notOk(fs.existsSync(plan.to));
});
