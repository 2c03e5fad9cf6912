/** A damaged log is refused wherever the damage is, and nothing passes unnoticed. */

import fs from 'node:fs';
import path from 'node:path';
import t, { type Test } from 'tap';
import { openLog } from '../../../src/io/log/log.js';
import { LogDriver, makeEntry } from '../../conformance/log-driver.js';
import { Child } from './child.js';

/** A record of this size has pages of its own, with its data in one piece. */
const ENTRY_BYTES = 3_000;
/** Three records a segment. */
const SEGMENT_BYTES = 12_000;
const READER = 'test/unit/io/log-reader.ts';

async function open(folder: string) {
  const notes: string[] = [];
  const { log, state } = await openLog({
    folder,
    nodeId: 1,
    segmentBytesMax: SEGMENT_BYTES,
    onFatal: (reason) => t.fail(reason),
    onNote: (text) => notes.push(text),
  });
  const driver = new LogDriver({ log, state, setEvents: log.setEvents.bind(log) });
  return { log, state, driver, notes };
}

/** A closed log of eight entries in three segments; each entry is an order of its own. */
async function makeLog(folder: string, commitIndex = 0): Promise<void> {
  const { log, driver } = await open(folder);
  for (let index = 1; index <= 8; index++) {
    await driver.append({ entries: [makeEntry(index, 1, ENTRY_BYTES)], commitIndex });
  }
  await log.close();
}

function dataFile(folder: string, first: number): string {
  return path.join(folder, 'log', `segment-${String(first).padStart(16, '0')}`, 'data.mdb');
}

function flip(file: string, offset: number, mask = 1): void {
  const bytes = fs.readFileSync(file);
  bytes[offset] = bytes[offset]! ^ mask;
  fs.writeFileSync(file, bytes);
}

/** Flips a bit in the data of one entry. */
function damage(folder: string, first: number, index: number): void {
  const file = dataFile(folder, first);
  const at = fs.readFileSync(file).indexOf(Buffer.alloc(ENTRY_BYTES, index + 1));
  t.ok(at > 0, `entry ${index} is found in its segment`);
  flip(file, at + 1_000);
}

t.test('a bad record at the very end may have been acknowledged: refused, never cut', async (t) => {
  const folder = t.testdir({});
  await makeLog(folder);
  damage(folder, 7, 8);
  await t.rejects(open(folder), { code: 'LOG_CORRUPT', message: /record of index 8/ });
  await t.rejects(open(folder), { code: 'LOG_CORRUPT' }, 'and again: nothing was cut');
});

t.test('a bad record with a good one behind it is refused, by segment and index', async (t) => {
  for (const [first, index] of [
    [1, 2],
    [4, 6],
    [7, 7],
  ] as const) {
    const folder = t.testdir({});
    await makeLog(folder);
    damage(folder, first, index);
    await t.rejects(open(folder), {
      code: 'LOG_CORRUPT',
      message: new RegExp(`segment-000000000000000${first}: the record of index ${index} has`),
    });
    await t.rejects(
      open(folder),
      { message: /cannot replace a member/ },
      'and again, with the way back',
    );
  }
});

t.test('a record of another log does not follow, though its checksum is right', async (t) => {
  const folders = t.testdir({ one: {}, two: {} });
  const [one, two] = [path.join(folders, 'one'), path.join(folders, 'two')];
  await makeLog(one);
  const { log, driver } = await open(two);
  for (let index = 1; index <= 8; index++) {
    await driver.append({ entries: [makeEntry(index, 2, ENTRY_BYTES)] });
  }
  await log.close();
  fs.cpSync(dataFile(two, 4), dataFile(one, 4));
  await t.rejects(open(one), { code: 'LOG_CORRUPT', message: /index 4 does not follow/ });
});

t.test('a missing segment and an emptied one are refused', async (t) => {
  const folder = t.testdir({});
  await makeLog(folder);
  const middle = path.dirname(dataFile(folder, 4));
  fs.renameSync(middle, path.join(folder, 'aside'));
  await t.rejects(open(folder), { code: 'LOG_CORRUPT', message: /index 4 is missing before/ });
  fs.mkdirSync(middle);
  await t.rejects(open(folder), { code: 'LOG_CORRUPT', message: /data.mdb is missing/ });
});

t.test('a file that was cut short is refused before it is mapped', async (t) => {
  const folder = t.testdir({});
  await makeLog(folder);
  const file = dataFile(folder, 4);
  for (const size of [20_000, 6_000, 100, 0]) {
    fs.truncateSync(file, size);
    await t.rejects(open(folder), { code: 'LOG_CORRUPT', message: /data.mdb/ }, `${size} bytes`);
  }
});

t.test('term, vote and identity that are damaged or lost keep the node out', async (t) => {
  const folder = t.testdir({});
  const { log, driver } = await open(folder);
  await driver.append({ entries: [makeEntry(1, 7)], hardState: { term: 7, votedFor: 1 } });
  await log.close();
  const state = path.join(folder, 'state');
  const file = path.join(state, 'data.mdb');
  const saved = fs.readFileSync(file);
  // Every stored version of the record: format 1, then the term.
  for (let at = saved.indexOf('\0\0\0\0\0\0\x07'); at >= 0; ) {
    flip(file, at + 6);
    at = saved.indexOf('\0\0\0\0\0\0\x07', at + 1);
  }
  await t.rejects(open(folder), { code: 'STATE_CORRUPT', message: /wrong checksum/ });
  fs.truncateSync(file, 5_000);
  await t.rejects(open(folder), { code: 'STATE_CORRUPT', message: /data.mdb has 5000 bytes/ });
  fs.rmSync(state, { recursive: true });
  await t.rejects(open(folder), { code: 'STATE_CORRUPT', message: /missing beside a log/ });
  fs.mkdirSync(state);
  fs.writeFileSync(file, saved);
  const again = await open(folder);
  t.strictSame(again.state.hardState, { term: 7, votedFor: 1 });
  await again.log.close();
});

async function readApart(t: Test, folder: string): Promise<string> {
  const child = new Child(t, READER, [folder, String(SEGMENT_BYTES)]);
  const { signal } = await child.ended;
  return child.lines[0] ?? `ended by ${signal}`;
}

t.test('no flipped bit anywhere in a segment goes unnoticed and changes an entry', async (t) => {
  const folder = t.testdir({});
  await makeLog(folder);
  const intact = await readApart(t, folder);
  const file = dataFile(folder, 4);
  const saved = fs.readFileSync(file);
  const verdicts = new Set<string>();
  for (let flips = 0; flips < 14; flips++) {
    // Across the whole file, another place in the page and another bit each time.
    const offset = Math.floor((saved.length * flips) / 14) + ((flips * 577) % 1_000);
    flip(file, offset, 1 << (flips % 8));
    const verdict = await readApart(t, folder);
    const isNoticed = /^refused LOG_CORRUPT|^ended by|^refused/.test(verdict);
    t.ok(isNoticed || verdict === intact, `bit at ${offset}: ${verdict}`);
    verdicts.add(verdict);
    fs.writeFileSync(file, saved);
  }
  t.ok(verdicts.has('refused LOG_CORRUPT'), 'some of them hit an entry');
});
