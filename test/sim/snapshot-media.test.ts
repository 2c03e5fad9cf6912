/**
 * Snapshots on media that lose what was not synced: the process is killed at any sync point
 * and between any two names that go, and later the power goes. What a start has gone on from is
 * there at the next.
 */
import t, { type Test } from 'tap';
import { Prng } from '../../src/collections/prng.js';
import { fetchSteps } from '../../src/io/peers/snapshot-fetch.js';
import { SnapshotFiles } from '../../src/io/snapshots/snapshot-files.js';
import {
  draftPlace,
  openSnapshots,
  publishSnapshot,
} from '../../src/io/snapshots/snapshot-folder.js';
import { OutBuffer } from '../../src/wire/out-buffer.js';
import { PEER_HEADER_BYTES } from '../../src/wire/peer.js';
import { publishFetched } from '../../src/workers/jobs.js';
import { CLUSTER_ID, machineWith } from '../unit/io/snapshot-maker.js';
import { PowerCut } from './devices/media.js';
import { SimDisk } from './sim-disk.js';
import { SimLender } from './sim-lender.js';

const OLD = 20;
const NEW = 60;
const POWER_SEEDS = 6;

function makeSnapshot({ folder }: SimDisk, index: number): void {
  const machine = machineWith(index);
  const files = new SnapshotFiles(draftPlace(folder, index));
  machine.writeSnapshot(500, (chunk) => files.add(chunk));
  const { now: stampMs, revision } = machine;
  const state = { clusterId: CLUSTER_ID, index, term: 1, stampMs, revision };
  files.finish({ ...state, digest: machine.digest() });
  publishSnapshot(folder, files.folder, index);
}

/** Fetches and publishes the lender's snapshot. Returns how many chunks were there already. */
function fetch(disk: SimDisk, source: SimDisk, lender: SimLender): number {
  const goal = { dataFolder: disk.folder, clusterId: CLUSTER_ID, leastIndex: 1 };
  const steps = fetchSteps(goal);
  let step = steps.next();
  while (step.done !== true) {
    const out = new OutBuffer();
    step.value.encode(out);
    const frame = lender.answer(source.media, out.bytes.slice(0, out.length)) as Uint8Array;
    const answer = step.value.decode(frame, PEER_HEADER_BYTES, frame.length) as Uint8Array;
    step = steps.next(answer);
  }
  publishFetched({ dataFolder: disk.folder, index: step.value.manifest.index });
  return step.value.resumed;
}

/** Kills the process at the step `at` of its media. True when the work was done before. */
function killedAt(disk: SimDisk, at: number, work: () => void): boolean {
  disk.media.stepsLeft = at;
  try {
    work();
    return true;
  } catch (error) {
    if (!(error instanceof PowerCut)) throw error;
    return false;
  } finally {
    disk.media.stepsLeft = Number.POSITIVE_INFINITY;
  }
}

function indexAtStart({ folder }: SimDisk, t: Test): number {
  const manifest = openSnapshots(folder, (text) => t.fail(text));
  return manifest?.index ?? 0;
}

function setUp(t: Test) {
  const [disk, source] = [new SimDisk(), new SimDisk()];
  t.teardown(() => {
    disk.media.forget();
    source.media.forget();
  });
  openSnapshots(disk.folder, () => undefined);
  openSnapshots(source.folder, () => undefined);
  makeSnapshot(disk, OLD);
  makeSnapshot(source, NEW);
  return { disk, source, lender: new SimLender(source.folder, NEW, () => 0) };
}

type Room = ReturnType<typeof setUp>;

/** Runs `judge` for a kill at each step of `work`, and each fate of what was not synced. */
function everywhere(
  t: Test,
  work: (room: Room) => void,
  judge: (room: Room, prng: Prng, about: string) => void,
): void {
  for (let at = 0; ; at += 1) {
    let isDone = false;
    for (let seed = 1; seed <= POWER_SEEDS; seed += 1) {
      const room = setUp(t);
      isDone = killedAt(room.disk, at, () => work(room));
      judge(room, new Prng(seed), `step ${at}, seed ${seed}`);
      room.disk.media.forget();
      room.source.media.forget();
    }
    if (isDone) break;
  }
}

t.test('what a start goes on from survives the power', (t) => {
  const fetchIt = (room: Room): void => {
    fetch(room.disk, room.source, room.lender);
  };
  everywhere(t, fetchIt, ({ disk }, prng, about) => {
    const before = indexAtStart(disk, t);
    disk.media.losePower(prng);
    const after = indexAtStart(disk, t);
    if (after < before || before < OLD) t.fail(`${about}: from ${before}, then from ${after}`);
  });
  const makeIt = ({ disk }: Room): void => makeSnapshot(disk, NEW);
  everywhere(t, makeIt, ({ disk }, prng, about) => {
    const before = indexAtStart(disk, t);
    disk.media.losePower(prng);
    const after = indexAtStart(disk, t);
    if (after < before || before < OLD) t.fail(`${about}: from ${before}, then from ${after}`);
  });
  t.pass('at every step');
  t.end();
});

t.test('a fetch that goes on after a kill makes a snapshot that survives the power', (t) => {
  let resumed = 0;
  const fetchIt = (room: Room): void => {
    fetch(room.disk, room.source, room.lender);
  };
  everywhere(t, fetchIt, ({ disk, source, lender }, prng, about) => {
    if (indexAtStart(disk, t) < NEW) resumed += fetch(disk, source, lender);
    disk.media.losePower(prng);
    const index = indexAtStart(disk, t);
    if (index !== NEW) t.fail(`${about}: the snapshot that was fetched is gone, ${index} is there`);
  });
  t.ok(resumed > 100, `${resumed} chunks were there already`);
  t.end();
});
