/** What operators end by force and expel, and what a guard reports. What is disabled: beside it. */

import t from 'tap';
import { EventKind } from '../../../src/core/locks/event.js';
import { LeaseEnd, OutcomeCode } from '../../../src/core/locks/outcome.js';
import {
  acquire,
  answerAt,
  cancel,
  completionOf,
  disable,
  enable,
  expireSession,
  forceRelease,
  free,
  LockDriver,
  open,
  release,
  renew,
  renewSession,
  reportRefusal,
  sequence,
} from './lock-driver.js';

const OTHER = { principal: 2 };

t.test('a force-release ends the lease, whoever owns it, and says what it removed', async (t) => {
  const log = new LockDriver();
  const held = log.answer(5, acquire('a', 'i', { metadata: 'build 7', ttlMs: 9_000 })).token;
  const step = log.after(10, forceRelease('a', 'f', OTHER));
  t.strictSame(step.events, [
    {
      kind: EventKind.Ended,
      revision: 2,
      name: 'a',
      token: held,
      place: 0,
      cause: LeaseEnd.Forced,
      principal: 1,
    },
  ]);
  t.match(answerAt(step, 0), {
    code: OutcomeCode.Ok,
    revision: 2,
    token: held,
    holderSince: 5,
    deadline: 9_005,
    holderPrincipal: 1,
    blob: 'build 7',
    subject: '',
  });
  t.equal(log.get('a').token, 0);
});

t.test('the holder who was forced learns it when it asks, by renewing or releasing', async (t) => {
  const log = new LockDriver();
  const held = log.answer(0, acquire('a', 'i')).token;
  const { revision } = log.answer(0, forceRelease('a', 'f', OTHER));
  const stale = { code: OutcomeCode.StaleLease, cause: LeaseEnd.Forced, revision };
  t.match(log.answer(1, renew(held)), stale);
  t.match(log.answer(1, release(held)), stale);
});

t.test('the lease or token that is meant must be the holder’s, else CONFLICT', async (t) => {
  const log = new LockDriver();
  const first = log.answer(0, acquire('a', 'i1', { metadata: 'who' })).token;
  log.after(0, release(first));
  const held = log.answer(3, acquire('a', 'i2', { metadata: 'who', ttlMs: 9_000 })).token;
  const conflict = {
    code: OutcomeCode.Conflict,
    token: held,
    holderSince: 3,
    deadline: 9_003,
    holderPrincipal: 1,
    blob: 'who',
    revision: held,
  };
  const wrong = [
    { lease: first },
    { token: first },
    { token: held + 1 },
    { token: 0 },
    { lease: held, token: first },
    { lease: first, token: held },
    { lease: 99_999 },
  ];
  for (const [index, meant] of wrong.entries()) {
    const step = log.after(1, forceRelease('a', `f${index}`, { ...meant, ...OTHER }));
    t.match(answerAt(step, 0), conflict);
    t.match(step.events, [{ kind: EventKind.Refused, name: 'a', cause: OutcomeCode.Conflict }]);
    t.equal(step.events[0]?.principal, 2, 'the one who asked');
  }
  t.equal(log.get('a').token, held);
  t.equal(log.answer(1, forceRelease('a', 'r1', { lease: held })).code, OutcomeCode.Ok);
  const token = log.answer(1, acquire('a', 'i3')).token;
  t.equal(log.answer(1, forceRelease('a', 'r2', { token })).code, OutcomeCode.Ok);
  const last = log.answer(1, acquire('a', 'i4')).token;
  const both = forceRelease('a', 'both', { lease: last, token: last });
  t.equal(log.answer(1, both).code, OutcomeCode.Ok);
});

t.test('when nobody holds it is CONFLICT with zeroes and the lock’s last revision', async (t) => {
  const log = new LockDriver({ idleLocksMax: 0 });
  t.match(log.answer(0, forceRelease('never', 'f1')), { code: OutcomeCode.Conflict, revision: 0 });
  const held = log.answer(0, acquire('a', 'i')).token;
  const { revision } = log.answer(0, release(held));
  // The entry of the question deletes the idle lock: what is left is F, the shared floor.
  const answer = log.answer(1, forceRelease('a', 'f2'));
  const nobody = { token: 0, holderSince: 0, deadline: 0, holderPrincipal: 0, blob: '' };
  t.match(answer, { code: OutcomeCode.Conflict, revision, ...nobody });
  t.equal(log.answer(1, forceRelease('other', 'f3')).revision, revision, 'it creates no lock');
});

