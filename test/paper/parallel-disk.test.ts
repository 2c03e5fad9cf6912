/**
 * Thesis §10.2.1: disks work beside the network, and only what is on them counts.
 */
import t from 'tap';
import { EntryKind, MessageKind } from '../../src/core/raft/message.js';
import { Cluster } from './cluster.js';
import { entriesOf, leaderWith, messageOf, raftWith, take } from './single.js';

const EMPTY = new Uint8Array(0);

t.test('§10.2.1: a leader counts itself only once its own disk has the entry', (t) => {
  const raft = leaderWith();
  raft.step(messageOf(MessageKind.AppendReply, 2, 1, { term: raft.term, index: 1 }));
  raft.propose(EntryKind.Batch, EMPTY);
  const { appendId } = take(raft);
  raft.step(messageOf(MessageKind.AppendReply, 2, 1, { term: raft.term, index: 2 }));
  t.equal(raft.commitIndex, 1, 'one of three');
  raft.onAppended(appendId);
  t.equal(raft.commitIndex, 2);
  t.end();
});

t.test('§10.2.1: a majority of followers commits before the disk of the leader', (t) => {
  const cluster = new Cluster({ voters: 3 });
  cluster.elect(1);
  cluster.propose(1);
  cluster.deliver();
  for (const id of [2, 3]) cluster.completeDisk(id);
  cluster.deliver();
  t.equal(cluster.raft(1).commitIndex, 2);
  t.equal(cluster.node(1).disk.lastIndex, 1);
  t.end();
});

t.test('one completion speaks for every append before it', (t) => {
  const raft = leaderWith();
  const ids = [1, 2, 3].map(() => {
    raft.propose(EntryKind.Batch, EMPTY);
    return take(raft).appendId;
  });
  t.strictSame(
    ids.map((id) => id - (ids[0] as number)),
    [0, 1, 2],
  );
  t.equal(raft.durableIndex, 1);
  raft.onAppended(ids[1] as number);
  t.equal(raft.durableIndex, 3);
  raft.onAppended(ids[0] as number);
  t.equal(raft.durableIndex, 3, 'a late word of an earlier one takes nothing back');
  raft.onAppended(ids[2] as number);
  t.equal(raft.durableIndex, 4);
  t.end();
});

t.test('a message waits for appends that were handed over in earlier turns', (t) => {
  const cluster = new Cluster({ voters: 3 });
  cluster.elect(2);
  cluster.propose(2, 'a');
  cluster.deliver(({ to }) => to === 1);
  // The same append again, in a turn that has nothing for the disk.
  cluster.drop();
  const [entry] = cluster.node(1).disk.orders[0]?.entries ?? [];
  const fields = { term: 1, index: 1, logTerm: 1, entries: entry ? [entry] : [] };
  cluster.step(messageOf(MessageKind.Append, 2, 1, fields));
  t.equal(cluster.inFlight.length, 0);
  cluster.completeDisk(1);
  t.strictSame(
    cluster.inFlight.map(({ kind, index }) => [kind, index]),
    [
      [MessageKind.AppendReply, 2],
      [MessageKind.AppendReply, 2],
    ],
  );
  t.end();
});

t.test('a completion of entries that were cut meanwhile makes no others durable', (t) => {
  // 1. Entries 1 … 3 of term 1 go to the disk. 2. Before it answers, a leader of term 2 replaces
  // 2 and 3. 3. The first answer comes: only entry 1 is what it was.
  const raft = raftWith();
  const append = (term: number, index: number, logTerm: number, terms: number[]): number => {
    const entries = entriesOf(terms, index + 1);
    raft.step(messageOf(MessageKind.Append, term + 1, 1, { term, index, logTerm, entries }));
    return take(raft).appendId;
  };
  const first = append(1, 0, 0, [1, 1, 1]);
  const second = append(2, 1, 1, [2, 2]);
  t.equal(raft.durableIndex, 0);
  raft.onAppended(first);
  t.equal(raft.durableIndex, 1);
  const third = append(3, 2, 2, [3]);
  raft.onAppended(second);
  t.equal(raft.durableIndex, 2, 'and once more');
  raft.onAppended(third);
  t.equal(raft.durableIndex, 3);
  t.end();
});

t.test('what was on the disk and is cut is not durable any more', (t) => {
  const raft = raftWith({ log: [1, 1, 1] });
  t.equal(raft.durableIndex, 3);
  const fields = { term: 2, index: 1, logTerm: 1, entries: entriesOf([2], 2) };
  raft.step(messageOf(MessageKind.Append, 2, 1, fields));
  t.equal(raft.durableIndex, 1);
  const taken = take(raft);
  t.equal(taken.truncateFrom, 2);
  raft.onAppended(taken.appendId);
  t.equal(raft.durableIndex, 2);
  t.end();
});

t.test('within one turn: what is cut before it was handed over never reaches the disk', (t) => {
  const raft = raftWith({ log: [1] });
  const append = (term: number, index: number, logTerm: number, terms: number[]): void => {
    const entries = entriesOf(terms, index + 1);
    raft.step(messageOf(MessageKind.Append, term + 1, 1, { term, index, logTerm, entries }));
  };
  append(2, 1, 1, [2, 2]);
  append(3, 2, 2, [3]);
  let taken = take(raft);
  t.equal(taken.truncateFrom, 0, 'nothing on the disk is cut');
  t.strictSame(
    taken.entries.map(({ index, term }) => [index, term]),
    [
      [2, 2],
      [3, 3],
    ],
  );
  append(4, 2, 2, [4, 4]);
  append(5, 0, 0, [5]);
  append(6, 1, 5, [6]);
  taken = take(raft);
  t.equal(taken.truncateFrom, 1, 'the lowest of the cuts');
  t.strictSame(
    taken.entries.map(({ index, term }) => [index, term]),
    [
      [1, 5],
      [2, 6],
    ],
  );
  t.end();
});

t.test('an acknowledgement of cut entries is void: it carries its earlier term', (t) => {
  const cluster = new Cluster({ voters: 5 });
  cluster.elect(1);
  cluster.propose(1, 'old');
  cluster.deliver(({ to }) => to === 3);
  cluster.drop();
  cluster.elect(2);
  cluster.completeDisk(3);
  cluster.stabilize();
  t.equal(cluster.leaderId(), 2);
  t.equal(cluster.logText(3), cluster.logText(2));
  t.notMatch(cluster.logText(3), 'old');
  t.equal(cluster.diskText(3), cluster.logText(3));
  t.end();
});

t.test('a disk that is slow on one node slows nobody else', (t) => {
  const cluster = new Cluster({ voters: 3 });
  cluster.elect(1);
  for (let i = 0; i < 10; i += 1) {
    cluster.propose(1);
    while (cluster.deliver() > 0) for (const id of [1, 2]) cluster.completeDisk(id);
  }
  t.equal(cluster.raft(1).commitIndex, 11);
  t.equal(cluster.node(3).disk.lastIndex, 1);
  t.end();
});
