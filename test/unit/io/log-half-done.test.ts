/** A process that ends in the middle of rebuilding its log, on real LMDB folders, at every step. */

import fs from 'node:fs';
import path from 'node:path';
import t, { type Test } from 'tap';
import { Environment } from '../../../src/io/log/environment.js';
import { openLog } from '../../../src/io/log/log.js';
import type { SegmentedLog } from '../../../src/io/log/segmented-log.js';
import { openSegmentedLog } from '../../../src/io/log/verify.js';
import { SnapshotFiles } from '../../../src/io/snapshots/snapshot-files.js';
import { draftPlace, publishSnapshot } from '../../../src/io/snapshots/snapshot-folder.js';
import { LogDriver, makeEntries, makeEntry, plain } from '../../conformance/log-driver.js';
import { CLUSTER_ID, machineWith } from './snapshot-maker.js';

const SEGMENT_BYTES_MAX = 5_000;
const LAST = 40;
const NO_EVENTS = { onProgress: () => undefined };

async function open(t: Test, folder: string) {
  const opened = await openLog({
    folder,
    nodeId: 1,
    segmentBytesMax: SEGMENT_BYTES_MAX,
    onFatal: (reason) => t.fail(reason),
  });
  const { log, state, snapshot } = opened;
  const driver = new LogDriver({ log, state, setEvents: log.setEvents.bind(log) });
  return { log, state, snapshot, driver };
}

/** A data folder whose log has the entries 1 … LAST of term 1, in several segments. */
async function makeFolder(t: Test, folder: string): Promise<void> {
  const { log, driver } = await open(t, folder);
  await driver.append({
    hardState: { term: 2, votedFor: 0 },
    entries: makeEntries(1, LAST, 1, 600),
  });
  await log.close();
}

/** Puts a snapshot of `index` and `term` into the folder, as an install does before the reset. */
function addSnapshot(folder: string, index: number, term: number): void {
  const machine = machineWith(index);
  const files = new SnapshotFiles(draftPlace(folder, index));
  machine.writeSnapshot(10_000, (chunk) => files.add(chunk));
  const { now: stampMs, revision } = machine;
  const state = { clusterId: CLUSTER_ID, index, term, stampMs, revision };
  files.finish({ ...state, digest: machine.digest() });
  publishSnapshot(folder, files.folder, index);
}

class Crash extends Error {}

const STEPS = ['rmSync', 'mkdirSync', 'renameSync', 'ftruncateSync', 'fsyncSync'] as const;

/** A folder is deleted file by file: this is what is left when the first of two is gone. */
function deleteHalf(folder: string): void {
  const data = path.join(folder, 'data.mdb');
  if (fs.existsSync(data)) fs.unlinkSync(data);
}

/**
 * Runs `work` and ends it before its step `at` on the file system, or in the middle of it where
 * that is the deletion of a folder. False: it has fewer steps.
 */
function endsAt(at: number, isHalf: boolean, work: () => void): boolean {
  const calls = fs as unknown as Record<string, (...words: unknown[]) => unknown>;
  const real = STEPS.map((name) => calls[name] as (...words: unknown[]) => unknown);
  let steps = 0;
  STEPS.forEach((name, position) => {
    calls[name] = (...words) => {
      steps += 1;
      if (steps === at) {
        if (isHalf && name === 'rmSync') deleteHalf(String(words[0]));
        throw new Crash();
      }
      return real[position]?.(...words);
    };
  });
  try {
    work();
    return false;
  } catch (error) {
    if (error instanceof Crash) return true;
    throw error;
  } finally {
    STEPS.forEach((name, position) => {
      calls[name] = real[position] as (...words: unknown[]) => unknown;
    });
  }
}

/**
 * For each step of `work`: a copy of the template, on which `work` ends there; then a copy of what
 * it has left, as the next process finds it.
 */
