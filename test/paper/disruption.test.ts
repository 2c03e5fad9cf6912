/**
 * Thesis §4.2.3, §6.2, §9.6: nobody deposes a leader that is heard, and a leader that is not heard
 * deposes itself; PreVote and CheckQuorum together never wedge a cluster.
 */
import t from 'tap';
import { Role } from '../../src/core/raft/effects.js';
import { MessageKind } from '../../src/core/raft/message.js';
import { ELECTION_TICKS_MAX, ELECTION_TICKS_MIN, HEARTBEAT_TICKS } from '../../src/limits.js';
import { Cluster } from './cluster.js';
import { leaderWith, messageOf, raftWith, take, takeDurable, tickToCampaign } from './single.js';

t.test('§9.6: a campaign begins with a question that raises nobody’s term', (t) => {
  const raft = raftWith({ term: 3, log: [1, 3] });
  tickToCampaign(raft);
  t.equal(raft.role, Role.PreCandidate);
  const taken = take(raft);
  t.equal(raft.term, 3);
  t.equal(taken.hardState, null, 'nothing for the disk');
  t.strictSame(
    taken.now.map(({ kind, to, term, index, logTerm }) => [kind, to, term, index, logTerm]),
    [2, 3].map((to) => [MessageKind.PreVote, to, 4, 2, 3]),
  );
  const asked = raftWith({ id: 2, term: 3, log: [1, 3] });
  asked.step(messageOf(MessageKind.PreVote, 1, 2, { term: 4, index: 2, logTerm: 3 }));
  const answer = take(asked);
  t.equal(answer.now[0]?.reject, false);
  t.equal(answer.now[0]?.term, 4, 'the term that was asked for');
  t.equal(answer.hardState, null);
  t.equal(asked.term, 3);
  t.end();
});

t.test('§9.6: a node may say yes to several, since it is no vote', (t) => {
  const raft = raftWith({ term: 3, votedFor: 2 });
  for (const from of [2, 3]) {
    raft.step(messageOf(MessageKind.PreVote, from, 1, { term: 4 }));
    t.equal(take(raft).now[0]?.reject, false);
  }
  t.end();
});

t.test('§9.6: a refused question ends the campaign without a new term', (t) => {
  const raft = raftWith({ term: 3 });
  tickToCampaign(raft);
  take(raft);
  for (const from of [2, 3]) {
    raft.step(messageOf(MessageKind.PreVoteReply, from, 1, { term: 3, reject: true }));
  }
  t.equal(raft.role, Role.Follower);
  t.equal(raft.term, 3);
  t.end();
});

t.test('§9.6: answers to a question about an earlier term are not counted', (t) => {
  const raft = raftWith({ term: 3 });
  tickToCampaign(raft);
  take(raft);
  raft.step(messageOf(MessageKind.PreVoteReply, 2, 1, { term: 3 }));
  t.equal(raft.role, Role.PreCandidate, 'asked for term 4, not for 3');
  raft.step(messageOf(MessageKind.PreVoteReply, 3, 1, { term: 5 }));
  t.equal(raft.role, Role.PreCandidate, 'nor for 5');
  t.equal(raft.term, 3);
  raft.step(messageOf(MessageKind.PreVoteReply, 2, 1, { term: 4 }));
  t.equal(raft.role, Role.Candidate);
  // A vote asked for by nobody: answers of the question come late, as a candidate.
  takeDurable(raft);
  raft.step(messageOf(MessageKind.PreVoteReply, 3, 1, { term: 4 }));
  t.equal(raft.role, Role.Candidate);
  t.end();
});

t.test('§9.6: a refusal of a later term teaches it', (t) => {
  const raft = raftWith({ term: 3 });
  tickToCampaign(raft);
  take(raft);
  raft.step(messageOf(MessageKind.PreVoteReply, 2, 1, { term: 8, reject: true }));
  t.equal(raft.role, Role.Follower);
  t.equal(raft.term, 8);
  t.end();
});

t.test('§9.6: a node that was cut off comes back without disturbing anybody', (t) => {
  const cluster = new Cluster({ voters: 5 });
  cluster.elect(1);
  const { term } = cluster.raft(1);
  cluster.isolate(5);
  cluster.run(10 * ELECTION_TICKS_MAX);
  t.equal(cluster.raft(5).term, term, 'its term did not rise');
  cluster.propose(1, 'meanwhile');
  cluster.stabilize();
  cluster.heal();
  cluster.run(10 * ELECTION_TICKS_MAX);
  t.equal(cluster.leaderId(), 1);
  t.equal(cluster.raft(1).term, term);
  t.equal(cluster.logText(5), cluster.logText(1));
  t.end();
});

t.test('§4.2.3: who hears a leader ignores votes and questions, of later terms too', (t) => {
  for (const kind of [MessageKind.Vote, MessageKind.PreVote]) {
    const raft = raftWith({ term: 1 });
    raft.step(messageOf(MessageKind.Heartbeat, 2, 1, { term: 1 }));
    take(raft);
    for (let i = 0; i < ELECTION_TICKS_MIN - 1; i += 1) raft.tick();
    raft.step(messageOf(kind, 3, 1, { term: 9, index: 5, logTerm: 5 }));
    const ignored = take(raft);
    t.strictSame(ignored.now.concat(ignored.later), []);
    t.equal(raft.term, 1);
    t.equal(raft.leaderId, 2);
    raft.tick();
    raft.step(messageOf(kind, 3, 1, { term: 9, index: 5, logTerm: 5 }));
    const { now, later } = take(raft);
    const answer = [...now, ...later].find((message) => message.to === 3 && message.term === 9);
    t.equal(answer?.reject, false, 'after the least time-out it is free again');
  }
  t.end();
});