t.test('an idle lock that is kept tells its own last revision', async (t) => {
  const log = new LockDriver();
  const held = log.answer(0, acquire('a', 'i')).token;
  const { revision } = log.answer(0, release(held));
  log.after(0, acquire('b', 'i2'));
  t.match(log.answer(0, forceRelease('a', 'f')), { code: OutcomeCode.Conflict, revision });
});

t.test(
  'the barrier token is the end’s revision, and the next grant is the one after',
  async (t) => {
    const log = new LockDriver();
    const held = log.answer(0, acquire('a', 'i', { ttlMs: 60_000 })).token;
    const places = ['w1', 'w2'].map((id) => {
      return log.answer(0, acquire('a', id, { waitMs: 9_000, ...OTHER })).revision;
    });
    const step = log.after(10, forceRelease('a', 'f'));
    const barrier = answerAt(step, 0).revision;
    t.ok(barrier > held);
    t.match(step.events, [
      { kind: EventKind.Ended, revision: barrier, token: held },
      { kind: EventKind.Granted, revision: barrier + 1, place: places[0] },
    ]);
    t.match(completionOf(step, places[0] ?? 0), { code: OutcomeCode.Ok, token: barrier + 1 });
    t.equal(answerAt(step, 0).token, held, 'what was removed, not who came next');
    t.strictSame(log.get('a').places, places.slice(1));
  },
);

/** A queue whose first waiters are dead, in an entry whose sweep frees one thing at most. */
function deadQueue(): LockDriver {
  const log = new LockDriver({ expiriesPerEntryMax: 1 });
  log.after(0, open('o', { ttlMs: 60_000 }), acquire('other', 'x', { ttlMs: 1_000 }));
  log.after(0, acquire('other2', 'y', { ttlMs: 1_000 }), acquire('a', 'h', { ttlMs: 60_000 }));
  log.after(0, acquire('other2', 'first', { waitMs: 900, ttlMs: 1_000 }));
  const waits = [900, 950, 30_000, 30_000];
  for (const [index, waitMs] of waits.entries()) {
    const session = index % 2 === 0 ? { session: 1 } : {};
    log.after(0, acquire('a', `w${index}`, { waitMs, ...session }));
  }
  return log;
}

t.test('dead waiters leave before the end, also when the sweep is behind', async (t) => {
  const log = deadQueue();
  const { token, places } = log.get('a');
  const step = log.after(1_000, forceRelease('a', 'f', { token }));
  const barrier = answerAt(step, 0).revision;
  const ofLock = step.events.filter(({ name }) => name === 'a');
  t.match(ofLock, [
    { kind: EventKind.Left, place: places[0], cause: OutcomeCode.WaitTimeout },
    { kind: EventKind.Left, place: places[1], cause: OutcomeCode.WaitTimeout },
    { kind: EventKind.Ended, revision: barrier, cause: LeaseEnd.Forced },
    { kind: EventKind.Granted, revision: barrier + 1, place: places[2] },
  ]);
  t.ok(
    step.events.every(({ place, name }) => name === 'a' || place === 0 || place < (places[0] ?? 0)),
    'the sweep got no further than the wait elsewhere',
  );
  t.strictSame(log.get('a').places, places.slice(3));
});

t.test('a queue of dead waiters only: the lock is free after the barrier', async (t) => {
  const log = new LockDriver({ expiriesPerEntryMax: 1 });
  log.after(0, acquire('x', 'x'), acquire('x', 'first', { waitMs: 500 }));
  log.after(0, acquire('a', 'h', { ttlMs: 60_000 }));
  for (const id of ['w1', 'w2']) log.after(0, acquire('a', id, { waitMs: 500 }));
  const step = log.after(500, forceRelease('a', 'f'));
  const ofLock = step.events.filter(({ name }) => name === 'a').map(({ kind }) => kind);
  t.strictSame(ofLock, [EventKind.Left, EventKind.Left, EventKind.Ended]);
  t.equal(step.events.at(-1)?.revision, answerAt(step, 0).revision);
  t.equal(log.answer(0, acquire('a', 'next')).token, answerAt(step, 0).revision + 1);
});

