/** One request id: one effect, one stable result. */

import t from 'tap';
import { CommandKind } from '../../../src/core/locks/command.js';
import { LeaseEnd, OutcomeCode } from '../../../src/core/locks/outcome.js';
import { SettingNumber } from '../../../src/core/locks/settings.js';
import type { ModelCommand, ModelOutcome } from '../../model/model-types.js';
import {
  acquire,
  answerAt,
  cancel,
  changeSettings,
  closeSession,
  completionOf,
  free,
  LockDriver,
  open,
  release,
  renew,
  sequence,
} from './lock-driver.js';

/** An acquire in session 1, named by a sequence. */
function inSession(
  name: string,
  number: number,
  fields: Partial<ModelCommand> = {},
  mark?: number,
  singles?: readonly number[],
): ModelCommand {
  return acquire(name, '', { session: 1, request: sequence(number, mark, singles), ...fields });
}

function codesOf(outcomes: readonly ModelOutcome[]): number[] {
  return outcomes.map(({ code }) => code);
}

t.test('a duplicate has the first result and no effect, in the same entry and later', async (t) => {
  const log = new LockDriver();
  log.after(0, open('o'));
  for (const command of [acquire('a', 'id'), inSession('b', 1)]) {
    const step = log.after(1, command, command);
    const first = answerAt(step, 0);
    t.equal(first.code, OutcomeCode.Ok);
    t.strictSame(answerAt(step, 1), { ...first, replay: true });
    t.equal(step.events.length, 1);
    log.after(1, release(first.token));
    const late = log.after(1, command);
    t.strictSame(answerAt(late, 0), { ...first, replay: true }, 'the grant of then, not a new one');
    t.strictSame(late.events, []);
  }
});

t.test(
  'the same id with any other parameter is a mismatch, absent apart from each value',
  async (t) => {
    const log = new LockDriver();
    const first = acquire('a', 'id', { ttlMs: 5_000 });
    log.after(0, first);
    const others: ModelCommand[] = [
      { ...first, ttlMs: 5_001 },
      { ...first, ttlMs: undefined },
      { ...first, name: 'a/' },
      { ...first, waitMs: 0 },
      { ...first, mode: 0 },
      { ...first, metadata: '' },
      { ...first, expectedRevision: 0 },
      { ...first, notAfter: 0 },
      { ...first, session: 9 },
      release(1, { request: free('id') }),
      cancel('x', { request: free('id') }),
      open('id', { ttlMs: 5_000 }),
    ];
    const step = log.after(0, ...others);
    t.ok(step.outcomes.every(({ code }) => code === OutcomeCode.RequestMismatch));
    t.strictSame(step.events, []);
    t.match(log.answer(0, first), { code: OutcomeCode.Ok, replay: true });
  },
);

t.test('the same id of another principal is another request', async (t) => {
  const log = new LockDriver();
  const step = log.after(0, acquire('a', 'id'), acquire('b', 'id', { principal: 2 }));
  t.strictSame(codesOf(step.outcomes), [OutcomeCode.Ok, OutcomeCode.Ok]);
});

t.test('a refusal that apply decided is a stored result', async (t) => {
  const log = new LockDriver();
  const held = log.answer(0, acquire('a', 'h')).token;
  const refused = acquire('a', 'try');
  const busy = log.answer(5, refused);
  t.equal(busy.code, OutcomeCode.LockBusy);
  log.after(5, release(held));
  t.strictSame(log.answer(5, refused), { ...busy, replay: true }, 'free now, busy under this id');
});

t.test('renewals store nothing: the same id renews again and again', async (t) => {
  const log = new LockDriver();
  const held = log.answer(0, acquire('a', 'h', { ttlMs: 1_000 })).token;
  for (let i = 0; i < 3; i += 1) {
    const renewed = log.answer(500, renew(held, { request: free('r') }));
    t.match(renewed, { code: OutcomeCode.Ok, replay: false, deadline: log.now + 1_000 });
  }
});

