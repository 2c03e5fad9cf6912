import t from 'tap';
import { SimClient } from '../../sim/sim-client.js';
import { SimCluster, type SimNode } from '../../sim/sim-cluster.js';
import { World } from '../../sim/world.js';

const US_PER_MS = 1_000;
const SECOND_US = 1_000_000;
const SETTINGS = { leaseTtlMsLeast: 50 };
const [GRANTED, ENDED, QUEUED, LEFT] = [1, 2, 3, 4];
const COMPACTED = 48;

/** [revision, kind, name, token, place, cause, principal, cluster_time] */
type Row = readonly [number, number, string, number, number, number, number, number];

function serving(cluster: SimCluster): SimNode {
  const { world } = cluster;
  world.run(world.nowUs + 10 * SECOND_US, () => cluster.serving() !== undefined);
  const node = cluster.serving();
  if (node === undefined) throw new Error('nobody serves');
  return node;
}

function follower(cluster: SimCluster): SimNode {
  const leader = serving(cluster);
  return cluster.nodes.find((node) => node !== leader && node.replica !== null) as SimNode;
}

/** A started cluster with a client at the leader and one at a follower. */
function ground(seed: number) {
  const world = new World(seed);
  const cluster = new SimCluster(world, { settings: SETTINGS });
  const actor = new SimClient(cluster, 1);
  const watcher = new SimClient(cluster, 2);
  actor.connect(serving(cluster));
  watcher.connect(follower(cluster));
  world.run(world.nowUs + 50 * US_PER_MS);
  const settle = (ms = 200): void => {
    world.run(world.nowUs + ms * US_PER_MS);
  };
  let requests = 0;
  const acquire = (name: string, ttlMs = 60_000, waitMs = 0): number => {
    requests += 1;
    return actor.send([36, `r-${requests}`, null, null, null, name, ttlMs, waitMs]);
  };
  const release = (correlation: number): number =>
    actor.send([38, null, null, null, null, actor.replyTo(correlation)?.[4]]);
  return { world, cluster, actor, watcher, settle, acquire, release };
}

function rowsOf(client: SimClient, correlation: number): Row[] {
  const parts = client.replies.get(correlation) ?? [];
  return parts.filter((part) => part[1] === 2).flatMap((part) => part[4] as Row[]);
}

function setBacklog(client: SimClient, bytes: number): void {
  const { connection } = client as unknown as {
    connection: { transport: { backlogBytes: number } };
  };
  connection.transport.backlogBytes = bytes;
}

t.test('I9: a watch on a follower is told every event of its lock, once, in order', (t) => {
  const { watcher, settle, acquire, release, actor } = ground(41);
  const one = watcher.send([11, 'jobs/a']);
  const prefix = watcher.send([11, null, 'jobs/']);
  const other = watcher.send([11, 'jobs']);
  settle(50);
  const held = acquire('jobs/a');
  settle();
  const waits = acquire('jobs/a', 60_000, 5_000);
  const leaves = acquire('jobs/a', 60_000, 300);
  const elsewhere = acquire('jobs/b');
  settle(1_000);
  release(held);
  settle();
  t.equal(actor.replyTo(leaves)?.[1], 11, 'one timed out');
  const rows = rowsOf(watcher, one);
  const kinds = rows.map((row) => row[1]);
  t.same(kinds, [GRANTED, QUEUED, QUEUED, LEFT, ENDED, GRANTED]);
  t.same(
    [...rows].map((row) => row[0]).sort((a, b) => a - b),
    rows.map((row) => row[0]),
  );
  t.equal(rows[0]?.[3], actor.replyTo(held)?.[5], 'the token of the grant');
  t.equal(rows[5]?.[3], actor.replyTo(waits)?.[5], 'the token of the hand-over');
  t.ok(rows.every((row) => row[2] === 'jobs/a'));
  const all = rowsOf(watcher, prefix);
  t.equal(all.length, 7, 'the prefix has the other lock too');
  t.ok(all.some((row) => row[2] === 'jobs/b' && row[3] === actor.replyTo(elsewhere)?.[5]));
  t.same(rowsOf(watcher, other), [], 'a name that is a prefix of another is another lock');
  t.end();
});

