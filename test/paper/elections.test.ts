/**
 * Raft §5.1 and §5.2: terms, election time-outs, one vote a term, and what a vote needs on disk.
 */
import t from 'tap';
import { Role } from '../../src/core/raft/effects.js';
import { type Message, MessageKind } from '../../src/core/raft/message.js';
import { ELECTION_TICKS_MAX, ELECTION_TICKS_MIN, HEARTBEAT_TICKS } from '../../src/limits.js';
import { Cluster } from './cluster.js';
import {
  leaderWith,
  messageOf,
  raftWith,
  take,
  takeDurable,
  tickToCampaign,
  win,
} from './single.js';

const isKind =
  (kind: MessageKind) =>
  (message: Message): boolean =>
    message.kind === kind;

t.test('§5.1: every role adopts a later term and becomes a follower', (t) => {
  const follower = raftWith({ term: 2 });
  const candidate = raftWith({ term: 2 });
  tickToCampaign(candidate);
  const leader = leaderWith({ term: 1 });
  for (const raft of [follower, candidate, leader]) {
    takeDurable(raft);
    raft.step(messageOf(MessageKind.Append, 2, 1, { term: 9 }));
    t.equal(raft.term, 9);
    t.equal(raft.role, Role.Follower);
    t.equal(raft.leaderId, 2);
    t.strictSame(take(raft).hardState, { term: 9, votedFor: 0 }, 'the term goes to the disk');
  }
  t.end();
});

t.test('§5.1: a request of an earlier term changes nothing', (t) => {
  const raft = raftWith({ term: 5, votedFor: 3, log: [1, 5] });
  const stale = [
    messageOf(MessageKind.Append, 2, 1, { term: 4, index: 2, logTerm: 5, commit: 2 }),
    messageOf(MessageKind.Vote, 2, 1, { term: 4, index: 9, logTerm: 4 }),
    messageOf(MessageKind.PreVote, 2, 1, { term: 5, index: 9, logTerm: 4 }),
    messageOf(MessageKind.Heartbeat, 2, 1, { term: 4, commit: 2 }),
    messageOf(MessageKind.TimeoutNow, 2, 1, { term: 4 }),
    messageOf(MessageKind.SnapshotOffer, 2, 1, { term: 4, index: 10 }),
  ];
  for (const message of stale) {
    raft.step(message);
    const taken = take(raft);
    t.equal(taken.hardState, null);
    t.equal(taken.entries.length + taken.snapshotIndex, 0);
    t.equal(raft.commitIndex, 0);
    t.equal(raft.leaderId, 0);
    t.equal(raft.role, Role.Follower);
    for (const reply of taken.now) {
      t.notOk(reply.kind === MessageKind.PreVoteReply && !reply.reject, 'nothing is granted');
    }
  }
  t.end();
});

t.test('§5.1: the sender of an earlier term learns the later one', (t) => {
  for (const kind of [MessageKind.Append, MessageKind.Heartbeat, MessageKind.PreVote]) {
    const raft = raftWith({ term: 5 });
    raft.step(messageOf(kind, 2, 1, { term: 3 }));
    const [reply] = take(raft).now;
    t.equal(reply?.term, 5);
    const sender = leaderWith({ id: 2, term: 2 });
    sender.step({ ...messageOf(MessageKind.AppendReply, 1, 2), ...reply } as Message);
    t.equal(sender.role, Role.Follower, 'a leader of an earlier term steps down');
    t.equal(sender.term, 5);
  }
  t.end();
});

t.test('§5.2: a node starts as a follower, whatever it was before', (t) => {
  const raft = raftWith({ term: 4, votedFor: 1, log: [4, 4] });
  t.equal(raft.role, Role.Follower);
  t.equal(raft.leaderId, 0);
  t.end();
});

t.test('§5.2: a leader heartbeats every interval, so that nobody campaigns', (t) => {
  const cluster = new Cluster({ voters: 3 });
  cluster.elect(1);
  cluster.drop();
  cluster.tick(1, HEARTBEAT_TICKS);
  const receivers = cluster.inFlight.filter(isKind(MessageKind.Heartbeat)).map(({ to }) => to);
  t.strictSame(receivers.sort(), [2, 3]);
  const { term } = cluster.raft(1);
  cluster.run(20 * ELECTION_TICKS_MAX);
  t.equal(cluster.leaderId(), 1);
  t.equal(cluster.raft(1).term, term);
  t.end();
});

