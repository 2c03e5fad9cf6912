/**
 * Thesis §3.10: leadership is handed to a chosen follower, and the log does not notice.
 */
import t from 'tap';
import { Role } from '../../src/core/raft/effects.js';
import { EntryKind, MessageKind } from '../../src/core/raft/message.js';
import { ELECTION_TICKS_MIN } from '../../src/limits.js';
import { Cluster } from './cluster.js';
import { leaderWith, messageOf, raftWith, take } from './single.js';

const EMPTY = new Uint8Array(0);

t.test(
  '§3.10: an up-to-date target leads the next term at once, without waiting for timers',
  (t) => {
    const cluster = new Cluster({ voters: 5 });
    cluster.elect(1);
    cluster.propose(1, 'a');
    cluster.stabilize();
    const { term } = cluster.raft(1);
    t.ok(cluster.transfer(1, 3));
    cluster.stabilize();
    t.equal(cluster.leaderId(), 3);
    t.equal(cluster.raft(3).term, term + 1);
    t.equal(cluster.raft(1).role, Role.Follower);
    t.equal(cluster.logText(3), '1:noop 1:a 2:noop', 'the log is what it was, and a NoOp');
    t.end();
  },
);

t.test('§3.10: a target that lags is brought up to date first', (t) => {
  const cluster = new Cluster({ voters: 3 });
  cluster.elect(1);
  cluster.isolate(3);
  for (let i = 0; i < 10; i += 1) cluster.propose(1);
  cluster.stabilize();
  cluster.heal();
  t.ok(cluster.transfer(1, 3));
  t.notOk(cluster.inFlight.some(({ kind }) => kind === MessageKind.TimeoutNow));
  cluster.run(15);
  t.equal(cluster.leaderId(), 3);
  t.equal(cluster.raft(3).commitIndex, 12);
  t.end();
});

t.test('§3.10: while it runs nothing is proposed', (t) => {
  const cluster = new Cluster({ voters: 3 });
  cluster.elect(1);
  cluster.cut(1, 3);
  t.ok(cluster.transfer(1, 3));
  t.ok(cluster.raft(1).isTransferring);
  t.notOk(cluster.raft(1).isProposing);
  t.equal(cluster.propose(1), 0);
  t.end();
});

t.test('§3.10: it is given up after an election time-out, and the leader goes on', (t) => {
  const cluster = new Cluster({ voters: 3 });
  cluster.elect(1);
  cluster.cut(1, 3);
  cluster.cut(3, 1);
  cluster.cut(3, 2);
  const { term } = cluster.raft(1);
  t.ok(cluster.transfer(1, 3));
  cluster.run(ELECTION_TICKS_MIN - 1);
  t.ok(cluster.raft(1).isTransferring);
  cluster.run(1);
  t.notOk(cluster.raft(1).isTransferring);
  t.equal(cluster.raft(1).role, Role.Leader);
  t.equal(cluster.raft(1).term, term);
  t.not(cluster.propose(1, 'after'), 0);
  cluster.stabilize();
  t.match(cluster.logText(2), '1:after');
  t.end();
});

t.test('§3.10: asking again does not keep it alive, and CheckQuorum goes on beside it', (t) => {
  const cluster = new Cluster({ voters: 3 });
  cluster.elect(1);
  cluster.isolate(1);
  const leader = cluster.raft(1);
  let ticks = 0;
  for (; ticks < 10 * ELECTION_TICKS_MIN && leader.role === Role.Leader; ticks += 1) {
    // An operator, or a repeated message, that does not stop asking.
    cluster.transfer(1, 2 + (ticks % 2));
    cluster.tick(1);
  }
  t.equal(leader.role, Role.Follower, 'a leader without a majority steps down all the same');
  t.ok(ticks <= 2 * ELECTION_TICKS_MIN);
  t.end();
});

t.test('§3.10: asking again for the same target restarts nothing', (t) => {
  const cluster = new Cluster({ voters: 3 });
  cluster.elect(1);
  cluster.cut(1, 3);
  cluster.cut(3, 1);
  cluster.cut(3, 2);
  for (let ticks = 0; ticks < ELECTION_TICKS_MIN - 1; ticks += 1) {
    t.ok(cluster.transfer(1, 3));
    cluster.run(1);
  }
  cluster.run(1);
  t.notOk(cluster.raft(1).isTransferring);
  t.equal(cluster.raft(1).role, Role.Leader);
  t.end();
});

t.test('§3.10: another target takes the place of the first', (t) => {
  const cluster = new Cluster({ voters: 3 });
  cluster.elect(1);
  cluster.cut(1, 2);
  t.ok(cluster.transfer(1, 2));
  t.ok(cluster.transfer(1, 3));
  cluster.stabilize();
  t.equal(cluster.leaderId(), 3);
  t.end();
});

t.test('§3.10: a follower passes the wish on to the leader', (t) => {
  const cluster = new Cluster({ voters: 3 });
  cluster.elect(1);
  t.ok(cluster.transfer(2, 3));
  cluster.stabilize();
  t.equal(cluster.leaderId(), 3);
  t.end();
});

t.test('§3.10: what cannot begin says so', (t) => {
  const leader = leaderWith({ learners: [4] });
  t.notOk(leader.transfer(4), 'a learner does not lead');
  t.notOk(leader.transfer(9), 'nor does a stranger');
  t.notOk(raftWith().transfer(2), 'no leader is known');
  t.ok(leader.transfer(1), 'the leader itself: it is so already');
  t.notOk(leader.isTransferring);
  t.end();
});

t.test('§3.10: voters that hear the leader vote in a transfer all the same', (t) => {
  const voter = raftWith({ id: 3, term: 1 });
  voter.step(messageOf(MessageKind.Heartbeat, 1, 3, { term: 1 }));
  take(voter);
  voter.step(messageOf(MessageKind.Vote, 2, 3, { term: 2 }));
  t.equal(voter.term, 1, 'an ordinary request is ignored');
  voter.step(messageOf(MessageKind.Vote, 2, 3, { term: 2, context: 1 }));
  t.equal(take(voter).later[0]?.reject, false);
  t.end();
});

t.test('§3.10: only a voter of the term obeys TimeoutNow', (t) => {
  const learner = raftWith({ id: 4, learners: [4], term: 2 });
  learner.step(messageOf(MessageKind.TimeoutNow, 1, 4, { term: 2 }));
  t.equal(learner.role, Role.Follower);
  const stale = raftWith({ id: 2, term: 2 });
  stale.step(messageOf(MessageKind.TimeoutNow, 1, 2, { term: 1 }));
  t.equal(stale.role, Role.Follower);
  const voter = raftWith({ id: 2, term: 2 });
  voter.step(messageOf(MessageKind.TimeoutNow, 1, 2, { term: 2 }));
  t.equal(voter.role, Role.Candidate, 'without PreVote');
  t.end();
});

t.test('§3.10: nothing is transferred before the term is open', (t) => {
  const cluster = new Cluster({ voters: 3, opensTerms: false });
  cluster.elect(1);
  t.notOk(cluster.transfer(1, 2));
  cluster.raft(1).propose(EntryKind.NoOp, EMPTY);
  t.ok(cluster.transfer(1, 2));
  cluster.stabilize();
  t.equal(cluster.leaderId(), 2);
  t.end();
});
