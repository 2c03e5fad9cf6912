/**
 * Raft §5.4 and §8: who may lead, what is committed, and how a term opens.
 */
import t from 'tap';
import { Role } from '../../src/core/raft/effects.js';
import { EntryKind, MessageKind } from '../../src/core/raft/message.js';
import { Cluster } from './cluster.js';
import { entriesOf, leaderWith, messageOf, raftWith, take, takeDurable, win } from './single.js';

const EMPTY = new Uint8Array(0);

t.test('§5.4.1: a vote goes only to a log that is at least as up to date', (t) => {
  const cases: { log: number[]; index: number; logTerm: number; granted: boolean }[] = [
    { log: [], index: 0, logTerm: 0, granted: true },
    { log: [1], index: 0, logTerm: 0, granted: false },
    // Same last term: the longer log wins.
    { log: [1], index: 1, logTerm: 1, granted: true },
    { log: [1], index: 2, logTerm: 1, granted: true },
    { log: [1, 1], index: 1, logTerm: 1, granted: false },
    // Candidate's last term higher: its length does not matter.
    { log: [1, 1], index: 1, logTerm: 2, granted: true },
    { log: [1, 1], index: 3, logTerm: 2, granted: true },
    // Voter's last term higher: its length does not matter.
    { log: [2], index: 1, logTerm: 1, granted: false },
    { log: [2], index: 9, logTerm: 1, granted: false },
    { log: [2, 2], index: 1, logTerm: 1, granted: false },
  ];
  for (const { log, index, logTerm, granted } of cases) {
    for (const kind of [MessageKind.Vote, MessageKind.PreVote]) {
      const raft = raftWith({ log, term: 2 });
      raft.step(messageOf(kind, 2, 1, { term: 3, index, logTerm }));
      const { now, later } = take(raft);
      const [reply] = [...now, ...later];
      t.equal(reply?.reject, !granted, `own ${log}, asked with ${index} of term ${logTerm}`);
    }
  }
  t.end();
});

t.test('§5.4.1: entries that are not on disk yet count for the comparison', (t) => {
  // They may be acknowledged at any moment: to forget them here would be to lose them there.
  const raft = raftWith();
  raft.step(messageOf(MessageKind.Append, 2, 1, { term: 1, entries: entriesOf([1]) }));
  t.equal(raft.durableIndex, 0);
  take(raft);
  // A transfer's vote (context 1) is answered though a leader is heard.
  raft.step(messageOf(MessageKind.Vote, 3, 1, { term: 2, index: 0, logTerm: 0, context: 1 }));
  t.equal(take(raft).now[0]?.reject, true);
  raft.step(messageOf(MessageKind.Vote, 2, 1, { term: 3, index: 1, logTerm: 1, context: 1 }));
  t.equal(take(raft).later.at(-1)?.reject, false);
  t.end();
});

t.test('§5.4.2: an entry of an earlier term is not committed by counting', (t) => {
  const leader = leaderWith({ log: [1, 2], term: 2 });
  const { term } = leader;
  t.equal(term, 3);
  for (const from of [2, 3]) {
    leader.step(messageOf(MessageKind.AppendReply, from, 1, { term, index: 2 }));
    t.equal(leader.commitIndex, 0, 'though it is everywhere');
  }
  leader.step(messageOf(MessageKind.AppendReply, 2, 1, { term, index: 3 }));
  t.equal(leader.commitIndex, 3, 'an entry of the own term commits all before it');
  t.end();
});

t.test('§5.4.2, Figure 8: an entry on a majority may still be overwritten, until (e)', (t) => {
  const voters = [1, 2, 3, 4, 5];
  // (c) S1 leads term 4; its entry 2 of term 2 is on S1, S2 and S3.
  const first = leaderWith({ voters, log: [1, 2], term: 3 });
  t.equal(first.term, 4);
  for (const from of [2, 3]) {
    first.step(messageOf(MessageKind.AppendReply, from, 1, { term: 4, index: 2 }));
  }
  t.equal(first.commitIndex, 0, 'a majority of copies is not enough');
  // (d) S5, with an entry 2 of term 3, may be elected by all who have only that ...
  const request = { term: 5, index: 2, logTerm: 3 };
  for (const log of [[1, 2], [1, 2], [1]]) {
    const voter = raftWith({ id: 2, voters, log, term: 4 });
    voter.step(messageOf(MessageKind.Vote, 5, 2, request));
    t.equal(take(voter).later[0]?.reject, false);
    // ... and overwrites it.
    const entries = entriesOf([3, 5], 2);
    voter.step(messageOf(MessageKind.Append, 5, 2, { term: 5, index: 1, logTerm: 1, entries }));
    t.strictSame([voter.termAt(2), voter.termAt(3)], [3, 5]);
  }
  // (e) Had S1 an entry of its own term on a majority, both are committed, and S5 cannot win.
  for (const from of [2, 3]) {
    first.step(messageOf(MessageKind.AppendReply, from, 1, { term: 4, index: 3 }));
  }
  t.equal(first.commitIndex, 3);
  const voter = raftWith({ id: 2, voters, log: [1, 2, 4], term: 4 });
  voter.step(messageOf(MessageKind.Vote, 5, 2, request));
  t.equal(take(voter).now[0]?.reject, true);
  t.end();
});

