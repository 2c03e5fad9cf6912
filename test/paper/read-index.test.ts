/**
 * Thesis §6.4: reads without a log entry, which never see less than was committed before them.
 */
import t from 'tap';
import { Role } from '../../src/core/raft/effects.js';
import { EntryKind, MessageKind } from '../../src/core/raft/message.js';
import { ELECTION_TICKS_MAX, ELECTION_TICKS_MIN, HEARTBEAT_TICKS } from '../../src/limits.js';
import { Cluster, membersData } from './cluster.js';
import { leaderWith, messageOf, raftWith, take, takeDurable } from './single.js';

const EMPTY = new Uint8Array(0);

function confirmation(term: number, round: number, from = 2) {
  return messageOf(MessageKind.HeartbeatReply, from, 1, { term, context: round });
}

/** A leader of five whose NoOp is committed. */
function servingLeader(voters = [1, 2, 3, 4, 5]) {
  const raft = leaderWith({ voters });
  for (const from of voters.slice(1)) {
    raft.step(messageOf(MessageKind.AppendReply, from, 1, { term: raft.term, index: 1 }));
  }
  take(raft);
  return raft;
}

t.test('§6.4: a read is answered at the commit index once a majority confirms the leader', (t) => {
  const raft = servingLeader();
  raft.readIndex(7);
  const { now, readStates } = take(raft);
  t.strictSame(readStates, []);
  t.strictSame(
    now.map(({ kind, to, context }) => [kind, to, context]),
    [2, 3, 4, 5].map((to) => [MessageKind.Heartbeat, to, 1]),
    'one heartbeat each asks, without waiting for the interval',
  );
  raft.step(confirmation(raft.term, 1));
  raft.step(confirmation(raft.term, 1));
  t.strictSame(take(raft).readStates, [], 'one follower, twice, is one');
  raft.step(confirmation(raft.term, 1, 3));
  t.strictSame(take(raft).readStates, [{ context: 7, index: 1 }]);
  t.end();
});

t.test('§6.4: the index is that of the moment of the question', (t) => {
  const raft = servingLeader();
  raft.readIndex(1);
  raft.propose(EntryKind.Batch, EMPTY);
  takeDurable(raft);
  for (const from of [2, 3]) {
    raft.step(messageOf(MessageKind.AppendReply, from, 1, { term: raft.term, index: 2 }));
  }
  t.equal(raft.commitIndex, 2);
  raft.step(confirmation(raft.term, 1));
  raft.step(confirmation(raft.term, 1, 3));
  t.strictSame(take(raft).readStates, [{ context: 1, index: 1 }]);
  t.end();
});

t.test('§6.4: who confirms a later round confirms the earlier ones', (t) => {
  const raft = servingLeader();
  for (const context of [11, 12, 13]) raft.readIndex(context);
  take(raft);
  raft.step(confirmation(raft.term, 3));
  raft.step(confirmation(raft.term, 2, 3));
  t.strictSame(
    take(raft).readStates.map(({ context }) => context),
    [11, 12],
  );
  raft.step(confirmation(raft.term, 3, 4));
  t.strictSame(
    take(raft).readStates.map(({ context }) => context),
    [13],
  );
  t.end();
});

t.test('§6.4: a confirmation of an earlier round does not count for a later one', (t) => {
  const raft = servingLeader();
  raft.readIndex(11);
  raft.readIndex(12);
  take(raft);
  for (const from of [2, 3, 4, 5]) raft.step(confirmation(raft.term, 1, from));
  t.strictSame(
    take(raft).readStates.map(({ context }) => context),
    [11],
  );
  t.end();
});

t.test('§6.4: learners, strangers and plain heartbeat answers confirm nothing', (t) => {
  const raft = leaderWith({ learners: [4] });
  raft.step(messageOf(MessageKind.AppendReply, 2, 1, { term: raft.term, index: 1 }));
  raft.readIndex(1);
  take(raft);
  for (const from of [4, 9]) raft.step(confirmation(raft.term, 1, from));
  raft.step(confirmation(raft.term, 0, 2));
  t.strictSame(take(raft).readStates, []);
  raft.step(confirmation(raft.term, 1, 2));
  t.equal(take(raft).readStates.length, 1);
  t.end();
});

t.test('§6.4: a leader that is no voter does not confirm itself', (t) => {
  const raft = servingLeader();
  raft.propose(EntryKind.Membership, membersData({ voters: [2, 3, 4, 5], learners: [1] }));
  raft.readIndex(1);
  take(raft);
  for (const from of [2, 3]) raft.step(confirmation(raft.term, 1, from));
  t.strictSame(take(raft).readStates, [], 'two of four voters');
  raft.step(confirmation(raft.term, 1, 4));
  t.equal(take(raft).readStates.length, 1);
  t.end();
});