t.test('below the mark a sequence is forgotten, and its effect is not repeated', async (t) => {
  const log = new LockDriver();
  log.after(0, open('o'), inSession('a', 1), inSession('b', 2));
  const step = log.after(0, inSession('c', 3, {}, 2), inSession('a', 1), inSession('b', 2));
  const { Ok, RequestForgotten } = OutcomeCode;
  t.strictSame(codesOf(step.outcomes), [Ok, RequestForgotten, RequestForgotten]);
  t.equal(step.events.length, 1);
});

t.test('a single acknowledgement above the mark forgets that sequence alone', async (t) => {
  const log = new LockDriver();
  log.after(0, open('o'), inSession('a', 1), inSession('b', 2), inSession('c', 3));
  const step = log.after(
    0,
    inSession('d', 4, {}, undefined, [2]),
    inSession('a', 1),
    inSession('b', 2),
    inSession('c', 3),
  );
  const { Ok, RequestForgotten } = OutcomeCode;
  t.strictSame(codesOf(step.outcomes), [Ok, Ok, RequestForgotten, Ok]);
});

t.test(
  'an early wait that stands does not stop a session whose later results are acknowledged',
  async (t) => {
    const log = new LockDriver({ sessionWindow: 4 });
    log.after(0, open('o'), acquire('a', 'h'));
    t.equal(log.answer(0, inSession('a', 1, { waitMs: 60_000 })).code, OutcomeCode.Queued);
    for (let i = 2; i < 30; i += 1) {
      const { code } = log.answer(0, inSession(`n${i}`, i, {}, undefined, [Math.max(2, i - 1)]));
      t.equal(code, i === 2 ? OutcomeCode.RequestForgotten : OutcomeCode.Ok, `sequence ${i}`);
    }
  },
);

t.test(
  'sequences run at most the window past the floor, and at most that many are kept',
  async (t) => {
    const log = new LockDriver({ sessionWindow: 4 });
    log.after(0, open('o'));
    const limit = { code: OutcomeCode.Limit, blob: 'sequence' };
    t.match(log.answer(0, inSession('z', 5)), limit, 'beyond floor 0 + 4');
    for (let i = 1; i <= 4; i += 1) log.after(0, inSession(`n${i}`, i));
    t.match(log.answer(0, inSession('z', 5)), limit, 'four results are not acknowledged');
    t.equal(log.answer(0, inSession('z', 5, {}, 1)).code, OutcomeCode.Ok, 'the mark made room');
  },
);

t.test('acknowledging what cannot have been answered is refused and changes nothing', async (t) => {
  const log = new LockDriver({ sessionWindow: 4 });
  log.after(0, open('o'), acquire('a', 'h'), inSession('b', 1));
  log.after(0, inSession('a', 2, { waitMs: 60_000 }));
  const refused = { code: OutcomeCode.BadRequest, blob: 'acknowledged' };
  t.match(log.answer(0, inSession('c', 3, {}, 2)), refused, 'a mark over a wait');
  t.match(log.answer(0, inSession('c', 3, {}, 1, [2])), refused, 'a single on a wait');
  t.match(log.answer(0, inSession('c', 3, {}, undefined, [7])), refused, 'a single too far');
  t.match(log.answer(0, inSession('b', 1)), { code: OutcomeCode.Ok, replay: true });
  t.equal(log.answer(0, inSession('c', 3)).code, OutcomeCode.Ok, 'it was not stored');
});

t.test('a request that first comes at its not_after or later has no effect', async (t) => {
  const log = new LockDriver({ notAfterMsAhead: 5_000 });
  log.now = 10_000;
  t.equal(log.answer(0, acquire('a', 'in time', { notAfter: 10_001 })).code, OutcomeCode.Ok);
  const late = acquire('b', 'late', { notAfter: 10_001 });
  t.equal(log.answer(1, late).code, OutcomeCode.DeadlinePassed);
  t.equal(log.answer(0, late).replay, false, 'nothing is stored');
  t.match(log.answer(0, acquire('b', 'far', { notAfter: 15_002 })), {
    code: OutcomeCode.BadRequest,
    blob: 'not_after',
  });
  t.equal(log.answer(0, acquire('b', 'near', { notAfter: 15_001 })).code, OutcomeCode.Ok);
});

