/** Raft §7, thesis §5: a snapshot stands for a prefix of the log, on leader and follower. */

import fc from 'fast-check';
import t from 'tap';
import { RaftLog } from '../../src/core/raft/log.js';
import { Entry, EntryKind, MessageKind } from '../../src/core/raft/message.js';
import { ELECTION_TICKS_MIN, HEARTBEAT_TICKS } from '../../src/limits.js';
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
const MEMBERS = { voters: [1, 2, 3], learners: [] };

/** A follower of node 2 in term 5, whose log has these terms; two entries are committed. */
function follower(log: readonly number[]) {
  return raftWith({ log, term: 5, commitIndex: Math.min(2, log.length) });
}

function offer(index: number, logTerm: number) {
  return messageOf(MessageKind.SnapshotOffer, 2, 1, { term: 5, index, logTerm });
}

t.test('§7: what is committed is not fetched: the leader is told where to go on', (t) => {
  const raft = follower([1, 1, 1]);
  raft.step(offer(2, 1));
  const taken = take(raft);
  t.equal(taken.snapshotIndex, 0);
  t.match(taken.later, [{ kind: MessageKind.AppendReply, to: 2, index: 2, reject: false }]);
  t.end();
});

t.test('§7: a log that holds the entry of the snapshot keeps it, and commits up to it', (t) => {
  const raft = follower([1, 1, 2, 3]);
  raft.step(offer(3, 2));
  const taken = take(raft);
  t.equal(taken.snapshotIndex, 0);
  t.equal(taken.commitIndex, 3);
  t.match(taken.later, [{ kind: MessageKind.AppendReply, index: 3 }]);
  t.equal(raft.lastIndex, 4, 'entries that follow it are retained');
  t.end();
});

t.test('§7: a log that lacks it, or has another term there, asks the host to fetch', (t) => {
  for (const log of [
    [1, 1],
    [1, 1, 1, 1],
  ]) {
    const raft = follower(log);
    raft.step(offer(4, 3));
    const taken = take(raft);
    t.equal(taken.snapshotIndex, 4);
    t.equal(taken.later.length + taken.now.length, 0, 'nothing is promised yet');
    t.equal(raft.lastIndex, log.length, 'nothing is cut before the snapshot is on disk');
  }
  t.end();
});

t.test(
  '§7: an installed snapshot replaces the whole log, and is acknowledged when durable',
  (t) => {
    const raft = follower([1, 1, 1, 1, 1, 1]);
    raft.step(offer(4, 3));
    take(raft);
    t.ok(raft.installSnapshot(5, 3, MEMBERS), 'the leader may have had a later one');
    const taken = take(raft);
    t.equal(taken.resetTo, 5);
    t.equal(taken.commitIndex, 5);
    t.strictSame([raft.lastIndex, raft.baseIndex, raft.durableIndex], [5, 5, 5]);
    t.strictSame([raft.termAt(4), raft.termAt(5), raft.termAt(6)], [0, 3, 0]);
    t.equal(taken.now.length, 0);
    t.match(taken.later, [{ kind: MessageKind.SnapshotReply, to: 2, index: 5, term: 5 }]);
    const next = { term: 5, index: 5, logTerm: 3, entries: entriesOf([5], 6), commit: 6 };
    raft.step(messageOf(MessageKind.Append, 2, 1, next));
    const after = take(raft);
    t.equal(after.commitIndex, 6);
    t.match(after.later, [{ kind: MessageKind.AppendReply, index: 6 }]);
    t.end();
  },
);

t.test('§7: a snapshot of what is committed meanwhile changes nothing', (t) => {
  const raft = follower([1, 1, 1]);
  const entries = entriesOf([1, 1, 1], 4);
  raft.step(
    messageOf(MessageKind.Append, 2, 1, { term: 5, index: 3, logTerm: 1, entries, commit: 6 }),
  );
  take(raft);
  t.notOk(raft.installSnapshot(5, 1, MEMBERS));
  t.notOk(raft.effects.hasAppend);
  t.equal(raft.lastIndex, 6);
  t.end();
});

