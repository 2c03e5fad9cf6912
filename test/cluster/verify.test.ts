/**
 * Verify, scrub and repair on five real nodes: sound while they work, a flipped bit found and told
 * by the node that has it, and the way back of docs/OPERATIONS.md walked as it is written.
 */

import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import t, { type Test } from 'tap';
import { ErrorCode } from '../../src/wire/errors.js';
import { compiledFile } from '../gate/paths.js';
import { codeBlocks, readPage } from '../unit/docs/markdown.js';
import { acquireOperation, grantIn } from './acceptance/operations.js';
import { RawConnection } from './acceptance/raw-connection.js';
import { runCli } from './cli.js';
import { Cluster } from './harness.js';
import { waitFor } from './wait-for.js';

const TTL_MS = 3_600_000;
const SNAPSHOT_ENTRIES = 300;
const WORDS = [
  '--snapshot-entries',
  String(SNAPSHOT_ENTRIES),
  '--log-tail-entries',
  '20',
  '--scrub-mib',
  '100',
];
const NODE = 'node-3';

/** Acquires one lock after the other, each in an entry of its own. */
class Work {
  count = 0;
  private connection: RawConnection | null = null;
  constructor(private readonly cluster: Cluster) {}

  async acquire(count: number): Promise<void> {
    for (let at = 0; at < count; at += 1) {
      this.count += 1;
      const name = `verify/${this.count}`;
      await waitFor(`${name} to be granted`, () => this.isGranted(name));
    }
    this.connection?.close();
    this.connection = null;
  }

  /** A leader may lose its place on a busy machine: then the next one is asked, by the same id. */
  private async isGranted(name: string): Promise<boolean> {
    const { cluster } = this;
    this.connection ??= await RawConnection.open(cluster.endpoint(await cluster.leader()));
    const reply = await this.connection.call(acquireOperation(name, name, TTL_MS));
    if (reply.code === ErrorCode.Ok) return grantIn(reply).token > 0;
    this.connection.close();
    this.connection = null;
    return false;
  }
}

function httpList(cluster: Cluster): string {
  return cluster.nodeIds.map((id) => cluster.httpUrl(id).replace('http://', '')).join(',');
}

function verify(t: Test, cluster: Cluster, ...words: string[]) {
  const where = ['--endpoints', cluster.endpointList, '--http', httpList(cluster)];
  return runCli(t, ['verify', ...where, ...words]);
}

/** Flips a bit of the last entry that names `name`, in a segment that is written no more. */
function damageLog(dataFolder: string, name: string): string {
  const log = path.join(dataFolder, 'log');
  const segments = fs.readdirSync(log).sort().slice(0, -1).reverse();
  for (const segment of segments) {
    const file = path.join(log, segment, 'data.mdb');
    const bytes = fs.readFileSync(file);
    let hits = 0;
    for (let at = bytes.indexOf(name); at >= 0; at = bytes.indexOf(name, at + 1)) {
      const handle = fs.openSync(file, 'r+');
      fs.writeSync(handle, Uint8Array.of(bytes[at]! ^ 1), 0, 1, at);
      fs.closeSync(handle);
      hits += 1;
    }
    if (hits > 0) return path.join(log, segment);
  }
  throw new Error(`${name} is in no sealed segment`);
}

/** The commands of the runbook, line by line. */
function runbook(): string[] {
  const page = readPage('docs/OPERATIONS.md');
  const section = page.slice(page.indexOf('## A damaged data folder'));
  const blocks = codeBlocks(section.slice(0, section.indexOf('\n## ', 4)));
  return blocks.flatMap(({ language, text }) => (language === 'sh' ? text.trim().split('\n') : []));
}

/** Runs a line as it is written, against this cluster in place of the local one. */
function runLine(cluster: Cluster, nodeId: number, line: string) {
  const cli = `'${process.execPath}' '${compiledFile('src/cli/main.ts')}'`;
  const script = line
    .replace('npx holdfast', cli)
    .replaceAll(`.holdfast/${NODE}`, cluster.dataFolder(nodeId))
    .replace('verify --scrub', `verify --scrub --http ${httpList(cluster)}`);
  const env = { ...process.env, HOLDFAST_ENDPOINTS: cluster.endpointList };
  const child = spawn('/bin/sh', ['-ec', script], { env });
  let text = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (part) => (text += part));
  return new Promise<{ status: number | null; text: string }>((resolve) => {
    child.once('close', (status) => resolve({ status, text }));
  });
}

async function metric(cluster: Cluster, nodeId: number, name: string): Promise<number> {
  const text = await (await fetch(`${cluster.httpUrl(nodeId)}/metrics`)).text();
  return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
}