t.test('§5.2: time-outs are random within their bounds', (t) => {
  const seen = new Set<number>();
  for (let seed = 1; seed <= 1_000; seed += 1) seen.add(tickToCampaign(raftWith({ seed })));
  t.equal(Math.min(...seen), ELECTION_TICKS_MIN);
  t.equal(Math.max(...seen), ELECTION_TICKS_MAX - 1);
  t.equal(seen.size, ELECTION_TICKS_MAX - ELECTION_TICKS_MIN, 'every value between them');
  const again = raftWith({ seed: 7 });
  const waits = Array.from({ length: 40 }, () => {
    const ticks = tickToCampaign(again);
    take(again);
    return ticks;
  });
  t.ok(new Set(waits).size > 10, 'each attempt draws its own time-out');
  t.end();
});

t.test('§5.2: five nodes that start together elect one leader within 5 s', (t) => {
  for (let seed = 1; seed <= 50; seed += 1) {
    const cluster = new Cluster({ voters: 5, seed });
    cluster.runUntil(() => cluster.leaderId() !== 0, 500);
    const leaders = cluster.nodes.filter(({ raft }) => raft?.role === Role.Leader);
    t.equal(leaders.length, 1);
  }
  t.end();
});

t.test('§5.2: a candidate raises its term, votes for itself and asks every voter', (t) => {
  const raft = raftWith({ voters: [1, 2, 3, 4, 5], learners: [6], term: 3, log: [1, 3] });
  tickToCampaign(raft);
  take(raft);
  raft.step(messageOf(MessageKind.PreVoteReply, 2, 1, { term: 4 }));
  raft.step(messageOf(MessageKind.PreVoteReply, 3, 1, { term: 4 }));
  t.equal(raft.role, Role.Candidate);
  const taken = take(raft);
  t.strictSame(taken.hardState, { term: 4, votedFor: 1 });
  const requests = taken.later.filter(isKind(MessageKind.Vote));
  t.strictSame(
    requests.map(({ to, term, index, logTerm }) => ({ to, term, index, logTerm })),
    [2, 3, 4, 5].map((to) => ({ to, term: 4, index: 2, logTerm: 3 })),
  );
  t.end();
});

t.test('§5.2: a candidate asks for votes only when its own is on disk', (t) => {
  // Else it could win, send entries, lose its vote in a crash, and win the same term once more.
  const cluster = new Cluster({ voters: 3 });
  cluster.campaign(1);
  cluster.deliver();
  cluster.deliver();
  t.equal(cluster.raft(1).role, Role.Candidate);
  t.equal(cluster.inFlight.filter(isKind(MessageKind.Vote)).length, 0);
  cluster.completeDisk(1);
  t.strictSame(cluster.node(1).disk.hardState, { term: 1, votedFor: 1 });
  t.equal(cluster.inFlight.filter(isKind(MessageKind.Vote)).length, 2);
  t.end();
});

t.test('§5.2: a candidate asks for votes only when the log it boasts of is on disk', (t) => {
  // Else a vote given to entries that a crash takes back could elect a log without them.
  const cluster = new Cluster({ voters: 3 });
  cluster.elect(2);
  cluster.propose(2);
  cluster.deliver((message) => message.to === 1);
  t.equal(cluster.raft(1).lastIndex, 2);
  cluster.crash(2);
  cluster.campaign(1);
  cluster.step(messageOf(MessageKind.PreVoteReply, 3, 1, { term: 2 }));
  t.equal(cluster.raft(1).role, Role.Candidate);
  t.equal(cluster.inFlight.filter(isKind(MessageKind.Vote)).length, 0);
  cluster.completeDisk(1, 1);
  t.equal(cluster.inFlight.filter(isKind(MessageKind.Vote)).length, 0, 'entries alone are stored');
  cluster.completeDisk(1);
  t.ok(cluster.inFlight.some(isKind(MessageKind.Vote)));
  t.equal(cluster.node(1).disk.lastIndex, 2);
  t.end();
});

