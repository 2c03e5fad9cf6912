/**
 * npm run guards -- [--minutes M] [--seed S] [--only KIND,…] | --defaults [--only KIND,…]: the long
 * runs over every guard and its real server, all of them at once against one real cluster.
 *
 * Owns: the servers, the cluster, and the exit status: 0 only when every guard refused at least one
 * stale write and lost no update. Without --defaults clients are stopped for M minutes; with it the
 * case of record is played with a TTL of 30 s and a stop of 45 s. Called by: package.json.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { Cluster } from '../cluster/harness.js';
import { PAUSE_WORDS, runPausedClients } from './paused-clients.js';
import { failedRow, type GuardRow, reportOf, violationsOf } from './report.js';
import { KINDS, type Kind, type Resource } from './resource.js';
import { startResource } from './resources/open.js';
import { playStories } from './story.js';

const TTL_MS = 30_000;
const PAUSE_MS = 45_000;
const MS_PER_MINUTE = 60_000;

const { values } = parseArgs({
  options: {
    defaults: { type: 'boolean', default: false },
    minutes: { type: 'string', default: '1' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    only: { type: 'string', default: KINDS.join(',') },
  },
});
const minutes = Number(values.minutes);
const seed = Number(values.seed);
const kinds = values.only.split(',') as Kind[];
const isKnown = kinds.every((kind) => KINDS.includes(kind));
if (!isKnown || !(minutes > 0) || !Number.isSafeInteger(seed) || seed < 0) {
  const usage = '[--minutes M] [--seed S] [--only KIND,…] | --defaults [--only KIND,…]';
  process.stderr.write(`guards: give ${usage}; kinds: ${KINDS.join(', ')}\n`);
  process.exit(64);
}

const say = (line: string): void => {
  process.stdout.write(`${line}\n`);
};

type Run = (resource: Resource) => Promise<GuardRow>;

/** The run of each guard, after a line about what is done. */
function runOf(endpoints: readonly string[], signal: AbortSignal): Run {
  if (values.defaults) {
    say(`the case of record: TTL ${TTL_MS / 1_000} s, A is stopped for ${PAUSE_MS / 1_000} s`);
    const plan = { endpoints, ttlMs: TTL_MS, pauseMs: PAUSE_MS, signal };
    return (resource) => playStories(resource, plan, say);
  }
  say(`${PAUSE_WORDS}, for ${minutes} minutes, seed ${seed}`);
  return (resource) => runPausedClients(resource, { endpoints, minutes, seed, signal });
}

async function play(resources: readonly Resource[], run: Run): Promise<GuardRow[]> {
  const startedMs = performance.now();
  const sign = setInterval(() => {
    say(`after ${Math.round((performance.now() - startedMs) / MS_PER_MINUTE)} min`);
  }, MS_PER_MINUTE);
  const playing = resources.map((resource) => {
    const { server, place } = resource;
    return run(resource).catch((error: unknown) => failedRow(place.kind, server, error));
  });
  const rows = await Promise.all(playing);
  clearInterval(sign);
  return rows;
}

/** Ends the processes of the run; what they leave open ends below. */
const stopped = new AbortController();
const ended = new Promise<never>((_resolve, reject) => {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      stopped.abort();
      reject(new Error(`ended by ${signal}`));
    });
  }
});
ended.catch(() => undefined); // a signal while the servers start is seen after it

const scratch = mkdtempSync(path.join(tmpdir(), 'holdfast-guards-'));
const resources: Resource[] = [];
let cluster: Cluster | null = null;
process.exitCode = 1;
try {
  for (const kind of kinds) {
    const folder = path.join(scratch, kind);
    mkdirSync(folder);
    resources.push(await startResource(kind, folder));
  }
  cluster = await Cluster.start({ logLevel: 'warn' });
  const run = runOf(cluster.endpoints, stopped.signal);
  const rows = await Promise.race([play(resources, run), ended]);
  for (const line of reportOf(rows)) say(line);
  if (rows.flatMap(violationsOf).length === 0) process.exitCode = 0;
} catch (error) {
  say(`guards: ${error instanceof Error ? error.message : String(error)}`);
} finally {
  stopped.abort(); // a run that failed may have left a process, stopped or not
  await cluster?.close();
  for (const resource of resources) await resource.close();
  rmSync(scratch, { recursive: true, force: true });
}
process.exit();
