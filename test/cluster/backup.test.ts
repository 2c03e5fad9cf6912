/**
 * Backup, restore and unsafe-recover with real nodes and the real command.
 *
 * What the runbooks of docs/OPERATIONS.md say, in their order. Figures for RPO and RTO are printed.
 */

import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import t, { type Test } from 'tap';
import { OutcomeCode } from '../../src/core/locks/outcome.js';
import type { Reply } from '../../src/wire/response.js';
import {
  acquireOperation,
  type Grant,
  grantIn,
  releaseOperation,
  renewOperation,
} from './acceptance/operations.js';
import { RawConnection } from './acceptance/raw-connection.js';
import { Cli, runCli } from './cli.js';
import { Cluster } from './harness.js';
import { waitFor } from './wait-for.js';

const TTL_MS = 3_600_000;
const AT_ONCE = 250;
const LATER_GRANTS = 5_000;
const GRACE = '2s';
const CONSENT = '--i-know-that-acknowledged-operations-may-be-lost';
/** Field of a LOCK_BUSY reply: the token of the holder. */
const HOLDER_TOKEN = 0;

t.setTimeout(300_000);

function scratch(t: Test): string {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'holdfast-backup-'));
  t.teardown(() => fs.rmSync(folder, { recursive: true, force: true }));
  return folder;
}

async function connect(cluster: Cluster): Promise<RawConnection> {
  const leader = await waitFor('a leader that takes operations', async () => {
    const nodeId = await cluster.leader();
    return (await cluster.status(nodeId)).isServing ? nodeId : null;
  });
  return RawConnection.open(cluster.endpoint(leader));
}

/** Acquires `count` locks, many at once. */
async function grantMany(at: RawConnection, prefix: string, count: number): Promise<Grant[]> {
  const grants: Grant[] = [];
  for (let from = 0; from < count; from += AT_ONCE) {
    const names = Array.from({ length: AT_ONCE }, (_, i) => `${prefix}/${from + i}`);
    const calls = names.map((name) => at.call(acquireOperation(name, name, TTL_MS)));
    for (const reply of await Promise.all(calls)) grants.push(grantIn(reply));
  }
  return grants;
}

function greatest(grants: readonly Grant[]): number {
  return Math.max(...grants.map(({ token }) => token));
}

/** `--peers` and `--clients` for members 1 … count; nodes are told their ports when they start. */
function memberWords(count: number): string[] {
  const list = (port: number) =>
    Array.from({ length: count }, (_, at) => `${at + 1}=127.0.0.1:${port + at}`).join(',');
  return ['--peers', list(7_601), '--clients', list(7_401)];
}

async function json(t: Test, ...words: string[]) {
  const { status, out, err } = await runCli(t, [...words, '--json']);
  if (status !== 0) throw new Error(`${words.join(' ')}: ${status}: ${err}`);
  return JSON.parse(out) as Record<string, unknown>;
}

/** Starts the nodes of a restored folder, each from its place below it. */
function startRestored(t: Test, nodes: number, placeOf: (nodeId: number) => string) {
  return Cluster.start({
    test: t,
    nodes,
    prepareFolder: (nodeId, folder) => {
      fs.renameSync(placeOf(nodeId), path.join(folder, 'data'));
    },
  });
}

/** What a restored cluster must answer to who comes back from the old one. */
async function checkRestored(t: Test, cluster: Cluster, old: readonly Grant[], above: number) {
  const startedMs = performance.now();
  const at = await connect(cluster);
  const busy = await at.call(acquireOperation('try', 'after/try', TTL_MS));
  t.equal(busy.code, OutcomeCode.LockBusy, 'nothing is granted in the grace');
  t.equal(busy.fields[HOLDER_TOKEN], 0, 'and nobody holds it');
  const [first, second] = old as readonly [Grant, Grant];
  const stale = await Promise.all([
    at.call(renewOperation(first.leaseId)),
    at.call(releaseOperation('gone', second.leaseId)),
  ]);
  for (const { code } of stale) t.equal(code, OutcomeCode.StaleLease, 'an old lease id is stale');
  const wait = acquireOperation('before/0', 'before/0', TTL_MS, 60_000);
  const again: Reply = await at.call(wait);
  t.equal(again.code, OutcomeCode.Ok, 'who waits is granted when it is over');
  const granted = grantIn(again);
  t.not(granted.leaseId, first.leaseId, 'an old request id is a new request');
  const grants = [granted, ...(await grantMany(at, 'after', AT_ONCE))];
  const least = Math.min(...grants.map(({ token }) => token));
  t.ok(least > above, `token ${least} is above ${above}`);
  at.close();
  return { grants, ms: Math.round(performance.now() - startedMs) };
}

