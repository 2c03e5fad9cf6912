/**
 * The audit stream under fire: consumer and nodes are killed at random, nothing may be missing.
 *
 *     npm run audit-soak -- --minutes 10
 *
 * Five nodes that compact all the time, a consumer that writes JSON lines, clients that acquire and
 * let leases run out. At the end the lines must have every revision once, in order, and each node
 * must tell the same from its own disk. A node is started again before the next one is killed.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { connect } from '../../src/client/index.js';
import { Prng } from '../../src/collections/prng.js';
import { Cluster } from '../cluster/harness.js';
import { waitFor } from '../cluster/wait-for.js';
import { compiledFile } from '../gate/paths.js';

const NODE_WORDS = ['--snapshot-entries', '400', '--log-tail-entries', '20'];
const WORKERS = 8;
const CATCH_UP_MS = 120_000;
const LISTING_BYTES_MAX = 1 << 30;

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '10' },
    seed: { type: 'string', default: '1' },
  },
});
const prng = new Prng(Number(values.seed));
const untilMs = performance.now() + Number(values.minutes) * 60_000;
const isOver = (): boolean => performance.now() >= untilMs;
const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

const folder = mkdtempSync(path.join(tmpdir(), 'holdfast-audit-'));
const file = path.join(folder, 'audit.jsonl');
const cli = compiledFile('src/cli/main.ts');
const cluster = await Cluster.start({
  settings: { leaseTtlMsLeast: 100 },
  nodeWords: () => NODE_WORDS,
  logLevel: 'warn',
});
const counts = { consumers: 0, nodes: 0, all: 0, grants: 0 };
const consumers: ChildProcess[] = [];

function startConsumer(): void {
  const words = ['audit', 'send', '--to', file, '--checkpoint', path.join(folder, 'checkpoint')];
  const where = ['--endpoints', cluster.endpoints.join(','), '--timeout', '60s'];
  const all = [cli, ...words, ...where];
  consumers.push(spawn(process.execPath, all, { stdio: ['ignore', 'ignore', 'inherit'] }));
}

/** Acquires and forgets: some leases are released, others run out, waiters queue behind them. */
async function work(worker: number): Promise<void> {
  const random = new Prng(worker + 1);
  while (!isOver()) {
    try {
      const client = await connect({ endpoints: cluster.endpoints, deadlineMs: 5_000 });
      try {
        while (!isOver()) await once(client, `soak/${random.below(12)}`, random);
      } finally {
        await client.close();
      }
    } catch {
      await pause(100); // nobody leads just now
    }
  }
}

async function once(client: Awaited<ReturnType<typeof connect>>, name: string, random: Prng) {
  const lease = await client.acquire(name, { ttlMs: 400, waitMs: 2_000, deadlineMs: 3_000 });
  counts.grants += 1;
  await pause(random.below(20));
  await lease.release();
}

async function strike(): Promise<void> {
  startConsumer();
  while (!isOver()) {
    await pause(1_000 + prng.below(3_000));
    const what = prng.below(10);
    if (what < 4) {
      counts.consumers += 1;
      consumers.at(-1)?.kill('SIGKILL');
      await pause(prng.below(3_000));
      startConsumer();
    } else if (what < 9) {
      counts.nodes += 1;
      const nodeId = cluster.nodeIds[prng.below(cluster.nodeIds.length)] as number;
      await cluster.kill(nodeId);
      await pause(prng.below(2_000));
      await cluster.restart(nodeId);
    } else {
      counts.all += 1;
      await Promise.all(cluster.nodeIds.map((nodeId) => cluster.kill(nodeId)));
      await Promise.all(cluster.nodeIds.map((nodeId) => cluster.restart(nodeId)));
    }
  }
}

/** Revisions of JSON lines. */
function revisionsIn(text: string): number[] {
  const lines = text.split('\n').filter(Boolean);
  return lines.map((line) => Number((JSON.parse(line) as { revision: number }).revision));
}

function isWhole(revisions: readonly number[]): boolean {
  return revisions.every((revision, at) => revision === at + 1);
}

/** What is wrong, a line each. */
async function judge(): Promise<string[]> {
  const faults: string[] = [];
  const [first] = await cluster.settled(CATCH_UP_MS);
  const revision = first?.revision ?? 0;
  const told = (): string => (existsSync(file) ? readFileSync(file, 'utf8') : '');
  const hasAll = async () => ((revisionsIn(told()).at(-1) ?? 0) >= revision ? true : null);
  await waitFor(`the consumer to have revision ${revision}`, hasAll, CATCH_UP_MS);
  consumers.at(-1)?.kill('SIGTERM');
  const delivered = revisionsIn(told());
  if (!isWhole(delivered)) faults.push('delivered: a revision is missing or twice');
  for (const nodeId of cluster.nodeIds) {
    const words = [cli, 'audit', '--json', '--endpoints', cluster.endpoint(nodeId)];
    const options = { encoding: 'utf8', maxBuffer: LISTING_BYTES_MAX } as const;
    const text = execFileSync(process.execPath, words, options);
    if (!isWhole(revisionsIn(text))) faults.push(`node ${nodeId}: a revision is missing or twice`);
    else if (!text.startsWith(told())) {
      faults.push(`node ${nodeId}: it tells another story than was delivered`);
    }
  }
  const snapshots = first?.counters['snapshot_index'] ?? 0;
  if (snapshots === 0) faults.push('no snapshot was made: the run has shown nothing');
  process.stdout.write(`${JSON.stringify({ ...counts, revision, snapshot_index: snapshots })}\n`);
  return faults;
}

try {
  await Promise.all([strike(), ...Array.from({ length: WORKERS }, (_, at) => work(at))]);
  const faults = await judge();
  for (const fault of faults) process.stdout.write(`${fault}\n`);
  process.stdout.write(`${faults.length} faults\n`);
  process.exitCode = faults.length === 0 ? 0 : 1;
} finally {
  consumers.at(-1)?.kill('SIGKILL');
  await cluster.close();
  rmSync(folder, { recursive: true, force: true });
}
