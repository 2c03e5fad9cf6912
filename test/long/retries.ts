/**
 * Ten million operations from a thousand clients, some asked again late: each has one result (I6).
 *
 *     npm run retries -- --operations 10000000 --clients 1000
 *
 * A leader is killed and restarted a third of the way, leadership is handed over at two thirds. At
 * the end all digests must agree, and a request below the acknowledged mark must change none.
 */
import { parseArgs } from 'node:util';
import { Prng } from '../../src/collections/prng.js';
import { Cluster } from '../cluster/harness.js';
import { waitFor } from '../cluster/wait-for.js';
import { Lane } from './lane.js';
import { RetryWorker, type Verdicts } from './retry-worker.js';

/** Retention of free-form results, with room for the sweep. */
const OPENS_FORGOTTEN_MS = 75_000;

const { values } = parseArgs({
  options: {
    operations: { type: 'string', default: '10000000' },
    clients: { type: 'string', default: '1000' },
    connections: { type: 'string', default: '16' },
    'retry-share': { type: 'string', default: '0.01' },
  },
});
const operations = Number(values.operations);
const clients = Number(values.clients);
const connections = Math.min(Number(values.connections), clients);

const cluster = await Cluster.start();
const verdicts: Verdicts = { operations: 0, identical: 0, forgotten: 0, faults: [] };
const prng = new Prng(1);
const workers: RetryWorker[] = [];
for (let index = 0; index < clients; index += 1) {
  const own = new Prng(prng.nextU32());
  workers.push(new RetryWorker(index, own, verdicts, Number(values['retry-share'])));
}
const endpoints = cluster.endpoints.map((endpoint) => {
  const [host, port] = endpoint.split(':');
  return { host: String(host), port: Number(port) };
});
let reached: (() => void) | null = null;
let target = 0;
const lanes: Lane[] = [];
for (let lane = 0; lane < connections; lane += 1) {
  const own = workers.filter((worker) => worker.index % connections === lane);
  lanes.push(new Lane(endpoints, own, onProgress, lane));
}

function onProgress(): void {
  if (verdicts.operations >= target) reached?.();
}

function until(count: number): Promise<void> {
  target = count;
  return new Promise((resolve) => {
    reached = resolve;
    onProgress();
  });
}

function idle(): number {
  return lanes.reduce((count, lane) => count + lane.idleWorkers, 0);
}

/** One request below its mark from each worker; resolves when all are answered. */
async function askForgotten(): Promise<void> {
  for (const lane of lanes) lane.askForgotten();
  await waitFor('every forgotten request is refused', () => idle() === clients, 60_000);
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}

const startedMs = performance.now();
const ticker = setInterval(() => {
  const seconds = (performance.now() - startedMs) / 1_000;
  const rate = Math.round(verdicts.operations / seconds);
  const { identical, forgotten, faults } = verdicts;
  const repeats = `${identical} identical, ${forgotten} forgotten, ${faults.length} faults`;
  say(`${seconds.toFixed(0)} s: ${verdicts.operations} operations (${rate}/s), ${repeats}`);
}, 10_000);

let digestsAgree = false;
let digestUnmoved = false;
try {
  await until(Math.floor(operations / 3));
  const leader = await cluster.leader();
  say(`killing the leader, node ${leader}`);
  await cluster.kill(leader);
  await cluster.leaderOtherThan(leader);
  await cluster.restart(leader);
  await until(Math.floor((operations * 2) / 3));
  const second = await cluster.leader();
  say(`terminating the leader, node ${second}: it hands leadership over`);
  await cluster.terminate(second);
  await cluster.restart(second);
  await until(operations);
  for (const lane of lanes) lane.isOpen = false;
  await waitFor('every request is answered', () => idle() === clients, 60_000);
  // The answers to the session opens are forgotten after a minute: that moves the digest too.
  const isQuiet = (): boolean => performance.now() - startedMs > OPENS_FORGOTTEN_MS;
  await waitFor('the session opens are forgotten', isQuiet, 2 * OPENS_FORGOTTEN_MS);
  // Once for what the last answers acknowledge, which may move the digest; then for the check.
  await askForgotten();
  const before = await cluster.settled(300_000);
  digestsAgree = new Set(before.map((status) => status.digest)).size === 1;
  const forgottenBefore = verdicts.forgotten;
  await askForgotten();
  const after = await cluster.settled(300_000);
  digestUnmoved = after[0]?.digest === before[0]?.digest;
  say(`${verdicts.forgotten - forgottenBefore} forgotten requests on a quiet cluster`);
} finally {
  clearInterval(ticker);
  for (const lane of lanes) lane.close();
  await cluster.close();
}
const seconds = (performance.now() - startedMs) / 1_000;
say(`operations ${verdicts.operations} in ${seconds.toFixed(1)} s`);
say(`repeated with the identical result ${verdicts.identical}`);
say(`below the mark and refused ${verdicts.forgotten}`);
say(`all five digests agree ${digestsAgree}, unmoved by forgotten requests ${digestUnmoved}`);
for (const fault of verdicts.faults.slice(0, 20)) say(`FAULT ${fault}`);
const isSound =
  verdicts.faults.length === 0 && verdicts.identical > 0 && digestsAgree && digestUnmoved;
say(`${isSound ? 1 : 0} passed, ${isSound ? 0 : 1} failed`);
process.exitCode = isSound ? 0 : 1;
