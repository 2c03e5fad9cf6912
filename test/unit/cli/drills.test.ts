/** The rules by which a drill is judged: each is shown what it must see, and what it must not. */

import t from 'tap';
import { Backstage } from '../../../src/cli/drills/backstage.js';
import { repeatCanary } from '../../../src/cli/drills/canary.js';
import { brokenOf, type Check, checkOf } from '../../../src/cli/drills/check.js';
import { Ledger } from '../../../src/cli/drills/ledger.js';
import { DRILL_NAMES } from '../../../src/cli/drills/names.js';
import { recordOf } from '../../../src/cli/drills/record.js';
import {
  GRAIN_MS,
  leastOf,
  missingOf,
  type Operation,
  type Service,
  serviceOf,
  serviceWords,
} from '../../../src/cli/drills/service.js';
import { Story } from '../../../src/cli/drills/story.js';
import { checkStream, type StreamPart } from '../../../src/cli/drills/stream-rules.js';
import { DRILLS } from '../../../src/cli/drills/table.js';
import { readTestMode } from '../../../src/cli/drills/test-mode.js';
import { Hopeless, until } from '../../../src/cli/drills/until.js';
import type { Json } from '../../../src/wire/event-json.js';

const LOCK = 'a';

interface Given {
  readonly name?: string;
  readonly token?: number;
  readonly place?: number;
  readonly cause?: string;
  readonly requestId?: string;
}

/** As `holdfast audit --json` shows it. */
function event(revision: number, type: string, given: Given = {}): Json {
  const { name = LOCK, place = 0, cause = null, requestId = null } = given;
  const { token = type === 'granted' ? revision : 0 } = given;
  return { revision, type, name, fencing_token: token, place, cause, request_id: requestId };
}

/** A holds, B waits and is granted when A lets go, and lets go too. */
const GOOD: readonly Json[] = [
  event(1, 'granted', { requestId: 'one' }),
  event(2, 'queued', { place: 2 }),
  event(3, 'ended', { token: 1, cause: 'released' }),
  event(4, 'granted', { place: 2 }),
  event(5, 'ended', { token: 4, cause: 'expired' }),
];

function part(rows: readonly Json[], given: Partial<StreamPart> = {}): StreamPart {
  return { rows, from: 1, last: Number(rows.at(-1)?.['revision'] ?? 0), isWhole: true, ...given };
}

function brokenIn(stream: StreamPart, ledger = new Ledger()): string[] {
  const { checks } = checkStream(stream, ledger);
  return brokenOf(checks).map(({ what, found }) => `${what}: ${found}`);
}

function without(revision: number): Json[] {
  return GOOD.filter((each) => each['revision'] !== revision);
}

t.test('a stream that can be true breaks no rule', async (t) => {
  const ledger = new Ledger();
  ledger.granted({ name: LOCK, token: 1, revision: 1 }, 'one');
  ledger.released({ name: LOCK, token: 1 }, 3);
  ledger.unborn.push({ requestId: 'never', code: 'NO_QUORUM' });
  t.same(brokenIn(part(GOOD), ledger), []);
  t.same([...checkStream(part(GOOD), ledger).model.holders()], []);
  const { model } = checkStream(part(GOOD.slice(0, 4)), ledger);
  t.same([...model.holders()], [[LOCK, 4]]);
});

t.test('a gap anywhere is named by its revisions', async (t) => {
  t.match(
    brokenIn(part(without(1)))[0],
    /every revision once, in order: a at 2: revision 1 is missing before it/,
  );
  t.match(brokenIn(part(without(3)))[0], /a at 4: revision 3 is missing/);
  t.match(brokenIn(part(without(5), { last: 5 }))[0], /revision 5 is missing/);
  t.match(brokenIn(part([], { last: 5 }))[0], /revisions 1 to 5 miss/);
  t.match(
    brokenIn(part([...GOOD, event(9, 'queued', { place: 9 })]))[0],
    /revisions 6 to 8 are missing/,
  );
});

t.test('what comes twice, late or from nowhere is named', async (t) => {
  t.match(
    brokenIn(part([...GOOD, event(5, 'left')], { last: 5 })).join(),
    /a at 5: it comes after revision 5/,
  );
  t.match(brokenIn(part(GOOD, { last: 4 }))[0], /revision 5 is beyond the last, 4/);
});

t.test('of a part of the stream only the order can be judged', async (t) => {
  const some = part(without(2), { isWhole: false, last: 9 });
  t.notMatch(brokenIn(some).join(), /missing|miss/);
  const swapped = [event(3, 'ended', { token: 1 }), event(1, 'granted')];
  t.match(
    brokenIn(part(swapped, { isWhole: false, last: 3 })).join(),
    /a at 1: it comes after revision 3/,
  );
});