t.test('an acknowledgement of entries that a snapshot replaced does not leave', (t) => {
  const raft = follower([1, 1]);
  const entries = entriesOf([2, 2, 2, 2, 2], 3);
  raft.step(messageOf(MessageKind.Append, 2, 1, { term: 5, index: 2, logTerm: 1, entries }));
  t.ok(raft.installSnapshot(4, 3, MEMBERS), 'entry 4 has another term');
  const taken = take(raft);
  t.equal(taken.entries.length, 0);
  t.strictSame(
    taken.later.map(({ kind }) => kind),
    [MessageKind.SnapshotReply],
  );
  t.end();
});

t.test('an append under way when the log is replaced counts for nothing when it ends', (t) => {
  const raft = follower([1, 1]);
  const entries = entriesOf([2, 2, 2, 2, 2], 3);
  raft.step(messageOf(MessageKind.Append, 2, 1, { term: 5, index: 2, logTerm: 1, entries }));
  const { appendId } = take(raft);
  t.ok(raft.installSnapshot(4, 3, MEMBERS));
  raft.onAppended(appendId);
  t.equal(raft.durableIndex, 4);
  t.end();
});

t.test('a node that starts behind a snapshot votes by its index and term (§5.4.1)', (t) => {
  const raft = raftWith({ baseIndex: 10, baseTerm: 3, term: 3, log: [] });
  const stale = { term: 4, index: 9, logTerm: 3 };
  raft.step(messageOf(MessageKind.PreVote, 2, 1, stale));
  t.match(take(raft).now, [{ kind: MessageKind.PreVoteReply, reject: true }]);
  raft.step(messageOf(MessageKind.PreVote, 2, 1, { ...stale, index: 10 }));
  t.match(take(raft).now, [{ kind: MessageKind.PreVoteReply, reject: false }]);
  t.end();
});

/** A leader of 12 entries, the first 10 in a snapshot; follower 2 said that it needs the 5th. */
function leaderWhoOffered() {
  const leader = leaderWith({ log: Array(12).fill(3), term: 3, commitIndex: 12 });
  leader.compact(10);
  const { term } = leader;
  take(leader);
  const refusal = { term, index: 12, reject: true, hintIndex: 4, hintTerm: 3 };
  leader.step(messageOf(MessageKind.AppendReply, 2, 1, refusal));
  return { leader, term };
}

t.test('thesis §5.3: a leader that dropped what a follower needs offers its snapshot', (t) => {
  const { leader } = leaderWhoOffered();
  t.match(take(leader).now, [{ kind: MessageKind.SnapshotOffer, to: 2, index: 10, logTerm: 3 }]);
  t.end();
});

t.test('an offer that is lost is made again while the follower is there, and not sooner', (t) => {
  const { leader, term } = leaderWhoOffered();
  take(leader);
  let offers = 0;
  const rounds = 4 * Math.ceil(ELECTION_TICKS_MIN / HEARTBEAT_TICKS);
  for (let round = 0; round < rounds; round += 1) {
    tickInterval(leader);
    for (const from of [2, 3])
      leader.step(messageOf(MessageKind.HeartbeatReply, from, 1, { term }));
    offers += take(leader).now.filter(({ kind }) => kind === MessageKind.SnapshotOffer).length;
  }
  t.equal(offers, 4, 'once in an election time-out');
  t.end();
});

t.test('a follower that is gone is not offered anything', (t) => {
  const { leader, term } = leaderWhoOffered();
  take(leader);
  let offers = 0;
  for (let round = 0; round < 20; round += 1) {
    tickInterval(leader);
    leader.step(messageOf(MessageKind.HeartbeatReply, 3, 1, { term }));
    offers += take(leader).now.filter(({ kind }) => kind === MessageKind.SnapshotOffer).length;
  }
  t.equal(offers, 0);
  t.end();
});

