/** A node that missed more than the log has, and is killed ten times on its way back. */

import fs from 'node:fs';
import path from 'node:path';
import t, { type Test } from 'tap';
import { readManifest } from '../../../src/io/snapshots/snapshot-files.js';
import { listSnapshots, snapshotPlace } from '../../../src/io/snapshots/snapshot-folder.js';
import { ErrorCode } from '../../../src/wire/errors.js';
import type { PackValue } from '../../../src/wire/msgpack-writer.js';
import type { Reply } from '../../../src/wire/response.js';
import { hasShim, Shim } from '../../shim/fsync-shim.js';
import { runCli } from '../cli.js';
import { EntryDriver } from '../entry-driver.js';
import { Cluster } from '../harness.js';
import { LeaderCaller } from '../leader-caller.js';
import { waitFor } from '../wait-for.js';
import { figure } from './figures.js';
import { acquireOperation, type Grant, grantIn } from './operations.js';
import { sized } from './size.js';

const TTL_MS = 3_600_000;
const NODES = sized(3, 5);
const AWAY = NODES;
/** Entries that it misses. */
const MISSED = sized(2_000, 200_000);
const SNAPSHOT_ENTRIES = sized(500, 50_000);
const TAIL_ENTRIES = sized(50, 1_000);
/** With a KiB of metadata each: the snapshot has about a chunk for 800 of them. */
const LEASES = sized(9_000, 30_000);
const ASKED_AT_ONCE = 500;
/** Grants asked for again at the end. */
const SAMPLE = sized(100, 500);
/** Each fsync of the node that comes back takes this much longer, so that chunks come slowly. */
const FSYNC_MS = 40;
const CHUNK_STRIKES = 6;
const STRIKE_MS_MAX = 60_000;
const METADATA = new Uint8Array(1_024).fill(0x6d);

const WORDS = [
  '--snapshot-entries',
  String(SNAPSHOT_ENTRIES),
  '--log-tail-entries',
  String(TAIL_ENTRIES),
];
const shims = new Map<number, Shim>();
const cluster = await Cluster.start({
  test: t,
  nodes: NODES,
  settings: { resultRetentionMs: TTL_MS },
  nodeWords: () => WORDS,
  prepareFolder: (nodeId, folder) => {
    if (nodeId === AWAY && hasShim()) shims.set(nodeId, new Shim(folder));
  },
  nodeEnvironment: (nodeId) => shims.get(nodeId)?.environment ?? {},
});
const grants = new Map<string, Grant>();

function fillOperation(name: string): PackValue[] {
  return [...acquireOperation(name, name, TTL_MS), null, null, null, null, null, METADATA];
}

/** Acquires locks with metadata and keeps what was granted. */
async function fill(): Promise<void> {
  const caller = new LeaderCaller(cluster);
  const ask = async (name: string): Promise<void> => {
    grants.set(name, grantIn(await caller.call(fillOperation(name))));
  };
  for (let from = 0; from < LEASES; from += ASKED_AT_ONCE) {
    const count = Math.min(ASKED_AT_ONCE, LEASES - from);
    await Promise.all(Array.from({ length: count }, (_, at) => ask(`fill/${from + at}`)));
  }
  caller.close();
}

async function makeLead(nodeId: number): Promise<void> {
  const words = ['transfer', String(nodeId), '--endpoints', cluster.endpointList];
  const { status, err } = await runCli(t, words);
  if (status !== 0) throw new Error(`transfer ended with ${status}: ${err}`);
}

/** Entries up to here are no longer in the node's log. */
async function baseOf(nodeId: number): Promise<number> {
  return (await cluster.status(nodeId)).counters['log_base_index'] ?? 0;
}

/** Names in a folder, in order; none when it is not there, or no longer. */
function namesIn(folder: string): string[] {
  try {
    return fs.readdirSync(folder).sort();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return [];
    throw error;
  }
}

/** What the node's disk has of the snapshot that it fetches. */
interface Gathered {
  readonly chunks: number;
  readonly isWhole: boolean;
}

function gathered(): Gathered {
  const parent = path.join(cluster.dataFolder(AWAY), 'snapshots');
  const newest = namesIn(parent)
    .filter((name) => name.startsWith('incoming-'))
    .at(-1);
  const files = newest === undefined ? [] : namesIn(path.join(parent, newest));
  const chunks = files.filter((name) => name.startsWith('chunk-')).length;
  return { chunks, isWhole: files.includes('MANIFEST') };
}

/** How much the node had said when its present life began. */
let saidBefore = 0;

function hasSaid(words: string): boolean {
  return cluster.output(AWAY).slice(saidBefore).includes(words);
}

