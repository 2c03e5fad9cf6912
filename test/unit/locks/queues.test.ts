/** Who is granted, when, and who is told what, while several want one lock. */

import t from 'tap';
import { EventKind } from '../../../src/core/locks/event.js';
import { LeaseEnd, OutcomeCode } from '../../../src/core/locks/outcome.js';
import type { ModelCommand } from '../../model/model-types.js';
import {
  acquire,
  answerAt,
  cancel,
  closeSession,
  completionOf,
  grantsIn,
  keepWaits,
  LockDriver,
  open,
  release,
  renew,
  renewSession,
} from './lock-driver.js';

t.test(
  'a waiter whose session died leaves, and the next live one is granted at once',
  async (t) => {
    const log = new LockDriver();
    log.after(0, open('o1', { ttlMs: 2_000 }), open('o2', { ttlMs: 60_000 }));
    const held = log.answer(0, acquire('a', 'holder', { ttlMs: 30_000 }));
    const queued = log.after(
      0,
      acquire('a', 'dying', { session: 1, waitMs: 60_000 }),
      acquire('a', 'living', { session: 2, waitMs: 60_000 }),
    );
    const dying = answerAt(queued, 0).revision;
    const living = answerAt(queued, 1).revision;
    const step = log.after(2_000, release(held.token));
    t.equal(completionOf(step, dying).code, OutcomeCode.SessionExpired);
    t.equal(completionOf(step, living).code, OutcomeCode.Ok);
    t.strictSame(log.get('a').places, []);
  },
);

t.test('a dead waiter is told when its session dies, not when the lock is freed', async (t) => {
  const log = new LockDriver();
  log.after(0, open('o1', { ttlMs: 2_000 }), acquire('a', 'holder', { ttlMs: 30_000 }));
  const place = log.answer(0, acquire('a', 'w', { session: 1, waitMs: 60_000 })).revision;
  t.strictSame(log.after(1_999).completions, []);
  const step = log.after(1);
  t.equal(completionOf(step, place).code, OutcomeCode.SessionExpired);
  t.match(step.events, [{ kind: EventKind.Left, place, cause: OutcomeCode.SessionExpired }]);
  t.strictSame(log.get('a').places, []);
});

t.test('an overdue waiter that no sweep has reached is passed over in the hand-over', async (t) => {
  const log = new LockDriver({ expiriesPerEntryMax: 1 });
  const held = log.answer(0, acquire('a', 'holder', { ttlMs: 30_000 }));
  const places = log
    .after(
      0,
      acquire('a', 'w1', { waitMs: 1_000 }),
      acquire('a', 'w2', { waitMs: 1_000 }),
      acquire('a', 'w3', { waitMs: 1_000 }),
      acquire('a', 'w4', { waitMs: 5_000 }),
    )
    .outcomes.map(({ revision }) => revision);
  const step = log.after(1_000, release(held.token));
  const codes = places.map((place) => completionOf(step, place).code);
  const { WaitTimeout, Ok } = OutcomeCode;
  t.strictSame(codes, [WaitTimeout, WaitTimeout, WaitTimeout, Ok]);
});

t.test(
  'names that are prefixes of one another, empty segments and long ones are independent',
  async (t) => {
    const log = new LockDriver();
    const names = ['a', 'a/', 'a/b', 'a//b', '/', '//', 'ä', 'a\u0308', '😀', 'x'.repeat(512)];
    names.push('x'.repeat(511));
    const step = log.after(0, ...names.map((name) => acquire(name, `id ${name}`)));
    t.ok(step.outcomes.every(({ code }) => code === OutcomeCode.Ok));
    t.equal(grantsIn(step).length, names.length);
    const freed = log.after(0, release(answerAt(step, 1).token));
    t.match(freed.events, [{ kind: EventKind.Ended, name: 'a/' }]);
    for (const [index, name] of names.entries()) {
      t.equal(log.get(name).token, index === 1 ? 0 : answerAt(step, index).token, name);
    }
  },
);

t.test('a try takes a dead lock immediately', async (t) => {
  const log = new LockDriver({ expiriesPerEntryMax: 1 });
  log.after(0, acquire('b', 'i1', { ttlMs: 1_000 }), acquire('a', 'i2', { ttlMs: 1_000 }));
  t.equal(log.answer(999, acquire('a', 'i3')).code, OutcomeCode.LockBusy);
  // The sweep frees b only; a is freed by the try itself.
  const step = log.after(1, acquire('a', 'i4'));
  t.equal(answerAt(step, 0).code, OutcomeCode.Ok);
  t.match(step.events, [
    { kind: EventKind.Ended, name: 'b', cause: LeaseEnd.Expired },
    { kind: EventKind.Ended, name: 'a', cause: LeaseEnd.Expired },
    { kind: EventKind.Granted, name: 'a' },
  ]);
});

