/** How long a lease lasts, who may renew and release it, and what is said of one that ended. */

import t from 'tap';
import { EventKind } from '../../../src/core/locks/event.js';
import { LeaseEnd, OutcomeCode } from '../../../src/core/locks/outcome.js';
import {
  acquire,
  answerAt,
  LockDriver,
  open,
  release,
  renew,
  renewSession,
  sequence,
} from './lock-driver.js';

t.test('a release sent again answers released and leaves the newer hold alone', async (t) => {
  const log = new LockDriver();
  log.after(0, open('o'));
  const first = log.answer(0, acquire('a', 'i1', { session: 1 }));
  const released = log.answer(5, release(first.token, { session: 1, request: sequence(1) }));
  const second = log.answer(5, acquire('a', 'i2', { session: 1 }));
  const resent = [
    release(first.token, { session: 1, request: sequence(1) }),
    release(first.token, { session: 1, request: sequence(2) }),
    release(first.token, { request: { kind: 'free', id: 'r' } }),
    release(first.token),
  ];
  for (const command of resent) {
    const step = log.after(5, command);
    t.match(answerAt(step, 0), { code: OutcomeCode.Ok, replay: true, revision: released.revision });
    t.strictSame(step.events, []);
  }
  t.equal(log.get('a').token, second.token);
});

t.test('250 ms means 250 ms: what is granted is what is said and what is kept', async (t) => {
  const log = new LockDriver({ leaseTtlMsLeast: 100 });
  const held = log.answer(13, acquire('a', 'i', { ttlMs: 250 }));
  t.match(held, { ttlMs: 250, deadline: 263, entryTime: 13 });
  t.match(log.get('a'), { token: held.token, since: 13, deadline: 263 });
  t.strictSame(log.after(249).events, [], 'held to the last ms');
  t.match(log.after(1).events, [{ kind: EventKind.Ended, cause: LeaseEnd.Expired }]);
});

t.test('a TTL out of range is refused by type and changes nothing', async (t) => {
  const log = new LockDriver();
  const held = log.answer(0, acquire('held', 'i'));
  log.after(0, open('o'));
  const absurd = [0, 1, 999, 86_400_001, 2 ** 31 - 1, 2 ** 31, 2 ** 32 + 1_000, 2 ** 53 - 1];
  for (const ttlMs of absurd) {
    const step = log.after(
      1,
      acquire('a', `a ${ttlMs}`, { ttlMs }),
      renew(held.token, { ttlMs }),
      open(`o ${ttlMs}`, { ttlMs }),
      renewSession(1, { ttlMs }),
    );
    for (const outcome of step.outcomes) {
      t.match(outcome, { code: OutcomeCode.BadRequest, blob: 'ttl_ms' }, `${ttlMs}`);
    }
    t.strictSame(step.events, []);
  }
  t.equal(log.get('held').deadline, held.deadline);
  t.equal(log.get('a').token, 0);
});

t.test('the least and the greatest TTL are granted exactly', async (t) => {
  const log = new LockDriver();
  for (const ttlMs of [1_000, 86_400_000]) {
    const held = log.answer(1, acquire(`a${ttlMs}`, `i${ttlMs}`, { ttlMs }));
    t.match(held, { code: OutcomeCode.Ok, ttlMs, deadline: log.now + ttlMs });
  }
});

t.test('a renewal moves the deadline from its own entry, and logs no event', async (t) => {
  const log = new LockDriver();
  const held = log.answer(0, acquire('a', 'i', { ttlMs: 1_000 }));
  for (let i = 0; i < 30; i += 1) {
    const step = log.after(999, renew(held.token));
    t.match(answerAt(step, 0), { code: OutcomeCode.Ok, deadline: log.now + 1_000 });
    t.match(answerAt(step, 0), { token: held.token, ttlMs: 1_000 });
    t.strictSame(step.events, []);
  }
});

t.test('a renewal with a shorter TTL never moves the deadline back', async (t) => {
  const log = new LockDriver();
  const held = log.answer(0, acquire('a', 'i', { ttlMs: 10_000 }));
  t.match(log.answer(1_000, renew(held.token, { ttlMs: 2_000 })), {
    deadline: 10_000,
    ttlMs: 2_000,
  });
  t.match(log.answer(7_500, renew(held.token)), { deadline: 10_500 }, 'the new TTL counts later');
  t.match(log.answer(100, renew(held.token, { ttlMs: 5_000 })), { deadline: 13_600 });
});

t.test('nothing overdue is revived by its renewal', async (t) => {
  const log = new LockDriver({ expiriesPerEntryMax: 1 });
  const [first, second] = log
    .after(0, acquire('a', 'i1', { ttlMs: 1_000 }), acquire('b', 'i2', { ttlMs: 1_000 }))
    .outcomes.map(({ token }) => token);
  const step = log.after(1_000, renew(second ?? 0), release(first ?? 0));
  for (const outcome of step.outcomes) {
    t.match(outcome, { code: OutcomeCode.StaleLease, cause: LeaseEnd.Expired });
  }
});

