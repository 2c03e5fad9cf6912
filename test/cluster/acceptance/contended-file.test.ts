import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import t, { type Test } from 'tap';
import { type Client, connect } from '../../../src/client/index.js';
import { Cluster } from '../harness.js';
import { CounterFile } from './counter-file.js';
import { CounterProcesses } from './counter-processes.js';
import { addAll, type Failures } from './counter-worker.js';
import { figure, figureOfTimes, medianOf } from './figures.js';
import { LeaderKiller } from './leader-killer.js';
import { Probe } from './probe.js';
import { sized } from './size.js';

const WORKERS = sized(10, 50);
const ROUNDS = sized(10, 20);
const CLIENTS = 5;
const PROCESSES = sized(3, 10);
const WORKERS_A_PROCESS = sized(1, 5);
const WORK_MS = sized(15, 30);
const KILL_PAUSE_MS = sized(300, 2_000);
const KILLS_MIN = sized(1, 5);
/** The gate runs beside other work; the promise itself is held in full size. */
const GAP_MEDIAN_MS_MAX = sized(3_000, 1_000);

const cluster = await Cluster.start({ test: t });

async function newCounter(t: Test): Promise<{ folder: string; file: CounterFile }> {
  const folder = mkdtempSync(path.join(tmpdir(), 'holdfast-counter-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const file = new CounterFile(folder);
  await file.create();
  return { folder, file };
}

/** Runs `work` while leaders die, then holds the gaps against the promise. */
async function whileLeadersDie(t: Test, work: () => Promise<Failures>): Promise<void> {
  const probe = await Probe.start(cluster.endpoints);
  t.teardown(() => probe.stop());
  const killer = new LeaderKiller(cluster, probe, KILL_PAUSE_MS);
  killer.start();
  // Its own end is waited for even if the work fails: what it killed it brings back.
  const failures = await work().finally(() => killer.stop());
  figureOfTimes(t, 'time without service after kill -9 of the leader', killer.gapsMs);
  figure(t, 'failed attempts of workers', JSON.stringify(Object.fromEntries(failures)));
  t.ok(killer.gapsMs.length >= KILLS_MIN, `leaders were killed: ${killer.gapsMs.length}`);
  const median = medianOf(killer.gapsMs);
  t.ok(
    median <= GAP_MEDIAN_MS_MAX,
    `the median gap is ${Math.round(median)} ms, at most ${GAP_MEDIAN_MS_MAX}`,
  );
}

async function checkCounter(t: Test, file: CounterFile, writes: number): Promise<void> {
  const { count } = await file.read();
  t.equal(count, writes, 'every write counted, none was lost or made twice');
  const history = await file.history();
  t.equal(history.length, writes);
  let previous = { count: 0, token: 0 };
  const outOfOrder: unknown[] = [];
  for (const state of history) {
    if (state.token <= previous.token || state.count !== previous.count + 1) {
      outOfOrder.push({ previous, state });
    }
    previous = state;
  }
  t.strictSame(outOfOrder, [], 'tokens rise strictly in the order of the writes');
  figure(t, 'writes', history.length);
}

t.test(`${WORKERS} tasks x ${ROUNDS} writes count exactly while leaders are killed`, async (t) => {
  const { file } = await newCounter(t);
  const clients: Client[] = [];
  t.teardown(() => Promise.all(clients.map((client) => client.close())));
  for (let number = 0; number < CLIENTS; number += 1) {
    clients.push(await connect({ endpoints: cluster.endpoints, deadlineMs: 30_000 }));
  }
  const work = { clients, file, rounds: ROUNDS, workMs: WORK_MS };
  await whileLeadersDie(t, () => addAll(work, WORKERS));
  await checkCounter(t, file, WORKERS * ROUNDS);
});

t.test(`${PROCESSES} processes write and count exactly while leaders are killed`, async (t) => {
  const { folder, file } = await newCounter(t);
  const processes = await CounterProcesses.start(t, {
    endpoints: cluster.endpointList,
    folder,
    processes: PROCESSES,
    workers: WORKERS_A_PROCESS,
    rounds: ROUNDS,
    workMs: WORK_MS,
  });
  await whileLeadersDie(t, () => processes.run());
  await checkCounter(t, file, PROCESSES * WORKERS_A_PROCESS * ROUNDS);
});

t.test('after all of it the five nodes agree', async (t) => {
  const statuses = await cluster.settled(60_000);
  t.equal(statuses.length, 5);
  t.equal(new Set(statuses.map((status) => status.digest)).size, 1);
});