t.test(
  'a try never overtakes: it is busy while anyone waits, and the waiter gets the lock',
  async (t) => {
    const log = new LockDriver();
    const held = log.answer(0, acquire('a', 'holder'));
    const place = log.answer(0, acquire('a', 'waiter', { waitMs: 9_000 })).revision;
    const step = log.after(1, release(held.token), acquire('a', 'try'));
    const granted = completionOf(step, place);
    t.equal(granted.code, OutcomeCode.Ok);
    t.match(answerAt(step, 1), { code: OutcomeCode.LockBusy, token: granted.token });
  },
);

t.test('ten thousand waiters, one release: one grant', async (t) => {
  const log = new LockDriver();
  const held = log.answer(0, acquire('a', 'holder'));
  const waits: ModelCommand[] = [];
  for (let i = 0; i < 10_000; i += 1) waits.push(acquire('a', `w${i}`, { waitMs: 9_000 }));
  const queued = log.after(0, ...waits);
  t.equal(answerAt(queued, 9_999).ahead, 9_999);
  const step = log.after(1, release(held.token));
  t.equal(step.events.length, 2, 'one end, one grant');
  t.equal(step.completions.length, 1);
  t.equal(step.completions[0]?.place, answerAt(queued, 0).revision);
});

t.test(
  'the order of grants is the order of first commit, also after every wait was sent again',
  async (t) => {
    const log = new LockDriver();
    let token = log.answer(0, acquire('a', 'holder')).token;
    const waits = [1, 2, 3, 4, 5].map((i) => acquire('a', `w${i}`, { waitMs: 9_000 }));
    const places = log.after(0, ...waits).outcomes.map(({ revision }) => revision);
    const again = log.after(1, ...[...waits].reverse());
    t.strictSame(
      again.outcomes.map(({ code, replay, revision }) => [code, replay, revision]),
      [...places].reverse().map((place) => [OutcomeCode.Queued, true, place]),
    );
    t.strictSame(again.events, []);
    for (const place of places) {
      const step = log.after(1, release(token));
      t.strictSame(
        step.completions.map((completion) => completion.place),
        [place],
      );
      token = completionOf(step, place).token;
    }
  },
);

function permutations<T>(items: readonly T[]): T[][] {
  if (items.length === 0) return [[]];
  return items.flatMap((item, index) => {
    const rest = [...items.slice(0, index), ...items.slice(index + 1)];
    return permutations(rest).map((others) => [item, ...others]);
  });
}

t.test(
  'granted, cancelled and timed out exclude each other in every order of events',
  async (t) => {
    const waitMs = 1_000;
    for (const order of permutations(['release', 'cancel', 'again', 'time'])) {
      const log = new LockDriver();
      const held = log.answer(0, acquire('a', 'holder', { ttlMs: 60_000 }));
      const wait = acquire('a', 'w', { waitMs });
      log.after(0, wait);
      const finals: number[] = [];
      const answers: number[] = [];
      for (const step of order) {
        const commands: Record<string, ModelCommand[]> = {
          release: [release(held.token)],
          cancel: [cancel('w')],
          again: [wait],
          time: [],
        };
        const given = log.after(step === 'time' ? waitMs : 0, ...(commands[step] ?? []));
        finals.push(...given.completions.map(({ outcome }) => outcome.code));
        if (step === 'cancel') answers.push(answerAt(given, 0).cause);
      }
      const first = order.find((step) => step !== 'again');
      const { Ok, Cancelled, WaitTimeout } = OutcomeCode;
      const wanted = first === 'release' ? Ok : first === 'cancel' ? Cancelled : WaitTimeout;
      t.strictSame(finals, [wanted], order.join(', '));
      t.strictSame(answers, [wanted], 'the cancel says what became of the wait');
      t.match(log.answer(0, wait), { code: wanted, replay: true });
      t.equal(log.get('a').token > held.token, wanted === Ok);
    }
  },
);

t.test('a wait that ends at the moment of the release is not granted', async (t) => {
  const log = new LockDriver();
  const held = log.answer(0, acquire('a', 'holder', { ttlMs: 60_000 }));
  const place = log.answer(0, acquire('a', 'w', { waitMs: 1_000 })).revision;
  const step = log.after(1_000, release(held.token));
  t.equal(completionOf(step, place).code, OutcomeCode.WaitTimeout);
  t.equal(log.get('a').token, 0);
});