t.test(
  'a free-form result is kept for its retention or not_after, then the id is new',
  async (t) => {
    const log = new LockDriver({ resultRetentionMs: 1_000, notAfterMsAhead: 10_000 });
    const short = acquire('a', 'short', { ttlMs: 1_000 });
    const long = acquire('b', 'long', { ttlMs: 1_000, notAfter: 3_000 });
    log.after(0, short, long);
    t.strictSame(
      log.after(999, short, long).outcomes.map(({ replay }) => replay),
      [true, true],
    );
    const step = log.after(1, short, long);
    t.strictSame(
      step.outcomes.map(({ replay }) => replay),
      [false, true],
    );
    t.equal(answerAt(step, 0).code, OutcomeCode.Ok, 'a new request with a new grant');
    t.equal(log.answer(2_000, long).code, OutcomeCode.DeadlinePassed, 'gone, and too late for new');
  },
);

t.test('the retention of a wait counts from its final result', async (t) => {
  const log = new LockDriver({ resultRetentionMs: 1_000 });
  const held = log.answer(0, acquire('a', 'h', { ttlMs: 60_000 })).token;
  const wait = acquire('a', 'w', { waitMs: 60_000, ttlMs: 60_000 });
  const place = log.answer(0, wait).revision;
  t.match(log.answer(5_000, wait), { code: OutcomeCode.Queued, replay: true, revision: place });
  const granted = completionOf(log.after(1_000, release(held)), place);
  t.match(log.answer(999, wait), { code: OutcomeCode.Ok, replay: true, token: granted.token });
  t.match(log.answer(1, wait), { code: OutcomeCode.Queued, replay: false });
});

t.test('a full table of results refuses new ids and forgets none early', async (t) => {
  const log = new LockDriver({ freeResultsMax: 3 });
  const first = acquire('n1', 'i1');
  log.after(0, first, acquire('n2', 'i2'), acquire('n3', 'i3'));
  const refused = log.answer(0, acquire('n4', 'i4'));
  t.match(refused, { code: OutcomeCode.Limit, blob: 'request' });
  t.match(log.answer(0, first), { code: OutcomeCode.Ok, replay: true });
});

t.test('cancelling what never came makes its first arrival cancelled', async (t) => {
  const log = new LockDriver();
  log.after(0, open('o'));
  t.match(log.answer(0, cancel('late')), { code: OutcomeCode.Ok, cause: OutcomeCode.Cancelled });
  const target = { kind: 'sequence', sequence: 2 } as const;
  log.after(0, cancel('', { session: 1, target }));
  const step = log.after(5, acquire('a', 'late'), inSession('a', 2));
  for (const outcome of step.outcomes)
    t.match(outcome, { code: OutcomeCode.Cancelled, replay: true });
  t.strictSame(step.events, []);
  t.equal(log.get('a').token, 0);
});

t.test('cancelling a final id changes nothing and gives the grant that won', async (t) => {
  const log = new LockDriver();
  const held = log.answer(0, acquire('a', 'id'));
  const { token, revision, deadline, subject } = held;
  const step = log.after(1, cancel('id'));
  t.match(answerAt(step, 0), { code: 0, cause: 0, token, revision, deadline, subject });
  t.strictSame(step.events, []);
  t.equal(log.get('a').token, token);
});

t.test('cancelling a forgotten sequence says so', async (t) => {
  const log = new LockDriver();
  log.after(0, open('o'), inSession('a', 1));
  log.after(0, inSession('b', 2, {}, 1));
  const target = { kind: 'sequence', sequence: 1 } as const;
  t.equal(log.answer(0, cancel('', { session: 1, target })).code, OutcomeCode.RequestForgotten);
});

t.test('another principal cannot cancel a wait', async (t) => {
  const log = new LockDriver();
  log.after(0, acquire('a', 'h'));
  const place = log.answer(0, acquire('a', 'w', { waitMs: 9_000 })).revision;
  t.match(log.answer(0, cancel('w', { principal: 2 })), { cause: OutcomeCode.Cancelled });
  t.strictSame(log.get('a').places, [place], 'it cancelled an id of its own');
});