t.test('tokens that fall, or are not the revision of their grant, are seen', async (t) => {
  const fallen = [event(1, 'granted'), event(2, 'granted', { name: 'b', token: 1 })];
  const faults = brokenIn(part(fallen)).join();
  t.match(faults, /b at 2: granted with token 1/);
  t.match(faults, /b at 2: token 1 is not above token 1/);
});

t.test('two holders, and an end of nobody, are seen', async (t) => {
  const two = [event(1, 'granted'), event(2, 'granted')];
  t.match(
    brokenIn(part(two))[0],
    /one holder at a time: a at 2: granted while token 1 has not ended/,
  );
  t.match(
    brokenIn(part([event(1, 'ended', { token: 7 })]))[0],
    /a at 1: token 7 ended, and nobody holds it/,
  );
});

t.test('a waiter that is passed over is seen, whoever passes', async (t) => {
  const line = [event(1, 'granted'), event(2, 'queued', { place: 2 })];
  const third = [...line, event(3, 'queued', { place: 3 }), event(4, 'ended', { token: 1 })];
  const jumped = [...third, event(5, 'granted', { place: 3 })];
  t.match(brokenIn(part(jumped))[0], /a at 5: place 3 is granted, first is 2/);
  t.match(
    brokenIn(part([...third, event(5, 'granted')]))[0],
    /a at 5: granted past those who wait/,
  );
  t.match(
    brokenIn(part([event(1, 'left', { place: 9 })]))[0],
    /a at 1: place 9 leaves, and is not in the queue/,
  );
});

t.test('an acknowledgement that the stream does not have is seen', async (t) => {
  const cases: readonly [string, (ledger: Ledger) => void][] = [
    ['another token', (ledger) => ledger.granted({ name: LOCK, token: 9, revision: 1 })],
    ['another lock', (ledger) => ledger.granted({ name: 'b', token: 1, revision: 1 })],
    ['another id', (ledger) => ledger.granted({ name: LOCK, token: 1, revision: 1 }, 'two')],
    ['another revision', (ledger) => ledger.released({ name: LOCK, token: 1 }, 4)],
    ['no such revision', (ledger) => ledger.released({ name: LOCK, token: 1 }, 77)],
  ];
  for (const [name, tell] of cases) {
    const ledger = new Ledger();
    tell(ledger);
    t.match(brokenIn(part(GOOD), ledger).join(), /was acknowledged at \d+, and is not/, name);
  }
  const ledger = new Ledger();
  ledger.unborn.push({ requestId: 'one', code: 'NO_QUORUM' });
  t.match(brokenIn(part(GOOD), ledger).join(), /one was refused with NO_QUORUM, at 1/);
});

t.test('who is let in where it is disabled is seen', async (t) => {
  const rule = event(1, 'disabled', { name: '', place: 1 });
  const faults = brokenIn(part([rule, event(2, 'granted')]));
  t.match(faults[0], /let in where that is disabled: a at 2: granted while \* is disabled/);
});

t.test('of many faults three are told and the rest is counted', async (t) => {
  t.same(checkOf('x', [], 'looked'), { what: 'x', isKept: true, found: 'looked' });
  t.equal(checkOf('x', ['1', '2', '3', '4', '5'], '').found, '1; 2; 3; and 2 more');
});

function operation(tookMs: number, isSuccess = true, lagMs: number | null = 1): Operation {
  return { sentMs: 100, answeredMs: 100 + tookMs, isSuccess, lagMs };
}

const FAST: Service = { operations: 100, success: 1, p99Ms: 4, lagMs: 1 };

t.test('a window becomes success rate, p99 and lag', async (t) => {
  const operations = Array.from({ length: 100 }, (_, at) => operation(at + 1, at >= 10, at));
  const service = serviceOf(operations);
  t.equal(service.success, 0.9);
  t.equal(service.p99Ms, 100);
  t.equal(service.lagMs, 55);
  t.same(serviceOf([]), { operations: 0, success: 0, p99Ms: 0, lagMs: 0 });
  const untold = serviceOf([operation(1, true, null)]);
  t.equal(untold.lagMs, Number.POSITIVE_INFINITY, 'an event that a node has not told');
  t.match(serviceWords(untold), /lag unknown$/);
  const windows = [3, 100, 5].map((p99Ms) => ({ ...FAST, p99Ms, success: 1 / p99Ms }));
  t.match(leastOf(windows), { p99Ms: 100, success: 0.01, lagMs: 1 });
});

