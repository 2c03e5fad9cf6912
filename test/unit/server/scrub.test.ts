/** The background check of a disk that is in use: damage is found by name, and nothing else is. */

import fs from 'node:fs';
import path from 'node:path';
import t, { type Test } from 'tap';
import { historyFolder } from '../../../src/io/history/history-folder.js';
import { segmentFolder } from '../../../src/io/log/segment-files.js';
import { chunkFile } from '../../../src/io/snapshots/snapshot-files.js';
import { snapshotPlace } from '../../../src/io/snapshots/snapshot-folder.js';
import { createLogger } from '../../../src/observe/logger.js';
import { NodeScrub, type NodeScrubOptions } from '../../../src/server/scrub.js';
import { waitFor } from '../../cluster/wait-for.js';
import { damageEntry, flipAt, logOf, openGround, segmentsOf } from '../io/scrub-ground.js';
import { lockEntry } from '../io/snapshot-maker.js';

const FAST = 1 << 30;

interface Line {
  readonly level: string;
  readonly message: string;
  readonly [field: string]: unknown;
}

function scrubOf(t: Test, dataFolder: string, options: Partial<NodeScrubOptions> = {}) {
  const lines: Line[] = [];
  const write = (line: string) => lines.push(JSON.parse(line) as Line);
  const scrub = new NodeScrub({
    dataFolder,
    bytesPerSecond: FAST,
    pauseMs: 1_000_000,
    seal: async () => undefined,
    isBehind: () => false,
    logger: createLogger('info', {}, { write }),
    restMs: 10,
    lookMs: 5,
    spacingMs: 0,
    ...options,
  });
  t.teardown(() => scrub.close());
  const pass = async () => {
    const wanted = scrub.begin();
    await waitFor(`pass ${wanted}`, () => scrub.status.passes >= wanted);
    return scrub.status;
  };
  return { scrub, lines, pass };
}

const USUAL = { snapshots: [150, 400], last: 620 };

t.test('everything but what is being written is read, and a sound disk has no fault', async (t) => {
  const { folder, log } = await openGround(t, USUAL);
  t.teardown(() => log.close());
  const { pass, lines, scrub } = scrubOf(t, folder, { seal: () => log.seal() });
  t.match(scrub.status, { passes: 0, isEnabled: true, isRunning: false, faults: [] });
  const { faults, segments, snapshots, bytes } = await pass();
  t.strictSame(faults, []);
  const kept = new Set([...segmentsOf(logOf(folder)), ...segmentsOf(historyFolder(folder))]);
  t.equal(segments, kept.size - 1, 'the newest is being written');
  t.equal(snapshots, 2);
  t.ok(bytes > 20_000, `${bytes} bytes`);
  t.match(lines, [{ level: 'info', message: 'checked the disk', segments, bytes, faults: 0 }]);
});

t.test('damage in log, history and snapshot is told by file, index and range', async (t) => {
  const { folder, log } = await openGround(t, USUAL);
  t.teardown(() => log.close());
  const { pass, lines } = scrubOf(t, folder, { seal: () => log.seal() });
  await pass();
  lines.length = 0;
  const history = damageEntry(folder, 60);
  const segment = damageEntry(folder, 500);
  const chunk = chunkFile(snapshotPlace(folder, 400), 1);
  flipAt(chunk, 40);
  const { faults } = await pass();
  t.match(faults, [
    { kind: 'snapshot', file: chunk, index: 400, found: /chunk-000001 has a wrong checksum/ },
    { kind: 'history', file: history, index: 60, found: /wrong checksum/ },
    { kind: 'log', file: segment, index: 500, found: /wrong checksum/ },
  ]);
  t.equal(faults.length, 3);
  const told = lines.filter(({ message }) => message === 'the disk is damaged');
  t.equal(told.length, 3);
  const wanted = { level: 'error', kind: 'log', file: segment, index: 500, remedy: /snapshot/ };
  t.match(told[2], { ...wanted, means: /lost here/ });
  t.match(lines.at(-1), { message: 'checked the disk', faults: 3 });
  flipAt(chunk, 40);
  const after = await pass();
  t.equal(after.faults.length, 2, 'what is whole again is forgotten');
});

t.test('a segment that is gone, emptied or cut short is told', async (t) => {
  const { folder, log } = await openGround(t, { last: 620 });
  t.teardown(() => log.close());
  const { pass } = scrubOf(t, folder, { seal: () => log.seal() });
  const [, second = 0, third = 0, fourth = 0] = segmentsOf(logOf(folder));
  const place = segmentFolder(logOf(folder), third);
  const data = path.join(place, 'data.mdb');
  const saved = fs.readFileSync(data);
  fs.truncateSync(data, 5_000);
  t.match((await pass()).faults, [{ file: place, found: /data.mdb has 5000 bytes, wanted/ }]);
  fs.rmSync(data);
  t.match((await pass()).faults, [{ file: place, found: /data.mdb is missing/ }]);
  fs.rmSync(place, { recursive: true });
  const missing = new RegExp(`records ${third} to ${fourth - 1} are missing before`);
  const next = segmentFolder(logOf(folder), fourth);
  t.match((await pass()).faults, [{ file: next, index: third, found: missing }]);
  fs.mkdirSync(place);
  fs.copyFileSync(path.join(segmentFolder(logOf(folder), second), 'data.mdb'), data);
  const { faults } = await pass();
  t.match(faults[0], { file: place, index: second, found: /out of place, wanted/ });
  fs.writeFileSync(data, saved);
  t.strictSame((await pass()).faults, []);
});

