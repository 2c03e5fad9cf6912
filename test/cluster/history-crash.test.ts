/**
 * A node that ended while its log became history: the states between two steps of that, made by
 * hand in the folder of a node that does not run. It starts, and no event is missing.
 */

import fs from 'node:fs';
import path from 'node:path';
import t, { type Test } from 'tap';
import { historyFolder } from '../../src/io/history/history-folder.js';
import { listSegments, segmentFolder } from '../../src/io/log/segment-files.js';
import { listSnapshots, snapshotPlace } from '../../src/io/snapshots/snapshot-folder.js';
import { acquireOperation, grantIn } from './acceptance/operations.js';
import { RawConnection } from './acceptance/raw-connection.js';
import { readEvents } from './audit-pages.js';
import { Cluster } from './harness.js';

const TTL_MS = 3_600_000;
const WORDS = ['--snapshot-entries', '30', '--log-tail-entries', '30'];

/** The folders of a node, and the segment of its log that becomes history next. */
interface Folders {
  readonly dataFolder: string;
  readonly history: string;
  readonly log: string;
  readonly oldest: number;
}

const STATES: readonly [string, (folders: Folders) => void][] = [
  [
    'a segment has two names, in the log and in the history',
    ({ history, log, oldest }) => {
      const folder = segmentFolder(history, oldest);
      fs.mkdirSync(folder, { recursive: true });
      const data = path.join(segmentFolder(log, oldest), 'data.mdb');
      fs.linkSync(data, path.join(folder, 'data.mdb'));
    },
  ],
  [
    'the folder of a segment is there, and its second name is not',
    ({ history, oldest }) => {
      fs.mkdirSync(segmentFolder(history, oldest), { recursive: true });
    },
  ],
  [
    'the log was cut, and the older snapshot has not moved',
    ({ history, dataFolder }) => {
      const index = listSnapshots(history)[0] ?? 0;
      fs.renameSync(snapshotPlace(history, index), snapshotPlace(dataFolder, index));
    },
  ],
];

async function countersOf(cluster: Cluster): Promise<Readonly<Record<string, number>>> {
  return (await cluster.status(1)).counters;
}

/** Acquires locks, each in an entry of its own, until so many more snapshots were made. */
async function acquireUntil(cluster: Cluster, names: string[], snapshots: number): Promise<void> {
  const connection = await RawConnection.open(cluster.endpoint(await cluster.leader()));
  let made = 0;
  let base = (await countersOf(cluster))['log_base_index'] ?? 0;
  while (made < snapshots) {
    const name = `event/${names.length + 1}`;
    grantIn(await connection.call(acquireOperation(name, name, TTL_MS)));
    names.push(name);
    const found = (await countersOf(cluster))['log_base_index'] ?? 0;
    if (found > base) made += 1;
    base = found;
  }
  connection.close();
}

async function demandEvents(t: Test, cluster: Cluster, names: readonly string[]): Promise<void> {
  const connection = await RawConnection.open(cluster.endpoint(await cluster.leader()));
  const rows = await readEvents(connection, 1);
  connection.close();
  t.strictSame(
    rows,
    names.map((name, at) => ({ revision: at + 1, name, requestId: name })),
    `${names.length} events, each once, in order`,
  );
}

async function restart(cluster: Cluster): Promise<void> {
  await cluster.kill(1);
  await cluster.restart(1);
  await cluster.leader();
}

for (const [state, makeState] of STATES) {
  t.test(state, async (t) => {
    const cluster = await Cluster.start({ test: t, nodes: 1, nodeWords: () => WORDS });
    const names: string[] = [];
    await acquireUntil(cluster, names, 2);
    await cluster.kill(1);
    const dataFolder = cluster.dataFolder(1);
    const log = path.join(dataFolder, 'log');
    const [oldest = 0] = listSegments(log);
    t.ok(listSegments(log).length > 1, 'the oldest segment is sealed');
    makeState({ dataFolder, history: historyFolder(dataFolder), log, oldest });

    await cluster.restart(1);
    await cluster.leader();
    await demandEvents(t, cluster, names);
    await acquireUntil(cluster, names, 2);
    t.ok((listSegments(log)[0] ?? 0) > oldest, 'the segment is history by now');
    t.equal(listSnapshots(dataFolder).length, 1, 'one snapshot, the others are history');
    await restart(cluster);
    await demandEvents(t, cluster, names);
    t.notMatch(cluster.output(1), /history cannot be read/);
  });
}
