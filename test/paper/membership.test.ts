/**
 * Thesis §4.1 to §4.2: members come and go one voter at a time, and a change is in force from the
 * moment that it is in the log.
 */
import t from 'tap';
import { Role } from '../../src/core/raft/effects.js';
import { ChangeRefusal } from '../../src/core/raft/membership.js';
import { Entry, EntryKind, MessageKind } from '../../src/core/raft/message.js';
import { ELECTION_TICKS_MAX } from '../../src/limits.js';
import { Cluster, membersData } from './cluster.js';
import { entriesOf, leaderWith, messageOf, raftWith, take, takeDurable } from './single.js';

function members(voters: number[], learners: number[] = []) {
  return { voters, learners };
}

t.test('§4.1: one voter at a time', (t) => {
  const cluster = new Cluster({ voters: 3, learners: 1, spares: 2 });
  cluster.elect(1);
  const raft = cluster.raft(1);
  const refusal = (voters: number[], learners: number[] = []): ChangeRefusal =>
    raft.refuseChange(members(voters, learners));
  t.equal(refusal([1, 2, 3, 4, 5]), ChangeRefusal.TooMuch, 'two come');
  t.equal(refusal([1]), ChangeRefusal.TooMuch, 'two go');
  t.equal(refusal([1, 2, 5]), ChangeRefusal.TooMuch, 'one comes and one goes');
  t.equal(refusal([1, 2, 3], [3]), ChangeRefusal.TooMuch, 'voter and learner');
  t.equal(refusal([1, 2, 3, 4]), ChangeRefusal.None, 'a learner is promoted');
  t.equal(refusal([1, 2], [3, 4]), ChangeRefusal.None, 'a voter becomes a learner');
  t.equal(refusal([1, 2, 3], [4, 5, 6]), ChangeRefusal.None, 'learners decide nothing');
  t.equal(cluster.change(1, [1, 2, 3, 4, 5]), 0);
  t.equal(cluster.change(1, []), 0);
  t.equal(raft.lastIndex, 1, 'what is refused is in no log');
  const single = new Cluster({ voters: 1 });
  single.elect(1);
  t.equal(single.raft(1).refuseChange(members([])), ChangeRefusal.NoVoter);
  t.end();
});

t.test('§4.1: one change at a time', (t) => {
  const cluster = new Cluster({ voters: 3, spares: 2 });
  cluster.elect(1);
  for (const id of [2, 3, 4]) cluster.isolate(id);
  t.equal(cluster.change(1, [1, 2, 3, 4]), 2);
  t.equal(cluster.raft(1).refuseChange(members([1, 2, 3, 4, 5])), ChangeRefusal.Pending);
  t.equal(cluster.change(1, [1, 2, 3, 4, 5]), 0);
  cluster.heal();
  cluster.run(10);
  t.equal(cluster.change(1, [1, 2, 3, 4, 5]), 3, 'once the first is committed');
  t.end();
});

t.test('§4.1 (as corrected): nothing before an entry of the own term is committed', (t) => {
  const cluster = new Cluster({ voters: 3, spares: 1, opensTerms: false });
  cluster.campaign(1);
  cluster.stabilize();
  const raft = cluster.raft(1);
  t.equal(raft.role, Role.Leader);
  t.equal(raft.refuseChange(members([1, 2, 3, 4])), ChangeRefusal.NotReady, 'no term is open');
  for (const id of [2, 3]) cluster.isolate(id);
  raft.propose(EntryKind.NoOp, new Uint8Array(0));
  cluster.turn(1);
  t.equal(cluster.change(1, [1, 2, 3, 4]), 0, 'its NoOp is not committed');
  cluster.heal();
  cluster.run(10);
  t.equal(cluster.change(1, [1, 2, 3, 4]), 2);
  t.equal(cluster.raft(2).refuseChange(members([1, 2])), ChangeRefusal.NotReady, 'a follower');
  t.end();
});

