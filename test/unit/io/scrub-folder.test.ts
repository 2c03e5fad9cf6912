/** A data folder is checked as a whole: each kind of damage is told with its place. */

import fs from 'node:fs';
import path from 'node:path';
import t, { type Test } from 'tap';
import { historyFolder } from '../../../src/io/history/history-folder.js';
import { segmentFolder } from '../../../src/io/log/segment-files.js';
import { StateStore } from '../../../src/io/log/state-store.js';
import { FAULT_ROWS, type ScrubFault } from '../../../src/io/scrub/fault.js';
import { checkFolder, FAULTS_TOLD_MAX } from '../../../src/io/scrub/folder-check.js';
import { chunkFile, SnapshotFiles } from '../../../src/io/snapshots/snapshot-files.js';
import { snapshotPlace } from '../../../src/io/snapshots/snapshot-folder.js';
import { encodeFounding } from '../../../src/wire/founding.js';
import { makeEntry } from '../../conformance/log-driver.js';
import {
  damageEntry,
  flipAt,
  foundingOf,
  logOf,
  makeGround,
  openGround,
  segmentsOf,
  treeOf,
} from './scrub-ground.js';
import { CLUSTER_ID, lockEntry, machineWith } from './snapshot-maker.js';

const USUAL = { snapshots: [150, 400], last: 620 };

/** Demands exactly these faults: kind, index, words. */
function demandFaults(
  t: Test,
  folder: string,
  wanted: readonly (readonly [ScrubFault['kind'], number, RegExp])[],
): readonly ScrubFault[] {
  const { faults } = checkFolder(folder);
  t.equal(faults.length, wanted.length, JSON.stringify(faults, null, 1));
  for (const [at, [kind, index, words]] of wanted.entries()) {
    t.match(faults[at], { kind, index, found: words });
  }
  return faults;
}

t.test('a sound folder has no fault, and the state that its entries give', async (t) => {
  const folder = await makeGround(t, USUAL);
  const before = treeOf(folder);
  const bytes: number[] = [];
  const report = checkFolder(folder, { onProgress: (read) => bytes.push(read) });
  t.strictSame(report.faults, []);
  t.strictSame(report.remarks, []);
  t.strictSame(report.snapshots, [150, 400]);
  t.match(report.log, { last: 620 });
  t.match(report.history, { first: 1, last: report.log.first - 1 });
  t.equal(report.committedIndex, 619);
  const machine = machineWith(620);
  const { replay } = report;
  t.match(replay, { from: 400, isCut: false, compared: [150, 400] });
  t.match(replay?.end, { index: 620, term: 1, revision: 620, digest: machine.digest() });
  t.match(replay?.committed, { index: 619, digest: machineWith(619).digest() });
  t.equal(report.identity.state?.nodeId, 1);
  t.strictSame(treeOf(folder), before, 'nothing was written');
});

t.test('the state at an index before the end can be asked for', async (t) => {
  const folder = await makeGround(t, USUAL);
  for (const at of [1, 149, 150, 151, 400, 500]) {
    const { replay } = checkFolder(folder, { at });
    t.match(replay?.end, { index: at, digest: machineWith(at).digest() }, `at ${at}`);
    t.equal(replay?.isCut, false);
  }
});

t.test('flipped bits are told by segment and index, all of them', async (t) => {
  const folder = await makeGround(t, USUAL);
  const places = [500, 501, 610].map((index) => damageEntry(folder, index));
  const faults = demandFaults(t, folder, [
    ['log', 500, /has a wrong checksum/],
    ['log', 501, /has a wrong checksum/],
    ['log', 610, /has a wrong checksum/],
  ]);
  t.strictSame(
    faults.map(({ file }) => file),
    places,
  );
  const { replay } = checkFolder(folder);
  t.match(replay, { isCut: true, end: { index: 499 } }, 'the state goes as far as it can be read');
});