t.test('§5.2: votes that decide an election, by size of the cluster', (t) => {
  const cases = [
    { size: 1, granted: 0, refused: 0, role: Role.Leader },
    { size: 3, granted: 1, refused: 0, role: Role.Leader },
    { size: 3, granted: 0, refused: 1, role: Role.Candidate },
    { size: 3, granted: 0, refused: 2, role: Role.Follower },
    { size: 4, granted: 1, refused: 0, role: Role.Candidate },
    { size: 4, granted: 2, refused: 1, role: Role.Leader },
    { size: 4, granted: 1, refused: 2, role: Role.Follower },
    { size: 5, granted: 1, refused: 2, role: Role.Candidate },
    { size: 5, granted: 2, refused: 2, role: Role.Leader },
    { size: 5, granted: 1, refused: 3, role: Role.Follower },
  ];
  for (const { size, granted, refused, role } of cases) {
    const voters = Array.from({ length: size }, (_, at) => at + 1);
    const raft = raftWith({ voters });
    tickToCampaign(raft);
    takeDurable(raft);
    for (const from of voters.slice(1)) {
      if (raft.role === Role.PreCandidate) {
        raft.step(messageOf(MessageKind.PreVoteReply, from, 1, { term: 1 }));
      }
    }
    takeDurable(raft);
    for (let i = 0; i < granted + refused; i += 1) {
      raft.step(messageOf(MessageKind.VoteReply, 2 + i, 1, { term: 1, reject: i >= granted }));
    }
    t.equal(raft.role, role, `${size} voters, ${granted} grant, ${refused} refuse`);
  }
  t.end();
});

t.test('§5.2: nobody counts twice: repeated votes are one vote', (t) => {
  const raft = raftWith({ voters: [1, 2, 3, 4, 5] });
  tickToCampaign(raft);
  takeDurable(raft);
  for (let i = 0; i < 4; i += 1) raft.step(messageOf(MessageKind.PreVoteReply, 2, 1, { term: 1 }));
  t.equal(raft.role, Role.PreCandidate);
  raft.step(messageOf(MessageKind.PreVoteReply, 3, 1, { term: 1 }));
  takeDurable(raft);
  t.equal(raft.role, Role.Candidate);
  for (let i = 0; i < 4; i += 1) raft.step(messageOf(MessageKind.VoteReply, 2, 1, { term: 1 }));
  t.equal(raft.role, Role.Candidate);
  t.end();
});

t.test('§5.2: votes of strangers and learners do not count', (t) => {
  const raft = raftWith({ learners: [4] });
  tickToCampaign(raft);
  takeDurable(raft);
  for (const from of [4, 9]) raft.step(messageOf(MessageKind.PreVoteReply, from, 1, { term: 1 }));
  t.equal(raft.role, Role.PreCandidate);
  raft.step(messageOf(MessageKind.PreVoteReply, 2, 1, { term: 1 }));
  takeDurable(raft);
  for (const from of [4, 9]) raft.step(messageOf(MessageKind.VoteReply, from, 1, { term: 1 }));
  t.equal(raft.role, Role.Candidate);
  t.end();
});

t.test('§5.2: a node votes for one candidate a term, first come first served', (t) => {
  for (const [votedFor, asker, granted] of [
    [0, 2, true],
    [0, 3, true],
    [2, 2, true],
    [3, 3, true],
    [2, 3, false],
    [3, 2, false],
  ] as const) {
    const raft = raftWith({ term: 1, votedFor });
    raft.step(messageOf(MessageKind.Vote, asker, 1, { term: 1 }));
    const { now, later } = take(raft);
    const reply = [...now, ...later].find(isKind(MessageKind.VoteReply));
    t.equal(reply?.reject, !granted, `voted for ${votedFor}, ${asker} asks`);
    t.equal(reply?.term, 1);
  }
  t.end();
});

t.test('§5.2: term and vote are one record: neither is ever stored without the other', (t) => {
  const raft = raftWith({ term: 3, votedFor: 1 });
  const steps = [
    // A later term without a vote, a vote in it, both at once, and the own candidacy.
    [messageOf(MessageKind.Append, 2, 1, { term: 4 }), { term: 4, votedFor: 0 }],
    [messageOf(MessageKind.Vote, 3, 1, { term: 5, context: 1 }), { term: 5, votedFor: 3 }],
    [messageOf(MessageKind.Vote, 2, 1, { term: 6 }), { term: 6, votedFor: 2 }],
    [messageOf(MessageKind.TimeoutNow, 2, 1, { term: 6 }), { term: 7, votedFor: 1 }],
    [messageOf(MessageKind.VoteReply, 2, 1, { term: 8, reject: true }), { term: 8, votedFor: 0 }],
  ] as const;
  for (const [message, expected] of steps) {
    raft.step(message);
    t.strictSame(take(raft).hardState, expected);
  }
  raft.step(messageOf(MessageKind.Vote, 3, 1, { term: 8 }));
  t.strictSame(take(raft).hardState, { term: 8, votedFor: 3 });
  raft.step(messageOf(MessageKind.Vote, 3, 1, { term: 8 }));
  t.equal(take(raft).hardState, null, 'and not when nothing changed');
  t.end();
});

