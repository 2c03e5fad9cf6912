/**
 * Raft §5.3: appends, the consistency check, conflicts, fast back-up, and what an answer promises.
 */
import t from 'tap';
import { EntryKind, type Message, MessageKind } from '../../src/core/raft/message.js';
import type { Raft } from '../../src/core/raft/raft.js';
import { APPEND_ENTRIES_MAX } from '../../src/limits.js';
import { Cluster } from './cluster.js';
import {
  entriesOf,
  leaderWith,
  messageOf,
  raftWith,
  take,
  takeDurable,
  tickInterval,
} from './single.js';

const EMPTY = new Uint8Array(0);

function appendTo(raft: Raft, term: number, previous: [number, number], terms: number[]): Message {
  const [index, logTerm] = previous;
  const entries = entriesOf(terms, index + 1);
  return messageOf(MessageKind.Append, 2, raft.nodeId, { term, index, logTerm, entries });
}

function termsOf(raft: Raft): number[] {
  return Array.from({ length: raft.lastIndex }, (_, at) => raft.termAt(at + 1));
}

t.test('§5.3: a leader sends a new entry to every follower at once, before its own disk', (t) => {
  const raft = leaderWith({ voters: [1, 2, 3], log: [1] });
  for (const from of [2, 3]) {
    raft.step(messageOf(MessageKind.AppendReply, from, 1, { term: raft.term, index: 2 }));
  }
  take(raft);
  t.equal(raft.propose(EntryKind.Batch, EMPTY), 3);
  const { now, entries } = take(raft);
  t.equal(entries.length, 1);
  t.strictSame(
    now.map(({ kind, to, index, logTerm, entries: sent }) => [
      kind,
      to,
      index,
      logTerm,
      sent[0]?.index,
    ]),
    [2, 3].map((to) => [MessageKind.Append, to, 2, raft.term, 3]),
  );
  t.end();
});

t.test('§5.3: a follower accepts an append only where its log matches', (t) => {
  // Own log: terms 1, 2, 2 at 1, 2, 3.
  for (const [index, logTerm, accepted] of [
    [0, 0, true],
    [1, 1, true],
    [2, 2, true],
    [3, 2, true],
    [1, 2, false],
    [3, 1, false],
    [3, 3, false],
    [4, 2, false],
    [9, 3, false],
  ] as const) {
    const raft = raftWith({ log: [1, 2, 2] });
    raft.step(messageOf(MessageKind.Append, 2, 1, { term: 3, index, logTerm }));
    const { now, later } = take(raft);
    const [reply] = [...now, ...later];
    t.equal(reply?.kind, MessageKind.AppendReply);
    t.equal(reply?.reject, !accepted, `after ${index} of term ${logTerm}`);
    t.equal(reply?.index, index);
    t.equal(later.length, accepted ? 1 : 0, 'what promises nothing does not wait for the disk');
    t.equal(raft.lastIndex, 3, 'an append without entries cuts nothing');
  }
  t.end();
});

t.test('§5.3: a conflicting suffix is replaced, a matching one is kept', (t) => {
  const cases: { at: [number, number]; terms: number[]; log: number[]; cut: number }[] = [
    { at: [2, 2], terms: [3], log: [1, 2, 3], cut: 3 },
    { at: [1, 1], terms: [3, 4], log: [1, 3, 4], cut: 2 },
    { at: [0, 0], terms: [1], log: [1, 2, 2], cut: 0 },
    { at: [0, 0], terms: [1, 2], log: [1, 2, 2], cut: 0 },
    { at: [0, 0], terms: [3], log: [3], cut: 1 },
    { at: [3, 2], terms: [4], log: [1, 2, 2, 4], cut: 0 },
    { at: [0, 0], terms: [1, 2, 2, 4], log: [1, 2, 2, 4], cut: 0 },
    { at: [1, 1], terms: [2, 4], log: [1, 2, 4], cut: 3 },
  ];
  for (const { at, terms, log, cut } of cases) {
    const raft = raftWith({ log: [1, 2, 2] });
    raft.step(appendTo(raft, 4, at, terms));
    t.strictSame(termsOf(raft), log);
    const taken = take(raft);
    t.equal(taken.truncateFrom, cut);
    t.equal(taken.later[0]?.index, at[0] + terms.length);
  }
  t.end();
});

