/** Names and prefixes that an operator disables and enables: who is still taken, who is not. */

import t from 'tap';
import { EventKind } from '../../../src/core/locks/event.js';
import { OutcomeCode } from '../../../src/core/locks/outcome.js';
import {
  acquire,
  answerAt,
  completionOf,
  disable,
  enable,
  forceRelease,
  LockDriver,
  release,
  renew,
} from './lock-driver.js';

const OTHER = { principal: 2 };

t.test('a disabled name takes no new acquire; its neighbours do', async (t) => {
  const log = new LockDriver();
  const step = log.after(3, disable('jobs', 'd', OTHER));
  t.strictSame(step.events, [
    {
      kind: EventKind.Disabled,
      revision: 1,
      name: 'jobs',
      token: 0,
      place: 0,
      cause: 0,
      principal: 2,
    },
  ]);
  t.match(answerAt(step, 0), { code: OutcomeCode.Ok, revision: 1 });
  t.match(log.answer(1, acquire('jobs', 'i1')), { code: OutcomeCode.Disabled, revision: 1 });
  t.match(log.answer(1, acquire('jobs', 'i2', { waitMs: 5_000 })), { code: OutcomeCode.Disabled });
  for (const name of ['job', 'jobs/', 'jobs/1', 'Jobs']) {
    t.equal(log.answer(1, acquire(name, name)).code, OutcomeCode.Ok, name);
  }
  t.equal(log.answer(1, acquire('jobs', 'i1')).replay, true, 'the refusal is its result');
});

t.test('a disabled prefix covers what begins with it, the empty one everything', async (t) => {
  const log = new LockDriver();
  const rule = log.answer(0, disable('jobs/', 'd', { isPrefix: true })).revision;
  for (const name of ['jobs/', 'jobs/1', 'jobs//']) {
    const refusal = { code: OutcomeCode.Disabled, revision: rule };
    t.match(log.answer(1, acquire(name, name)), refusal, name);
  }
  for (const name of ['jobs', 'job', 'a/jobs/1']) {
    t.equal(log.answer(1, acquire(name, name)).code, OutcomeCode.Ok, name);
  }
  const step = log.after(0, disable('', 'all', { isPrefix: true }));
  t.match(step.events, [{ kind: EventKind.Disabled, name: '', place: 1 }]);
  t.match(log.answer(1, acquire('ä', 'ä')), {
    code: OutcomeCode.Disabled,
    revision: answerAt(step, 0).revision,
  });
});

t.test('of several rules the oldest is told, and each goes by itself', async (t) => {
  const log = new LockDriver();
  const prefix = log.answer(0, disable('a', 'd1', { isPrefix: true })).revision;
  const name = log.answer(0, disable('ab', 'd2')).revision;
  const other = log.answer(0, disable('ab', 'd3', { isPrefix: true })).revision;
  t.equal(log.answer(0, acquire('ab', 'i1')).revision, prefix);
  log.after(0, enable('a', 'e1', { isPrefix: true }));
  t.equal(log.answer(0, acquire('ab', 'i2')).revision, name);
  log.after(0, enable('ab', 'e2'));
  t.equal(log.answer(0, acquire('ab', 'i3')).revision, other);
  log.after(0, enable('ab', 'e3', { isPrefix: true }));
  t.equal(log.answer(0, acquire('ab', 'i4')).code, OutcomeCode.Ok);
});

t.test('disabled again, by another id, is Ok with the rule that stands and no event', async (t) => {
  const log = new LockDriver();
  const { revision } = log.answer(0, disable('a', 'd1'));
  const step = log.after(5, disable('a', 'd2', { owner: 'another', ...OTHER }));
  t.match(answerAt(step, 0), { code: OutcomeCode.Ok, revision, replay: false });
  t.strictSame(step.events, []);
  t.equal(log.answer(0, disable('a', 'd3', { isPrefix: true })).revision, revision + 1);
});