t.test('§6.4, step 1: before the first commit of the term a read is held', (t) => {
  const cluster = new Cluster({ voters: 3, opensTerms: false });
  cluster.elect(1);
  cluster.run(HEARTBEAT_TICKS);
  const early = cluster.read(1);
  const forwarded = cluster.read(2);
  cluster.run(10);
  t.strictSame(cluster.node(1).readStates, [], 'the term is not open');
  cluster.raft(1).propose(EntryKind.NoOp, EMPTY);
  cluster.turn(1);
  const late = cluster.read(1);
  t.strictSame(cluster.node(1).readStates, [], 'open, not committed');
  cluster.stabilize();
  t.strictSame(
    cluster.node(1).readStates,
    [early, late].map((context) => ({ context, index: 1 })),
  );
  t.strictSame(cluster.node(2).readStates, [{ context: forwarded, index: 1 }]);
  t.end();
});

t.test('§6.4: a new leader answers no read at the commit index it had as a follower', (t) => {
  const cluster = new Cluster({ voters: 3 });
  cluster.elect(1);
  cluster.propose(1, 'a');
  cluster.deliver();
  for (const id of [1, 2, 3]) cluster.completeDisk(id);
  cluster.deliver();
  t.equal(cluster.raft(1).commitIndex, 2, 'committed and perhaps told to a client');
  t.equal(cluster.raft(2).commitIndex, 1);
  cluster.crash(1);
  cluster.drop();
  cluster.campaign(2);
  cluster.tick(3, ELECTION_TICKS_MIN);
  cluster.campaign(2);
  for (let i = 0; i < 50 && cluster.raft(2).role !== Role.Leader; i += 1) {
    if (cluster.inFlight.length > 0) cluster.deliverAt(0);
    else for (const id of [2, 3]) cluster.completeDisk(id);
  }
  t.equal(cluster.raft(2).role, Role.Leader);
  cluster.read(2);
  cluster.stabilize();
  const [state] = cluster.node(2).readStates;
  t.ok((state?.index ?? 0) >= 2, `answered at ${state?.index}`);
  t.end();
});

t.test('§6.4: a leader cut off answers no read, and says so when it steps down', (t) => {
  const cluster = new Cluster({ voters: 3 });
  cluster.elect(1);
  cluster.isolate(1);
  const context = cluster.read(1);
  cluster.run(2 * ELECTION_TICKS_MIN);
  t.equal(cluster.raft(1).role, Role.Follower);
  t.strictSame(cluster.node(1).readStates, []);
  t.strictSame(cluster.node(1).readsAborted, [context]);
  t.end();
});

t.test('a leader that was paused while another took over answers no read when it wakes', (t) => {
  const cluster = new Cluster({ voters: 3 });
  cluster.elect(1);
  const before = cluster.read(1);
  // It is paused: confirmations of the read of before are on their way to it, nobody else waits.
  cluster.deliver(({ kind }) => kind === MessageKind.Heartbeat);
  const late = cluster.drop(({ to }) => to === 1);
  t.equal(late.length, 2);
  for (const id of [2, 3]) cluster.tick(id, ELECTION_TICKS_MAX);
  cluster.drop(({ to }) => to === 1);
  const others = [2, 3];
  const findLeader = (): number => others.find((id) => cluster.raft(id).role === Role.Leader) ?? 0;
  for (let i = 0; i < 500 && findLeader() === 0; i += 1) {
    cluster.deliver(({ to }) => to !== 1);
    for (const id of [2, 3]) cluster.completeDisk(id);
    for (const id of [2, 3]) cluster.tick(id);
    cluster.drop(({ to }) => to === 1);
  }
  const successor = findLeader();
  cluster.propose(successor, 'newer');
  for (let i = 0; i < 4; i += 1) {
    cluster.deliver(({ to }) => to !== 1);
    for (const id of [2, 3]) cluster.completeDisk(id);
  }
  const committed = cluster.raft(successor).commitIndex;
  t.ok(committed > cluster.raft(1).commitIndex);
  // It wakes: a read arrives first, then what was on its way, then its own timers.
  t.equal(cluster.raft(1).role, Role.Leader, 'it does not know');
  const after = cluster.read(1);
  for (const message of late) cluster.step(message);
  cluster.stabilize();
  cluster.run(ELECTION_TICKS_MIN);
  const { readStates, readsAborted } = cluster.node(1);
  t.notOk(
    readStates.some(({ context }) => context === after),
    'never at the old index',
  );
  t.ok(readsAborted.includes(after));
  t.ok(
    readStates.some(({ context }) => context === before),
    'that of before is still true',
  );
  t.end();
});