t.test('§5.3: a committed entry is never cut: a conflict with one ends the node', (t) => {
  const raft = raftWith({ log: [1, 1] });
  raft.step(messageOf(MessageKind.Append, 2, 1, { term: 1, index: 2, logTerm: 1, commit: 2 }));
  t.equal(raft.commitIndex, 2);
  raft.step(appendTo(raft, 2, [1, 1], [2]));
  t.strictSame(termsOf(raft), [1, 1], 'before the commit index nothing is taken');
  t.equal(take(raft).later.at(-1)?.index, 2);
  t.end();
});

t.test('§5.3: the commit index follows the leader, not past what the append has shown', (t) => {
  for (const [commit, terms, expected] of [
    [3, [], 1],
    [3, [1], 2],
    [9, [1, 2], 3],
    [1, [1, 2], 1],
    [0, [1, 2], 0],
  ] as [number, number[], number][]) {
    const raft = raftWith({ log: [1, 1, 2] });
    raft.step(Object.assign(appendTo(raft, 3, [1, 1], terms), { commit }));
    t.equal(raft.commitIndex, expected, `commit ${commit} with ${terms.length} entries`);
  }
  t.end();
});

t.test('§5.3: an entry is acknowledged when it is on disk, not before', (t) => {
  const cluster = new Cluster({ voters: 3 });
  cluster.elect(1);
  cluster.propose(1);
  cluster.deliver();
  t.equal(cluster.raft(2).lastIndex, 2);
  t.equal(cluster.inFlight.length, 0, 'both have the entry, nobody says so');
  cluster.completeDisk(2);
  t.strictSame(
    cluster.inFlight.map(({ kind, from, index }) => ({ kind, from, index })),
    [{ kind: MessageKind.AppendReply, from: 2, index: 2 }],
  );
  t.end();
});

t.test('§5.3: a repeated append is acknowledged only once the first is on disk', (t) => {
  const raft = raftWith();
  const append = appendTo(raft, 1, [0, 0], [1]);
  raft.step(append);
  const first = take(raft);
  raft.step(append);
  const again = take(raft);
  t.equal(again.appendId, 0, 'nothing new for the disk');
  t.equal(again.now.length, 0);
  t.equal(again.later.length, 1, 'but the answer waits for what was handed over before');
  t.ok(first.appendId > 0);
  t.end();
});

t.test('§5.3: a crash before the disk answered takes back only what was not acknowledged', (t) => {
  const cluster = new Cluster({ voters: 3 });
  cluster.elect(1);
  cluster.propose(1, 'kept');
  cluster.stabilize();
  cluster.propose(1, 'lost');
  cluster.deliver();
  cluster.crash(2);
  cluster.restart(2);
  t.equal(cluster.diskText(2), '1:noop 1:kept');
  cluster.run(20);
  t.equal(cluster.diskText(2), '1:noop 1:kept 1:lost', 'the leader sends it again');
  t.end();
});

/** Figure 7: a leader of term 8 and followers that lack entries, or have others, or both. */
const FIGURE_7_LEADER = [1, 1, 1, 4, 4, 5, 5, 6, 6, 6];
const FIGURE_7_FOLLOWERS = {
  a: [1, 1, 1, 4, 4, 5, 5, 6, 6],
  b: [1, 1, 1, 4],
  c: [1, 1, 1, 4, 4, 5, 5, 6, 6, 6, 6],
  d: [1, 1, 1, 4, 4, 5, 5, 6, 6, 6, 7, 7],
  e: [1, 1, 1, 4, 4, 4, 4],
  f: [1, 1, 1, 2, 2, 2, 3, 3, 3, 3, 3],
};

