/**
 * Progress: probing, pipelining, windows, and answers in any order.
 */
import fc from 'fast-check';
import t from 'tap';
import { Progress, ProgressState } from '../../../src/core/raft/progress.js';
import { INFLIGHT_APPENDS_MAX, INFLIGHT_BYTES_MAX } from '../../../src/limits.js';

function replicating(matchIndex: number): Progress {
  const progress = new Progress(2);
  progress.onMatched(matchIndex);
  progress.becomeReplicate();
  return progress;
}

t.test('a probe goes out once, and again after an answer or a heartbeat interval', (t) => {
  const progress = new Progress(2);
  progress.nextIndex = 10;
  t.notOk(progress.isPaused);
  progress.onSent(12, 3, 100);
  t.ok(progress.isPaused);
  t.equal(progress.nextIndex, 10, 'a probe does not move on by itself');
  t.notOk(progress.onHeartbeatReply(), 'not within the interval');
  t.ok(progress.isPaused);
  progress.mayResend = true;
  t.ok(progress.onHeartbeatReply());
  t.notOk(progress.isPaused);
  progress.onSent(12, 3, 100);
  t.notOk(progress.onHeartbeatReply(), 'once an interval');
  t.ok(progress.onRefused(9, 5));
  t.notOk(progress.isPaused);
  t.equal(progress.nextIndex, 6);
  t.end();
});

t.test('a refusal of something else than the probe is stale', (t) => {
  const progress = new Progress(2);
  progress.nextIndex = 10;
  progress.onSent(12, 3, 100);
  t.notOk(progress.onRefused(7, 3));
  t.ok(progress.isPaused, 'the probe is still out');
  t.equal(progress.nextIndex, 10);
  t.end();
});

t.test('a refusal never goes behind what is known to match, nor forward', (t) => {
  fc.assert(
    fc.property(fc.nat(50), fc.nat(50), fc.nat(100), (match, ahead, hint) => {
      const progress = new Progress(2);
      progress.onMatched(match);
      progress.nextIndex = match + 1 + ahead;
      const refused = progress.nextIndex - 1;
      progress.onRefused(refused, hint);
      return progress.nextIndex > match && progress.nextIndex <= Math.max(refused, match + 1);
    }),
  );
  t.pass();
  t.end();
});

t.test('in the pipeline a refusal behind the match is stale, another one starts a probe', (t) => {
  const progress = replicating(5);
  progress.onSent(8, 3, 10);
  t.notOk(progress.onRefused(5, 1));
  t.equal(progress.state, ProgressState.Replicate);
  t.ok(progress.onRefused(8, 1));
  t.equal(progress.state, ProgressState.Probe);
  t.equal(progress.nextIndex, 6);
  t.end();
});

t.test('the window holds INFLIGHT_APPENDS_MAX appends and empties in order', (t) => {
  const progress = replicating(0);
  for (let index = 1; index <= INFLIGHT_APPENDS_MAX; index += 1) {
    t.notOk(progress.isPaused);
    progress.onSent(index, 1, 1);
  }
  t.ok(progress.isPaused);
  t.notOk(progress.onMatched(0));
  t.ok(progress.isPaused, 'an answer without news');
  t.ok(progress.onMatched(10));
  for (let i = 0; i < 10; i += 1) {
    t.notOk(progress.isPaused);
    progress.onSent(INFLIGHT_APPENDS_MAX + 1 + i, 1, 1);
  }
  t.ok(progress.isPaused);
  t.end();
});

t.test('the window by bytes closes at INFLIGHT_BYTES_MAX', (t) => {
  const progress = replicating(0);
  progress.onSent(1, 1, INFLIGHT_BYTES_MAX - 1);
  t.notOk(progress.isPaused);
  progress.onSent(2, 1, 1);
  t.ok(progress.isPaused);
  progress.onMatched(1);
  t.notOk(progress.isPaused);
  t.end();
});

t.test('an append without entries takes no place in the window', (t) => {
  const progress = replicating(0);
  for (let i = 0; i < 3 * INFLIGHT_APPENDS_MAX; i += 1) progress.onSent(0, 0, 0);
  t.notOk(progress.isPaused);
  t.equal(progress.nextIndex, 1);
  t.end();
});

t.test(
  'a heartbeat reply gives back the oldest place of a full window, and only of a full one',
  (t) => {
    for (const bytes of [0, INFLIGHT_BYTES_MAX / 4]) {
      const progress = replicating(0);
      let last = 0;
      while (!progress.isPaused) {
        last += 1;
        progress.onSent(last, 1, bytes);
      }
      progress.mayResend = true;
      progress.onHeartbeatReply();
      t.notOk(progress.isPaused);
      progress.onSent(last + 1, 1, bytes);
      t.ok(progress.isPaused, 'one place, not more');
    }
    const half = replicating(0);
    half.onSent(1, 1, INFLIGHT_BYTES_MAX - 1);
    for (let i = 0; i < 5; i += 1) {
      half.mayResend = true;
      half.onHeartbeatReply();
    }
    half.onSent(2, 1, 1);
    t.ok(half.isPaused, 'what is in flight still counts');
    t.end();
  },
);

t.test('answers in any order and number: the match only rises, bytes never go below zero', (t) => {
  const answer = fc.record({ sent: fc.nat(3), matched: fc.nat(200), beat: fc.boolean() });
  fc.assert(
    fc.property(fc.array(answer, { maxLength: 100 }), (answers) => {
      const progress = replicating(0);
      let match = 0;
      for (const { sent, matched, beat } of answers) {
        for (let i = 0; i < sent && !progress.isPaused; i += 1) {
          progress.onSent(progress.nextIndex, 1, 1 << 20);
        }
        progress.onMatched(Math.min(matched, progress.nextIndex - 1));
        progress.mayResend = beat;
        progress.onHeartbeatReply();
        if (progress.matchIndex < match || progress.nextIndex <= progress.matchIndex) return false;
        match = progress.matchIndex;
      }
      progress.onMatched(progress.nextIndex - 1);
      return !progress.isPaused;
    }),
  );
  t.pass();
  t.end();
});

t.test('nothing is sent while entries are read, or a snapshot is installed', (t) => {
  const progress = replicating(5);
  progress.isReading = true;
  t.ok(progress.isPaused);
  progress.isReading = false;
  progress.becomeSnapshot(7);
  t.ok(progress.isPaused);
  progress.mayResend = true;
  progress.onHeartbeatReply();
  t.ok(progress.isPaused);
  progress.onMatched(100);
  t.ok(progress.isPaused);
  progress.becomeReplicate();
  t.notOk(progress.isPaused);
  t.equal(progress.nextIndex, 101, 'from behind the snapshot');
  t.end();
});