t.test(
  'an overdue holder has expired before: its token is no longer that of a holder',
  async (t) => {
    const log = new LockDriver({ expiriesPerEntryMax: 1 });
    log.after(0, acquire('x', 'x', { ttlMs: 1_000 }));
    const held = log.answer(0, acquire('a', 'h', { ttlMs: 1_000 })).token;
    const place = log.answer(0, acquire('a', 'w', { waitMs: 9_000 })).revision;
    const step = log.after(1_000, forceRelease('a', 'f', { token: held }));
    const ofLock = step.events.filter(({ name }) => name === 'a');
    t.match(ofLock, [
      { kind: EventKind.Ended, token: held, cause: LeaseEnd.Expired },
      { kind: EventKind.Granted, place },
      { kind: EventKind.Refused, cause: OutcomeCode.Conflict },
    ]);
    const token = log.get('a').token;
    t.match(answerAt(step, 0), { code: OutcomeCode.Conflict, token, holderSince: 1_000 });
  },
);

t.test('heard again, a force-release has no second effect', async (t) => {
  const log = new LockDriver();
  log.after(0, acquire('a', 'i', { metadata: 'm' }));
  const first = log.answer(5, forceRelease('a', 'f', OTHER));
  const next = log.answer(0, acquire('a', 'i2')).token;
  const again = log.after(9, forceRelease('a', 'f', OTHER));
  t.strictSame(answerAt(again, 0), { ...first, replay: true }, 'its entry’s time as well');
  t.strictSame(again.events, []);
  t.equal(log.get('a').token, next);
  const refused = log.after(0, forceRelease('b', 'g'), forceRelease('b', 'g'));
  t.equal(refused.events.length, 1, 'a refusal that is heard again leaves no second event');
});

t.test('the same id with anything else is REQUEST_MISMATCH and leaves no event', async (t) => {
  const log = new LockDriver();
  log.after(0, acquire('a', 'i'), open('o'), open('o2'));
  const commands = [
    forceRelease('a', 'f', { token: 1 }),
    disable('d', 'd'),
    enable('e', 'e'),
    reportRefusal('g', 3, 4, 'g'),
    expireSession(1, 's'),
  ];
  log.after(0, ...commands);
  const others = [
    forceRelease('a', 'f'),
    forceRelease('a', 'f', { token: 2 }),
    forceRelease('a', 'f', { token: 1, lease: 1 }),
    forceRelease('a', 'f', { token: 1, owner: 'another' }),
    forceRelease('a', 'f', { token: 1, metadata: 'another' }),
    disable('d', 'd', { isPrefix: true }),
    enable('d', 'd'),
    enable('e', 'e', { isPrefix: true }),
    reportRefusal('g', 2, 4, 'g'),
    reportRefusal('g', 3, 5, 'g'),
    reportRefusal('g', 3, 4, 'g', { refusals: 2 }),
    reportRefusal('g', 3, 4, 'g', { metadata: 'redis' }),
    expireSession(2, 's'),
  ];
  const step = log.after(0, ...others);
  for (const { code } of step.outcomes) t.equal(code, OutcomeCode.RequestMismatch);
  t.strictSame(step.events, []);
  t.ok(log.after(0, ...commands).outcomes.every(({ replay }) => replay));
});

t.test('a request cancelled before it came has no effect', async (t) => {
  const log = new LockDriver();
  const held = log.answer(0, acquire('a', 'i')).token;
  log.after(0, cancel('f'));
  const step = log.after(0, forceRelease('a', 'f'));
  t.match(answerAt(step, 0), { code: OutcomeCode.Cancelled, replay: true });
  t.strictSame(step.events, []);
  t.equal(log.get('a').token, held);
});