t.test('§4.2.3: a removed server that goes on asking deposes nobody', (t) => {
  const leader = leaderWith({ term: 1 });
  const { term } = leader;
  for (let i = 0; i < 5; i += 1) {
    leader.step(messageOf(MessageKind.Vote, 9, 1, { term: term + 1 + i, index: 99, logTerm: 99 }));
    leader.step(
      messageOf(MessageKind.PreVote, 9, 1, { term: term + 1 + i, index: 99, logTerm: 99 }),
    );
    take(leader);
  }
  t.equal(leader.role, Role.Leader);
  t.equal(leader.term, term);
  t.end();
});

t.test('§6.2: a leader that no majority answers steps down within two time-outs', (t) => {
  const cluster = new Cluster({ voters: 5 });
  cluster.elect(1);
  for (const id of [3, 4, 5]) cluster.isolate(id);
  const ticks = cluster.runUntil(() => cluster.raft(1).role !== Role.Leader, 500);
  t.ok(ticks <= 2 * ELECTION_TICKS_MIN, `after ${ticks} ticks`);
  t.equal(cluster.raft(1).leaderId, 0);
  t.end();
});

t.test('§6.2: a leader that a bare majority answers stays', (t) => {
  const cluster = new Cluster({ voters: 5 });
  cluster.elect(1);
  for (const id of [4, 5]) cluster.isolate(id);
  cluster.run(20 * ELECTION_TICKS_MAX);
  t.equal(cluster.leaderId(), 1);
  t.equal(cluster.raft(1).term, 1);
  t.end();
});

t.test('§6.2: answers of learners keep no leader in its role', (t) => {
  const cluster = new Cluster({ voters: 3, learners: 2 });
  cluster.elect(1);
  for (const id of [2, 3]) cluster.isolate(id);
  cluster.run(2 * ELECTION_TICKS_MIN);
  t.equal(cluster.raft(1).role, Role.Follower);
  t.end();
});

t.test('§6.2: acknowledgements count as answers, heartbeats need not get through', (t) => {
  const leader = leaderWith();
  for (let i = 0; i < 10 * ELECTION_TICKS_MIN; i += 1) {
    leader.tick();
    take(leader);
    const refusal = { term: leader.term, index: 0, reject: true };
    if (i % HEARTBEAT_TICKS === 0) leader.step(messageOf(MessageKind.AppendReply, 2, 1, refusal));
  }
  t.equal(leader.role, Role.Leader);
  t.end();
});

t.test('PreVote and CheckQuorum: a node with a later term and a shorter log rejoins', (t) => {
  // It ignores the leader's earlier term, and nobody would vote for it: its answer must depose.
  const cluster = new Cluster({ voters: 3 });
  cluster.elect(1);
  for (let i = 0; i < 5; i += 1) cluster.propose(1);
  cluster.stabilize();
  cluster.crash(3);
  cluster.node(3).disk.hardState = { term: 9, votedFor: 3 };
  cluster.node(3).disk.entries.length = 2;
  cluster.node(3).disk.commitIndex = 0;
  cluster.restart(3);
  cluster.runUntil(
    () => cluster.leaderId() !== 0 && cluster.raft(3).leaderId === cluster.leaderId(),
    500,
  );
  t.not(cluster.leaderId(), 3);
  t.ok(cluster.raft(cluster.leaderId()).term > 9);
  cluster.run(20);
  t.equal(cluster.logText(3), cluster.logText(1));
  const { term } = cluster.raft(3);
  cluster.run(10 * ELECTION_TICKS_MAX);
  t.equal(cluster.raft(3).term, term, 'and then there is peace');
  t.end();
});

t.test('PreVote and CheckQuorum: terms apart after the leader is gone do not wedge', (t) => {
  for (const terms of [
    [9, 2, 2],
    [2, 9, 3],
    [5, 6, 7],
  ]) {
    const cluster = new Cluster({ voters: 3 });
    terms.forEach((term, at) => {
      cluster.crash(at + 1);
      cluster.node(at + 1).disk.hardState = { term, votedFor: at + 1 };
      cluster.restart(at + 1);
    });
    const ticks = cluster.runUntil(() => cluster.nodes.some(({ raft }) => raft?.isProposing), 500);
    t.ok(ticks <= 500, `terms ${terms}: a leader after ${ticks} ticks`);
  }
  t.end();
});

t.test('§6.2: a leader of two that loses the other one does not go on alone', (t) => {
  const cluster = new Cluster({ voters: 2 });
  cluster.elect(1);
  cluster.crash(2);
  cluster.propose(1, 'alone');
  cluster.run(2 * ELECTION_TICKS_MIN);
  t.equal(cluster.raft(1).commitIndex, 1);
  t.not(cluster.raft(1).role, Role.Leader);
  cluster.restart(2);
  cluster.runUntil(() => cluster.raft(2).commitIndex >= 3, 500);
  t.match(cluster.logText(2), 'alone', 'and what it had is not lost');
  t.end();
});

t.test('a leader that hears of a later term from an answer steps down at once', (t) => {
  for (const kind of [
    MessageKind.AppendReply,
    MessageKind.HeartbeatReply,
    MessageKind.VoteReply,
    MessageKind.ReadIndex,
  ]) {
    const leader = leaderWith();
    leader.step(messageOf(kind, 2, 1, { term: leader.term + 3, reject: true }));
    t.equal(leader.role, Role.Follower);
    t.equal(leader.leaderId, 0);
  }
  t.end();
});