t.test('damage in what only the audit stream needs is told as such', async (t) => {
  const folder = await makeGround(t, USUAL);
  damageEntry(folder, 60);
  const [fault] = demandFaults(t, folder, [['history', 60, /has a wrong checksum/]]);
  t.match(fault?.file, /\/history\/segment-0000000000000001$/);
  const { replay } = checkFolder(folder);
  t.match(replay, { end: { index: 620 }, compared: [400] }, 'it is gone round by the snapshot');
});

t.test('a snapshot that is not whole is told with its chunk', async (t) => {
  const folder = await makeGround(t, USUAL);
  const place = snapshotPlace(folder, 400);
  flipAt(chunkFile(place, 2), 77);
  const [fault] = demandFaults(t, folder, [
    ['snapshot', 400, /chunk-000002 has a wrong checksum/],
    ['snapshot', segmentsOf(logOf(folder))[0]!, /the log begins at \d+, .* snapshot is 0/],
  ]);
  t.equal(fault?.file, chunkFile(place, 2));
  t.match(checkFolder(folder).replay?.end, { index: 620, digest: machineWith(620).digest() });
  fs.truncateSync(chunkFile(place, 1), 10);
  fs.rmSync(chunkFile(place, 0));
  t.match(checkFolder(folder).faults, [
    { found: /chunk-000000 is missing/ },
    { found: /chunk-000001 has 10 bytes, wanted \d+/ },
    { found: /chunk-000002 has a wrong checksum/ },
  ]);
  fs.symlinkSync('/proc/self/mem', chunkFile(place, 0));
  t.match(checkFolder(folder).faults[0]?.found, /cannot be read \(EIO\)/);
  flipAt(path.join(place, 'MANIFEST'), 9);
  t.match(checkFolder(folder).faults[0], { file: place, found: /manifest has a wrong checksum/ });
  fs.renameSync(
    snapshotPlace(historyFolder(folder), 150),
    snapshotPlace(historyFolder(folder), 151),
  );
  t.match(checkFolder(folder).faults[0], { kind: 'history', found: /manifest is of index 150/ });
});

t.test('a missing segment, an emptied one and two that were swapped are told', async (t) => {
  const folder = await makeGround(t, { last: 620 });
  const log = logOf(folder);
  const firsts = segmentsOf(log);
  t.ok(firsts.length >= 5, `${firsts.length} segments`);
  const [, second = 0, third = 0, fourth = 0] = firsts;
  const aside = path.join(folder, 'aside');
  fs.renameSync(segmentFolder(log, second), aside);
  const missing = new RegExp(`the records ${second} to ${third - 1} are missing before this`);
  demandFaults(t, folder, [['log', second, missing]]);
  fs.mkdirSync(segmentFolder(log, second));
  const [emptied] = demandFaults(t, folder, [['log', 0, /data.mdb is missing/]]);
  t.equal(emptied?.file, segmentFolder(log, second));
  fs.rmdirSync(segmentFolder(log, second));
  fs.renameSync(segmentFolder(log, third), segmentFolder(log, second));
  fs.renameSync(aside, segmentFolder(log, third));
  const { faults } = checkFolder(folder);
  t.match(faults[0], { file: segmentFolder(log, second), found: /records \d+ to \d+ are missing/ });
  t.match(faults[1], { file: segmentFolder(log, third), index: fourth, found: /its name says/ });
  t.match(faults[2], { index: second, found: /is out of place, wanted \d+/ });
});

t.test('a file that was cut short is told, and what lies behind it is still read', async (t) => {
  const folder = await makeGround(t, { last: 620 });
  damageEntry(folder, 600);
  const log = logOf(folder);
  const second = segmentsOf(log)[1]!;
  const file = path.join(segmentFolder(log, second), 'data.mdb');
  fs.truncateSync(file, 6_000);
  demandFaults(t, folder, [
    ['log', 0, /data.mdb has 6000 bytes, wanted \d+/],
    ['log', 600, /wrong checksum/],
  ]);
});