t.test('each end of a lease is told by its cause', async (t) => {
  const log = new LockDriver();
  log.after(0, open('o', { ttlMs: 1_000 }));
  const expired = log.answer(0, acquire('a', 'i1', { ttlMs: 1_000 })).token;
  const withSession = log.answer(0, acquire('b', 'i2', { ttlMs: 9_000, session: 1 })).token;
  const own = log.answer(0, acquire('c', 'i3')).token;
  log.after(0, release(own));
  log.after(1_000);
  const causes = [expired, withSession, own, 4_711].map(
    (token) => log.answer(0, renew(token)).cause,
  );
  const { Expired, SessionExpired, Released, Unknown } = LeaseEnd;
  t.strictSame(causes, [Expired, SessionExpired, Released, Unknown]);
});

t.test(
  'another principal can neither renew nor release a lease, nor learn of its end',
  async (t) => {
    const log = new LockDriver();
    const held = log.answer(0, acquire('a', 'i')).token;
    const stranger = { principal: 2 };
    const unknown = { code: OutcomeCode.StaleLease, cause: LeaseEnd.Unknown, revision: 0 };
    t.match(log.answer(1, renew(held, stranger)), unknown);
    t.match(log.answer(1, release(held, stranger)), unknown);
    t.equal(log.get('a').token, held);
    log.after(1, release(held));
    t.match(log.answer(1, renew(held, stranger)), unknown);
    t.match(log.answer(1, release(held, stranger)), unknown);
  },
);

t.test('ended leases are remembered in a fixed number, the oldest forgotten first', async (t) => {
  const log = new LockDriver({ endedLeasesMax: 16 });
  const tokens: number[] = [];
  for (let i = 0; i < 17; i += 1) {
    const { token } = log.answer(0, acquire('a', `i${i}`));
    tokens.push(token);
    log.after(0, release(token));
  }
  const [first = 0, second = 0] = tokens;
  t.match(log.answer(0, release(first)), { code: OutcomeCode.StaleLease, cause: LeaseEnd.Unknown });
  t.match(log.answer(0, release(second)), { code: OutcomeCode.Ok, replay: true });
});

t.test(
  'a session renewal keeps all its leases, and a lease never outlives its session',
  async (t) => {
    const log = new LockDriver();
    log.after(0, open('o', { ttlMs: 3_000 }));
    const held = log.answer(0, acquire('a', 'i', { session: 1, ttlMs: 2_000 }));
    t.equal(held.deadline, 2_000);
    log.after(1_500, renewSession(1));
    t.equal(log.get('a').deadline, 3_500);
    log.after(1_500, renew(held.token, { ttlMs: 60_000 }));
    t.equal(log.get('a').deadline, 4_500, 'bounded by the session');
  },
);

t.test('a session renewal ends what ran out by itself and hands it over at once', async (t) => {
  const log = new LockDriver({ expiriesPerEntryMax: 1 });
  log.after(0, open('o', { ttlMs: 60_000 }));
  log.after(0, acquire('other', 'i0', { ttlMs: 1_000 }));
  const held = log.answer(0, acquire('a', 'i1', { session: 1, ttlMs: 1_000 }));
  log.after(0, acquire('a', 'i2', { waitMs: 9_000 }));
  const step = log.after(1_000, renewSession(1), renew(held.token));
  t.equal(answerAt(step, 0).code, OutcomeCode.Ok);
  t.match(answerAt(step, 1), { code: OutcomeCode.StaleLease, cause: LeaseEnd.Expired });
  t.ok(log.get('a').token > held.token, 'the waiter holds');
});

t.test(
  'tokens rise over all locks, also after idle locks were deleted and made anew',
  async (t) => {
    const log = new LockDriver({ idleLocksMax: 0 });
    let last = 0;
    for (let i = 0; i < 50; i += 1) {
      const { token } = log.answer(1, acquire(`n${i % 3}`, `i${i}`));
      t.ok(token > last);
      last = token;
      log.after(0, release(token));
    }
  },
);

t.test('an expected revision passes until a grant or an end comes after it', async (t) => {
  const log = new LockDriver({ idleLocksMax: 0 });
  const attempt = (id: string, expectedRevision: number): number =>
    log.answer(0, acquire('a', id, { expectedRevision })).code;
  const held = log.answer(0, acquire('a', 'i1')).token;
  const { revision } = log.answer(0, release(held));
  t.equal(attempt('e1', revision - 1), OutcomeCode.Conflict);
  // Step 1 of that entry deleted the idle lock: F answers for it.
  t.equal(attempt('e2', revision), OutcomeCode.Ok);
  t.equal(attempt('e3', revision + 1), OutcomeCode.LockBusy, 'the grant is expected, and holds');
  t.equal(attempt('e4', revision), OutcomeCode.Conflict);
});