t.test('a follower with a snapshot of the base or later is sent what follows it', (t) => {
  for (const index of [10, 11]) {
    const { leader, term } = leaderWhoOffered();
    take(leader);
    leader.step(messageOf(MessageKind.SnapshotReply, 2, 1, { term, index }));
    const [append] = take(leader).now;
    t.match(append, { kind: MessageKind.Append, to: 2, index });
    t.equal(append?.entries.length, leader.lastIndex - index);
  }
  t.end();
});

t.test('a follower whose snapshot is from before the base is offered another', (t) => {
  const { leader, term } = leaderWhoOffered();
  take(leader);
  leader.step(messageOf(MessageKind.SnapshotReply, 2, 1, { term, index: 8 }));
  t.equal(take(leader).now.length, 0, 'nothing that it could not take');
  for (let round = 0; round < ELECTION_TICKS_MIN / HEARTBEAT_TICKS; round += 1) {
    tickInterval(leader);
    leader.step(messageOf(MessageKind.HeartbeatReply, 2, 1, { term }));
    leader.step(messageOf(MessageKind.HeartbeatReply, 3, 1, { term }));
  }
  t.ok(take(leader).now.some(({ kind }) => kind === MessageKind.SnapshotOffer));
  t.end();
});

t.test('a snapshot counts for the commit like the entries that it stands for', (t) => {
  const leader = leaderWith({ log: [1, 1, 1], term: 1, commitIndex: 3 });
  leader.compact(2);
  const { term } = leader;
  const index = leader.propose(EntryKind.Batch, EMPTY);
  takeDurable(leader);
  t.equal(leader.commitIndex, 3);
  leader.step(messageOf(MessageKind.SnapshotReply, 2, 1, { term, index }));
  t.equal(leader.commitIndex, index, 'own disk and one of two others');
  t.end();
});

t.test('a log that forgets a prefix knows the rest as before', (t) => {
  const terms = fc.array(fc.nat({ max: 2 }), { minLength: 1, maxLength: 30 });
  fc.assert(
    fc.property(terms, fc.array(fc.nat()), (steps, cuts) => {
      const log = new RaftLog(0, 0);
      const model: number[] = [];
      let term = 1;
      for (const step of steps) {
        term += step === 2 ? 1 : 0;
        model.push(term);
        log.append(new Entry(model.length, term, EntryKind.Batch, EMPTY));
      }
      let base = 0;
      for (const cut of cuts) {
        const index = cut % (model.length + 1);
        log.compactTo(index);
        base = Math.max(base, index);
        for (let at = base; at <= model.length; at += 1) {
          const wanted = at === 0 ? 0 : (model[at - 1] as number);
          if (log.termAt(at) !== wanted || !log.isMatch(at, wanted)) return false;
        }
        if (base > 0 && log.termAt(base - 1) !== 0) return false;
      }
      const lastTerm = model[model.length - 1] as number;
      log.append(new Entry(model.length + 1, lastTerm, EntryKind.Batch, EMPTY));
      log.truncateFrom(Math.max(base + 1, model.length));
      return log.baseIndex === base && log.termAt(log.lastIndex) === log.lastTerm;
    }),
  );
  t.pass();
  t.end();
});

t.test('§5.4, §7: a snapshot that became durable before its term makes the term known', (t) => {
  const raft = raftWith({ log: [], term: 3, votedFor: 2, baseIndex: 40, baseTerm: 5 });
  t.equal(raft.term, 5);
  t.same(raft.effects.hardState, { term: 5, votedFor: 0 }, 'stored before anything is said in it');
  const known = raftWith({ log: [], term: 6, votedFor: 2, baseIndex: 40, baseTerm: 5 });
  t.equal(known.term, 6);
  t.equal(known.effects.hardState, null, 'nothing to store');
  const behind = { log: [7], term: 3, baseIndex: 40, baseTerm: 5 };
  t.throws(() => raftWith(behind), /term is not behind/, 'an entry never comes before its term');
  t.end();
});