t.test('a wait of ten TTLs in a renewed session ends in a grant with the full TTL', async (t) => {
  const log = new LockDriver();
  log.after(0, open('o', { ttlMs: 1_000 }), acquire('a', 'holder', { ttlMs: 60_000 }));
  const held = log.get('a').token;
  const place = log.answer(
    0,
    acquire('a', 'w', { session: 1, ttlMs: 1_000, waitMs: 60_000 }),
  ).revision;
  for (let i = 0; i < 20; i += 1) t.strictSame(log.after(500, renewSession(1)).completions, []);
  const granted = completionOf(log.after(0, release(held)), place);
  t.match(granted, { code: OutcomeCode.Ok, deadline: log.now + 1_000, ttlMs: 1_000 });
});

t.test(
  'an implicit wait lives by keep-alives; its lease then stands alone with its full TTL',
  async (t) => {
    const log = new LockDriver();
    const held = log.answer(0, acquire('a', 'holder', { ttlMs: 600_000 }));
    const place = log.answer(0, acquire('a', 'w', { ttlMs: 1_000, waitMs: 600_000 })).revision;
    for (let i = 0; i < 20; i += 1) {
      t.strictSame(log.after(9_999, keepWaits(place)).completions, []);
    }
    const granted = completionOf(log.after(9_000, release(held.token)), place);
    t.match(granted, { code: OutcomeCode.Ok, deadline: log.now + 1_000 });
    log.after(999, renew(granted.token));
    t.equal(log.after(999).events.length, 0, 'no lapse reaches the lease');
    t.equal(log.after(1).events.length, 1, 'its own TTL does');
  },
);

t.test('an implicit wait without keep-alives lapses and delays nobody', async (t) => {
  const log = new LockDriver();
  const held = log.answer(0, acquire('a', 'holder', { ttlMs: 600_000 }));
  const place = log.answer(0, acquire('a', 'w', { waitMs: 600_000 })).revision;
  log.after(9_999);
  t.strictSame(log.get('a').places, [place]);
  const lapsed = log.after(1, keepWaits(place), release(held.token), acquire('a', 'try'));
  t.equal(completionOf(lapsed, place).code, OutcomeCode.SessionExpired);
  t.equal(answerAt(lapsed, 2).code, OutcomeCode.Ok);
});

t.test(
  'the busy answer says who holds, since when, until when, and with what metadata',
  async (t) => {
    const log = new LockDriver();
    const held = log.answer(
      7,
      acquire('a', 'h', { metadata: 'build 7', principal: 2, ttlMs: 5_000 }),
    );
    t.match(log.answer(10, acquire('a', 'try')), {
      code: OutcomeCode.LockBusy,
      token: held.token,
      holderSince: 7,
      deadline: 5_007,
      holderPrincipal: 2,
      blob: 'build 7',
    });
  },
);

t.test('a full queue refuses by type, and has room again when a waiter left', async (t) => {
  const log = new LockDriver({ waitersPerLockMax: 2 });
  log.after(0, acquire('a', 'holder', { ttlMs: 60_000 }));
  log.after(0, acquire('a', 'w1', { waitMs: 9_000 }), acquire('a', 'w2', { waitMs: 9_000 }));
  t.match(log.answer(0, acquire('a', 'w3', { waitMs: 9_000 })), {
    code: OutcomeCode.Limit,
    blob: 'waiters',
  });
  log.after(0, cancel('w1'));
  t.match(log.answer(0, acquire('a', 'w4', { waitMs: 9_000 })), {
    code: OutcomeCode.Queued,
    ahead: 1,
  });
});

t.test(
  'closing a session cancels its waits and hands its locks over in the same entry',
  async (t) => {
    const log = new LockDriver();
    log.after(0, open('o1'), open('o2'));
    log.after(0, acquire('a', 'h', { session: 1 }), acquire('b', 'other'));
    const [own, next] = log
      .after(
        0,
        acquire('b', 'own wait', { session: 1, waitMs: 9_000 }),
        acquire('a', 'next', { session: 2, waitMs: 9_000 }),
      )
      .outcomes.map(({ revision }) => revision);
    const step = log.after(1, closeSession(1));
    t.equal(completionOf(step, own ?? 0).code, OutcomeCode.Cancelled);
    t.equal(completionOf(step, next ?? 0).code, OutcomeCode.Ok);
    t.match(step.events, [
      { kind: EventKind.Left, name: 'b', cause: OutcomeCode.Cancelled },
      { kind: EventKind.Ended, name: 'a', cause: LeaseEnd.SessionClosed },
      { kind: EventKind.Granted, name: 'a' },
    ]);
  },
);