t.test('a segment of another log does not follow, though its checksums are right', async (t) => {
  const parent = t.testdir({});
  const one = await makeGround(t, { last: 400, folder: path.join(parent, 'one') });
  const other = await openGround(t, { folder: path.join(parent, 'other') });
  for (let index = 1; index <= 400; index += 1) {
    await other.driver.append({ entries: [lockEntry(index)], commitIndex: 0 });
  }
  await other.log.close();
  const second = segmentsOf(logOf(one))[1]!;
  const from = segmentFolder(logOf(other.folder), second);
  const to = segmentFolder(logOf(one), second);
  t.ok(fs.existsSync(from), 'both roll at the same index');
  fs.cpSync(from, to, { recursive: true, force: true });
  const third = segmentsOf(logOf(one))[2]!;
  demandFaults(t, one, [
    ['log', second, /does not follow the record before it/],
    ['log', third, /does not follow the record before it/],
  ]);
});

t.test('a term that falls, and one that the node has not been in, are told', async (t) => {
  const { folder, log, driver, append } = await openGround(t, {});
  await append(3);
  await driver.append({ entries: [lockEntry(4, 3)], commitIndex: 3 });
  await driver.append({ entries: [lockEntry(5, 2)], commitIndex: 3 });
  await log.close();
  demandFaults(t, folder, [
    ['log', 5, /has term 2 after 3/],
    ['identity', 5, /the last entry has term 3, the node has been in term 1/],
  ]);
});

t.test('a folder of another disk, or a snapshot of another cluster, is told', async (t) => {
  const folder = await makeGround(t, USUAL);
  const store = StateStore.open(folder, 1, true);
  store.saveFounding(encodeFounding(foundingOf(new Uint8Array(16).fill(9))));
  store.close();
  demandFaults(t, folder, [['identity', 0, /the disk id is .*, the members know node 1 by 0909/]]);
  const again = StateStore.open(folder, 1, true);
  const other = foundingOf(again.current.diskId, new Uint8Array(16).fill(8));
  again.saveFounding(encodeFounding(other));
  again.close();
  const { faults } = checkFolder(folder);
  t.match(faults[0], { kind: 'history', index: 150, found: /it is of cluster 0707/ });
  t.match(faults[1], { kind: 'snapshot', index: 400, found: /it is of cluster 0707/ });
  const last = StateStore.open(folder, 1, true);
  last.saveFounding(Uint8Array.of(1, 2, 3));
  last.close();
  t.match(checkFolder(folder).faults[0], { kind: 'identity', found: /the founding record/ });
  const stranger = foundingOf(new Uint8Array(16).fill(9));
  const members = stranger.members.slice(1);
  const lone = StateStore.open(folder, 1, true);
  lone.saveFounding(encodeFounding({ ...stranger, members }));
  lone.close();
  t.match(checkFolder(folder).faults[0]?.found, /node 1 is no member/);
});

t.test('a state record that is damaged or lost is told', async (t) => {
  const folder = await makeGround(t, { last: 30 });
  const file = path.join(folder, 'state', 'data.mdb');
  const bytes = fs.readFileSync(file);
  // Every stored version of the record: the cluster id is in it.
  const id = Buffer.from(CLUSTER_ID);
  let hits = 0;
  for (let at = bytes.indexOf(id); at >= 0; at = bytes.indexOf(id, at + 1)) {
    flipAt(file, at);
    hits += 1;
  }
  t.ok(hits > 0);
  demandFaults(t, folder, [['identity', 0, /the record has a wrong checksum/]]);
  fs.truncateSync(file, 5_000);
  demandFaults(t, folder, [['identity', 0, /data.mdb has 5000 bytes/]]);
  fs.rmSync(path.join(folder, 'state'), { recursive: true });
  demandFaults(t, folder, [['identity', 0, /data.mdb is missing/]]);
  fs.rmSync(logOf(folder), { recursive: true });
  t.match(checkFolder(folder), { faults: [], remarks: [/holds nothing/] });
});