t.test('each refusal has its own code', async (t) => {
  const log = new LockDriver({ waitersPerLockMax: 1, leasesPerPrincipalMax: 3 });
  const held = log.answer(0, acquire('a', 'h')).token;
  log.after(0, acquire('a', 'w', { waitMs: 60_000 }));
  const codes = log
    .after(
      1,
      acquire('a', 'r1'),
      acquire('a', 'r2', { waitMs: 60_000 }),
      acquire('a', 'r3', { expectedRevision: 0 }),
      acquire('b', 'r4', { session: 77 }),
      acquire('b', 'r5', { ttlMs: 1 }),
      acquire('b', 'h'),
      release(held + 1_000),
      acquire('b', 'r6', { notAfter: 0 }),
      acquire('b', 'r7'),
      acquire('c', 'r8'),
    )
    .outcomes.map(({ code }) => code);
  t.strictSame(codes, [
    OutcomeCode.LockBusy,
    OutcomeCode.Limit,
    OutcomeCode.Conflict,
    OutcomeCode.SessionExpired,
    OutcomeCode.BadRequest,
    OutcomeCode.RequestMismatch,
    OutcomeCode.StaleLease,
    OutcomeCode.DeadlinePassed,
    OutcomeCode.Ok,
    OutcomeCode.Limit,
  ]);
});

t.test(
  'a refused acquire and a closed session leave nothing behind that a later one meets',
  async (t) => {
    const log = new LockDriver();
    log.after(0, open('o'));
    log.after(0, inSession('a', 1, { expectedRevision: 0, waitMs: 5 }));
    const held = log.answer(0, inSession('a', 2));
    t.equal(held.code, OutcomeCode.Ok);
    log.after(0, closeSession(1));
    t.match(log.answer(0, release(held.token)), {
      code: OutcomeCode.StaleLease,
      cause: LeaseEnd.SessionClosed,
    });
  },
);

t.test('an ended session is forgotten when its retention is over, swept or not', async (t) => {
  const log = new LockDriver({ expiriesPerEntryMax: 1, resultRetentionMs: 60_000 });
  log.after(0, open('o1'), open('o2'));
  const named = inSession('a', 1);
  log.after(0, named, closeSession(2), closeSession(1));
  // The sweep of this entry takes one of the two sessions only.
  const step = log.after(60_000, named, closeSession(1));
  t.strictSame(codesOf(step.outcomes), [OutcomeCode.SessionExpired, OutcomeCode.SessionExpired]);
});

t.test('the replay of a result stored ahead answers the command that arrives', async (t) => {
  const log = new LockDriver();
  log.after(0, cancel('id'), cancel('other'));
  const step = log.after(0, acquire('a', 'id'), open('other'));
  t.match(step.outcomes, [
    { code: OutcomeCode.Cancelled, kind: CommandKind.Acquire },
    { code: OutcomeCode.Cancelled, kind: CommandKind.SessionOpen },
  ]);
});

t.test(
  'the result of a cancel is stable when the session of its target is forgotten',
  async (t) => {
    const log = new LockDriver({ resultRetentionMs: 60_000, notAfterMsAhead: 200_000 });
    log.after(0, open('o'), inSession('a', 1));
    const target = { kind: 'sequence', sequence: 1 } as const;
    const fields = { session: 1, target, notAfter: 200_000 };
    const command = cancel('', { ...fields, request: free('c') });
    const first = log.answer(0, command);
    t.match(first, { code: OutcomeCode.Ok, cause: OutcomeCode.Ok });
    log.after(0, closeSession(1));
    t.strictSame(log.answer(60_000, command), { ...first, replay: true });
  },
);

t.test('an id is one request whatever session another command names with it', async (t) => {
  const log = new LockDriver();
  const unknown = { session: 99, request: free('id') };
  t.equal(log.answer(0, closeSession(99, unknown)).code, OutcomeCode.SessionExpired);
  const target = { kind: 'sequence', sequence: 3 } as const;
  t.equal(log.answer(0, cancel('', { ...unknown, target })).code, OutcomeCode.RequestMismatch);
  t.match(log.answer(0, closeSession(99, unknown)), {
    code: OutcomeCode.SessionExpired,
    replay: true,
  });
});