t.test('§5.3, Figure 7: the leader makes every kind of follower agree with it', (t) => {
  for (const [name, log] of Object.entries(FIGURE_7_FOLLOWERS)) {
    const leader = leaderWith({ log: FIGURE_7_LEADER, term: 7 });
    t.equal(leader.term, 8);
    const follower = raftWith({ id: 2, log, term: Math.max(7, ...log) });
    tickInterval(leader);
    let sent = 0;
    for (let rounds = 0; rounds < 10; rounds += 1) {
      for (const reply of takeDurable(follower)) leader.step(reply);
      const messages = takeDurable(leader).filter(({ to }) => to === 2);
      for (const message of messages) follower.step(message);
      sent += messages.length;
    }
    t.strictSame(termsOf(follower), [...FIGURE_7_LEADER, 8], `follower ${name}`);
    t.equal(leader.commitIndex, 11, 'and counts it');
    t.ok(sent <= 5, `within a few messages, here ${sent}`);
  }
  t.end();
});

t.test('§5.3, fast back-up: one exchange for each conflicting term, not for each entry', (t) => {
  const leaderLog = [...Array(400).fill(1), ...Array(400).fill(4)];
  const followerLog = [...Array(400).fill(1), ...Array(200).fill(2), ...Array(200).fill(3)];
  const leader = leaderWith({ log: leaderLog, term: 4 });
  const follower = raftWith({ id: 2, log: followerLog, term: 4 });
  tickInterval(leader);
  for (const message of takeDurable(leader)) if (message.to === 2) follower.step(message);
  let refused = 0;
  for (let rounds = 0; rounds < 20; rounds += 1) {
    for (const reply of takeDurable(follower)) {
      if (reply.reject) refused += 1;
      leader.step(reply);
    }
    for (const message of takeDurable(leader)) if (message.to === 2) follower.step(message);
  }
  t.strictSame(termsOf(follower), [...leaderLog, leader.term]);
  t.ok(refused <= 2, `refused ${refused} times`);
  t.end();
});

t.test('§5.3: a refusal that was overtaken does not send the leader back', (t) => {
  const leader = leaderWith({ log: [1, 1, 1], term: 1 });
  const { term } = leader;
  leader.step(messageOf(MessageKind.AppendReply, 2, 1, { term, index: 4 }));
  take(leader);
  for (const index of [1, 2, 3, 4]) {
    const late = { term, index, reject: true, hintIndex: 0, hintTerm: 0 };
    leader.step(messageOf(MessageKind.AppendReply, 2, 1, late));
    t.strictSame(take(leader).now, [], `a late refusal at ${index}`);
  }
  t.end();
});

t.test('§5.3: repeated and reordered acknowledgements never take a match back', (t) => {
  const leader = leaderWith({ log: [1, 1, 1], term: 1 });
  const { term } = leader;
  const matchOf2 = (): number => {
    let found = 0;
    leader.forEachProgress((nodeId, matchIndex) => {
      if (nodeId === 2) found = matchIndex;
    });
    return found;
  };
  for (const index of [4, 2, 4, 3, 1, 4]) {
    leader.step(messageOf(MessageKind.AppendReply, 2, 1, { term, index }));
    take(leader);
    t.equal(matchOf2(), 4);
    t.equal(leader.commitIndex, 4);
  }
  t.end();
});

t.test('§5.3: an answer to an append of an earlier term of this leader is not counted', (t) => {
  const leader = leaderWith({ log: [1, 1, 1], term: 5 });
  leader.step(messageOf(MessageKind.AppendReply, 2, 1, { term: 5, index: 4 }));
  leader.step(messageOf(MessageKind.AppendReply, 3, 1, { term: 5, index: 4 }));
  t.equal(leader.commitIndex, 0);
  t.end();
});

