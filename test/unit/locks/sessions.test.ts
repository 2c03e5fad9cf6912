/** A client's presence: opened, renewed, closed, and what dies with it. */

import t from 'tap';
import { EventKind } from '../../../src/core/locks/event.js';
import { LeaseEnd, OutcomeCode } from '../../../src/core/locks/outcome.js';
import {
  acquire,
  answerAt,
  closeSession,
  completionOf,
  free,
  LockDriver,
  open,
  renewSession,
  sequence,
} from './lock-driver.js';

t.test('opening again under the same id gives the same session and secret', async (t) => {
  const log = new LockDriver();
  const first = log.answer(3, open('o', { ttlMs: 5_000 }));
  t.match(first, { code: OutcomeCode.Ok, deadline: 5_003, ttlMs: 5_000, subject: 'session 1' });
  t.match(log.answer(9, open('o', { ttlMs: 5_000 })), { ...first, replay: true });
});

t.test('a renewal never moves a session deadline back', async (t) => {
  const log = new LockDriver();
  log.after(0, open('o', { ttlMs: 10_000 }));
  t.match(log.answer(1_000, renewSession(1, { ttlMs: 2_000 })), { deadline: 10_000, ttlMs: 2_000 });
  t.match(log.answer(8_500, renewSession(1)), { deadline: 11_500, ttlMs: 2_000 });
});

t.test('a session is dead at its deadline, and everything of it in one entry', async (t) => {
  const log = new LockDriver();
  log.after(0, open('o', { ttlMs: 1_000 }));
  const held = log.answer(0, acquire('a', 'i1', { session: 1 })).token;
  log.after(0, acquire('b', 'i2', { ttlMs: 60_000 }));
  const place = log.answer(0, acquire('b', 'i3', { session: 1, waitMs: 60_000 })).revision;
  t.equal(log.answer(999, renewSession(1, { ttlMs: 1_000, principal: 2 })).code, 16);
  const step = log.after(
    1,
    renewSession(1),
    acquire('c', 's1', {
      session: 1,
      request: sequence(1),
    }),
  );
  t.match(step.outcomes, [
    { code: OutcomeCode.SessionExpired },
    { code: OutcomeCode.SessionExpired },
  ]);
  t.match(step.events, [
    { kind: EventKind.Ended, token: held, cause: LeaseEnd.SessionExpired },
    { kind: EventKind.Left, place, cause: OutcomeCode.SessionExpired },
  ]);
});

t.test('an operation on an overdue session settles it whatever the sweep left', async (t) => {
  const log = new LockDriver({ expiriesPerEntryMax: 1 });
  log.after(0, open('o', { ttlMs: 1_000 }));
  const names = ['a', 'b', 'c'];
  const commands = names.map((name) => acquire(name, name, { session: 1, ttlMs: 1_000 }));
  const tokens = log.after(0, ...commands).outcomes.map(({ token }) => token);
  const step = log.after(1_000, closeSession(1));
  t.equal(answerAt(step, 0).code, OutcomeCode.SessionExpired);
  t.match(
    step.events,
    tokens.map((token) => ({
      kind: EventKind.Ended,
      token,
      cause: LeaseEnd.SessionExpired,
    })),
  );
});

t.test(
  'closing ends waits in the order of their places, then leases in that of their tokens',
  async (t) => {
    const log = new LockDriver();
    log.after(0, open('o'), acquire('x', 'h1'), acquire('y', 'h2'));
    const own = ['b', 'a'].map((name) => acquire(name, name, { session: 1 }));
    const tokens = log.after(0, ...own).outcomes.map(({ token }) => token);
    const waits = ['y', 'x'].map((name) =>
      acquire(name, `w${name}`, { session: 1, waitMs: 9_000 }),
    );
    const places = log.after(0, ...waits).outcomes.map(({ revision }) => revision);
    const step = log.after(0, closeSession(1));
    t.strictSame(
      step.events.map(({ place, token }) => place + token),
      [...places, ...tokens],
    );
    t.equal(answerAt(step, 0).code, OutcomeCode.Ok);
    t.match(log.answer(5, closeSession(1)), { code: OutcomeCode.Ok, replay: true });
  },
);

t.test('a wait is not taken with a session that was closed before it came', async (t) => {
  const log = new LockDriver();
  log.after(0, open('o'), acquire('a', 'h'));
  log.after(0, closeSession(1));
  t.equal(
    log.answer(0, acquire('a', 'w', { session: 1, waitMs: 9_000 })).code,
    OutcomeCode.SessionExpired,
  );
  t.strictSame(log.get('a').places, []);
});

t.test('another principal cannot use, renew or close a session', async (t) => {
  const log = new LockDriver();
  log.after(0, open('o'));
  const stranger = { principal: 2 };
  const step = log.after(
    0,
    renewSession(1, stranger),
    closeSession(1, stranger),
    acquire('a', 'f', { session: 1, ...stranger }),
    acquire('a', 's', { session: 1, request: sequence(1), ...stranger }),
  );
  t.ok(step.outcomes.every(({ code }) => code === OutcomeCode.SessionExpired));
  t.equal(log.answer(0, renewSession(1)).code, OutcomeCode.Ok);
});

t.test('sessions of a principal are bounded by a typed refusal', async (t) => {
  const log = new LockDriver({ sessionsPerPrincipalMax: 2 });
  log.after(0, open('o1'), open('o2'));
  t.match(log.answer(0, open('o3')), { code: OutcomeCode.Limit, blob: 'sessions' });
  t.equal(log.answer(0, open('o4', { principal: 2 })).code, OutcomeCode.Ok);
  log.after(0, closeSession(1));
  t.equal(log.answer(0, open('o5')).code, OutcomeCode.Ok);
});

t.test(
  'a session that ended keeps its results for the retention, then they are gone',
  async (t) => {
    const log = new LockDriver({ resultRetentionMs: 60_000 });
    log.after(0, open('o'), acquire('x', 'h'));
    const named = { session: 1, request: sequence(1), waitMs: 9_000 };
    const wait = acquire('x', '', named);
    const place = log.answer(0, wait).revision;
    const closed = log.after(10, closeSession(1, { request: free('close') }));
    t.equal(completionOf(closed, place).code, OutcomeCode.Cancelled);
    t.match(log.answer(59_999, wait), { code: OutcomeCode.Cancelled, replay: true, entryTime: 10 });
    t.equal(
      log.answer(0, { ...wait, request: sequence(2) }).code,
      OutcomeCode.SessionExpired,
      'a new sequence has no session to run in',
    );
    t.match(log.answer(1, wait), { code: OutcomeCode.SessionExpired, replay: false });
  },
);

t.test('closing a session at the moment its wait runs out: the wait timed out', async (t) => {
  const log = new LockDriver({ expiriesPerEntryMax: 1 });
  log.after(0, open('o'), acquire('a', 'h1'), acquire('b', 'h2'));
  log.after(0, acquire('b', 'other', { waitMs: 1_000 }));
  const place = log.answer(0, acquire('a', 'w', { session: 1, waitMs: 1_000 })).revision;
  // The sweep of this entry takes the other wait only.
  const step = log.after(1_000, closeSession(1));
  t.equal(completionOf(step, place).code, OutcomeCode.WaitTimeout);
});
