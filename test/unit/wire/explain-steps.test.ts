/** How the lock of a request or a lease is found that nobody named. */

import t from 'tap';
import { ErrorCode } from '../../../src/wire/errors.js';
import type { Json } from '../../../src/wire/event-json.js';
import { type ExplainTarget, explainSteps } from '../../../src/wire/explain-steps.js';
import { CommandKind } from '../../../src/wire/request.js';
import type { Reply } from '../../../src/wire/response.js';

const [HELD, ENDED, BUSY] = ['held', 'ended', ErrorCode.LockBusy];
const LEASE = new Uint8Array(16).fill(5);

function replyOf(fields: readonly unknown[]): Reply {
  const head = { correlation: 1, code: ErrorCode.Ok, clusterTimeMs: 5_000, isReplay: false };
  return { ...head, fields, message: '', retryAfterMs: -1 };
}

/** An explanation: [lock, events, request, lease, revision, applied_index]. */
function explained(request: readonly unknown[] | null, lease: readonly unknown[] | null): Reply {
  return replyOf([null, [], request, lease, 90, 80]);
}

function pageOf(revision: number, name: string): Reply {
  const row = [revision, 1, name, revision, 0, 0, 1, 4_000, 70, 1, 36, 'r', null, null];
  return replyOf([[row], revision + 1, 1, 90, new Uint8Array(16)]);
}

interface Run {
  readonly asked: (readonly unknown[])[];
  readonly explanation: Json;
}

/** Runs the steps against `answers`, in order. */
function run(target: Partial<ExplainTarget>, answers: readonly (Reply | null)[]): Run {
  const steps = explainSteps({ name: null, session: null, request: null, lease: null, ...target });
  const asked: (readonly unknown[])[] = [];
  let at = steps.next();
  for (const answer of answers) {
    if (at.done === true) throw new Error(`done before ${asked.length + 1} steps`);
    asked.push(at.value.operation);
    at = steps.next(answer);
  }
  if (at.done !== true) throw new Error(`not done: ${at.value.operation}`);
  return { asked, explanation: at.value };
}

t.test('a lock that is named is asked about at once', async (t) => {
  const { asked, explanation } = run({ name: 'jobs/1' }, [explained(null, null)]);
  t.same(asked, [[CommandKind.Explain, 'jobs/1', null, null, null]]);
  t.match(explanation, { name: 'jobs/1', cause: 'never_used' });
});

t.test('a lease that lives names its lock', async (t) => {
  const first = explained(null, [HELD, 'jobs/1', 41, 9_000, 0, 0]);
  const { asked, explanation } = run({ lease: LEASE }, [first, first]);
  t.equal(asked.length, 2);
  t.same(asked[1], [CommandKind.Explain, 'jobs/1', null, null, LEASE]);
  t.match(explanation, { name: 'jobs/1', cause: 'yours' });
});

t.test(
  'a place, a token, a holder’s token and an end lead to the event with the name',
  async (t) => {
    const cases: readonly (readonly [Partial<ExplainTarget>, Reply, number, string])[] = [
      [{ request: 'r' }, explained(['queued', 1, 55, 0, 55], null), 55, 'queued'],
      [{ request: 'r' }, explained(['done', 0, 0, 41, 41], [ENDED, null, 0, 0, 1, 60]), 60, ''],
      [{ request: 'r' }, explained(['done', BUSY, 0, 41, 0], null), 41, 'refused_busy'],
      [
        { request: 'r' },
        explained(['done', ErrorCode.WaitTimeout, 0, 0, 57], null),
        57,
        'timed_out',
      ],
      [{ lease: LEASE }, explained(null, [ENDED, null, 0, 0, 2, 60]), 60, 'lost_expired'],
    ];
    for (const [target, first, revision, cause] of cases) {
      const { asked, explanation } = run(target, [first, pageOf(revision, 'jobs/1'), first]);
      t.same(asked[1], [CommandKind.Audit, '', revision, 1, 0]);
      t.equal(asked[2]?.[1], 'jobs/1');
      t.equal(explanation['name'], 'jobs/1');
      if (cause !== '') t.equal(explanation['cause'], cause);
    }
  },
);

t.test('what nothing names any more is explained without a lock', async (t) => {
  const unknown = explained(['unknown', 0, 0, 0, 0], null);
  const nothing = run({ request: 'r' }, [unknown]);
  t.match(nothing.explanation, { name: null, frees: null, cause: 'request_unknown', events: [] });
  const ended = explained(null, [ENDED, null, 0, 0, 1, 60]);
  // The history was cut, or what comes there is another event.
  for (const page of [null, pageOf(61, 'jobs/2'), replyOf([[], 61, 1, 90, LEASE])]) {
    const { explanation, asked } = run({ lease: LEASE }, [ended, page]);
    t.equal(asked.length, 2);
    t.match(explanation, { name: null, frees: null, cause: 'lost_released' });
  }
});

t.test('only the step that looks for the event may be refused', async (t) => {
  const first = explained(null, [ENDED, null, 0, 0, 1, 60]);
  const steps = explainSteps({ name: null, session: null, request: null, lease: LEASE });
  const isRefusable = [steps.next(), steps.next(first), steps.next(pageOf(60, 'a'))].map((at) =>
    at.done === true ? null : at.value.mayBeRefused,
  );
  t.same(isRefusable, [false, true, false]);
  t.throws(() => steps.next(null), /a step was refused/);
  const other = explainSteps({ name: null, session: null, request: 'r', lease: null });
  other.next();
  t.throws(() => other.next(null), /the first step was refused/);
});
