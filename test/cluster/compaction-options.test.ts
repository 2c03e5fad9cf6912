/** The options of `serve` that bound its log and its history: refused, or they take effect. */

import fs from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { ExitCode } from '../../src/cli/exit-codes.js';
import { ErrorCode } from '../../src/wire/errors.js';
import { CommandKind } from '../../src/wire/request.js';
import { RawConnection } from './acceptance/raw-connection.js';
import { runCli } from './cli.js';
import { EntryDriver } from './entry-driver.js';
import { Cluster } from './harness.js';
import { waitFor } from './wait-for.js';

const SERVE = [
  ...['serve', '--node-id', '1', '--client', '127.0.0.1:1', '--peer', '127.0.0.1:2'],
  ...['--peers', '1=127.0.0.1:2', '--clients', '1=127.0.0.1:1'],
];

t.test('what cannot be is refused with 64, the option and what it takes', async (t) => {
  const data = path.join(t.testdir({}), 'data');
  const cases: readonly [readonly string[], RegExp][] = [
    [
      ['--snapshot-entries', '0'],
      /--snapshot-entries: give a whole number 1 to 1000000000, not '0'/,
    ],
    [['--log-tail-entries', '1e3'], /--log-tail-entries: give a whole number 0 to .*, not '1e3'/],
    [
      ['--snapshot-entries', '60', '--log-tail-entries', '61'],
      /--log-tail-entries: give at most --snapshot-entries, 60, not 61/,
    ],
    [['--history-mib', '12GiB'], /--history-mib: give a whole number 0 to 1000000, not '12GiB'/],
  ];
  for (const [words, said] of cases) {
    const { status, out, err } = await runCli(t, [...SERVE, '--data', data, ...words]);
    t.equal(status, ExitCode.Usage, words.join(' '));
    t.match(err, said);
    t.equal(out, '');
    t.notOk(fs.existsSync(data), 'nothing was made');
  }
});

/** A cluster of one node with these words, which has given so many entries. */
async function started(
  words: readonly string[],
): Promise<{ cluster: Cluster; driver: EntryDriver }> {
  const cluster = await Cluster.start({ test: t, nodes: 1, nodeWords: () => words });
  return { cluster, driver: await EntryDriver.open(cluster, 'entries') };
}

async function countersOf(cluster: Cluster): Promise<Readonly<Record<string, number>>> {
  return (await cluster.status(1)).counters;
}

t.test('a snapshot comes after as many entries as were said, and the tail stays', async (t) => {
  const words = ['--snapshot-entries', '50', '--log-tail-entries', '20'];
  const { cluster, driver } = await started(words);
  await driver.giveUntil('two cuts of the log', async () => {
    const { log_base_index: base = 0, snapshots_taken: taken = 0 } = await countersOf(cluster);
    return taken >= 2 && base > 0;
  });
  const { counters, appliedIndex } = await cluster.status(1);
  const { snapshot_index: index = 0, log_base_index: base = 0 } = counters;
  t.ok(appliedIndex - index <= 50, `entry ${appliedIndex}, snapshot ${index}`);
  t.ok(index - base >= 20, `at least 20 of ${index - base} entries before it stay`);
  t.ok(index - base <= 50 + 20, 'and no more than one snapshot’s worth beyond');
  driver.close();
});

t.test('with --history-mib 0 nothing is kept, and who comes late is told from where', async (t) => {
  const words = ['--snapshot-entries', '30', '--log-tail-entries', '0', '--history-mib', '0'];
  const { cluster, driver } = await started(words);
  await driver.giveUntil('a cut of the log', async () => {
    return ((await countersOf(cluster))['log_base_index'] ?? 0) > 0;
  });
  driver.close();
  t.notOk(fs.existsSync(path.join(cluster.dataFolder(1), 'history')), 'no folder');
  // What is in memory can still be told; after a start only what the disk has.
  await cluster.kill(1);
  await cluster.restart(1);
  const connection = await RawConnection.open(cluster.endpoint(await cluster.leader()));
  const late = await connection.call([CommandKind.Audit, null, 1]);
  t.equal(late.code, ErrorCode.Compacted);
  const { oldest_audited_revision: oldest = 0 } = await countersOf(cluster);
  t.ok(oldest > 1, `the oldest is ${oldest}`);
  connection.close();
});

t.test('by default the history is kept, and reaches back to the first revision', async (t) => {
  const { cluster, driver } = await started(['--snapshot-entries', '30']);
  await driver.giveUntil('a cut of the log', async () => {
    return ((await countersOf(cluster))['log_base_index'] ?? 0) > 0;
  });
  driver.close();
  await waitFor('history to be counted', () => {
    return fs.existsSync(path.join(cluster.dataFolder(1), 'history'));
  });
  await cluster.kill(1);
  await cluster.restart(1);
  const connection = await RawConnection.open(cluster.endpoint(await cluster.leader()));
  const page = await connection.call([CommandKind.Audit, null, 1, 1]);
  t.equal(page.code, ErrorCode.Ok);
  const [rows] = page.fields as [readonly (readonly unknown[])[]];
  t.equal(rows[0]?.[0], 1, 'revision 1');
  connection.close();
});
