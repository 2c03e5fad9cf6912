/**
 * Every guard against its real server: first fifty raw writers race on one condition, then the
 * conformance suite and what is particular to the store, then the case of record with a real
 * cluster and a real process, in both forms; last the client itself, and the documentation's
 * examples.
 * HOLDFAST_GUARDS=redis,s3 keeps to some, while one is worked on.
 */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import t from 'tap';
import { Cluster } from '../cluster/harness.js';
import { barrierCases, commandCases, plainCommandCases } from './commands.js';
import { conform } from './conformance.js';
import { exampleCases } from './examples.js';
import { failClosedCases } from './fail-closed.js';
import { PLANTED } from './planted.js';
import { KINDS, type Kind, type Resource } from './resource.js';
import { startResource } from './resources/open.js';
import { SPECIAL_CASES } from './special-cases.js';
import { faultsOf, tellOfDelay, tellOfPause } from './story.js';

const RACERS = 50;
/** Short, so that the gate is; the long runs take the defaults. */
const TTL_MS = 600;

const chosen = process.env['HOLDFAST_GUARDS']?.split(',') ?? KINDS;
const kinds = KINDS.filter((kind) => chosen.includes(kind));
const scratch = mkdtempSync(path.join(tmpdir(), 'holdfast-guards-'));

function folderOf(kind: Kind): string {
  const folder = path.join(scratch, kind);
  mkdirSync(folder);
  return folder;
}

const starting = kinds.map((kind) => startResource(kind, folderOf(kind)));
const started = await Promise.allSettled(starting);

t.teardown(async () => {
  for (const each of started) if (each.status === 'fulfilled') await each.value.close();
  rmSync(scratch, { recursive: true, force: true });
});

for (const [at, kind] of kinds.entries()) {
  t.test(kind, async (t) => {
    // A server that is missing or does not start fails here, with its own words.
    const resource: Resource = await (starting[at] as Promise<Resource>);
    t.comment(`${kind}: ${resource.server}`);
    const winners = await resource.race(RACERS);
    t.ok(winners.length > 0 && winners.every((each) => each === 1), `winners: ${winners}`);
    await conform(t, resource);
    await SPECIAL_CASES[kind](t, resource);
    await commandCases(t, resource);
    const planted = PLANTED[kind];
    if (planted === undefined) return;
    await t.test('planted faults are seen', (t) => planted(t, resource));
  });
}

t.test('guard commands without a store', (t) => plainCommandCases(t, scratch));

t.test('a holder that was stopped past its TTL, and a write that was held', async (t) => {
  const cluster = await Cluster.start({ test: t, nodes: 3, settings: { leaseTtlMsLeast: 100 } });
  const plan = { endpoints: cluster.endpoints, ttlMs: TTL_MS, pauseMs: 1.5 * TTL_MS };
  const resources = started.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
  const stories = resources.flatMap((resource) => {
    const { kind } = resource.place;
    return [
      { name: `${kind}: stopped`, record: tellOfPause(resource, plan) },
      { name: `${kind}: held in the network`, record: tellOfDelay(resource, plan) },
    ];
  });
  await Promise.allSettled(stories.map(({ record }) => record));
  for (const { name, record } of stories) t.same(faultsOf(await record), [], name);
  await t.test('guard raise asks the cluster for the barrier', async (t) => {
    for (const resource of resources) await barrierCases(t, resource, cluster.endpoints);
  });
  await t.test('the client fails closed', (t) => failClosedCases(t, cluster));
  await t.test('the examples of the documentation', async (t) => {
    const isWhole = resources.length === KINDS.length;
    if (!isWhole) return t.comment('left out: HOLDFAST_GUARDS keeps to some of the stores');
    await exampleCases(t, resources, cluster.endpoints);
  });
});
