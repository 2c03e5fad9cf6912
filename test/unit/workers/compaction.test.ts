/** A worker makes a snapshot from files alone, while the log thread goes on writing. */

import fs from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { defaultSettings } from '../../../src/core/locks/settings.js';
import { openLog } from '../../../src/io/log/log.js';
import { openSnapshots, snapshotPlace } from '../../../src/io/snapshots/snapshot-folder.js';
import { WorkerPool } from '../../../src/workers/pool.js';
import { LogDriver } from '../../conformance/log-driver.js';
import { CLUSTER_ID, lockEntry, machineWith } from '../io/snapshot-maker.js';

async function open(folder: string) {
  const opened = await openLog({
    folder,
    nodeId: 1,
    segmentBytesMax: 20_000,
    onFatal: (reason) => t.fail(reason),
  });
  const { log, state } = opened;
  const driver = new LogDriver({ log, state, setEvents: log.setEvents.bind(log) });
  return { ...opened, driver };
}

function task(dataFolder: string, index: number, baseIndex: number) {
  const settings = defaultSettings();
  return { dataFolder, index, baseIndex, clusterId: CLUSTER_ID, settings, chunkBytes: 5_000 };
}

/** A log takes so many orders before one of them must be durable. */
const ORDERS_AT_ONCE = 100;

async function append(driver: LogDriver, from: number, to: number): Promise<void> {
  for (let index = from; index <= to; index += 1) {
    const id = driver.give({ entries: [lockEntry(index)] });
    if (index === to || index % ORDERS_AT_ONCE === 0) await driver.durable(id);
  }
}

t.test('snapshot after snapshot is the state that apply gives, whatever is dropped', async (t) => {
  const folder = t.testdir({});
  const pool = new WorkerPool();
  t.teardown(() => pool.close());
  const { log, driver } = await open(folder);
  let base = 0;
  for (const index of [150, 151, 400]) {
    await append(driver, base + 1, index + 20);
    await log.seal();
    // Entries behind the index go on coming and being cut.
    await driver.append({ entries: [lockEntry(index + 21)] });
    const made = pool.compact(task(folder, index, base));
    await driver.append({ truncateFrom: index + 1 });
    const { manifest, entries } = await made;
    t.equal(entries, index - base);
    t.match(manifest, { index, term: 1, stampMs: 1_000 + index });
    t.equal(manifest.digest, machineWith(index).digest(), `at ${index}`);
    await pool.run('publishDraft', { dataFolder: folder, index });
    await log.dropBefore(index - 10);
    await pool.run('removeBefore', { dataFolder: folder, index });
    base = index;
  }
  await log.close();
  const again = await open(folder);
  t.equal(again.snapshot?.index, 400);
  const { firstIndex } = again.state;
  t.ok(firstIndex > 1 && firstIndex <= 390, `whole segments went: it starts at ${firstIndex}`);
  t.equal(again.state.lastIndex, 400);
  await again.log.close();
  t.strictSame(fs.readdirSync(path.join(folder, 'snapshots')), [
    path.basename(snapshotPlace(folder, 400)),
  ]);
});

t.test('a log that does not hold what it promised gives no snapshot, and says where', async (t) => {
  const folder = t.testdir({});
  const pool = new WorkerPool();
  t.teardown(() => pool.close());
  const { log, driver } = await open(folder);
  await append(driver, 1, 300);
  await log.seal();
  await t.rejects(pool.compact(task(folder, 301, 0)), /record of index 301 is missing/);
  await t.rejects(pool.compact(task(folder, 100, 50)), /snapshot .*manifest is missing/);
  const first = path.join(folder, 'log', 'segment-0000000000000001', 'data.mdb');
  const bytes = fs.readFileSync(first);
  const at = bytes.indexOf('name-17');
  t.ok(at > 0);
  bytes[at]! ^= 1;
  fs.writeFileSync(first, bytes);
  await t.rejects(pool.compact(task(folder, 200, 0)), /index \d+ is damaged/);
  await log.dropBefore(250);
  await t.rejects(pool.compact(task(folder, 300, 0)), /record of index 1 is missing/);
  await log.close();
  t.equal(
    openSnapshots(folder, () => t.fail('no snapshot is damaged')),
    null,
  );
});