t.test('cancelling what an operator did changes nothing and says how it went', async (t) => {
  const log = new LockDriver();
  log.after(0, acquire('a', 'i'));
  log.after(0, forceRelease('a', 'f'), forceRelease('a', 'g'));
  const step = log.after(0, cancel('f'), cancel('g'));
  t.match(answerAt(step, 0), {
    code: OutcomeCode.Ok,
    cause: OutcomeCode.Ok,
    token: 0,
    subject: '',
  });
  t.match(answerAt(step, 1), { code: OutcomeCode.Ok, cause: OutcomeCode.Conflict });
});

t.test('with its table of results full, an operator is refused like anybody else', async (t) => {
  const log = new LockDriver({ freeResultsMax: 1 });
  log.after(0, acquire('a', 'i'));
  const step = log.after(0, forceRelease('a', 'f'));
  t.match(answerAt(step, 0), { code: OutcomeCode.Limit, blob: 'request' });
  t.strictSame(step.events, [], 'what the id alone decides leaves no event');
});

t.test('a command without a free-form id is refused by the machine itself', async (t) => {
  const log = new LockDriver();
  log.after(0, acquire('a', 'i'), open('o'));
  const step = log.after(
    0,
    forceRelease('a', '', { request: { kind: 'none' } }),
    forceRelease('a', '', { request: sequence(1), session: 1 }),
  );
  for (const outcome of step.outcomes) {
    t.match(outcome, { code: OutcomeCode.BadRequest, blob: 'request' });
  }
  t.strictSame(step.events, []);
});

t.test('an expelled session loses its waits in order of place, then its leases', async (t) => {
  const log = new LockDriver();
  log.after(0, open('o', { principal: 1 }), acquire('x', 'h1'), acquire('y', 'h2'));
  const own = ['b', 'a'].map((name) => acquire(name, name, { session: 1 }));
  const tokens = log.after(0, ...own).outcomes.map(({ token }) => token);
  const waits = ['y', 'x'].map((name) => acquire(name, `w${name}`, { session: 1, waitMs: 9_000 }));
  const places = log.after(0, ...waits).outcomes.map(({ revision }) => revision);
  const next = log.answer(0, acquire('a', 'next', { waitMs: 9_000, ...OTHER })).revision;
  const step = log.after(0, { ...expireSession(1, 'e'), ...OTHER });
  t.match(step.events, [
    { kind: EventKind.Left, place: places[0], cause: OutcomeCode.SessionExpired },
    { kind: EventKind.Left, place: places[1], cause: OutcomeCode.SessionExpired },
    { kind: EventKind.Ended, token: tokens[0], cause: LeaseEnd.Forced },
    { kind: EventKind.Ended, token: tokens[1], cause: LeaseEnd.Forced },
    { kind: EventKind.Granted, place: next },
    { kind: EventKind.Expelled, name: '', cause: LeaseEnd.Forced, principal: 1, token: 0 },
  ]);
  t.match(answerAt(step, 0), { code: OutcomeCode.Ok, revision: step.events.at(-1)?.revision });
});

t.test('the results of an expelled session answer as those of an expired one', async (t) => {
  const log = new LockDriver({ resultRetentionMs: 60_000 });
  log.after(0, open('o'), acquire('x', 'h'));
  const named = { session: 1, request: sequence(1) };
  const taken = acquire('a', '', named);
  const first = log.answer(0, taken);
  const wait = acquire('x', '', { ...named, request: sequence(2), waitMs: 9_000 });
  const place = log.answer(0, wait).revision;
  const step = log.after(10, expireSession(1, 'e'));
  t.equal(completionOf(step, place).code, OutcomeCode.SessionExpired);
  const expired = { code: OutcomeCode.SessionExpired };
  t.match(log.answer(1, renewSession(1)), expired);
  t.match(log.answer(1, taken), { ...first, replay: true });
  t.match(log.answer(1, wait), { ...expired, replay: true, entryTime: 10 });
  t.match(log.answer(1, { ...wait, request: sequence(3) }), { ...expired, replay: false });
  t.match(log.answer(1, renew(first.token)), {
    code: OutcomeCode.StaleLease,
    cause: LeaseEnd.Forced,
  });
  t.match(log.answer(60_000, taken), { ...expired, replay: false }, 'the retention is over');
});