t.test('§4.1: a change is in force once it is in the log, not when it is committed', (t) => {
  const cluster = new Cluster({ voters: 4 });
  cluster.elect(1);
  for (const id of [3, 4]) cluster.isolate(id);
  cluster.cut(2, 1);
  const index = cluster.change(1, [1, 2, 3]);
  cluster.stabilize();
  t.strictSame(cluster.raft(1).members, members([1, 2, 3]));
  t.strictSame(cluster.raft(2).members, members([1, 2, 3]), 'on a follower too');
  t.ok(cluster.raft(1).commitIndex < index);
  cluster.heal();
  cluster.isolate(4);
  cluster.isolate(3);
  cluster.run(10);
  t.equal(cluster.raft(1).commitIndex, index, 'two of three, who would be two of four');
  t.end();
});

t.test('§4.1: a change that is cut from the log is in force no more', (t) => {
  const raft = raftWith({ id: 2, voters: [1, 2, 3, 4], log: [1] });
  const change = messageOf(MessageKind.Append, 1, 2, { term: 1, index: 1, logTerm: 1 });
  change.entries = [new Entry(2, 1, EntryKind.Membership, membersData(members([1, 2, 3])))];
  raft.step(change);
  takeDurable(raft);
  t.strictSame(raft.members.voters, [1, 2, 3]);
  t.equal(raft.membershipIndex, 2);
  const other = messageOf(MessageKind.Append, 3, 2, { term: 2, index: 1, logTerm: 1 });
  other.entries = entriesOf([2], 2);
  raft.step(other);
  takeDurable(raft);
  t.strictSame(raft.members.voters, [1, 2, 3, 4]);
  t.equal(raft.membershipIndex, 0);
  t.end();
});

t.test('§4.1: what the log says is in force again after a restart', (t) => {
  const cluster = new Cluster({ voters: 3, spares: 1 });
  cluster.elect(1);
  cluster.change(1, [1, 2, 3, 4]);
  cluster.run(10);
  for (const id of [1, 2, 3, 4]) {
    cluster.crash(id);
    cluster.restart(id);
    t.strictSame(cluster.raft(id).members.voters, [1, 2, 3, 4]);
  }
  cluster.run(3 * ELECTION_TICKS_MAX);
  t.not(cluster.leaderId(), 0);
  t.end();
});

t.test('§4.2.1: who joins gets the whole log before it is asked', (t) => {
  const cluster = new Cluster({ voters: 3, spares: 1 });
  cluster.elect(1);
  for (let i = 0; i < 5; i += 1) cluster.propose(1);
  cluster.run(10);
  cluster.change(1, [1, 2, 3], [4]);
  cluster.run(10);
  t.equal(cluster.logText(4), cluster.logText(1));
  t.strictSame(cluster.raft(4).members, members([1, 2, 3], [4]), 'it knows its own place');
  cluster.change(1, [1, 2, 3, 4]);
  cluster.run(10);
  cluster.crash(1);
  cluster.crash(2);
  cluster.run(3 * ELECTION_TICKS_MAX);
  t.equal(cluster.leaderId(), 0, 'two of four');
  cluster.restart(2);
  cluster.run(3 * ELECTION_TICKS_MAX);
  t.not(cluster.leaderId(), 0);
  t.end();
});

t.test('§4.2.2: a leader that is removed leads until that is committed, then hands over', (t) => {
  const cluster = new Cluster({ voters: 3 });
  cluster.elect(1);
  cluster.propose(1, 'a');
  cluster.run(10);
  cluster.cut(2, 1);
  cluster.cut(3, 1);
  const index = cluster.change(1, [2, 3]);
  cluster.stabilize();
  t.equal(cluster.raft(1).role, Role.Leader, 'its own disk is none of the two');
  t.ok(cluster.raft(1).commitIndex < index);
  cluster.heal();
  cluster.run(20);
  t.equal(cluster.raft(1).role, Role.Follower);
  const leader = cluster.leaderId();
  t.ok(leader === 2 || leader === 3, `node ${leader} leads`);
  t.ok(cluster.raft(leader).commitIndex > index, 'and serves');
  const { campaigns } = cluster.node(1);
  cluster.run(5 * ELECTION_TICKS_MAX);
  t.equal(cluster.node(1).campaigns, campaigns, 'who has left does not campaign');
  t.equal(cluster.leaderId(), leader);
  t.end();
});