async function checkAudit(t: Test, cluster: Cluster, words: RegExp) {
  const end = await runCli(t, ['audit', '--json', '--endpoints', cluster.endpointList]);
  const [line = ''] = end.out.split('\n');
  t.match(JSON.parse(line), { type: 'restored', actor: 0, command: 'restored', reason: words });
  const verified = await runCli(t, ['verify', '--endpoints', cluster.endpointList]);
  // Where a node stands alone, or one is down, something is left unproven (69), and no fault (1).
  t.match(verified.out, /\nno fault( in what could be verified)?\n$/, verified.out);
  t.not(verified.status, 1);
}

t.test('a backup under load, 5,000 grants later, restored twice', async (t) => {
  const folder = scratch(t);
  const place = (...names: string[]) => path.join(folder, ...names);
  const old = await Cluster.start({ test: t });
  const at = await connect(old);
  const before = await grantMany(at, 'before', 1_000);
  const follower = old.nodeIds.find((nodeId) => nodeId !== 0)!;
  const load = grantMany(at, 'meanwhile', 1_500);
  const backupWords = ['--endpoints', old.endpointList, '--peers', old.peerEndpoint(follower)];
  const taken = await json(t, 'backup', '--to', place('backup'), ...backupWords);
  const meanwhile = await load;
  const record = await json(t, 'verify', '--backup', place('backup'));
  t.match(record, { sound: true, digest: taken['digest'], faults: [] });
  t.ok(Number(taken['revision']) >= greatest(before), 'all that was acknowledged before is in it');

  const later = await grantMany(at, 'later', LATER_GRANTS);
  const [settled] = await old.settled();
  const quiet = await json(t, 'backup', '--to', place('quiet'), ...backupWords);
  t.equal(quiet['digest'], settled?.digest, 'the digest is that of every node');
  at.close();
  await old.close();

  const above = Math.max(greatest(meanwhile), greatest(later));
  const restore = (to: string, count: number) => {
    const words = ['restore', '--from', place('backup'), '--to', place(to), '--grace', GRACE];
    return json(t, ...words, ...memberWords(count), '--reason', 'a test');
  };
  const restoringMs = performance.now();
  const one = await restore('one', 1);
  const restoredMs = Math.round(performance.now() - restoringMs);
  const alone = await startRestored(t, 1, (nodeId) => place('one', `node-${nodeId}`));
  const startedMs = Math.round(performance.now() - restoringMs);
  const first = await checkRestored(t, alone, before, above);
  await checkAudit(t, alone, /from a backup of cluster [0-9a-f]{32} at index \d+.*: a test/);
  await alone.close();

  const [five, stranger] = await Promise.all([restore('five', 5), restore('stranger', 5)]);
  const ids = [taken, one, five, stranger].map((each) => each['cluster_id']);
  t.equal(new Set(ids).size, 4, 'every restore is a cluster of its own');
  const cluster = await startRestored(t, 5, (nodeId) =>
    place(nodeId === 5 ? 'stranger' : 'five', `node-${nodeId}`),
  );
  await checkRestored(t, cluster, before, greatest(first.grants));
  await waitFor('the folder of another restore to be refused', () =>
    new RegExp(`of cluster ${stranger['cluster_id']}, wanted ${five['cluster_id']}`).test(
      [1, 2, 3, 4].map((nodeId) => cluster.output(nodeId)).join('\n'),
    ),
  );
  t.equal((await cluster.status(5)).leaderId, 0, 'it follows nobody');
  await cluster.kill(5);
  await checkAudit(t, cluster, /: a test$/);
  const digests = await cluster.settled();
  t.equal(new Set(digests.map(({ digest }) => digest)).size, 1, 'four nodes of one state');
  t.comment(
    `backup ${taken['took_ms']} ms, restore ${restoredMs} ms, serving after ${startedMs} ms, ` +
      `first grant ${first.ms} ms behind that with a grace of ${GRACE}`,
  );
});