async function* leftBehind(
  template: string,
  scratch: string,
  isHalf: boolean,
  work: (log: SegmentedLog) => void,
): AsyncGenerator<string> {
  for (let at = 1; ; at += 1) {
    const place = path.join(scratch, `at-${at}-${isHalf}`);
    fs.cpSync(template, place, { recursive: true });
    const { log } = openSegmentedLog(`${place}/log`, SEGMENT_BYTES_MAX, null, NO_EVENTS);
    if (!endsAt(at, isHalf, () => work(log))) {
      log.close();
      return;
    }
    // Whoever ended closes nothing.
    const found = path.join(scratch, `found-${at}-${isHalf}`);
    fs.cpSync(place, found, { recursive: true });
    yield found;
  }
}

/** Ended before each step, then in the middle of each deletion. */
async function* bothWays(
  template: string,
  scratch: string,
  work: (log: SegmentedLog) => void,
): AsyncGenerator<string> {
  yield* leftBehind(template, scratch, false, work);
  yield* leftBehind(template, scratch, true, work);
}

for (const [name, index, term] of [
  ['behind the end of the log', LAST + 60, 2],
  ['within the log, of another term', LAST - 10, 2],
] as const) {
  t.test(`a reset to a snapshot ${name} is finished by the next start`, async (t) => {
    const scratch = t.testdir({});
    const template = path.join(scratch, 'template');
    await makeFolder(t, template);
    addSnapshot(template, index, term);
    let steps = 0;
    const work = (log: SegmentedLog): void => log.reset(index);
    for await (const found of bothWays(template, scratch, work)) {
      steps += 1;
      const { log, state, snapshot, driver } = await open(t, found);
      const { firstIndex, lastIndex } = state;
      t.same([snapshot?.index, firstIndex, lastIndex], [index, index + 1, index], `step ${steps}`);
      await driver.append({ entries: [makeEntry(index + 1, 2)] });
      const read = plain(await driver.read(index + 1, index + 1));
      t.strictSame(read, plain([makeEntry(index + 1, 2)]), 'and goes on behind it');
      await log.close();
    }
    t.ok(steps > 12, `${steps} steps`);
  });
}

t.test('a cut leaves a shorter log at each of its steps, never one with a gap', async (t) => {
  const scratch = t.testdir({});
  const template = path.join(scratch, 'template');
  await makeFolder(t, template);
  let steps = 0;
  const work = (log: SegmentedLog): void => log.truncate(5);
  for await (const found of bothWays(template, scratch, work)) {
    steps += 1;
    const { log, state, driver } = await open(t, found);
    const { firstIndex, lastIndex } = state;
    t.ok(firstIndex === 1 && lastIndex >= 4 && lastIndex <= LAST, `step ${steps}: ${lastIndex}`);
    const all = plain(await driver.read(1, lastIndex));
    t.strictSame(all, plain(makeEntries(1, lastIndex, 1, 600)));
    await log.close();
  }
  t.ok(steps > 4, `${steps} steps`);
});

t.test('a drop of old segments leaves a log that opens at each of its steps', async (t) => {
  const scratch = t.testdir({});
  const template = path.join(scratch, 'template');
  await makeFolder(t, template);
  addSnapshot(template, LAST - 5, 1);
  let steps = 0;
  const work = (log: SegmentedLog): void => log.dropBefore(LAST - 5);
  for await (const found of bothWays(template, scratch, work)) {
    steps += 1;
    const { log, state, driver } = await open(t, found);
    const { firstIndex, lastIndex } = state;
    t.ok(firstIndex <= LAST - 4 && lastIndex === LAST, `step ${steps}: ${firstIndex}`);
    const all = plain(await driver.read(firstIndex, LAST));
    t.strictSame(all, plain(makeEntries(firstIndex, LAST, 1, 600)));
    await log.close();
  }
  t.ok(steps > 4, `${steps} steps`);
});

t.test('a folder that ended before its first record was stored is drawn anew', async (t) => {
  const folder = t.testdir({});
  Environment.create(path.join(folder, 'state'), 1 << 20).close();
  const { log, state } = await open(t, folder);
  t.same([state.hardState, state.lastIndex], [{ term: 0, votedFor: 0 }, 0]);
  await log.close();
});