t.test('I9: a watch that resumes is told what the live one was told, on any node', (t) => {
  const { cluster, watcher, settle, acquire, release } = ground(42);
  const live = watcher.send([11, null, '']);
  settle(50);
  for (let i = 0; i < 700; i += 1) {
    const held = acquire(`x/${i % 7}`);
    settle(2);
    release(held);
    settle(2);
  }
  settle();
  const rows = rowsOf(watcher, live);
  t.ok(rows.length >= 1_400, `${rows.length} events`);
  const middle = rows[900]?.[0] ?? 0;
  for (const node of cluster.nodes) {
    const late = new SimClient(cluster, 10 + node.nodeId);
    late.connect(node);
    settle(5);
    const resumed = late.send([11, null, '', middle]);
    const future = late.send([11, null, '', (rows.at(-1)?.[0] ?? 0) + 3]);
    settle();
    t.same(rowsOf(late, resumed), rows.slice(900), `node ${node.nodeId}`);
    t.same(rowsOf(late, future), [], 'what is not there yet is waited for');
  }
  t.end();
});

t.test('I9: a watch goes on over a change of leader and on a restarted node', (t) => {
  const { world, cluster, watcher, settle, acquire, actor } = ground(43);
  const live = watcher.send([11, null, '']);
  settle(50);
  for (let i = 0; i < 20; i += 1) acquire(`before/${i}`);
  settle();
  const old = serving(cluster);
  cluster.crash(old);
  world.run(world.nowUs + 3 * SECOND_US);
  const next = serving(cluster);
  actor.connect(next);
  settle(50);
  for (let i = 0; i < 20; i += 1) acquire(`after/${i}`);
  settle();
  cluster.start(old);
  settle(1_000);
  const back = new SimClient(cluster, 9);
  back.connect(old);
  settle(5);
  const again = back.send([11, null, '', 1]);
  settle();
  const rows = rowsOf(watcher, live);
  t.same(
    rows.map((row) => row[0]),
    rows.map((_, at) => at + 1),
    'revisions without a gap or a repeat',
  );
  t.equal(rows.filter((row) => row[1] === GRANTED).length, 40);
  t.same(rowsOf(back, again), rows, 'the restarted node tells the same from its own log');
  t.end();
});

t.test('a watch older than what is kept is told COMPACTED, then takes a snapshot', (t) => {
  const { watcher, settle, acquire, release, actor } = ground(44);
  const kept = acquire('kept');
  settle();
  const long = (at: number): string => `${at}-`.padEnd(512, 'n');
  for (let i = 0; i < 9_000; i += 1) {
    const held = acquire(long(i % 50));
    settle(1);
    release(held);
    if (i % 20 === 0) settle(5);
  }
  settle();
  const late = watcher.send([11, null, '', 1]);
  settle();
  const refusal = watcher.replyTo(late);
  t.equal(refusal?.[1], COMPACTED);
  const oldest = refusal?.[6] as number;
  t.ok(oldest > 1, `names the oldest: ${oldest}`);
  const fine = watcher.send([11, null, '', oldest]);
  const fresh = watcher.send([11, null, '', null, true]);
  settle();
  t.equal(rowsOf(watcher, fine)[0]?.[0], oldest, 'from the oldest on it goes');
  const parts = watcher.replies.get(fresh) ?? [];
  const locks = parts.flatMap((part) => (part[6] as (readonly unknown[])[] | undefined) ?? []);
  t.equal(locks.find((lock) => lock[0] === 'kept')?.[1], actor.replyTo(kept)?.[5]);
  const after = acquire('after');
  settle();
  t.same(
    rowsOf(watcher, fresh).map((row) => row[0]),
    [actor.replyTo(after)?.[5]],
    'the tail begins after the snapshot',
  );
  t.end();
});