t.test('what was overdue in an expelled session ended by itself', async (t) => {
  const log = new LockDriver({ expiriesPerEntryMax: 1 });
  log.after(0, open('o', { ttlMs: 60_000 }), acquire('x', 'x', { ttlMs: 1_000 }));
  const inSession = { session: 1, ttlMs: 1_000 };
  const dead = log.answer(0, acquire('a', 'i1', inSession)).token;
  const live = log.answer(0, acquire('b', 'i2', { ...inSession, ttlMs: 9_000 })).token;
  log.after(0, acquire('c', 'c', { ttlMs: 9_000 }), acquire('c', 'w0', { waitMs: 1_000 }));
  const place = log.answer(0, acquire('c', 'w', { session: 1, waitMs: 1_000 })).revision;
  const step = log.after(1_000, expireSession(1, 'e'));
  const own = step.events.filter(
    ({ name, place: at }) => name !== 'x' && (at === 0 || at === place),
  );
  t.match(own, [
    { kind: EventKind.Left, place, cause: OutcomeCode.WaitTimeout },
    { kind: EventKind.Ended, token: dead, cause: LeaseEnd.Expired },
    { kind: EventKind.Ended, token: live, cause: LeaseEnd.Forced },
    { kind: EventKind.Expelled },
  ]);
});

t.test('a session that is not live, or unknown, is SESSION_EXPIRED with an event', async (t) => {
  const log = new LockDriver({ expiriesPerEntryMax: 1 });
  log.after(0, open('o', { ttlMs: 1_000 }), acquire('x', 'x', { ttlMs: 1_000 }));
  const held = log.answer(0, acquire('a', 'i', { session: 1, ttlMs: 1_000 })).token;
  const step = log.after(1_000, { ...expireSession(1, 'e'), ...OTHER });
  t.equal(answerAt(step, 0).code, OutcomeCode.SessionExpired);
  t.match(step.events, [
    { kind: EventKind.Ended, name: 'x' },
    { kind: EventKind.Ended, token: held, cause: LeaseEnd.SessionExpired },
    { kind: EventKind.Refused, name: '', cause: OutcomeCode.SessionExpired, principal: 2 },
  ]);
  const unknown = log.after(0, expireSession(77, 'u'), expireSession(1, 'again'));
  for (const { code } of unknown.outcomes) t.equal(code, OutcomeCode.SessionExpired);
  t.match(unknown.events, [{ kind: EventKind.Refused }, { kind: EventKind.Refused }]);
});

t.test('a guard’s report is an event and nothing else', async (t) => {
  const log = new LockDriver();
  const held = log.answer(0, acquire('a', 'i')).token;
  const report = reportRefusal('a', 41, 42, 'r', { principal: 3, metadata: 'redis', refusals: 9 });
  const step = log.after(0, report);
  t.strictSame(step.events, [
    {
      kind: EventKind.Fenced,
      revision: 2,
      name: 'a',
      token: 41,
      place: 42,
      cause: OutcomeCode.StaleToken,
      principal: 3,
    },
  ]);
  t.match(answerAt(step, 0), { code: OutcomeCode.Ok, revision: 2 });
  t.equal(log.get('a').token, held);
  const pinned = acquire('a', 'pinned', { expectedRevision: held });
  log.after(0, release(held, { request: free('rel') }));
  t.equal(log.answer(0, pinned).revision, 3, 'not the report’s: the lock’s last revision');
  t.match(log.answer(0, reportRefusal('unheard of', 1, 2, 'r2')), { code: OutcomeCode.Ok });
  t.equal(log.answer(0, report).replay, true);
});

t.test('names of events outlive the record that they were of, until the next entry', async (t) => {
  const log = new LockDriver();
  log.after(0, disable('a long name that is taken away', 'd'));
  const step = log.after(
    0,
    enable('a long name that is taken away', 'e'),
    disable('another that takes its bytes!!', 'd2'),
    forceRelease('no such lock', 'f'),
    acquire('and a lock', 'i', { metadata: 'with metadata' }),
  );
  t.strictSame(
    step.events.map(({ name }) => name),
    [
      'a long name that is taken away',
      'another that takes its bytes!!',
      'no such lock',
      'and a lock',
    ],
  );
});