t.test('a pass stands still while the node is behind, and one can be asked for', async (t) => {
  const { folder, log } = await openGround(t, { last: 3_000 });
  t.teardown(() => log.close());
  let isBehind = true;
  const { scrub } = scrubOf(t, folder, {
    seal: () => log.seal(),
    isBehind: () => isBehind,
    bytesPerSecond: 20 << 20,
  });
  t.equal(scrub.begin(), 1);
  await waitFor('it to stand still', () => scrub.status.isPaused);
  t.equal(scrub.begin(), 2, 'a pass that runs has read what was before: another follows');
  t.match(scrub.status, { isRunning: true, passes: 0 });
  isBehind = false;
  await waitFor('both passes', () => scrub.status.passes === 2);
  t.match(scrub.status, { isRunning: false, isPaused: false, faults: [] });
});

t.test('a pass keeps to its rate', async (t) => {
  const { folder, log } = await openGround(t, { last: 3_000 });
  t.teardown(() => log.close());
  const bytesPerSecond = 512 << 10;
  const { pass } = scrubOf(t, folder, { seal: () => log.seal(), bytesPerSecond });
  const startedMs = performance.now();
  const { bytes } = await pass();
  const tookMs = performance.now() - startedMs;
  // The last slice, of 256 KiB at most, is not waited for.
  const leastMs = ((bytes - (256 << 10)) / bytesPerSecond) * 1_000;
  t.ok(leastMs > 300, `${bytes} bytes`);
  t.ok(tookMs >= leastMs, `${tookMs} ms for ${bytes} bytes, wanted ${leastMs}`);
});

t.test('what is cut, dropped and replaced while it is read is no damage', async (t) => {
  const ground = await openGround(t, { snapshots: [150], last: 400 });
  const { folder, log, driver } = ground;
  t.teardown(() => log.close());
  const { scrub } = scrubOf(t, folder, { seal: async () => undefined, pauseMs: 1, startMs: 0 });
  scrub.start();
  let at = 400;
  let base = 150;
  while (scrub.status.passes < 12) {
    const cut = at - 150;
    const entries = Array.from({ length: 300 }, (_, step) => lockEntry(cut + step));
    for (let from = 0; from < entries.length; from += 100) {
      const truncateFrom = from === 0 ? cut : 0;
      const part = entries.slice(from, from + 100);
      await driver.append({ truncateFrom, entries: part, commitIndex: cut - 1 });
    }
    at = cut + entries.length - 1;
    if (at - base < 600) continue;
    base = at - 200;
    await ground.snapshot(base);
  }
  t.strictSame(scrub.status.faults, []);
  t.equal(scrub.status.passesFailed, 0, scrub.status.failure);
});

t.test('a folder that cannot be read is told, and tried again', async (t) => {
  const folder = t.testdir({ log: 'no folder' });
  const { pass, lines } = scrubOf(t, folder);
  const { passesFailed, failure } = await pass();
  t.equal(passesFailed, 1);
  t.match(failure, /ENOTDIR/);
  t.match(lines, [{ level: 'warn', message: 'the disk could not be checked', reason: /ENOTDIR/ }]);
  fs.rmSync(path.join(folder, 'log'));
  t.match(await pass(), { passes: 2, passesFailed: 1, failure: '' });
});

t.test('passes that are asked for again and again keep a distance', async (t) => {
  const { folder, log } = await openGround(t, { last: 50 });
  t.teardown(() => log.close());
  let seals = 0;
  const seal = async () => {
    seals += 1;
  };
  const spacingMs = 150;
  const { scrub, pass } = scrubOf(t, folder, { seal, spacingMs });
  const startedMs = performance.now();
  for (let wanted = 1; wanted <= 4; wanted += 1) {
    for (let ask = 0; ask < 10; ask += 1) t.equal(scrub.begin(), wanted);
    await pass();
  }
  t.ok(performance.now() - startedMs >= 3 * spacingMs);
  t.equal(seals, 4, 'one for each pass');
});

t.test('without a rate there is no check', async (t) => {
  const { scrub } = scrubOf(t, t.testdir({}), { bytesPerSecond: 0, startMs: 0 });
  scrub.start();
  t.equal(scrub.begin(), 0);
  t.match(scrub.status, { isEnabled: false, isRunning: false, passes: 0 });
});