t.test('I9: snapshot and tail under changes come to the state that a read shows', (t) => {
  const { world, watcher, settle, acquire, release, actor } = ground(45);
  const held: number[] = [];
  for (let i = 0; i < 2_000; i += 1) held.push(acquire(`n/${i}`));
  settle(500);
  const watch = watcher.send([11, null, 'n/', null, true]);
  for (let i = 0; i < 2_000; i += 3) {
    release(held[i] as number);
    if (i % 2 === 0) acquire(`n/${i + 2_000}`);
    if (i % 30 === 0) world.run(world.nowUs + 100);
  }
  settle(1_000);
  const believed = new Map<string, number>();
  for (const part of watcher.replies.get(watch) ?? []) {
    for (const lock of (part[6] as [string, number, unknown][] | undefined) ?? []) {
      t.notOk(believed.has(lock[0]), 'a lock is told once');
      if (lock[2] !== null) believed.set(lock[0], lock[1]);
    }
    for (const row of part[4] as Row[]) {
      if (row[1] === GRANTED) {
        t.notOk(believed.has(row[2]), 'a grant follows an end');
        believed.set(row[2], row[0]);
      } else t.ok(believed.delete(row[2]), 'what ends was held');
    }
  }
  const real = new Map<string, number>();
  let cursor: unknown = null;
  do {
    const page = actor.send([7, 'n/', cursor, 250]);
    settle(50);
    const reply = actor.replyTo(page);
    const rows = (reply?.[4] ?? []) as [string, number][];
    for (const lock of rows) real.set(lock[0], lock[1]);
    cursor = reply?.[5] ?? null;
  } while (cursor !== null);
  t.same([...believed].sort(), [...real].sort());
  t.end();
});

t.test('a slow watcher costs the others nothing and loses nothing while it is kept', (t) => {
  const { cluster, watcher, settle, acquire, release } = ground(46);
  const quick = new SimClient(cluster, 3);
  quick.connect(follower(cluster));
  settle(5);
  const slow = watcher.send([11, null, '']);
  const live = quick.send([11, null, '']);
  settle(50);
  setBacklog(watcher, 2 << 20);
  for (let i = 0; i < 300; i += 1) {
    const held = acquire(`s/${i % 5}`);
    settle(2);
    release(held);
  }
  settle();
  t.equal(rowsOf(watcher, slow).length, 0, 'nothing more for who does not read');
  t.ok(rowsOf(quick, live).length >= 599);
  setBacklog(watcher, 0);
  settle();
  t.same(rowsOf(watcher, slow), rowsOf(quick, live), 'it catches up');
  setBacklog(watcher, 2 << 20);
  const long = (at: number): string => `${at}-`.padEnd(512, 'n');
  for (let i = 0; i < 9_000; i += 1) {
    const held = acquire(long(i % 50));
    settle(1);
    release(held);
    if (i % 20 === 0) settle(5);
  }
  settle();
  const end = watcher.replyTo(slow);
  t.equal(end?.[1], COMPACTED, 'passed by what is kept: it is told');
  t.match(end?.[4], /slow/);
  t.end();
});

t.test('progress is marked without events, unwatch ends, bounds refuse', (t) => {
  const { watcher, settle, acquire } = ground(47);
  const quiet = watcher.send([11, 'quiet']);
  settle(50);
  acquire('other');
  settle(7_000);
  const marks = watcher.replies.get(quiet) ?? [];
  t.ok(marks.length >= 2, 'a mark came');
  t.ok((marks.at(-1)?.[5] as number) >= 1, 'and says how far');
  const unwatch = watcher.send([12, quiet]);
  settle();
  t.equal(watcher.replyTo(unwatch)?.[1], 0);
  const before = watcher.replies.get(quiet)?.length;
  acquire('quiet');
  settle(7_000);
  t.equal(watcher.replies.get(quiet)?.length, before, 'nothing after it');
  const many: number[] = [];
  for (let i = 0; i < 1_025; i += 1) many.push(watcher.send([11, `w-${i}`]));
  settle();
  t.equal(watcher.replyTo(many[1_023] as number)?.[1], 2);
  t.equal(watcher.replyTo(many[1_024] as number)?.[1], 21, 'LIMIT');
  t.end();
});

t.test('I7: an abandoned wait lapses though its connection stays', (t) => {
  const { world, actor, acquire, watcher, settle } = ground(48);
  acquire('busy', 600_000);
  settle();
  const gone = acquire('busy', 60_000, 300_000);
  const stays = acquire('busy', 60_000, 300_000);
  const watch = watcher.send([11, 'busy']);
  settle();
  const place = actor.replyTo(gone)?.[4] as number;
  const abandoned = actor.send([14, gone, place]);
  settle();
  t.equal(actor.replyTo(abandoned)?.[1], 0);
  world.run(world.nowUs + 16 * SECOND_US);
  const left = rowsOf(watcher, watch).filter((row) => row[1] === LEFT);
  t.same(
    left.map((row) => row[4]),
    [place],
    'its place lapses, the other one stays',
  );
  t.equal(actor.replyTo(gone)?.[1], 1, 'and nobody is told');
  t.equal(actor.replyTo(stays)?.[1], 1);
  t.end();
});