t.test('enable takes exactly that rule away; without one it is Ok with revision 0', async (t) => {
  const log = new LockDriver();
  log.after(0, disable('a', 'd'));
  const nothing = log.after(0, enable('a', 'e1', { isPrefix: true }), enable('b', 'e2'));
  t.match(nothing.outcomes, [
    { code: OutcomeCode.Ok, revision: 0 },
    { code: OutcomeCode.Ok, revision: 0 },
  ]);
  t.strictSame(nothing.events, []);
  const step = log.after(0, enable('a', 'e3', OTHER));
  const about = { kind: EventKind.Enabled, name: 'a', place: 0, cause: 0, principal: 2 };
  t.match(step.events, [about]);
  t.equal(answerAt(step, 0).revision, step.events[0]?.revision);
  t.equal(log.answer(0, acquire('a', 'i')).code, OutcomeCode.Ok);
});

t.test('in one entry a name is disabled, refused and enabled in order', async (t) => {
  const log = new LockDriver();
  const step = log.after(
    0,
    acquire('a', 'i1'),
    disable('a', 'd'),
    acquire('a', 'i2'),
    enable('a', 'e'),
    acquire('a', 'i3'),
  );
  const { Ok, Disabled, LockBusy } = OutcomeCode;
  t.strictSame(
    step.outcomes.map(({ code }) => code),
    [Ok, Ok, Disabled, Ok, LockBusy],
  );
  t.match(step.events, [{ name: 'a' }, { name: 'a', revision: 2 }, { name: 'a', revision: 3 }]);
});

t.test('a disabled lock keeps its holder and its queue, and hands over', async (t) => {
  const log = new LockDriver();
  const held = log.answer(0, acquire('a', 'i', { ttlMs: 5_000 })).token;
  const wait = acquire('a', 'w', { waitMs: 60_000, ttlMs: 5_000 });
  const place = log.answer(0, wait).revision;
  const forced = log.answer(0, acquire('a', 'w2', { waitMs: 60_000 })).revision;
  log.after(0, disable('', 'd', { isPrefix: true }));
  t.match(log.answer(1_000, renew(held)), { code: OutcomeCode.Ok, deadline: 6_000 });
  t.match(log.answer(0, wait), { code: OutcomeCode.Queued, replay: true }, 'it stands already');
  const step = log.after(0, release(held));
  t.match(completionOf(step, place), { code: OutcomeCode.Ok });
  const next = log.after(0, forceRelease('a', 'f'));
  t.match(completionOf(next, forced), { code: OutcomeCode.Ok });
});

t.test('a disabled name does not settle its lock: a refusal changes nothing', async (t) => {
  const log = new LockDriver({ expiriesPerEntryMax: 1 });
  log.after(0, disable('a', 'd'), acquire('x', 'x', { ttlMs: 1_000 }));
  log.after(0, enable('a', 'e'), acquire('a', 'h', { ttlMs: 1_000 }), disable('a', 'd2'));
  const step = log.after(1_000, acquire('a', 'i'));
  t.equal(answerAt(step, 0).code, OutcomeCode.Disabled);
  t.match(step.events, [{ name: 'x' }]);
});

t.test('bad parameters and a full principal come before DISABLED', async (t) => {
  const log = new LockDriver({ leasesPerPrincipalMax: 1 });
  log.after(0, acquire('mine', 'm'), disable('a', 'd'));
  t.match(log.answer(0, acquire('a', 'i1')), { code: OutcomeCode.Limit, blob: 'leases' });
  t.match(log.answer(0, acquire('a', 'i2', { ttlMs: 0, ...OTHER })), { blob: 'ttl_ms' });
  t.equal(log.answer(0, acquire('a', 'i3', OTHER)).code, OutcomeCode.Disabled);
  t.equal(
    log.answer(0, acquire('a', 'i4', { expectedRevision: 0, ...OTHER })).code,
    OutcomeCode.Disabled,
    'an expected revision is looked at afterwards',
  );
});