/** Kills the node as soon as a state is reached, and starts it again. */
async function strike(what: string, isReached: () => boolean): Promise<Gathered> {
  const startedMs = performance.now();
  while (!isReached()) {
    if (!cluster.runningIds.includes(AWAY)) throw new Error(`it ended: ${cluster.lastEnd(AWAY)}`);
    if (performance.now() - startedMs > STRIKE_MS_MAX) throw new Error(`never ${what}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
  await cluster.kill(AWAY);
  const found = gathered();
  saidBefore = cluster.output(AWAY).length;
  cluster.launchOnly(AWAY);
  return found;
}

/** Six kills while chunks come, each further on. */
async function strikeChunks(t: Test, chunks: number): Promise<void> {
  for (let number = 1; number <= CHUNK_STRIKES; number += 1) {
    const least = Math.ceil((chunks * number) / (CHUNK_STRIKES + 1));
    const found = await strike(`${least} chunks`, () => gathered().chunks >= least);
    t.ok(found.chunks >= least, `killed with ${found.chunks} of ${chunks} chunks`);
    t.notOk(found.isWhole, 'and without the manifest');
  }
}

t.test('killed ten times as it fetches and installs, it comes back whole and leads', async (t) => {
  await fill();
  if ((await cluster.leader()) === AWAY) await makeLead(1);
  const before = await cluster.settled(60_000);
  const last = before[0]?.appliedIndex ?? 0;
  await cluster.stop(AWAY);
  const driver = await EntryDriver.open(cluster, 'entries');
  const awayAtMs = performance.now();
  await driver.reach(last + MISSED);
  await driver.giveUntil('a cut', async () => (await baseOf(driver.leader)) > last);
  figure(t, 'entries missed', (await cluster.status(driver.leader)).appliedIndex - last);
  figure(t, 'away', `${Math.round((performance.now() - awayAtMs) / 1_000)} s`);
  driver.close();
  const folder = cluster.dataFolder(driver.leader);
  const manifest = readManifest(snapshotPlace(folder, listSnapshots(folder)[0] ?? 0));
  if (typeof manifest === 'string') throw new Error(manifest);
  const { chunks } = manifest;
  figure(t, 'chunks of the snapshot', chunks.length);
  t.ok(chunks.length > CHUNK_STRIKES, `${chunks.length} chunks`);

  shims.get(AWAY)?.delay(FSYNC_MS);
  saidBefore = cluster.output(AWAY).length;
  await cluster.cont(AWAY);
  await strikeChunks(t, chunks.length);
  const whole = await strike('the manifest', () => gathered().isWhole);
  t.equal(whole.chunks, chunks.length, 'killed when all of it was there');
  await strike('a fetch that finds everything', () => hasSaid('fetching a snapshot'));
  await strike('an install', () => hasSaid('fetched a snapshot'));
  const resumed = /"resumed":(\d+)/.exec(cluster.output(AWAY))?.[1];
  t.equal(Number(resumed), chunks.length, 'nothing was fetched again');
  await strike('a start from it', () => hasSaid('"serving"'));
  const upAtMs = performance.now();
  shims.get(AWAY)?.pass();
  await waitFor('it to answer', () => cluster.status(AWAY), 60_000);
  const after = await cluster.settled(60_000);
  figure(t, 'caught up after the last kill', `${Math.round(performance.now() - upAtMs)} ms`);
  t.equal(after.length, NODES);
  t.ok(hasSaid('restored a snapshot'), 'it started from what it had fetched');

  await makeLead(AWAY);
  await demandGrants(t);
  const [first, ...others] = await cluster.settled(60_000);
  for (const { digest } of others) t.equal(digest, first?.digest, 'one digest');
});

/** Asks the leader again, by the same request ids: same leases, same tokens. */
async function demandGrants(t: Test): Promise<void> {
  const caller = new LeaderCaller(cluster);
  const names = [...grants.keys()].filter((_, at) => at % Math.ceil(LEASES / SAMPLE) === 0);
  const replies = await caller.callAll(names.map(fillOperation));
  t.equal(caller.leader, AWAY, 'it leads');
  const changed = names.filter((name, at) => {
    const reply = replies[at] as Reply;
    return !reply.isReplay || JSON.stringify(grantIn(reply)) !== JSON.stringify(grants.get(name));
  });
  t.strictSame(changed, [], `${names.length} results are what they were`);
  const other = await caller.call(acquireOperation(names[0] ?? '', 'another', TTL_MS));
  t.equal(other.code, ErrorCode.RequestMismatch, 'with their parameters');
  const grant = grantIn(await caller.call(acquireOperation('after', 'after', TTL_MS)));
  const highest = Math.max(...[...grants.values()].map(({ token }) => token));
  t.ok(grant.token > highest, 'tokens go on rising');
  caller.close();
}