t.test('§4.2.2: who alone has its own removal campaigns, and does not count itself', (t) => {
  const cluster = new Cluster({ voters: 2 });
  cluster.elect(1);
  cluster.run(5);
  cluster.isolate(2);
  const index = cluster.change(1, [2]);
  cluster.stabilize();
  cluster.crash(1);
  cluster.restart(1);
  t.strictSame(cluster.raft(1).members, members([2]));
  cluster.run(3 * ELECTION_TICKS_MAX);
  t.equal(cluster.leaderId(), 0, 'by itself it wins nothing');
  cluster.heal();
  cluster.run(6 * ELECTION_TICKS_MAX);
  t.equal(cluster.leaderId(), 2, 'it led until its removal was committed');
  t.equal(cluster.logText(2).split(' ')[index - 1], cluster.logText(1).split(' ')[index - 1]);
  const spare = new Cluster({ voters: 1, spares: 1 });
  for (let i = 0; i < 3 * ELECTION_TICKS_MAX; i += 1) spare.tick(2);
  t.equal(spare.node(2).campaigns, 0, 'who never voted does not');
  t.end();
});

t.test('§4.2.2: nobody waits for a time-out when the leader leaves', (t) => {
  const cluster = new Cluster({ voters: 3 });
  cluster.elect(1);
  cluster.change(1, [2, 3]);
  cluster.stabilize();
  t.not(cluster.leaderId(), 1);
  t.not(cluster.leaderId(), 0, 'no tick has passed');
  t.end();
});

t.test('§4.2.3: who was removed and does not know it disturbs nobody', (t) => {
  const cluster = new Cluster({ voters: 4 });
  cluster.elect(1);
  cluster.run(5);
  cluster.isolate(4);
  cluster.change(1, [1, 2, 3]);
  cluster.run(10);
  const { term } = cluster.raft(1);
  cluster.heal();
  cluster.run(10 * ELECTION_TICKS_MAX);
  t.ok(cluster.node(4).campaigns > 0, 'it campaigns');
  t.equal(cluster.raft(1).role, Role.Leader);
  t.equal(cluster.raft(1).term, term);
  t.end();
});

t.test('who is removed is sent the entry that says so, and nothing after it', (t) => {
  const raft = leaderWith({ voters: [1, 2, 3] });
  for (const from of [2, 3]) {
    raft.step(messageOf(MessageKind.AppendReply, from, 1, { term: raft.term, index: 1 }));
  }
  take(raft);
  t.equal(raft.propose(EntryKind.Membership, membersData(members([1, 2]))), 2);
  const told = take(raft).now.filter(({ kind }) => kind === MessageKind.Append);
  t.strictSame(told.map(({ to }) => to).sort(), [2, 3]);
  raft.propose(EntryKind.Batch, new Uint8Array(0));
  t.strictSame(
    take(raft).now.map(({ to }) => to),
    [2],
  );
  raft.step(messageOf(MessageKind.AppendReply, 3, 1, { term: raft.term, index: 3 }));
  t.strictSame(take(raft).now, [], "its answers are nobody's");
  t.end();
});

t.test('a transfer to who is removed is given up', (t) => {
  const cluster = new Cluster({ voters: 3 });
  cluster.elect(1);
  cluster.isolate(3);
  t.equal(cluster.raft(1).refuseChange(members([1, 2])), ChangeRefusal.None);
  cluster.transfer(1, 3);
  t.equal(cluster.raft(1).refuseChange(members([1, 2])), ChangeRefusal.NotReady, 'handing over');
  t.end();
});

t.test('a snapshot brings the members of its state; a compacted change stays in force', (t) => {
  const cluster = new Cluster({ voters: 3, spares: 1 });
  cluster.elect(1);
  cluster.change(1, [1, 2, 3, 4]);
  cluster.propose(1, 'a');
  cluster.run(10);
  const raft = cluster.raft(1);
  raft.compact(3);
  t.strictSame(raft.members.voters, [1, 2, 3, 4]);
  t.equal(raft.membershipIndex, 2);
  const late = raftWith({ id: 4, voters: [1, 2, 3] });
  t.ok(late.installSnapshot(3, 1, members([1, 2, 3, 4])));
  t.strictSame(late.members.voters, [1, 2, 3, 4]);
  t.equal(late.membershipIndex, 3);
  t.end();
});
