/**
 * One-way, partial and bridge partitions: a stable leader within 5 s, and no elections for ever.
 */
import t from 'tap';
import { Prng } from '../../src/collections/prng.js';
import { Role } from '../../src/core/raft/effects.js';
import { Cluster } from './cluster.js';

/** 5 s in ticks of 10 ms. */
const FIVE_SECONDS = 500;

/** Runs 5 s, then 5 s more in which leader and term must not change. Returns the leader. */
function settle(cluster: Cluster): { leader: number; isStable: boolean; canCommit: boolean } {
  cluster.run(FIVE_SECONDS);
  const leader = cluster.leaderId();
  if (leader === 0) return { leader, isStable: false, canCommit: false };
  const { term } = cluster.raft(leader);
  let isStable = true;
  for (let ticks = 0; ticks < FIVE_SECONDS; ticks += 1) {
    cluster.run(1);
    if (cluster.leaderId() !== leader || cluster.raft(leader).term !== term) isStable = false;
  }
  const index = cluster.propose(leader);
  cluster.run(20);
  return { leader, isStable, canCommit: index > 0 && cluster.raft(leader).commitIndex >= index };
}

function cutBoth(cluster: Cluster, first: number, second: number): void {
  cluster.cut(first, second);
  cluster.cut(second, first);
}

t.test('a bridge: two pairs that see each other only through the fifth node', (t) => {
  for (const leader of [1, 3, 4]) {
    const cluster = new Cluster({ voters: 5 });
    cluster.elect(leader);
    for (const left of [1, 2]) for (const right of [4, 5]) cutBoth(cluster, left, right);
    const found = settle(cluster);
    t.ok(found.isStable, `leader ${leader}, then ${found.leader}`);
    t.ok(found.canCommit);
  }
  t.end();
});

t.test('the leader is heard by all and hears nobody', (t) => {
  const cluster = new Cluster({ voters: 5 });
  cluster.elect(1);
  for (const id of [2, 3, 4, 5]) cluster.cut(id, 1);
  const found = settle(cluster);
  t.not(found.leader, 1);
  t.ok(found.isStable);
  t.ok(found.canCommit);
  t.end();
});

t.test('the leader hears all and is heard by nobody', (t) => {
  const cluster = new Cluster({ voters: 5 });
  cluster.elect(1);
  for (const id of [2, 3, 4, 5]) cluster.cut(1, id);
  const found = settle(cluster);
  t.not(found.leader, 1);
  t.ok(found.isStable);
  t.ok(found.canCommit);
  t.equal(cluster.raft(1).role, Role.Follower);
  t.end();
});

t.test('a switch that forwards one way: a follower is not heard, and asks for ever', (t) => {
  for (const size of [3, 5]) {
    const cluster = new Cluster({ voters: size });
    cluster.elect(1);
    const { term } = cluster.raft(1);
    // Node 2 hears the others but not the leader; the leader hears node 2.
    cluster.cut(1, 2);
    const found = settle(cluster);
    t.equal(found.leader, 1, `of ${size}: its questions change nothing`);
    t.equal(cluster.raft(1).term, term);
    t.ok(found.isStable);
    t.ok(found.canCommit);
  }
  t.end();
});

t.test('a leader that loses the link to one follower keeps its role', (t) => {
  const cluster = new Cluster({ voters: 3 });
  cluster.elect(1);
  cutBoth(cluster, 1, 2);
  const found = settle(cluster);
  t.equal(found.leader, 1);
  t.ok(found.isStable);
  t.ok(found.canCommit);
  t.end();
});

t.test('a star: only the middle node sees a majority, and it comes to lead', (t) => {
  const cluster = new Cluster({ voters: 5 });
  cluster.elect(1);
  for (const first of [1, 2, 4, 5]) {
    for (const second of [1, 2, 4, 5]) if (first < second) cutBoth(cluster, first, second);
  }
  const found = settle(cluster);
  t.equal(found.leader, 3);
  t.ok(found.isStable);
  t.ok(found.canCommit);
  t.end();
});

t.test('whatever links fail: while a majority sees each other, a stable leader within 5 s', (t) => {
  for (let seed = 1; seed <= 60; seed += 1) {
    const prng = new Prng(seed);
    const size = prng.below(2) === 0 ? 3 : 5;
    const cluster = new Cluster({ voters: size, seed });
    cluster.runUntil(() => cluster.nodes.some(({ raft }) => raft?.isProposing), FIVE_SECONDS);
    const clique = new Set<number>();
    while (clique.size <= size / 2) clique.add(1 + prng.below(size));
    for (let from = 1; from <= size; from += 1) {
      for (let to = 1; to <= size; to += 1) {
        const isKept = from === to || (clique.has(from) && clique.has(to));
        if (!isKept && prng.below(2) === 0) cluster.cut(from, to);
      }
    }
    const found = settle(cluster);
    t.ok(found.isStable && found.canCommit, `seed ${seed}: leader ${found.leader}`);
  }
  t.end();
});
