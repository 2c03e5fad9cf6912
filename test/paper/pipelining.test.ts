/**
 * Thesis §10.2.1: appends are pipelined within windows of count and bytes, whatever is lost.
 */
import t from 'tap';
import { EntryKind, type Message, MessageKind } from '../../src/core/raft/message.js';
import type { Raft } from '../../src/core/raft/raft.js';
import {
  APPEND_BYTES_MAX,
  APPEND_ENTRIES_MAX,
  INFLIGHT_APPENDS_MAX,
  INFLIGHT_BYTES_MAX,
} from '../../src/limits.js';
import {
  leaderWith,
  messageOf,
  type SingleOptions,
  take,
  takeDurable,
  tickInterval,
} from './single.js';

const EMPTY = new Uint8Array(0);
const MEBIBYTE = new Uint8Array(1 << 20);

function appendsTo2(messages: readonly Message[]): Message[] {
  return messages.filter(({ kind, to }) => kind === MessageKind.Append && to === 2);
}

function bytesOf(messages: readonly Message[]): number {
  let bytes = 0;
  for (const { entries } of messages) for (const { data } of entries) bytes += data.length;
  return bytes;
}

/** A leader whose follower 2 has everything up to the NoOp: it replicates in a pipeline. */
function replicating(options: SingleOptions = {}): Raft {
  const raft = leaderWith(options);
  raft.step(acknowledgement(raft, raft.lastIndex));
  take(raft);
  return raft;
}

function acknowledgement(raft: Raft, index: number): Message {
  return messageOf(MessageKind.AppendReply, 2, 1, { term: raft.term, index });
}

t.test('§10.2.1: appends follow each other without waiting for answers', (t) => {
  const raft = replicating();
  for (let i = 0; i < 5; i += 1) raft.propose(EntryKind.Batch, EMPTY);
  t.strictSame(
    appendsTo2(take(raft).now).map(({ index }) => index),
    [1, 2, 3, 4, 5],
  );
  t.end();
});

t.test('§10.2.1: a follower whose end is unknown gets one append at a time', (t) => {
  const raft = leaderWith();
  for (let i = 0; i < 5; i += 1) raft.propose(EntryKind.Batch, EMPTY);
  t.equal(appendsTo2(take(raft).now).length, 0, 'the NoOp is still unanswered');
  raft.step(acknowledgement(raft, 1));
  const [append] = appendsTo2(take(raft).now);
  t.equal(append?.entries.length, 5, 'then the rest, in one');
  t.end();
});

t.test('the window by count closes, and each answer opens it by what it covers', (t) => {
  const raft = replicating();
  for (let i = 0; i < INFLIGHT_APPENDS_MAX + 10; i += 1) raft.propose(EntryKind.Batch, EMPTY);
  t.equal(appendsTo2(take(raft).now).length, INFLIGHT_APPENDS_MAX);
  raft.step(acknowledgement(raft, 2));
  const [next] = appendsTo2(take(raft).now);
  t.equal(next?.entries.length, 10, 'what piled up goes out together');
  raft.step(acknowledgement(raft, 2));
  t.strictSame(appendsTo2(take(raft).now), [], 'a repeated answer opens nothing');
  t.end();
});

t.test('the window by bytes closes, and an answer opens it', (t) => {
  const raft = replicating();
  for (let i = 0; i < 20; i += 1) raft.propose(EntryKind.Batch, MEBIBYTE);
  const sent = appendsTo2(take(raft).now);
  t.equal(bytesOf(sent), INFLIGHT_BYTES_MAX);
  raft.step(acknowledgement(raft, 3));
  const more = appendsTo2(take(raft).now);
  t.ok(more.length > 0);
  t.ok(bytesOf(more) <= 2 * MEBIBYTE.length + APPEND_BYTES_MAX);
  t.end();
});