t.test('a log that is gone, or begins behind the snapshot, is told', async (t) => {
  const folder = await makeGround(t, { ...USUAL, keepsHistory: false });
  const first = segmentsOf(logOf(folder))[0]!;
  const snapshot = snapshotPlace(folder, 400);
  fs.renameSync(snapshot, path.join(folder, 'aside'));
  demandFaults(t, folder, [
    ['snapshot', first, new RegExp(`the log begins at ${first}, .* snapshot is 0`)],
  ]);
  t.equal(checkFolder(folder).replay, null, 'there is nothing to begin with');
  fs.renameSync(path.join(folder, 'aside'), snapshot);
  fs.rmSync(logOf(folder), { recursive: true });
  demandFaults(t, folder, [['log', 0, /no segment is there/]]);
});

t.test('what a snapshot has superseded is a remark, as a start takes it', async (t) => {
  const folder = await makeGround(t, { ...USUAL, keepsHistory: false, tail: 250 });
  const log = logOf(folder);
  const [first = 0, second = 0, third = 0] = segmentsOf(log);
  t.ok(third > 0 && third <= 401, `the third begins at ${third}`);
  fs.rmSync(segmentFolder(log, second), { recursive: true });
  const report = checkFolder(folder);
  t.strictSame(report.faults, []);
  t.match(report.remarks, [/is superseded by a snapshot: the next start drops it/]);
  t.equal(report.log.first, third);
  t.not(first, third);
});

t.test('history that does not reach the log is told', async (t) => {
  const folder = await makeGround(t, USUAL);
  const history = historyFolder(folder);
  const newest = segmentsOf(history).at(-1)!;
  fs.rmSync(segmentFolder(history, newest), { recursive: true });
  const { faults } = checkFolder(folder);
  t.match(faults, [
    { kind: 'history', index: newest, found: /history ends at \d+, the log begins/ },
  ]);
});

t.test('a snapshot that is whole and of another state is told by its digest', async (t) => {
  const folder = await makeGround(t, USUAL);
  const machine = machineWith(399);
  const files = new SnapshotFiles(snapshotPlace(folder, 400));
  machine.writeSnapshot(5_000, (chunk) => files.add(chunk));
  const { revision } = machine;
  const state = { clusterId: CLUSTER_ID, index: 400, term: 1, stampMs: 1_400, revision };
  files.finish({ ...state, digest: machine.digest() });
  const [, second] = demandFaults(t, folder, [
    ['state', 400, /the log gives digest .*, the snapshot has/],
    ['state', 400, /the snapshot is of index 399/],
  ]);
  t.equal(second?.file, snapshotPlace(folder, 400));
});

t.test('an entry that is whole and cannot be applied is told', async (t) => {
  const { folder, log, driver, append } = await openGround(t, {});
  await append(20);
  await driver.append({ entries: [makeEntry(21, 1)], commitIndex: 20 });
  await log.close();
  demandFaults(t, folder, [['state', 21, /is whole and cannot be applied: /]]);
  t.equal(checkFolder(folder).replay, null);
  t.match(checkFolder(folder, { at: 20 }).replay?.end, { digest: machineWith(20).digest() });
});

t.test('a node that was never founded is a remark', async (t) => {
  const folder = await makeGround(t, { isFounded: false });
  const report = checkFolder(folder);
  t.match(report, { faults: [], remarks: [/never founded/], replay: null });
});

t.test('a folder with very many faults is told with their number', async (t) => {
  const folder = await makeGround(t, { last: 110 });
  for (let index = 1; index <= 80; index += 1) damageEntry(folder, index);
  const report = checkFolder(folder);
  t.equal(report.faults.length, FAULTS_TOLD_MAX);
  t.equal(report.faultsLeftOut, 80 - FAULTS_TOLD_MAX);
});

t.test('each kind of fault says what it means and what to do', async (t) => {
  for (const row of Object.values(FAULT_ROWS)) {
    t.ok(row.means.length > 20 && row.remedy.length > 20, row.means);
  }
});
