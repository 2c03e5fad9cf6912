/** The node's side of history: when the log is sealed, when the thread lives, what damage does. */

import fs from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { defaultSettings } from '../../../src/core/locks/settings.js';
import { openLog } from '../../../src/io/log/log.js';
import { SnapshotFiles } from '../../../src/io/snapshots/snapshot-files.js';
import { draftPlace, publishSnapshot } from '../../../src/io/snapshots/snapshot-folder.js';
import { createLogger } from '../../../src/observe/logger.js';
import type { HistoryPage } from '../../../src/replica/ports.js';
import { NodeHistory } from '../../../src/server/history.js';
import { LogDriver } from '../../conformance/log-driver.js';
import { CLUSTER_ID, lockEntry, machineWith } from '../io/snapshot-maker.js';

const NO_POOL = {
  keepSegments: () => Promise.reject(new Error('not asked for')),
  keepSnapshots: () => Promise.reject(new Error('not asked for')),
  run: () => Promise.reject(new Error('not asked for')),
};

t.test(
  'pages come from the log, sealed when it must be; damage is told and given up',
  async (t) => {
    const dataFolder = t.testdir({});
    const { log, state } = await openLog({
      folder: dataFolder,
      nodeId: 1,
      onFatal: (reason) => t.fail(reason),
    });
    t.teardown(() => log.close());
    const driver = new LogDriver({ log, state, setEvents: log.setEvents.bind(log) });
    for (let at = 1; at < 100; at += 1) driver.give({ entries: [lockEntry(at)] });
    await driver.append({ entries: [lockEntry(100)] });
    let seals = 0;
    const seal = async () => {
      seals += 1;
      await log.seal();
    };
    const lines: string[] = [];
    const waiting = new Map<number, (page: HistoryPage | null) => void>();
    const history = new NodeHistory(
      {
        dataFolder,
        clusterId: CLUSTER_ID,
        settings: defaultSettings(),
        log: { seal },
        pool: NO_POOL,
        bytesMax: 1,
        logger: createLogger('info', {}, { write: (line) => lines.push(line) }),
      },
      { onHistory: (readId, page) => waiting.get(readId)?.(page) },
    );
    t.teardown(() => history.close());
    let lastId = 0;
    const read = (from: number, applied: number): Promise<HistoryPage | null> => {
      lastId += 1;
      const readId = lastId;
      const prefix = new Uint8Array(0);
      return new Promise((resolve) => {
        waiting.set(readId, resolve);
        history.read({ readId, from, prefix, limit: 50, appliedIndex: applied, revision: applied });
      });
    };
    t.equal(history.oldestRevision, 1);
    const first = await read(1, 100);
    t.same([first?.rows.length, first?.next], [50, 51]);
    const both = await Promise.all([read(51, 100), read(20, 100)]);
    t.same(
      both.map((page) => page?.rows[0]?.[0]),
      [51, 20],
    );
    t.equal(seals, 1, 'what was sealed once is enough');
    await driver.append({ entries: [lockEntry(101)] });
    t.equal((await read(101, 101))?.rows.length, 1);
    t.equal(seals, 2, 'sealed anew for what came behind it');

    const file = path.join(dataFolder, 'log', 'segment-0000000000000001', 'data.mdb');
    const bytes = fs.readFileSync(file);
    bytes[bytes.indexOf('name-30')]! ^= 1;
    fs.writeFileSync(file, bytes);
    history.onInstalled(); // forgets the places that have read it already
    t.equal(history.isGivenUp, false);
    t.equal(await read(1, 101), null);
    t.equal(history.isGivenUp, true, 'until the next snapshot, or another state');
    history.onInstalled();
    t.equal(history.isGivenUp, false);
    t.match(lines.join('\n'), /history cannot be read/);
  },
);

t.test(
  'after an install it begins with the snapshot, though the old log is still there',
  async (t) => {
    const dataFolder = t.testdir({});
    const opened = await openLog({ folder: dataFolder, nodeId: 1, onFatal: (why) => t.fail(why) });
    const { log, state } = opened;
    t.teardown(() => log.close());
    const driver = new LogDriver({ log, state, setEvents: log.setEvents.bind(log) });
    await driver.append({ entries: [lockEntry(1), lockEntry(2)] });
    const history = new NodeHistory(
      {
        dataFolder,
        clusterId: CLUSTER_ID,
        settings: defaultSettings(),
        log,
        pool: NO_POOL,
        bytesMax: 1,
        logger: createLogger('info', {}, { write: () => undefined }),
      },
      { onHistory: () => undefined },
    );
    t.teardown(() => history.close());
    t.equal(history.oldestRevision, 1);
    const machine = machineWith(50);
    const files = new SnapshotFiles(draftPlace(dataFolder, 50));
    machine.writeSnapshot(10_000, (chunk) => files.add(chunk));
    const { now: stampMs, revision } = machine;
    const named = { clusterId: CLUSTER_ID, index: 50, term: 1, stampMs, revision };
    files.finish({ ...named, digest: machine.digest() });
    publishSnapshot(dataFolder, files.folder, 50);
    history.onInstalled();
    t.equal(history.oldestRevision, 51, 'the entries before it are about to go');
  },
);