t.test('the service is back within 10 %, or within the grain of the machine', async (t) => {
  const slow = { ...FAST, p99Ms: 1_000, lagMs: 1_000 };
  t.same(missingOf(FAST, FAST), []);
  t.same(missingOf(slow, { ...slow, p99Ms: 1_099, lagMs: 1_099, success: 0.91 }), []);
  t.same(missingOf(slow, { ...slow, p99Ms: 1_101 }), ['p99']);
  t.same(missingOf(slow, { ...slow, lagMs: 1_101 }), ['lag']);
  t.same(missingOf(FAST, { ...FAST, success: 0.89 }), ['success']);
  t.same(missingOf(FAST, { ...FAST, p99Ms: FAST.p99Ms + GRAIN_MS }), []);
  t.same(missingOf(FAST, { ...FAST, p99Ms: FAST.p99Ms + GRAIN_MS + 1 }), ['p99']);
  t.same(missingOf(FAST, serviceOf([])), ['success'], 'silence is no service');
  t.same(missingOf(FAST, { ...FAST, lagMs: Number.POSITIVE_INFINITY }), ['lag']);
});

function record(checks: readonly Check[], after: Service) {
  const story = new Story();
  story.tell('A holds', { revision: 7, token: 7 });
  return recordOf({
    drill: 'paused-owner',
    title: 'a title',
    protection: 'a guard',
    test: '',
    startedAt: new Date(0),
    story,
    operationId: 'drill/1',
    lock: LOCK,
    findings: {
      checks,
      agreed: { index: 9, revision: 8, digest: 'd'.repeat(32) },
      checkpoint: { clusterId: 'c'.repeat(32), next: 9 },
      events: [],
    },
    view: null,
    explanation: null,
    service: {
      before: FAST,
      after,
      missing: missingOf(FAST, after),
      backAfterMs: 600,
      longestGapMs: 12,
    },
    repeated: { retries: 1, resends: 2 },
    folder: '',
  });
}

t.test('a record is complete only when all was kept and the service is back', async (t) => {
  const kept = { what: 'x', isKept: true, found: 'fine' };
  const good = record([kept], FAST);
  t.equal(good.isComplete, true);
  t.match(good.json, {
    complete: true,
    operation_id: 'drill/1',
    last_durable_revision: 8,
    projection_checkpoint: { next_revision: 9 },
    retry_policy: { words: String, retries: 1, resends: 2 },
    reconciliation: { status: 'reconciled', faults: [] },
    owner: null,
    story: [{ revision: 7, fencing_token: 7, what: 'A holds' }],
  });
  t.match(good.lines.join('\n'), /revision 7 +token 7 +A holds/);
  t.match(good.lines.at(-1), /^complete, in /);

  const broken = record([{ ...kept, isKept: false, found: 'it is not' }], FAST);
  t.equal(broken.isComplete, false);
  t.same(broken.faults, ['x: it is not']);
  t.match(broken.json, { complete: false, reconciliation: { status: 'not reconciled' } });
  t.match(broken.lines.join('\n'), /BROKEN +x +it is not/);
  t.match(broken.lines.at(-1), /^NOT complete, in /);

  const slow = record([kept], { ...FAST, p99Ms: 400 });
  t.equal(slow.isComplete, false);
  t.match(slow.faults[0], /^p99 not back within 10 % of before: .*400\.0 ms/);
  t.match(slow.json, { complete: false, reconciliation: { status: 'reconciled' } });
});

t.test('every name has its drill, and no drill another name', async (t) => {
  t.same(Object.keys(DRILLS), [...DRILL_NAMES]);
  for (const name of DRILL_NAMES) t.equal(DRILLS[name].name, name);
});

t.test('the variable for tests has two values, and no other', async (t) => {
  t.equal(readTestMode({}), '');
  t.equal(readTestMode({ HOLDFAST_DRILL_TEST: 'gap' }), 'gap');
  t.equal(readTestMode({ HOLDFAST_DRILL_TEST: 'unprotected' }), 'unprotected');
  t.throws(() => readTestMode({ HOLDFAST_DRILL_TEST: 'yes' }), { code: 'USAGE' });
});

t.test(
  'what was put up last is taken down first, each once, whatever one of them does',
  async (t) => {
    const order: string[] = [];
    const backstage = new Backstage();
    backstage.add(() => order.push('folder'));
    backstage.add(() => {
      throw new Error('busy');
    });
    backstage.add(() => order.push('nodes'));
    t.match(backstage.strike(), [{ message: 'busy' }]);
    t.same(order, ['nodes', 'folder']);
    t.same(backstage.strike(), []);
  },
);

t.test('what does not come is an error that names it', async (t) => {
  t.equal(await until('a number', () => 5), 5);
  await t.rejects(
    until('rain', () => null, 30),
    { code: 'DRILL_FAILED', message: /^waited \d+ ms for rain$/ },
  );
  const hopeless = (): null => {
    throw new Hopeless('the sky is blue');
  };
  await t.rejects(until('rain', hopeless), { message: /for rain: the sky is blue$/ });
});

t.test('the canary counts its failures, and a signal ends it', async (t) => {
  const stop = new AbortController();
  let runs = 0;
  const counted = await repeatCanary(1, stop.signal, async () => {
    runs += 1;
    if (runs === 3) stop.abort();
    return runs !== 2;
  });
  t.same(counted, { runs: 3, failed: 1 });
});