t.test('§5.3: appends that arrive out of order are put in order', (t) => {
  const cluster = new Cluster({ voters: 3 });
  cluster.elect(1);
  for (const text of ['a', 'b', 'c']) cluster.propose(1, text);
  const toSecond = cluster.drop((message) => message.to === 2);
  t.equal(toSecond.length, 3);
  for (const message of toSecond.reverse()) cluster.step(message);
  cluster.stabilize();
  t.equal(cluster.logText(2), '1:noop 1:a 1:b 1:c');
  // Once more, late and doubled: nothing changes.
  for (const message of [...toSecond, ...toSecond]) cluster.step(message);
  cluster.stabilize();
  t.equal(cluster.logText(2), '1:noop 1:a 1:b 1:c');
  t.equal(cluster.raft(1).commitIndex, 4);
  t.end();
});

t.test('§5.3: an append that was lost is sent again after the next heartbeat', (t) => {
  const cluster = new Cluster({ voters: 3 });
  cluster.elect(1);
  cluster.propose(1, 'a');
  cluster.drop();
  cluster.run(15);
  for (const id of [1, 2, 3]) {
    t.equal(cluster.logText(id), '1:noop 1:a');
    t.equal(cluster.raft(id).commitIndex, 2);
  }
  t.end();
});

t.test('§5.3: a follower that lost everything not acknowledged is brought up to date', (t) => {
  const cluster = new Cluster({ voters: 3 });
  cluster.elect(1);
  cluster.crash(3);
  for (let i = 0; i < 50; i += 1) cluster.propose(1);
  cluster.stabilize();
  cluster.restart(3);
  cluster.run(20);
  t.equal(cluster.logText(3), cluster.logText(1));
  t.equal(cluster.raft(3).commitIndex, 51);
  t.end();
});

t.test('§5.3: entries that memory no longer holds are read from the log', (t) => {
  const cluster = new Cluster({ voters: 3, windowEntries: 4 });
  cluster.elect(1);
  cluster.crash(3);
  for (let i = 0; i < 40; i += 1) {
    cluster.propose(1);
    cluster.stabilize();
  }
  t.equal(cluster.raft(1).entryAt(10), undefined);
  cluster.restart(3);
  cluster.runUntil(() => cluster.node(1).disk.lastIndex === cluster.node(3).disk.lastIndex, 60);
  t.equal(cluster.diskText(3), cluster.diskText(1));
  t.end();
});

t.test('§5.3: no more is read from the log than one append may carry', (t) => {
  const entries = 3 * APPEND_ENTRIES_MAX;
  const leader = leaderWith({ log: Array.from({ length: entries }, () => 1), term: 1 });
  leader.trimWindow(entries - 10, 0, 1 << 30);
  const { term } = leader;
  take(leader);
  const refusal = { term, index: entries, reject: true, hintIndex: 0, hintTerm: 0 };
  leader.step(messageOf(MessageKind.AppendReply, 2, 1, refusal));
  const [wish] = take(leader).logReads;
  t.strictSame(wish, { peer: 2, fromIndex: 1, toIndex: APPEND_ENTRIES_MAX });
  leader.onEntriesRead(2, entriesOf(Array(APPEND_ENTRIES_MAX).fill(1), 1));
  leader.step(messageOf(MessageKind.AppendReply, 2, 1, { term, index: APPEND_ENTRIES_MAX }));
  const [next] = take(leader).logReads;
  t.strictSame(next, {
    peer: 2,
    fromIndex: APPEND_ENTRIES_MAX + 1,
    toIndex: 2 * APPEND_ENTRIES_MAX,
  });
  t.end();
});

