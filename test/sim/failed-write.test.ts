/**
 * I10: a node whose disk refuses a write or a sync ends, also where a snapshot was to be made, kept
 * or fetched; and what is no error of the disk fails the run.
 */
import t, { type Test } from 'tap';
import { SimClient } from './sim-client.js';
import { SimCluster, type SimNode } from './sim-cluster.js';
import { World } from './world.js';

const SECOND_US = 1_000_000;
const COMPACTION = { entries: 12, logBytes: 1 << 20, tailEntries: 1 };
/** Syncs after which one fails, up to: a snapshot here has a few more. */
const SYNCS_MAX = 6;

interface Room {
  readonly world: World;
  readonly cluster: SimCluster;
  readonly follower: SimNode;
}

/** A cluster that serves, and on which somebody goes on acquiring. */
function setUp(t: Test, seed: number): Room {
  const world = new World(seed);
  const cluster = new SimCluster(world, { compaction: COMPACTION, chunkBytes: 200 });
  t.teardown(() => cluster.close());
  world.run(5 * SECOND_US, () => cluster.serving() !== undefined);
  const leader = cluster.serving() as SimNode;
  const client = new SimClient(cluster, 1);
  client.connect(leader);
  let sent = 0;
  const ask = (): void => {
    sent += 1;
    client.send([36, `a-${sent}`, null, null, null, `lock-${sent % 30}`, 60_000]);
    world.after(10_000, ask);
  };
  ask();
  const follower = cluster.nodes.find((node) => node !== leader) as SimNode;
  return { world, cluster, follower };
}

/** Lets the sync at position `at` fail. Returns whether one was met; then the node has ended. */
function failsAt(t: Test, { world, cluster, follower }: Room, at: number): boolean {
  const { media } = follower.disk;
  media.fileFault = at % 2 === 0 ? 'rejects' : 'rejects but stays';
  media.fileSyncsLeft = at;
  const isMet = world.run(world.nowUs + SECOND_US, () => media.deviceErrors > 0);
  if (!isMet) return false;
  world.run(world.nowUs + SECOND_US / 10);
  t.same(cluster.problems, [], `sync ${at}`);
  t.equal(follower.replica, null, `sync ${at}: the node has ended`);
  cluster.start(follower);
  const { replica } = follower;
  t.not(replica, null, `sync ${at}: it starts again: ${follower.refusal}`);
  return true;
}

t.test('a sync that fails while snapshots are made and kept ends the node', (t) => {
  for (let at = 0; at < SYNCS_MAX; at += 1) {
    t.ok(failsAt(t, setUp(t, 100 + at), at), `sync ${at} is met`);
  }
  t.end();
});

t.test('a sync that fails while a snapshot is fetched ends the node', (t) => {
  let fetched = 0;
  for (let at = 0; at < SYNCS_MAX; at += 1) {
    const room = setUp(t, 200 + at);
    const { world, cluster, follower } = room;
    cluster.crash(follower);
    // So long that the others have dropped what it would need.
    world.run(world.nowUs + SECOND_US);
    let isFetching = false;
    cluster.onSnapshotStep = (node, kind) => {
      isFetching ||= node === follower && kind === 'fetch';
    };
    cluster.start(follower);
    if (!world.run(world.nowUs + SECOND_US, () => isFetching)) t.fail('it needs no snapshot');
    t.ok(failsAt(t, room, at), `sync ${at} is met`);
    if (follower.startedFrom === 0) fetched += 1;
  }
  t.ok(fetched > 2, `${fetched} failures came before the fetch was done`);
  t.end();
});

t.test('an error that is not of the device is no end of a node: it fails the run', (t) => {
  const { world, follower } = setUp(t, 300);
  const { media } = follower.disk;
  media.sync = () => {
    throw new TypeError('a fault of the program');
  };
  t.throws(() => world.run(world.nowUs + SECOND_US), /a fault of the program/);
  t.end();
});