t.test('§5.2: a vote leaves only when it is on disk', (t) => {
  const raft = raftWith();
  raft.step(messageOf(MessageKind.Vote, 2, 1, { term: 1 }));
  const taken = take(raft);
  t.strictSame(taken.hardState, { term: 1, votedFor: 2 });
  t.equal(taken.now.length, 0);
  t.equal(taken.later.length, 1);
  // Asked again before the disk answered: still nothing may leave before it does.
  raft.step(messageOf(MessageKind.Vote, 2, 1, { term: 1 }));
  const again = take(raft);
  t.equal(again.now.length, 0);
  t.equal(again.later.length, 1);
  t.end();
});

t.test('§5.2: a restart keeps term and vote', (t) => {
  const cluster = new Cluster({ voters: 3 });
  cluster.step(messageOf(MessageKind.Vote, 2, 1, { term: 7 }));
  cluster.completeDisk(1);
  cluster.crash(1);
  cluster.restart(1);
  t.equal(cluster.raft(1).term, 7);
  cluster.drop();
  cluster.step(messageOf(MessageKind.Vote, 3, 1, { term: 7 }));
  cluster.completeDisk(1);
  t.strictSame(
    cluster.inFlight.map(({ to, reject }) => ({ to, reject })),
    [{ to: 3, reject: true }],
  );
  t.end();
});

t.test('§5.2: a vote that a crash took back was never heard', (t) => {
  const cluster = new Cluster({ voters: 3 });
  cluster.step(messageOf(MessageKind.Vote, 2, 1, { term: 7 }));
  cluster.crash(1);
  t.equal(cluster.inFlight.length, 0);
  cluster.restart(1);
  cluster.step(messageOf(MessageKind.Vote, 3, 1, { term: 7 }));
  cluster.completeDisk(1);
  t.strictSame(
    cluster.inFlight.map(({ to, reject }) => ({ to, reject })),
    [{ to: 3, reject: false }],
  );
  t.end();
});

t.test('§5.2: a candidate follows whoever proves to lead its term', (t) => {
  for (const kind of [MessageKind.Append, MessageKind.Heartbeat]) {
    for (const term of [1, 2]) {
      const raft = raftWith();
      tickToCampaign(raft);
      take(raft);
      raft.step(messageOf(MessageKind.PreVoteReply, 2, 1, { term: 1 }));
      t.equal(raft.role, Role.Candidate);
      raft.step(messageOf(kind, 3, 1, { term }));
      t.equal(raft.role, Role.Follower);
      t.equal(raft.leaderId, 3);
      t.equal(raft.term, term);
    }
  }
  t.end();
});

t.test('§5.2: a split vote is settled in a later term', (t) => {
  const cluster = new Cluster({ voters: 4 });
  for (const id of [1, 2]) cluster.campaign(id);
  cluster.deliver();
  cluster.deliver();
  for (const id of [1, 2]) cluster.completeDisk(id);
  // 3 votes for 1, 4 votes for 2: two each, and three are needed.
  cluster.deliver(({ from, to }) => (from === 1 && to === 3) || (from === 2 && to === 4));
  cluster.stabilize();
  t.equal(cluster.leaderId(), 0);
  t.equal(cluster.raft(1).term, 1);
  cluster.runUntil(() => cluster.leaderId() !== 0, 500);
  t.ok(cluster.raft(cluster.leaderId()).term > 1);
  t.end();
});

t.test('§5.2: a won election is announced by the first append or heartbeat', (t) => {
  const raft = raftWith();
  win(raft);
  t.equal(raft.role, Role.Leader);
  for (let i = 0; i < HEARTBEAT_TICKS; i += 1) raft.tick();
  t.strictSame(
    take(raft)
      .now.filter(isKind(MessageKind.Heartbeat))
      .map(({ to, term }) => ({ to, term })),
    [2, 3].map((to) => ({ to, term: 1 })),
  );
  t.end();
});