t.test('a restore that is killed leaves nothing to start from', async (t) => {
  const folder = scratch(t);
  const place = (...names: string[]) => path.join(folder, ...names);
  const source = await Cluster.start({ test: t, nodes: 1 });
  const at = await connect(source);
  const [grant] = await grantMany(at, 'before', AT_ONCE);
  at.close();
  const words = ['--endpoints', source.endpointList, '--peers', source.peerEndpoint(1)];
  await json(t, 'backup', '--to', place('backup'), ...words);
  await source.close();
  const restore = ['restore', '--from', place('backup'), '--to', place('new')];
  const killed = new Cli(t, [...restore, ...memberWords(3)]);
  const draft = await waitFor('the restore to have begun', () => {
    const name = fs.readdirSync(folder).find((each) => each.startsWith('new.unfinished-'));
    const node = name === undefined ? '' : place(name, 'node-1');
    return fs.existsSync(path.join(node, 'state')) ? node : null;
  });
  killed.signal('SIGKILL');
  t.equal((await killed.ended).status, 'SIGKILL');
  t.notOk(fs.existsSync(place('new')));
  const refused = await startRestoredAlone(t, draft);
  t.equal(refused.status, 78, refused.out + refused.err);
  t.match(refused.out + refused.err, /restore again/);
  await json(t, ...restore, ...memberWords(1), '--grace', '0');
  const cluster = await startRestored(t, 1, (nodeId) => place('new', `node-${nodeId}`));
  const again = await connect(cluster);
  const reply = await again.call(acquireOperation('x', 'before/0', TTL_MS));
  t.ok(grantIn(reply).token > (grant as Grant).token);
  again.close();
});

/** Starts node 1 from a folder and waits for its end. */
function startRestoredAlone(t: Test, folder: string) {
  const addresses = ['--client', '127.0.0.1:1', '--peer', '127.0.0.1:2'];
  const members = ['--peers', '1=127.0.0.1:2', '--clients', '1=127.0.0.1:1'];
  return runCli(t, ['serve', '--node-id', '1', '--data', folder, ...addresses, ...members]);
}

t.test('what is left of a lost majority goes on, with the most advanced log', async (t) => {
  const folder = scratch(t);
  const place = (...names: string[]) => path.join(folder, ...names);
  const old = await Cluster.start({ test: t });
  const leader = await old.leader();
  const behind = old.nodeIds.find((nodeId) => nodeId !== leader)!;
  const at = await connect(old);
  await old.kill(behind);
  const grants = await grantMany(at, 'before', 1_000);
  at.close();
  await old.settled();
  await Promise.all(old.runningIds.map((nodeId) => old.kill(nodeId)));
  const folders = [behind, leader].flatMap((nodeId) => ['--folder', old.dataFolder(nodeId)]);
  const words = ['unsafe-recover', ...folders, '--to', place('new'), '--grace', GRACE];
  const reason = ['--reason', 'three disks burnt', ...memberWords(1)];
  const asked = await runCli(t, [...words, ...reason]);
  t.equal(asked.status, 64);
  t.match(asked.err, new RegExp(`node ${leader} has the most advanced log`));
  t.match(asked.err, /WARNING: whatever the missing nodes acknowledged behind that is lost/);
  t.match(asked.err, /is required: read the above/);
  t.notOk(fs.existsSync(place('new')), 'without the consent nothing is written');
  const unnamed = await runCli(t, [...words, ...memberWords(1), CONSENT]);
  t.match(unnamed.err, /--reason: is required/);

  await old.restart(leader);
  const open = await runCli(t, [...words, ...reason, CONSENT]);
  t.equal(open.status, 78, 'a node that runs has its folder open');
  t.match(open.err, /FOLDER_IN_USE: Stop process \d+ first/);
  await old.kill(leader);

  const recovered = await json(t, ...words, ...reason, CONSENT);
  t.match(recovered, { taken_node_id: leader, survivors: [{ node_id: behind }, {}] });
  const cluster = await startRestored(t, 1, (nodeId) => place('new', `node-${nodeId}`));
  await checkRestored(t, cluster, grants, greatest(grants));
  await checkAudit(t, cluster, /^unsafely from node \d.*are lost, by .*: three disks burnt$/);
});
