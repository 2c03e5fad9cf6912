/**
 * npm run guards -- --defaults | --paused-clients [--minutes M] [--seed S] [--only KIND,…]: the
 * long runs over every guard and its real server.
 *
 * Owns: the servers, a real cluster, the report and the exit status: 0 only when nothing was
 * violated. --defaults plays the case of record with a TTL of 30 s and a stop of 45 s. Called by:
 * package.json.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { Cluster } from '../cluster/harness.js';
import { runPausedClients } from './paused-clients.js';
import { KINDS, type Kind, type Resource } from './resource.js';
import { startResource } from './resources/open.js';
import { faultsOf, type StoryRecord, tellOfDelay, tellOfPause } from './story.js';

const TTL_MS = 30_000;
const PAUSE_MS = 45_000;

const { values } = parseArgs({
  options: {
    defaults: { type: 'boolean', default: false },
    'paused-clients': { type: 'boolean', default: false },
    minutes: { type: 'string', default: '1' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    only: { type: 'string', default: KINDS.join(',') },
  },
});
const minutes = Number(values.minutes);
const seed = Number(values.seed);
const kinds = values.only.split(',') as Kind[];
const isKnown = kinds.every((kind) => KINDS.includes(kind));
const isOne = values.defaults !== values['paused-clients'];
if (!isOne || !isKnown || !(minutes > 0) || !Number.isSafeInteger(seed) || seed < 0) {
  const usage = '--defaults | --paused-clients [--minutes M] [--seed S] [--only KIND,…]';
  process.stderr.write(`guards: give ${usage}; kinds: ${KINDS.join(', ')}\n`);
  process.exit(64);
}

let violations = 0;

function say(line: string, faults: readonly string[] = []): void {
  process.stdout.write(`${line}\n`);
  for (const fault of faults) process.stdout.write(`VIOLATION ${fault}\n`);
  violations += faults.length;
}

function sayStory(name: string, server: string, record: StoryRecord): void {
  const { tokenA, tokenB, refused } = record;
  const counted = refused === null ? 'it does not count' : `it counts ${refused}`;
  const tokens = `A had token ${tokenA}, B wrote with ${tokenB}`;
  const words = `${tokens}, A was ${record.said.type}; ${counted}`;
  say(`${name} (${server}): ${words}`, faultsOf(record));
}

async function playDefaults(resources: readonly Resource[], cluster: Cluster): Promise<void> {
  const plan = { endpoints: cluster.endpoints, ttlMs: TTL_MS, pauseMs: PAUSE_MS };
  say(`TTL ${TTL_MS / 1_000} s, A is stopped for ${PAUSE_MS / 1_000} s at least`);
  const playing = resources.map(async (resource) => {
    const { server, place } = resource;
    const both = await Promise.all([tellOfPause(resource, plan), tellOfDelay(resource, plan)]);
    sayStory(`${place.kind}: stopped`, server, both[0]);
    sayStory(`${place.kind}: held in the network`, server, both[1]);
  });
  await Promise.all(playing);
}

async function playPauses(resources: readonly Resource[], cluster: Cluster): Promise<void> {
  say(`clients stopped for 5 s, TTL 2 s, for ${minutes} minutes, seed ${seed}`);
  const plan = { endpoints: cluster.endpoints, minutes, seed };
  const playing = resources.map(async (resource) => {
    const record = await runPausedClients(resource, plan);
    const { server, stops, accepted, refused, unknown, count, faults } = record;
    const sums = `${accepted} writes accepted, ${refused} stale refused, ${unknown} unknown`;
    say(`${resource.place.kind} (${server}): ${stops} stops, ${sums}, counter ${count}`, faults);
  });
  await Promise.all(playing);
}

const scratch = mkdtempSync(path.join(tmpdir(), 'holdfast-guards-'));
const resources: Resource[] = [];
let cluster: Cluster | null = null;
try {
  for (const kind of kinds) {
    const folder = path.join(scratch, kind);
    mkdirSync(folder);
    resources.push(await startResource(kind, folder));
  }
  cluster = await Cluster.start({ logLevel: 'warn' });
  await (values.defaults ? playDefaults : playPauses)(resources, cluster);
} finally {
  await cluster?.close();
  for (const resource of resources) await resource.close();
  rmSync(scratch, { recursive: true, force: true });
}
say(violations === 0 ? 'no violation' : `${violations} violations`);
process.exitCode = violations === 0 ? 0 : 1;