t.test('§8: a leader opens its term with a NoOp, before anything else', (t) => {
  const raft = raftWith({ log: [1, 1] });
  win(raft);
  t.ok(raft.needsNoOp);
  t.notOk(raft.isProposing);
  t.equal(raft.propose(EntryKind.Batch, EMPTY), 0, 'nothing goes before it');
  t.equal(raft.propose(EntryKind.NoOp, EMPTY), 3);
  t.notOk(raft.needsNoOp);
  t.equal(raft.propose(EntryKind.NoOp, EMPTY), 0, 'nor is there a second');
  t.equal(raft.termStartIndex, 3);
  t.equal(raft.propose(EntryKind.Batch, EMPTY), 4);
  t.notOk(raft.isTermCommitted);
  takeDurable(raft);
  raft.step(messageOf(MessageKind.AppendReply, 2, 1, { term: raft.term, index: 3 }));
  t.ok(raft.isTermCommitted);
  t.end();
});

t.test('§8: only a leader proposes', (t) => {
  const follower = raftWith();
  t.equal(follower.propose(EntryKind.Batch, EMPTY), 0);
  t.equal(follower.propose(EntryKind.NoOp, EMPTY), 0);
  t.equal(follower.lastIndex, 0);
  t.end();
});

t.test('§8: what a predecessor left is committed by the NoOp of the next leader', (t) => {
  const cluster = new Cluster({ voters: 3 });
  cluster.elect(1);
  cluster.propose(1, 'left');
  cluster.deliver(({ to }) => to === 2);
  cluster.completeDisk(2);
  cluster.crash(1);
  cluster.drop();
  t.equal(cluster.raft(2).commitIndex < 2, true);
  cluster.elect(2);
  t.equal(cluster.logText(2), '1:noop 1:left 2:noop');
  t.equal(cluster.raft(2).commitIndex, 3);
  t.end();
});

t.test('§5.4.3: a leader has every entry that was ever committed', (t) => {
  const cluster = new Cluster({ voters: 3 });
  cluster.elect(1);
  cluster.isolate(3);
  cluster.propose(1, 'committed');
  cluster.stabilize();
  t.equal(cluster.raft(1).commitIndex, 2);
  cluster.crash(1);
  cluster.heal();
  // Node 3 asks first and lacks the entry; only node 2 can win.
  cluster.tick(2, 30);
  cluster.drop();
  cluster.campaign(3);
  cluster.stabilize();
  t.not(cluster.raft(3).role, Role.Leader);
  cluster.runUntil(() => cluster.leaderId() !== 0, 500);
  t.equal(cluster.leaderId(), 2);
  t.end();
});

t.test('§5.3: the commit index is what a majority has on disk', (t) => {
  for (const [size, matches, expected] of [
    [3, [2], 2],
    [3, [1], 0],
    [5, [2, 0, 0, 0], 0],
    [5, [2, 2, 0, 0], 2],
    [5, [4, 3, 0, 0], 3],
    [5, [4, 3, 2, 2], 3],
    [4, [3, 0, 0], 0],
    [4, [3, 2, 0], 2],
  ] as [number, number[], number][]) {
    const voters = Array.from({ length: size }, (_, at) => at + 1);
    const leader = leaderWith({ voters, log: [1], term: 1 });
    for (let i = 0; i < 2; i += 1) leader.propose(EntryKind.Batch, EMPTY);
    takeDurable(leader);
    matches.forEach((index, at) => {
      if (index > 0) {
        leader.step(messageOf(MessageKind.AppendReply, at + 2, 1, { term: leader.term, index }));
      }
    });
    t.equal(leader.commitIndex, expected, `${size} voters, the others at ${matches}`);
  }
  t.end();
});

t.test('§5.2: a cluster of one commits what is on its disk', (t) => {
  const cluster = new Cluster({ voters: 1 });
  cluster.campaign(1);
  t.equal(cluster.raft(1).role, Role.Candidate);
  cluster.completeDisk(1, 1);
  t.equal(cluster.raft(1).role, Role.Leader);
  cluster.propose(1, 'alone');
  t.equal(cluster.raft(1).commitIndex, 0);
  cluster.completeDisk(1);
  t.equal(cluster.raft(1).commitIndex, 2);
  t.end();
});
