/** What runs out by itself: when, in which order, how many at a time. */

import t from 'tap';
import { EventKind } from '../../../src/core/locks/event.js';
import { LeaseEnd, OutcomeCode } from '../../../src/core/locks/outcome.js';
import type { ModelCommand } from '../../model/model-types.js';
import {
  acquire,
  answerAt,
  closeSession,
  LockDriver,
  open,
  release,
  renew,
  sequence,
} from './lock-driver.js';

t.test(
  'mass expiry is bounded in each entry, in the order of deadline and token, until drained',
  async (t) => {
    const log = new LockDriver({ expiriesPerEntryMax: 100 });
    const commands: ModelCommand[] = [];
    for (let i = 0; i < 1_000; i += 1) {
      commands.push(acquire(`n${i}`, `i${i}`, { ttlMs: 2_000 - (i % 2) * 500 }));
    }
    const granted = log.after(0, ...commands).outcomes;
    const early = granted.filter(({ ttlMs }) => ttlMs === 1_500).map(({ token }) => token);
    const late = granted.filter(({ ttlMs }) => ttlMs === 2_000).map(({ token }) => token);
    const ended: number[] = [];
    log.now = 2_000;
    for (let entry = 0; entry < 10; entry += 1) {
      const step = log.after(0);
      t.equal(step.events.length, 100);
      ended.push(...step.events.map(({ token }) => token));
    }
    t.strictSame(ended, [...early, ...late]);
    t.strictSame(log.after(0).events, [], 'drained');
  },
);

t.test('commands of others pass while a mass expiry drains', async (t) => {
  const log = new LockDriver({ expiriesPerEntryMax: 10 });
  const commands: ModelCommand[] = [];
  for (let i = 0; i < 200; i += 1) commands.push(acquire(`n${i}`, `i${i}`, { ttlMs: 1_000 }));
  log.after(0, ...commands);
  const step = log.after(1_000, acquire('other', 'id'), acquire('n199', 'taker'));
  t.equal(answerAt(step, 0).code, OutcomeCode.Ok);
  t.equal(answerAt(step, 1).code, OutcomeCode.Ok, 'a dead lock that no sweep has reached');
  t.equal(step.events.length, 13, 'ten by the sweep, one by the taker, two grants');
});

t.test('a lease is held until the ms before its deadline and dead at it', async (t) => {
  const log = new LockDriver();
  const held = log.answer(0, acquire('a', 'i', { ttlMs: 1_000 })).token;
  t.equal(log.answer(999, acquire('a', 't1')).code, OutcomeCode.LockBusy);
  t.equal(log.get('a').token, held);
  t.equal(log.answer(1, renew(held)).code, OutcomeCode.StaleLease);
  t.equal(log.get('a').token, 0);
});

t.test('an expiry hands over in the entry that frees, to the first live waiter', async (t) => {
  const log = new LockDriver();
  log.after(0, acquire('a', 'h', { ttlMs: 1_000 }));
  const places = log
    .after(0, acquire('a', 'w1', { waitMs: 1_000 }), acquire('a', 'w2', { waitMs: 5_000 }))
    .outcomes.map(({ revision }) => revision);
  const step = log.after(1_000);
  t.match(step.events, [
    { kind: EventKind.Ended, cause: LeaseEnd.Expired },
    { kind: EventKind.Left, place: places[0] },
    { kind: EventKind.Granted },
  ]);
  t.strictSame(
    step.completions.map(({ place, outcome }) => [place, outcome.code]),
    [
      [places[0], OutcomeCode.WaitTimeout],
      [places[1], OutcomeCode.Ok],
    ],
  );
});

t.test('leases come first in the sweep, then waits, then sessions', async (t) => {
  const log = new LockDriver();
  log.after(0, open('o', { ttlMs: 1_000 }), acquire('x', 'h', { ttlMs: 60_000 }));
  log.after(0, acquire('x', 'w', { session: 1, waitMs: 60_000 }));
  log.after(0, acquire('a', 'i', { session: 1 }));
  const step = log.after(1_000);
  t.match(step.events, [
    { kind: EventKind.Ended, name: 'a', cause: LeaseEnd.SessionExpired },
    { kind: EventKind.Left, name: 'x', cause: OutcomeCode.SessionExpired },
  ]);
});

