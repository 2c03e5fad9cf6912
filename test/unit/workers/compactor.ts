/**
 * Makes one snapshot with the pool of a node and says how it went: compactor.js FOLDER INDEX.
 * Started by: failed-write.test.ts, under a disk that fails.
 */
import { defaultSettings } from '../../../src/core/locks/settings.js';
import { FailedWrite } from '../../../src/io/failed-write.js';
import { WorkerPool } from '../../../src/workers/pool.js';
import { CLUSTER_ID } from '../io/snapshot-maker.js';

const [dataFolder = '', index = '1'] = process.argv.slice(2);
const pool = new WorkerPool();
const settings = defaultSettings();
const task = { dataFolder, baseIndex: 0, clusterId: CLUSTER_ID, settings, chunkBytes: 5_000 };
let said = '';
try {
  const { entries } = await pool.compact({ ...task, index: Number(index) });
  said = `made of ${entries} entries`;
} catch (error) {
  const kind = error instanceof FailedWrite ? 'failed write' : 'no snapshot';
  said = `${kind}: ${(error as Error).message}`;
}
process.stdout.write(`${said}\n`);
await pool.close();
