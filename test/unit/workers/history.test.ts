/** History is read back from what log and snapshots leave behind, event by event. */

import fs from 'node:fs';
import path from 'node:path';
import t, { type Test } from 'tap';
import { defaultSettings } from '../../../src/core/locks/settings.js';
import {
  historyFolder,
  historySegments,
  readHistory,
  trimHistory,
  wipeHistory,
} from '../../../src/io/history/history-folder.js';
import { openLog } from '../../../src/io/log/log.js';
import { listSegments, segmentFolder } from '../../../src/io/log/segment-files.js';
import type { AuditRow } from '../../../src/wire/audit.js';
import { HistoryReader } from '../../../src/workers/history-reader.js';
import { WorkerPool } from '../../../src/workers/pool.js';
import { LogDriver } from '../../conformance/log-driver.js';
import { CLUSTER_ID, lockEntry } from '../io/snapshot-maker.js';

const NO_BOUND = 2 ** 40;
const EVERYTHING = new Uint8Array(0);
const TAIL = 10;

/** A log with a snapshot at each of `indexes`, and `last` entries, as a node leaves it. */
async function ground(
  t: Test,
  indexes: readonly number[],
  last: number,
  bytesMax = NO_BOUND,
  segmentBytesMax = 20_000,
) {
  const dataFolder = t.testdir({});
  const pool = new WorkerPool();
  t.teardown(() => pool.close());
  const { log, state } = await openLog({
    folder: dataFolder,
    nodeId: 1,
    segmentBytesMax,
    onFatal: (reason) => t.fail(reason),
  });
  const driver = new LogDriver({ log, state, setEvents: log.setEvents.bind(log) });
  let at = 0;
  const append = async (to: number) => {
    while (at < to) {
      at += 1;
      const id = driver.give({ entries: [lockEntry(at)] });
      if (at % 100 === 0 || at === to) await driver.durable(id);
    }
    await log.seal();
  };
  let baseIndex = 0;
  for (const index of indexes) {
    await append(index + 5);
    const settings = defaultSettings();
    const task = { dataFolder, index, baseIndex, clusterId: CLUSTER_ID, settings };
    await pool.compact({ ...task, chunkBytes: 5_000 });
    await pool.run('publishDraft', { dataFolder, index });
    await pool.keepSegments({ dataFolder, index: index - TAIL });
    await log.dropBefore(index - TAIL);
    await pool.keepSnapshots({ dataFolder, index, bytesMax });
    baseIndex = index;
  }
  await append(last);
  t.teardown(() => log.close());
  return { dataFolder, log, append, sealedIndex: last };
}

function readerOf(dataFolder: string, sliceMs = 10_000): HistoryReader {
  const settings = defaultSettings();
  return new HistoryReader({ dataFolder, clusterId: CLUSTER_ID, settings, sliceMs });
}

/** Page after page, as a consumer asks for them. */
function readAll(reader: HistoryReader, from: number, last: number, limit = 64): AuditRow[] {
  const rows: AuditRow[] = [];
  for (let next = from; next <= last; ) {
    const page = reader.read({ from: next, prefix: EVERYTHING, limit, sealedIndex: last });
    if (page === null) throw new Error(`revision ${next} is not kept`);
    if (page.rows.length > limit) throw new Error('more rows than were asked for');
    rows.push(...page.rows);
    next = page.next;
  }
  return rows;
}

/** Entry n of the log acquires `name-n`: revision n, by the request of the same name. */
function demandRows(t: Test, rows: readonly AuditRow[], from: number, to: number): void {
  t.equal(rows.length, to - from + 1);
  const wrong = rows.findIndex((row, at) => {
    const n = from + at;
    const isSame = row[0] === n && row[2] === `name-${n}` && row[8] === n;
    return !isSame || row[11] !== `name-${n}` || row[7] !== 1_000 + n || row[1] !== 1;
  });
  t.equal(wrong, -1, `row ${wrong} is ${JSON.stringify(rows[wrong])}`);
}

t.test(
  'every event since the founding can be read after log and snapshots were dropped',
  async (t) => {
    const { dataFolder } = await ground(t, [150, 400, 420, 900], 1_000);
    t.ok(fs.readdirSync(path.join(dataFolder, 'log')).length < historySegments(dataFolder).size);
    t.strictSame(
      readHistory(dataFolder).bases.map(({ index, revision }) => [index, revision]),
      [
        [0, 0],
        [150, 150],
        [400, 400],
        [420, 420],
        [900, 900],
      ],
    );
    const reader = readerOf(dataFolder);
    demandRows(t, readAll(reader, 1, 1_000), 1, 1_000);
    for (const from of [2, 149, 150, 151, 399, 400, 401, 421, 899, 900, 901, 1_000]) {
      demandRows(t, readAll(readerOf(dataFolder), from, 1_000, 999), from, 1_000);
    }
    // Two readers in turn, each a page behind the other, and one that goes back.
    for (const from of [300, 700, 364, 764, 300]) {
      const page = reader.read({ from, prefix: EVERYTHING, limit: 64, sealedIndex: 1_000 });
      demandRows(t, page?.rows ?? [], from, from + 63);
    }
    reader.forget();
  },
);