t.test('a mark drops what it covers also after the window was made smaller', async (t) => {
  const log = new LockDriver({ sessionWindow: 4 });
  log.after(0, open('o'), inSession('a', 4));
  const smaller = [SettingNumber.sessionWindow, 1];
  t.equal(log.answer(0, changeSettings(...smaller)).code, OutcomeCode.Ok);
  t.equal(log.answer(0, inSession('b', 5, {}, 4)).code, OutcomeCode.Ok);
  t.equal(log.answer(0, inSession('a', 4)).code, OutcomeCode.RequestForgotten);
  const target = { kind: 'sequence', sequence: 4 } as const;
  t.equal(log.answer(0, cancel('', { session: 1, target })).code, OutcomeCode.RequestForgotten);
});

t.test(
  'a late duplicate never takes effect at its not_after, when its result is gone',
  async (t) => {
    const log = new LockDriver({ resultRetentionMs: 1_000, notAfterMsAhead: 10_000 });
    const command = acquire('a', 'id', { ttlMs: 1_000, notAfter: 5_000 });
    t.equal(log.answer(0, command).code, OutcomeCode.Ok);
    t.match(log.answer(4_999, command), { code: OutcomeCode.Ok, replay: true });
    const step = log.after(1, command);
    t.equal(answerAt(step, 0).code, OutcomeCode.DeadlinePassed);
    t.strictSame(step.events, []);
  },
);

t.test('a cancel of its own id is refused, and stays so', async (t) => {
  const log = new LockDriver();
  const own = cancel('id', { request: free('id') });
  const refused = { code: OutcomeCode.BadRequest, blob: 'target' };
  t.match(log.answer(0, own), { ...refused, replay: false });
  t.match(log.answer(0, own), { ...refused, replay: true });
});

t.test('a renewal is carried out whatever its id was used for, in a full table too', async (t) => {
  const log = new LockDriver({ freeResultsMax: 1 });
  const { token } = log.answer(0, acquire('a', 'id'));
  t.equal(log.answer(1, renew(token, { request: free('id') })).code, OutcomeCode.Ok);
  t.equal(log.answer(1, renew(token, { request: free('new') })).code, OutcomeCode.Ok);
});

t.test(
  'settings change by the cluster alone, all or none, and only to what is valid',
  async (t) => {
    const log = new LockDriver({ waitersPerLockMax: 5 });
    const { waitersPerLockMax, sessionWindow, leaseTtlMsLeast } = SettingNumber;
    const foreign = { ...changeSettings(waitersPerLockMax, 1), principal: 1 };
    const codes = log
      .after(
        0,
        foreign,
        changeSettings(waitersPerLockMax, 1, sessionWindow, 0),
        changeSettings(waitersPerLockMax, 1, 99, 1),
        changeSettings(waitersPerLockMax, 1, leaseTtlMsLeast, 30_001),
        acquire('a', 'h'),
        acquire('a', 'w1', { waitMs: 9 }),
        acquire('a', 'w2', { waitMs: 9 }),
      )
      .outcomes.map(({ code }) => code);
    const { Forbidden, BadRequest, Ok, Queued } = OutcomeCode;
    t.strictSame(codes, [Forbidden, BadRequest, BadRequest, BadRequest, Ok, Queued, Queued]);
  },
);

t.test('a session goes on after a mark over everything or a sequence far ahead', async (t) => {
  const log = new LockDriver();
  log.after(0, open('o'));
  const huge = Number.MAX_SAFE_INTEGER;
  t.match(log.answer(0, inSession('a', huge)), { code: OutcomeCode.Limit, blob: 'sequence' });
  t.equal(log.answer(0, inSession('a', 2 ** 40, {}, 2 ** 40 - 1)).code, OutcomeCode.Ok);
  t.equal(log.answer(0, inSession('b', 1)).code, OutcomeCode.RequestForgotten);
  t.equal(log.answer(0, inSession('b', huge, {}, huge - 1)).code, OutcomeCode.Ok);
  t.equal(log.answer(0, inSession('c', huge, {}, huge)).code, OutcomeCode.RequestForgotten);
});