t.test('§5.3: a read of the log is asked for once, and sending goes on where it ended', (t) => {
  const leader = leaderWith({ log: [1, 1, 1, 1, 1, 1], term: 1 });
  leader.trimWindow(5, 0, 1 << 30);
  const { term } = leader;
  take(leader);
  const refusal = { term, index: 6, reject: true, hintIndex: 0, hintTerm: 0 };
  leader.step(messageOf(MessageKind.AppendReply, 2, 1, refusal));
  const taken = take(leader);
  t.strictSame(taken.logReads, [{ peer: 2, fromIndex: 1, toIndex: 5 }]);
  leader.propose(EntryKind.Batch, EMPTY);
  tickInterval(leader);
  leader.step(messageOf(MessageKind.HeartbeatReply, 2, 1, { term }));
  t.strictSame(take(leader).logReads, [], 'not while the first is under way');
  leader.onEntriesRead(2, entriesOf([1, 1], 1));
  const sent = take(leader).now.filter(({ to }) => to === 2);
  t.strictSame(
    sent.map(({ index, entries }) => [index, entries.length]),
    [[0, 2]],
    'a probe: one at a time',
  );
  leader.step(messageOf(MessageKind.AppendReply, 2, 1, { term, index: 2 }));
  t.strictSame(take(leader).logReads, [{ peer: 2, fromIndex: 3, toIndex: 5 }]);
  leader.onEntriesRead(2, entriesOf([1, 1, 1], 3));
  const rest = take(leader).now.filter(({ to }) => to === 2);
  t.strictSame(
    rest.map(({ index, entries }) => [index, entries.length]),
    [
      [2, 3],
      [5, 3],
    ],
    'then what memory holds',
  );
  t.end();
});

t.test('§5.3: a read of the log that comes back empty or useless is asked for anew', (t) => {
  for (const answer of [[], entriesOf([1], 4)]) {
    const leader = leaderWith({ log: [1, 1, 1, 1, 1, 1], term: 1 });
    leader.trimWindow(5, 0, 1 << 30);
    const { term } = leader;
    take(leader);
    const refusal = { term, index: 6, reject: true, hintIndex: 0, hintTerm: 0 };
    leader.step(messageOf(MessageKind.AppendReply, 2, 1, refusal));
    take(leader);
    leader.onEntriesRead(2, answer);
    t.strictSame(
      take(leader).now.filter(({ to }) => to === 2),
      [],
    );
    tickInterval(leader);
    leader.step(messageOf(MessageKind.HeartbeatReply, 2, 1, { term }));
    t.equal(take(leader).logReads.length, 1);
  }
  t.end();
});

t.test('§5.3: a follower behind the snapshot is offered it, and nothing else', (t) => {
  const leader = leaderWith({ baseIndex: 10, baseTerm: 3, log: [3, 3], term: 3 });
  const { term } = leader;
  take(leader);
  const refusal = { term, index: 12, reject: true, hintIndex: 4, hintTerm: 1 };
  leader.step(messageOf(MessageKind.AppendReply, 2, 1, refusal));
  const offers = take(leader).now;
  t.strictSame(
    offers.map(({ kind, to, index, logTerm }) => [kind, to, index, logTerm]),
    [[MessageKind.SnapshotOffer, 2, 10, 3]],
  );
  leader.propose(EntryKind.Batch, EMPTY);
  t.notOk(
    take(leader).now.some(({ to }) => to === 2),
    'nothing while it is installed',
  );
  leader.step(messageOf(MessageKind.SnapshotReply, 2, 1, { term, index: 10 }));
  const [append] = take(leader).now;
  t.equal(append?.kind, MessageKind.Append);
  t.equal(append?.index, 10);
  t.end();
});

t.test('§5.3: who answers an append of an earlier term does not send its leader back', (t) => {
  // 1. Node 1 leads term 1 and sends an append that is delayed. 2. It steps down and wins term 2
  // with the vote of node 2. 3. The append arrives, and node 2 tells its sender of term 2.
  const log = Array(10).fill(1);
  const leader = leaderWith({ log, term: 1 });
  const follower = raftWith({ id: 2, log, term: 2, votedFor: 1 });
  t.equal(leader.term, 2);
  follower.step(messageOf(MessageKind.Append, 1, 2, { term: 1, index: 10, logTerm: 1 }));
  const replies = take(follower).now;
  t.equal(replies.length, 1);
  for (const reply of replies) leader.step(reply);
  for (const { kind, index } of take(leader).now) {
    t.equal(kind, MessageKind.Append);
    t.ok(index >= 10, `an append after ${index}`);
  }
  t.end();
});