t.test('a read forwarded by a follower is answered there', (t) => {
  const cluster = new Cluster({ voters: 3 });
  cluster.elect(1);
  cluster.propose(1);
  cluster.stabilize();
  const context = cluster.read(3);
  cluster.stabilize();
  t.strictSame(cluster.node(3).readStates, [{ context, index: 2 }]);
  t.strictSame(cluster.node(1).readStates, []);
  t.end();
});

t.test('a follower answers its read once, though the answer comes twice', (t) => {
  const cluster = new Cluster({ voters: 3 });
  cluster.elect(1);
  cluster.read(3);
  while (!cluster.inFlight.some(({ kind }) => kind === MessageKind.ReadIndexReply)) {
    cluster.deliver();
  }
  const [reply] = cluster.drop(({ kind }) => kind === MessageKind.ReadIndexReply);
  if (reply !== undefined) for (let i = 0; i < 2; i += 1) cluster.step(reply);
  t.equal(cluster.node(3).readStates.length, 1);
  t.end();
});

t.test('an answer to a read of a former life does not answer a read of this one', (t) => {
  // The host numbers its reads from 1 again after a restart.
  const cluster = new Cluster({ voters: 3 });
  cluster.elect(1);
  cluster.read(3, 1);
  while (!cluster.inFlight.some(({ kind }) => kind === MessageKind.ReadIndexReply)) {
    cluster.deliver();
  }
  const [old] = cluster.drop(({ kind }) => kind === MessageKind.ReadIndexReply);
  cluster.crash(3);
  for (let i = 0; i < 3; i += 1) cluster.propose(1);
  cluster.stabilize();
  const committed = cluster.raft(1).commitIndex;
  cluster.restart(3);
  cluster.run(HEARTBEAT_TICKS + 1);
  cluster.read(3, 1);
  if (old !== undefined) cluster.step(old);
  cluster.stabilize();
  const states = cluster.node(3).readStates;
  t.equal(states.length, 1);
  t.ok((states[0]?.index ?? 0) >= committed, `answered at ${states[0]?.index} of ${committed}`);
  t.end();
});

t.test('a forwarded read whose message is lost is given up, not kept for ever', (t) => {
  for (const lost of [MessageKind.ReadIndex, MessageKind.ReadIndexReply]) {
    const cluster = new Cluster({ voters: 3 });
    cluster.elect(1);
    const context = cluster.read(3);
    for (let i = 0; i < 4; i += 1) {
      cluster.drop(({ kind }) => kind === lost);
      cluster.deliver();
    }
    cluster.run(2 * ELECTION_TICKS_MIN);
    t.equal(cluster.raft(3).leaderId, 1, 'the leader is there all the while');
    t.strictSame(cluster.node(3).readStates, []);
    t.strictSame(cluster.node(3).readsAborted, [context]);
  }
  t.end();
});

t.test('a read is given up at once where no leader is known, and when the leader changes', (t) => {
  const lonely = raftWith();
  lonely.readIndex(5);
  t.strictSame(take(lonely).readsAborted, [5]);
  const cluster = new Cluster({ voters: 3 });
  cluster.elect(1);
  cluster.cut(3, 1);
  const context = cluster.read(3);
  cluster.elect(2);
  t.strictSame(cluster.node(3).readsAborted, [context]);
  t.end();
});

t.test('a heartbeat that was lost does not lose its read: the next one asks again', (t) => {
  const cluster = new Cluster({ voters: 3 });
  cluster.elect(1);
  const context = cluster.read(1);
  cluster.drop();
  cluster.run(2 * HEARTBEAT_TICKS);
  t.strictSame(cluster.node(1).readStates, [{ context, index: 1 }]);
  t.end();
});

t.test('a cluster of one answers its reads at once', (t) => {
  const cluster = new Cluster({ voters: 1 });
  cluster.campaign(1);
  cluster.stabilize();
  const context = cluster.read(1);
  t.strictSame(cluster.node(1).readStates, [{ context, index: 1 }]);
  t.end();
});

t.test('a change of members can confirm a read that waits', (t) => {
  const raft = servingLeader([1, 2]);
  raft.readIndex(1);
  take(raft);
  raft.propose(EntryKind.Membership, membersData({ voters: [1], learners: [2] }));
  t.strictSame(take(raft).readStates, [{ context: 1, index: 1 }]);
  t.end();
});