t.test('a wait ends at its own time even when its session ends with it', async (t) => {
  const log = new LockDriver();
  log.after(0, open('o', { ttlMs: 1_000 }), acquire('x', 'h', { ttlMs: 60_000 }));
  log.after(0, acquire('x', 'w', { session: 1, waitMs: 1_000 }));
  t.match(log.after(1_000).events, [{ kind: EventKind.Left, cause: OutcomeCode.WaitTimeout }]);
});

t.test(
  'an orphan is freed at its deadline however many entries and readers come between',
  async (t) => {
    const log = new LockDriver();
    log.after(0, acquire('a', 'orphan', { ttlMs: 10_000 }));
    // Twenty changes of leader are twenty entries without a renewal: nothing else refreshes a TTL.
    for (let i = 1; i < 20; i += 1) {
      t.strictSame(log.after(500, acquire('a', `try ${i}`)).events, [], `${log.now} ms`);
    }
    t.match(log.after(500).events, [{ kind: EventKind.Ended, cause: LeaseEnd.Expired }]);
  },
);

t.test('a leap of cluster time frees what is due and shortens nothing after it', async (t) => {
  const log = new LockDriver();
  log.after(0, acquire('a', 'i1', { ttlMs: 1_000 }));
  const step = log.after(2 ** 41, acquire('a', 'i2', { ttlMs: 1_000 }));
  t.match(answerAt(step, 0), { code: OutcomeCode.Ok, deadline: 2 ** 41 + 1_000 });
  t.strictSame(log.after(999).events, []);
  t.equal(log.after(1).events.length, 1);
});

t.test(
  'a cycle over many names, waits, ids and sessions returns every table to its base',
  async (t) => {
    const log = new LockDriver({ idleLocksMax: 10, resultRetentionMs: 1_000, endedLeasesMax: 16 });
    const before = log.machine.counts;
    for (let round = 0; round < 200; round += 1) {
      const held: ModelCommand[] = [];
      for (let i = 0; i < 50; i += 1) {
        held.push(acquire(`n ${round} ${i}`, `h ${round} ${i}`));
        held.push(acquire(`n ${round} ${i}`, `w ${round} ${i}`, { waitMs: 5 }));
      }
      const { outcomes } = log.after(0, open(`o ${round}`, { ttlMs: 1_000 }), ...held);
      const granted = outcomes.filter(({ code, token }) => code === OutcomeCode.Ok && token > 0);
      t.equal(granted.length, 50);
      log.after(5, ...granted.map(({ token }) => release(token)));
    }
    log.after(1_000);
    for (let i = 0; i < 20; i += 1) log.after(1_000);
    const after = log.machine.counts;
    t.strictSame({ ...after, locks: 0 }, before);
    t.ok(after.locks <= 10);
  },
);

t.test('the sweep frees ended sessions whole, one and one for each result counted', async (t) => {
  const log = new LockDriver({ expiriesPerEntryMax: 3, resultRetentionMs: 60_000 });
  const opened = ['o1', 'o2', 'o3', 'o4', 'o5'].map((id) => open(id));
  log.after(0, ...opened);
  const named = { session: 1, request: sequence(1) };
  log.after(0, release(77, named), release(77, { session: 1, request: sequence(2) }));
  log.after(1, ...[1, 2, 3, 4, 5].map((session) => closeSession(session)));
  // The results of the openings are swept beside the sessions; they have a budget of their own.
  log.after(59_999);
  const left: number[] = [];
  for (let i = 0; i < 3; i += 1) {
    log.after(i === 0 ? 1 : 0);
    left.push(log.machine.counts.sessions);
  }
  t.strictSame(left, [4, 1, 0]);
});
