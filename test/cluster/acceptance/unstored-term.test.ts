/**
 * Killed when an installed snapshot was on disk and the term that came with its offer was not:
 * the node takes the snapshot's term at its next start, without a vote.
 */

import { existsSync } from 'node:fs';
import t from 'tap';
import { StateStore } from '../../../src/io/log/state-store.js';
import { readManifest } from '../../../src/io/snapshots/snapshot-files.js';
import { listSnapshots, snapshotPlace } from '../../../src/io/snapshots/snapshot-folder.js';
import { hasShim, Shim } from '../../shim/fsync-shim.js';
import { runCli } from '../cli.js';
import { EntryDriver } from '../entry-driver.js';
import { Cluster } from '../harness.js';
import { LeaderCaller } from '../leader-caller.js';
import { figure } from './figures.js';
import { acquireOperation, grantIn } from './operations.js';

const TTL_MS = 3_600_000;
const VICTIM = 3;
const WORDS = ['--snapshot-entries', '40', '--log-tail-entries', '0'];
const INSTALL_MS_MAX = 25_000;

/** Term, vote and identity as they are on the disk of a node that does not run. */
function storedTerm(dataFolder: string): number {
  const store = StateStore.open(dataFolder, VICTIM, true);
  const { term } = store.current;
  store.close();
  return term;
}

const skip = hasShim() ? false : 'there is no C compiler';

t.test('killed between a durable snapshot and its term, the node starts', { skip }, async (t) => {
  const shims = new Map<number, Shim>();
  const cluster = await Cluster.start({
    test: t,
    nodes: 3,
    settings: { resultRetentionMs: TTL_MS },
    nodeWords: () => WORDS,
    prepareFolder: (nodeId, folder) => shims.set(nodeId, new Shim(folder)),
    nodeEnvironment: (nodeId) => (nodeId === VICTIM ? (shims.get(VICTIM)?.environment ?? {}) : {}),
    // The thread that fetches yields to everybody, and must be done before the silent disk ends the
    // node: on a machine that does other things it needs a better place to yield from.
    nodePrefix: (nodeId) => (nodeId === VICTIM ? ['nice', '-n', '-15'] : []),
  });
  const transfer = async (nodeId: number): Promise<void> => {
    const words = ['transfer', String(nodeId), '--endpoints', cluster.endpointList];
    const { status, err } = await runCli(t, words);
    if (status !== 0) throw new Error(`transfer ended with ${status}: ${err}`);
  };
  if ((await cluster.leader()) === VICTIM) await transfer(1);
  const caller = new LeaderCaller(cluster);
  const first = grantIn(await caller.call(acquireOperation('first', 'first', TTL_MS)));
  const [settled] = await cluster.settled();
  const last = settled?.appliedIndex ?? 0;
  await cluster.kill(VICTIM);
  const folder = cluster.dataFolder(VICTIM);
  const oldTerm = storedTerm(folder);

  await transfer((await cluster.leader()) === 1 ? 2 : 1);
  const driver = await EntryDriver.open(cluster, 'entries');
  await driver.giveUntil('a log that begins behind what the node has', async () => {
    const { counters } = await cluster.status(driver.leader);
    return (counters['log_base_index'] ?? 0) > last;
  });
  const shim = shims.get(VICTIM) as Shim;
  shim.holdIn('/state/');
  cluster.launchOnly(VICTIM);
  const startedMs = performance.now();
  const installed = (): number => listSnapshots(folder).find((index) => index > last) ?? 0;
  while (installed() === 0) {
    if (performance.now() - startedMs > INSTALL_MS_MAX) throw new Error('nothing was installed');
    if (!cluster.runningIds.includes(VICTIM)) throw new Error(`ended: ${cluster.lastEnd(VICTIM)}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
  await cluster.kill(VICTIM);
  const manifest = readManifest(snapshotPlace(folder, installed()));
  if (typeof manifest === 'string') throw new Error(manifest);
  t.equal(storedTerm(folder), oldTerm, 'the term was not stored');
  t.ok(manifest.term > oldTerm, `the snapshot is of term ${manifest.term}, not ${oldTerm}`);
  t.ok(existsSync(snapshotPlace(folder, manifest.index)));
  figure(t, 'term on disk and of the snapshot', `${oldTerm} and ${manifest.term}`);

  shim.pass();
  const said = cluster.output(VICTIM).length;
  await cluster.restart(VICTIM);
  t.match(cluster.output(VICTIM).slice(said), /restored a snapshot/);
  const statuses = await cluster.settled(60_000);
  t.equal(new Set(statuses.map(({ digest }) => digest)).size, 1, 'and agrees with the others');
  driver.close();
  await transfer(VICTIM);
  const again = await caller.call(acquireOperation('first', 'first', TTL_MS));
  t.equal(caller.leader, VICTIM, 'it leads');
  t.strictSame(grantIn(again), first, 'and knows what was granted');
  caller.close();
});
