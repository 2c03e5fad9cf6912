/**
 * One bit of one lease flipped in the memory of a running node: what notices, when, and what heals.
 *
 * The digest is kept up as records change, so a flip shows once its record is touched again; until
 * then the node tells the wrong token to who reads it there. The log and the other nodes are right.
 */

import t from 'tap';
import { ExitCode } from '../../../src/cli/exit-codes.js';
import { CommandKind } from '../../../src/wire/request.js';
import { runCli } from '../cli.js';
import { EntryDriver } from '../entry-driver.js';
import { Cluster } from '../harness.js';
import { LeaderCaller } from '../leader-caller.js';
import { buildNodeImage } from '../node-image.js';
import { waitFor } from '../wait-for.js';
import { figure } from './figures.js';
import { acquireOperation, grantIn, renewOperation } from './operations.js';
import { RawConnection } from './raw-connection.js';

const TTL_MS = 3_600_000;
const SNAPSHOT_ENTRIES = 60;
const WORDS = ['--snapshot-entries', String(SNAPSHOT_ENTRIES), '--log-tail-entries', '5'];
const TOKEN_BIT = 64;

/** On SIGUSR2 the node flips a bit of the token of its first lease, and says so. */
const FLIP = `process.on('SIGUSR2', () => {
      const { leases } = (this.replica as any).state.machine.state;
      let slot = 0;
      while (!leases.isLive(slot)) slot += 1;
      leases.token[slot] += ${TOKEN_BIT};
      process.stdout.write('flipped a bit\\n');
    });
    this.ticker = setInterval(() => this.onTick(), TICK_MS);`;
const program = buildNodeImage(t, 'flipped-memory', [
  {
    file: 'server/node.ts',
    find: 'this.ticker = setInterval(() => this.onTick(), TICK_MS);',
    replace: FLIP,
  },
]);

const cluster = await Cluster.start({
  test: t,
  nodes: 3,
  nodeProgram: () => program,
  nodeWords: () => WORDS,
});

async function counterOf(nodeId: number, name: string): Promise<number> {
  return (await cluster.status(nodeId)).counters[name] ?? -1;
}

/** The token that a node tells for a lock, by a linearizable read. */
async function tokenAt(nodeId: number, name: string): Promise<number> {
  const connection = await RawConnection.open(cluster.endpoint(nodeId));
  const { fields } = await connection.call([CommandKind.Get, name]);
  connection.close();
  const [, , holder] = fields[0] as readonly unknown[];
  return Number((holder as readonly unknown[])[0]);
}

/** Status of every node at one applied index; null when they were not asked at the same. */
async function digestsAtOneIndex(): Promise<string[] | null> {
  const all = await Promise.all(cluster.nodeIds.map((nodeId) => cluster.status(nodeId)));
  const isSame = all.every(({ appliedIndex }) => appliedIndex === all[0]?.appliedIndex);
  return isSame ? all.map(({ digest }) => digest) : null;
}

const leader = await cluster.leader();
const victim = cluster.nodeIds.find((nodeId) => nodeId !== leader) ?? 0;
const sound = cluster.nodeIds.find((nodeId) => nodeId !== leader && nodeId !== victim) ?? 0;
const caller = new LeaderCaller(cluster);
const grant = grantIn(await caller.call(acquireOperation('flip', 'flip', TTL_MS)));
const driver = await EntryDriver.open(cluster, 'entries');
await cluster.settled();

t.test('a flip in a record that nobody touches goes unnoticed', async (t) => {
  process.kill(cluster.pid(victim), 'SIGUSR2');
  await waitFor('the flip', () => cluster.output(victim).includes('flipped a bit'));
  t.equal(await tokenAt(sound, 'flip'), grant.token);
  t.equal(await tokenAt(victim, 'flip'), grant.token + TOKEN_BIT, 'the node tells a wrong token');
  const digests = await waitFor('one index', digestsAtOneIndex);
  t.equal(new Set(digests).size, 1, 'and no digest shows it');
  const taken = await counterOf(victim, 'snapshots_taken');
  await driver.giveUntil(
    'a snapshot',
    async () => (await counterOf(victim, 'snapshots_taken')) > taken,
  );
  t.equal(await counterOf(victim, 'snapshots_discarded'), 0, 'nor does a snapshot');
});

t.test('once its record is touched the digests differ, and status says so', async (t) => {
  const { fields } = await caller.call(renewOperation(grant.leaseId));
  t.equal(fields[2], grant.token, 'the leader knows the right token');
  const digests = await waitFor('one index', async () => {
    const found = await digestsAtOneIndex();
    return found !== null && new Set(found).size > 1 ? found : null;
  });
  t.equal(new Set(digests).size, 2, 'one node differs from the others');
  const words = ['status', '--json', '--endpoints', cluster.endpointList];
  const report = await waitFor('status at one index', async () => {
    const { status, out } = await runCli(t, words);
    const said = JSON.parse(out) as { disagreeing: number[] };
    return said.disagreeing.length > 0 ? { status, said } : null;
  });
  t.equal(report.status, ExitCode.Refused);
  t.ok(report.said.disagreeing.includes(victim), 'it names the node');
});

t.test('its next snapshot is discarded and its log kept, with an alarm', async (t) => {
  const index = await counterOf(victim, 'snapshot_index');
  const base = await counterOf(victim, 'log_base_index');
  const given = await driver.giveUntil(
    'a draft to be judged',
    async () => (await counterOf(victim, 'snapshots_discarded')) > 0,
  );
  figure(t, 'entries from the wrong digest to the alarm, of 60', given);
  t.equal(await counterOf(victim, 'snapshot_index'), index, 'the one before counts');
  t.equal(await counterOf(victim, 'log_base_index'), base, 'the log is kept');
  t.equal(await counterOf(sound, 'snapshots_discarded'), 0, 'of the others none');
  const line = cluster.output(victim).match(/^.*does not agree with the live state.*$/m)?.[0];
  t.match(JSON.parse(line ?? '{}'), { level: 'error', node: victim });
  const metrics = await (await fetch(`${cluster.httpUrl(victim)}/metrics`)).text();
  t.match(metrics, /^holdfast_snapshots_discarded_total(\{[^}]*\})? 1$/m, 'what the alert is on');
  t.ok(cluster.runningIds.includes(victim), 'the node serves on');
});

t.test('started again, it has its state from the disk, and agrees', async (t) => {
  await cluster.kill(victim);
  await cluster.restart(victim);
  const statuses = await cluster.settled();
  t.equal(new Set(statuses.map(({ digest }) => digest)).size, 1);
  t.equal(await tokenAt(victim, 'flip'), grant.token, 'the token is right again');
  const { code } = await caller.call(renewOperation(grant.leaseId));
  t.equal(code, 0, 'the lease was never lost');
  caller.close();
  driver.close();
});
