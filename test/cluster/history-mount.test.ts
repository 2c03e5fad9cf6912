/** A history folder that cannot have second names of the log's files: on a disk of its own. */

import { spawnSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { EntryDriver } from './entry-driver.js';
import { Cluster } from './harness.js';

const WORDS = ['--snapshot-entries', '30', '--log-tail-entries', '0'];
let place = '';
let fault = '';
const cluster = await Cluster.start({
  test: t,
  nodes: 1,
  nodeWords: () => WORDS,
  prepareFolder: (_nodeId, folder) => {
    place = path.join(folder, 'data', 'history');
    mkdirSync(place, { recursive: true });
    const words = ['-t', 'tmpfs', '-o', 'size=64m', 'tmpfs', place];
    fault = spawnSync('mount', words, { encoding: 'utf8' }).stderr.trim();
  },
});
t.teardown(() => void spawnSync('umount', ['-l', place]));
const skip = fault === '' ? false : `not permitted here: ${fault}`;

t.test('a history that cannot be kept is given up, and the node serves on', { skip }, async (t) => {
  const driver = await EntryDriver.open(cluster, 'entries');
  await driver.giveUntil('a cut of the log', async () => {
    return ((await cluster.status(1)).counters['log_base_index'] ?? 0) > 60;
  });
  driver.close();
  t.match(cluster.output(1), /history cannot be read/, 'it is told');
  await cluster.kill(1);
  await cluster.restart(1);
  await cluster.leader();
  t.pass('and it starts again');
});