t.test(
  'a cluster is verified while it works, and its damage found, told and repaired',
  async (t) => {
    const cluster = await Cluster.start({ test: t, nodeWords: () => WORDS });
    const work = new Work(cluster);
    await work.acquire(SNAPSHOT_ENTRIES + 50);

    await t.test('all is sound, also while locks are taken', async (t) => {
      const working = work.acquire(200);
      const { status, out, err } = await verify(t, cluster, '--scrub', '--every-node', '--json');
      await working;
      t.equal(status, 0, out + err);
      const report = JSON.parse(out);
      t.match(report, { sound: true, findings: [], unproven: [] });
      t.strictSame(report.digests.compared, [1, 2, 3, 4, 5]);
      t.match(report.digests.digest, /^[0-9a-f]{32}$/);
      t.equal(report.scrubs.length, 5);
      for (const scrub of report.scrubs)
        t.ok(scrub.passes >= 1 && scrub.segments > 0, scrub.address);
      t.equal(report.streams.length, 5);
      for (const { from, to, locks } of report.streams) {
        t.ok(from === 1 && to >= SNAPSHOT_ENTRIES && locks >= SNAPSHOT_ENTRIES, `${from} ${to}`);
      }
    });

    const leader = await cluster.leader();
    const victim = cluster.nodeIds.find((nodeId) => nodeId !== leader) as number;
    const folder = cluster.dataFolder(victim);

    await t.test('words for people; what is not asked is said', async (t) => {
      const { status, out } = await verify(t, cluster);
      t.equal(status, 0, out);
      t.match(out, /^digests {4}nodes 1 2 3 4 5, at index \d+: [0-9a-f]{32}$/m);
      t.match(out, /^disks {6}node 1: \d+ segments, \d+ snapshots, .* ago, 0 faults$/m);
      t.match(out, /^events {5}node \d: revisions 1 to \d+; \d+ locks compared$/m);
      t.match(out, /\nno fault\n$/);
      const blind = await runCli(t, ['verify', '--endpoints', cluster.endpointList]);
      t.equal(blind.status, 0, blind.out);
      t.match(blind.out, /disks {6}not asked: name the HTTP ports/);
      const held = await runCli(t, ['verify', '--folder', folder]);
      t.equal(held.status, 78);
      t.match(held.err, new RegExp(`FOLDER_IN_USE: Stop process ${cluster.pid(victim)} first`));
    });

    await t.test('a flipped bit is found by the running node', async (t) => {
      t.equal((await verify(t, cluster, '--scrub')).status, 0, 'everything is sealed now');
      const place = damageLog(folder, `verify/${work.count}`);
      const { status, out } = await verify(t, cluster, '--scrub', '--json');
      t.equal(status, 1, out);
      const { findings } = JSON.parse(out);
      t.match(findings, [{ check: 'scrub', found: /the record has a wrong checksum/ }]);
      const { where } = findings[0];
      t.match(where, new RegExp(`^node ${victim}: ${place}, index \\d+$`));
      t.equal(await metric(cluster, victim, 'holdfast_scrub_faults'), 1);
      t.ok((await metric(cluster, victim, 'holdfast_scrub_bytes_total')) > 10_000);
      t.equal(await metric(cluster, leader, 'holdfast_scrub_faults'), 0);
      const line = cluster
        .output(victim)
        .split('\n')
        .find((each) => each.includes('the disk is damaged'));
      t.match(JSON.parse(line ?? '{}'), { level: 'error', kind: 'log', file: place });
      await work.acquire(1);
      await cluster.settled();
      t.pass('and it goes on serving');
    });

    await t.test('a node that is down is told as not verified', async (t) => {
      await cluster.kill(victim);
      const { status, out } = await verify(t, cluster);
      t.equal(status, 69, out);
      t.match(out, new RegExp(`not verified: node ${victim} does not answer`));
      cluster.launchOnly(victim);
      t.equal(await cluster.ended(victim), 'status 74', 'its start is refused');
    });

    await t.test('the runbook brings it back', async (t) => {
      const [check = '', repair = '', again = '', after = ''] = runbook();
      const found = await runLine(cluster, victim, check);
      t.equal(found.status, 74, found.text);
      t.match(found.text, /log: .*: index \d+: the record has a wrong checksum/);
      const hasty = await runLine(cluster, victim, `${repair} --wait 0s`);
      t.equal(hasty.status, 69, hasty.text);
      t.match(hasty.text, /NO_SNAPSHOT: .* no member gave a snapshot of index \d+ or later: node/);
      const repairing = runLine(cluster, victim, repair);
      await work.acquire(SNAPSHOT_ENTRIES + 50);
      const repaired = await repairing;
      t.equal(repaired.status, 0, repaired.text);
      t.match(repaired.text, /waiting for a snapshot of index/);
      t.match(repaired.text, /the folder has the snapshot of index \d+, from node \d: start/);
      const sound = await runLine(cluster, victim, again);
      t.equal(sound.status, 0, sound.text);
      await cluster.restart(victim);
      await cluster.settled();
      const { status, text } = await runLine(cluster, victim, after);
      t.equal(status, 0, text);
      await work.acquire(SNAPSHOT_ENTRIES + 50);
      await waitFor('it to make a snapshot of its own', async () => {
        return ((await cluster.status(victim)).counters['snapshots_taken'] ?? 0) > 0;
      });
      await cluster.settled();
      t.equal(runbook().length, 4);
    });
  },
);