t.test('a closed window opens again when its appends were lost, by count or by bytes', (t) => {
  for (const [data, count] of [
    [EMPTY, INFLIGHT_APPENDS_MAX + 10],
    [MEBIBYTE, 20],
  ] as const) {
    const raft = replicating();
    const { term } = raft;
    for (let i = 0; i < count; i += 1) raft.propose(EntryKind.Batch, data);
    const lost = appendsTo2(take(raft).now);
    t.ok(lost.length > 0);
    // The follower is there and has nothing new: heartbeats are answered, appends are refused.
    let matched = 1;
    for (let rounds = 0; rounds < 200 && matched < raft.lastIndex; rounds += 1) {
      tickInterval(raft);
      raft.step(messageOf(MessageKind.HeartbeatReply, 2, 1, { term }));
      for (const append of appendsTo2(take(raft).now)) {
        const reject = append.index > matched;
        if (!reject) matched = Math.max(matched, append.index + append.entries.length);
        const hint = reject ? { hintIndex: matched, hintTerm: term } : {};
        const index = reject ? append.index : append.index + append.entries.length;
        raft.step(messageOf(MessageKind.AppendReply, 2, 1, { term, index, reject, ...hint }));
      }
    }
    t.equal(matched, raft.lastIndex, `${count} entries of ${data.length} bytes`);
  }
  t.end();
});

t.test('an append is bounded by bytes and by entries, and always carries one entry', (t) => {
  for (const [entries, entryBytes, sizes] of [
    [APPEND_ENTRIES_MAX + 5, 0, [APPEND_ENTRIES_MAX, 6]],
    [5, APPEND_BYTES_MAX / 2, [2, 2, 2]],
    [2, APPEND_BYTES_MAX * 2, [1, 1]],
  ] as const) {
    const raft = leaderWith({ log: Array(entries).fill(1), entryBytes });
    take(raft);
    const { term } = raft;
    const refusal = { term, index: entries, reject: true, hintIndex: 0, hintTerm: 0 };
    raft.step(messageOf(MessageKind.AppendReply, 2, 1, refusal));
    const sent: number[] = [];
    for (let rounds = 0; rounds < 5; rounds += 1) {
      for (const append of appendsTo2(take(raft).now)) {
        if (append.entries.length > 0) sent.push(append.entries.length);
        raft.step(acknowledgement(raft, append.index + append.entries.length));
      }
    }
    t.strictSame(sent.slice(0, sizes.length), sizes);
  }
  t.end();
});

t.test(
  'a follower that refuses in the pipeline is probed again from what it is known to hold',
  (t) => {
    const raft = replicating();
    const { term } = raft;
    for (let i = 0; i < 4; i += 1) raft.propose(EntryKind.Batch, EMPTY);
    take(raft);
    // The append with entry 2 was lost: the next, after 2, is refused.
    const refusal = { term, index: 2, reject: true, hintIndex: 1, hintTerm: term };
    raft.step(messageOf(MessageKind.AppendReply, 2, 1, refusal));
    const probes = appendsTo2(take(raft).now);
    t.strictSame(
      probes.map(({ index, entries }) => [index, entries.length]),
      [[1, 4]],
    );
    // The refusals of the other appends of the pipeline arrive: nothing more is sent for them.
    for (const index of [3, 4]) {
      raft.step(messageOf(MessageKind.AppendReply, 2, 1, { ...refusal, index }));
      t.strictSame(appendsTo2(take(raft).now), []);
    }
    raft.step(acknowledgement(raft, 5));
    raft.propose(EntryKind.Batch, EMPTY);
    t.strictSame(
      appendsTo2(takeDurable(raft)).map(({ index }) => index),
      [5],
      'and the pipeline runs again',
    );
    t.end();
  },
);

t.test('read rounds repeat no probe and open no window: only the heartbeat interval does', (t) => {
  const probing = leaderWith({ log: [1, 1], term: 1 });
  const full = replicating();
  for (let i = 0; i < INFLIGHT_APPENDS_MAX + 10; i += 1) full.propose(EntryKind.Batch, EMPTY);
  for (const raft of [probing, full]) {
    const { term } = raft;
    raft.step(messageOf(MessageKind.AppendReply, 3, 1, { term, index: raft.lastIndex }));
    takeDurable(raft);
    t.ok(raft.isTermCommitted);
    for (let round = 1; round <= 20; round += 1) {
      raft.readIndex(round);
      raft.step(messageOf(MessageKind.HeartbeatReply, 2, 1, { term, context: round }));
      t.strictSame(appendsTo2(take(raft).now), []);
    }
    tickInterval(raft);
    for (let replies = 0; replies < 3; replies += 1) {
      raft.step(messageOf(MessageKind.HeartbeatReply, 2, 1, { term }));
    }
    t.equal(appendsTo2(take(raft).now).length, 1, 'what may have been lost is sent once');
  }
  t.end();
});