t.test(
  'a prefix costs its rows alone, and a page that ran out of time says how far it is',
  async (t) => {
    const { dataFolder } = await ground(t, [150], 300);
    const prefix = new TextEncoder().encode('name-29');
    const page = readerOf(dataFolder).read({ from: 1, prefix, limit: 500, sealedIndex: 300 });
    t.same(
      page?.rows.map((row) => row[2]),
      ['name-29', ...Array.from({ length: 10 }, (_, at) => `name-29${at}`)],
    );
    t.equal(page?.next, 301);
    const hasty = readerOf(dataFolder, 0);
    let pages = 0;
    let next = 1;
    const names: unknown[] = [];
    for (; next <= 300; pages += 1) {
      const part = hasty.read({ from: next, prefix, limit: 500, sealedIndex: 300 });
      if (part === null || pages > 300) throw new Error('it does not get on');
      names.push(...part.rows.map((row) => row[2]));
      next = part.next;
    }
    t.ok(pages > 5, `${pages} pages`);
    t.equal(names.length, 11, 'nothing twice');
  },
);

t.test('history within a bound: the oldest go, and what is left is whole', async (t) => {
  const indexes = [150, 300, 450, 600, 750];
  const { dataFolder } = await ground(t, indexes, 800);
  const before = readHistory(dataFolder).bytes;
  const { bases, bytes } = trimHistory(dataFolder, before / 2);
  t.ok(bytes > 0 && bytes <= before / 2, `${bytes} bytes of ${before}`);
  const oldest = (bases[0]?.revision ?? 0) + 1;
  t.ok(oldest > 1 && oldest < 751, `the oldest is ${oldest}`);
  demandRows(t, readAll(readerOf(dataFolder), oldest, 800), oldest, 800);
  const gone = { from: oldest - 1, prefix: EVERYTHING, limit: 1, sealedIndex: 800 };
  t.equal(readerOf(dataFolder).read(gone), null);
  const late = readerOf(dataFolder);
  readAll(late, oldest, oldest + 5, 5);
  trimHistory(dataFolder, 0);
  t.notOk(fs.existsSync(historyFolder(dataFolder)), 'nothing is kept when nothing may be');
  t.equal(readHistory(dataFolder).bases[0]?.revision, 750);
  const cut = { from: oldest + 6, prefix: EVERYTHING, limit: 500, sealedIndex: 800 };
  const rest = late.read(cut);
  if (rest !== null) demandRows(t, rest.rows, oldest + 6, oldest + 5 + rest.rows.length);
  t.equal(readerOf(dataFolder).read(cut), null, 'who comes for it is told');
  demandRows(t, readAll(late, 751, 800), 751, 800);
});

t.test('segments that end behind their snapshots: the oldest go, not everything', async (t) => {
  const segmentBytesMax = 64 << 20;
  const indexes = [150, 300, 450, 600, 750];
  const { dataFolder } = await ground(t, indexes, 800, NO_BOUND, segmentBytesMax);
  const before = readHistory(dataFolder).bytes;
  const { bases, bytes } = trimHistory(dataFolder, before * 0.9);
  t.ok(bytes > before / 2 && bytes <= before * 0.9, `${bytes} bytes of ${before}`);
  const oldest = (bases[0]?.revision ?? 0) + 1;
  t.ok(oldest > 1 && oldest <= 301, `the oldest is ${oldest}`);
  demandRows(t, readAll(readerOf(dataFolder), oldest, 800), oldest, 800);
});

t.test('a folder that was made for a segment, and not filled, is no segment', async (t) => {
  const { dataFolder } = await ground(t, [150, 300], 400);
  const [first = 0] = listSegments(path.join(dataFolder, 'log'));
  fs.mkdirSync(segmentFolder(historyFolder(dataFolder), first));
  demandRows(t, readAll(readerOf(dataFolder), 1, 400), 1, 400);
});

t.test('damage is told, never a wrong event', async (t) => {
  const { dataFolder } = await ground(t, [300], 400);
  const [[, place] = [0, '']] = historySegments(dataFolder);
  const file = path.join(place, 'data.mdb');
  const bytes = fs.readFileSync(file);
  const at = bytes.indexOf('name-17');
  t.ok(at > 0);
  bytes[at]! ^= 1;
  fs.writeFileSync(file, bytes);
  const reader = readerOf(dataFolder);
  t.throws(() => readAll(reader, 1, 400), /index 1\d is damaged/);
  demandRows(t, readAll(reader, 301, 400), 301, 400);
  fs.rmSync(place, { recursive: true });
  t.equal(reader.read({ from: 5, prefix: EVERYTHING, limit: 5, sealedIndex: 400 }), null);
  wipeHistory(dataFolder);
  demandRows(t, readAll(readerOf(dataFolder), 301, 400), 301, 400);
});
