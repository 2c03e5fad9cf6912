/**
 * A write that fails on a worker's thread is told from a job that could not be done: the one ends
 * the node (I10), the other is tried again.
 */

import path from 'node:path';
import t from 'tap';
import { FailedWrite } from '../../../src/io/failed-write.js';
import { openLog } from '../../../src/io/log/log.js';
import {
  fetchNewest,
  type Job,
  type JobOptions,
  makeDraft,
  type Step,
} from '../../../src/server/snapshot-jobs.js';
import { LogDriver } from '../../conformance/log-driver.js';
import { hasShim, Shim } from '../../shim/fsync-shim.js';
import { Child } from '../io/child.js';
import { lockEntry } from '../io/snapshot-maker.js';

const noShim = hasShim() ? false : 'there is no C compiler';
const COMPACTOR = 'test/unit/workers/compactor.ts';
const ENTRIES = 50;

async function fill(folder: string): Promise<void> {
  const onFatal = (reason: string) => t.fail(reason);
  const { log, state } = await openLog({ folder, nodeId: 1, onFatal });
  const driver = new LogDriver({ log, state, setEvents: log.setEvents.bind(log) });
  for (let index = 1; index <= ENTRIES; index += 1) {
    await driver.append({ entries: [lockEntry(index)] });
  }
  await log.seal();
  await log.close();
}

t.test('the pool says which of the two it was', { skip: noShim }, async (t) => {
  const folder = t.testdir({ data: {} });
  const data = path.join(folder, 'data');
  const shim = new Shim(folder);
  await fill(data);
  const compact = async (index: number): Promise<string> => {
    const child = new Child(t, COMPACTOR, [data, String(index)], shim.environment);
    await child.ended;
    return child.lines.join('\n');
  };
  t.equal(await compact(ENTRIES), `made of ${ENTRIES} entries`);
  t.match(await compact(ENTRIES + 1), /^no snapshot: .*record of index 51 is missing/);
  shim.fail('EIO');
  t.match(await compact(ENTRIES), /^failed write: EIO: .*, fsync$/);
});

/** Drives a job until its first step of this kind, and lets that fail. */
function failAt(job: Job, kind: Step['kind'], error: Error): void {
  let next = job.next();
  while (next.done !== true && next.value.kind !== kind) next = job.next();
  job.throw(error);
}

t.test('a job gives up for any reason but a failed write, which ends it', async (t) => {
  const told: string[] = [];
  const note = (): void => undefined;
  const options = {
    dataFolder: '/none',
    hashSeeds: new Uint32Array(2),
    lender: { index: 0 },
    logger: { info: note, warn: note, error: note },
    events: { onDraft: () => told.push('no draft'), onFetched: () => told.push('not fetched') },
    onInstalled: note,
  } as unknown as JobOptions;
  failAt(makeDraft(options, 9), 'compact', new Error('its thread has ended'));
  failAt(fetchNewest(options, 2, 9), 'fetch', new Error('the other end closed'));
  t.strictSame(told, ['no draft', 'not fetched']);
  const failure = new FailedWrite('EIO');
  t.throws(() => failAt(makeDraft(options, 9), 'compact', failure), failure);
  t.throws(() => failAt(fetchNewest(options, 2, 9), 'fetch', failure), failure);
  t.equal(told.length, 2, 'nobody is told to try again');
});
