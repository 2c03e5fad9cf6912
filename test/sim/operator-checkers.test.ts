/**
 * The checkers on what operators and guards do: each finds its fault in a small log or history
 * written by hand, and nothing in a sound one.
 */
import { Packr } from 'msgpackr';
import t from 'tap';
import { EntryWriter } from '../../src/wire/entry.js';
import { checkEventStream } from './checkers/event-stream.js';
import { checkBeliefs } from './checkers/lease-bounds.js';
import { checkLinearizability } from './checkers/linearizability.js';
import { checkOperators, forcedEnds } from './checkers/operators.js';
import { type Answer, type Belief, History, type Operation } from './history.js';
import type { LedgerEntry, SeenEvent, SeenOutcome } from './ledger.js';

const packr = new Packr({ useRecords: false });
const SESSION = new Uint8Array(16).fill(7);
const OTHER = new Uint8Array(16).fill(8);
const KIND = { granted: 1, ended: 2, queued: 3, left: 4, disabled: 5, enabled: 6 } as const;
const [REFUSED, FENCED, EXPELLED] = [7, 8, 9];
const FORCED = 5;

/** An operation and what the machine answered. */
type Step = readonly [readonly unknown[], Partial<SeenOutcome>];

function event(kind: number, revision: number, fields: Partial<SeenEvent> = {}): SeenEvent {
  const numbers = { token: 0, place: 0, cause: 0, stampMs: 10 };
  return { kind, revision, lock: 'l', ...numbers, ...fields };
}

function outcome(kind: number, fields: Partial<SeenOutcome>): SeenOutcome {
  const numbers = { token: 0, revision: 0, deadline: 0, ttlMs: 0, ahead: 0, cause: 0, code: 0 };
  const holder = { holderSince: 0, holderPrincipal: 0, blob: new Uint8Array(0) };
  return { kind, replay: false, entryTime: 10, id: '', ...numbers, ...holder, ...fields };
}

function entry(steps: readonly Step[], ...events: SeenEvent[]): LedgerEntry {
  const writer = new EntryWriter();
  writer.open();
  for (const [fields] of steps) {
    const bytes = packr.pack(fields);
    writer.addOperation(1, 1, bytes, 0, bytes.length);
  }
  const data = writer.close(10, 1, new Uint8Array(16));
  const outcomes = steps.map(([fields, told]) => outcome(fields[0] as number, told));
  const times = { stampMs: 10, appliedUs: 0, madeUs: 0, makerId: 1 };
  const rest = { completions: [], sum: 0, digest: '', revision: 0, hasDeadlines: true };
  return { index: 1, term: 1, ...times, data, outcomes, events, ...rest };
}

function acquire(name: string, told: Partial<SeenOutcome>, session: unknown = null): Step {
  return [[36, 'a', session, null, null, name], told];
}

const HEAD = ['o', null, null, null] as const;
const SAID = ['ops', 'why'] as const;

function force(name: string, told: Partial<SeenOutcome>): Step {
  return [[42, ...HEAD, name, null, null, ...SAID], told];
}

function disable(name: string | null, prefix: string | null, revision: number): Step {
  return [[43, ...HEAD, name, prefix, ...SAID], { revision }];
}

function enable(name: string | null, prefix: string | null, revision: number): Step {
  return [[44, ...HEAD, name, prefix, ...SAID], { revision }];
}

function expel(told: Partial<SeenOutcome>): Step {
  return [[45, ...HEAD, SESSION, ...SAID], told];
}

const HELD = entry([acquire('l', { token: 1 }, SESSION)], event(KIND.granted, 1, { token: 1 }));
const QUEUED = entry(
  [acquire('l', { code: 1, revision: 2 }, OTHER)],
  event(KIND.queued, 2, { place: 2 }),
);
const END = event(KIND.ended, 3, { token: 1, cause: FORCED });
const NEXT = event(KIND.granted, 4, { token: 4, place: 2 });
const FORCE = force('l', { revision: 3, token: 1 });

function problemsOf(...entries: LedgerEntry[]): readonly string[] {
  return checkOperators(entries).problems;
}

t.test('operators: a forced end with its command, handed over at once', (t) => {
  t.same(problemsOf(HELD, QUEUED, entry([FORCE], END, NEXT)), []);
  t.match(problemsOf(HELD, QUEUED, entry([], END, NEXT)), [/nobody asked to end 1 of l/]);
  const another = force('m', { revision: 3, token: 1 });
  t.match(problemsOf(HELD, QUEUED, entry([another], END, NEXT)), [
    /nobody asked/,
    /m was answered/,
  ]);
  t.match(problemsOf(HELD, QUEUED, entry([FORCE], END)), [/place 2 is not granted next/]);
  const barrier = force('l', { revision: 4, token: 1 });
  t.match(problemsOf(HELD, QUEUED, entry([barrier], END, NEXT)), [/nobody asked/, /no event/]);
  t.match(problemsOf(HELD, entry([FORCE])), [/which is no event of it/]);
  const released = { ...END, cause: 1 };
  t.match(problemsOf(HELD, entry([FORCE], released)), [/was forced, and ended by 1/]);
  t.end();
});

t.test('operators: a refusal leaves one event and ends nothing', (t) => {
  const conflict = force('l', { code: 20, token: 1 });
  const refused = event(REFUSED, 3, { cause: 20 });
  t.same(problemsOf(HELD, entry([conflict], refused)), []);
  t.match(problemsOf(HELD, entry([conflict])), [/1 refusals, 0 events/]);
  t.match(problemsOf(HELD, entry([conflict], END, refused)), [/nobody asked to end/]);
  t.match(problemsOf(HELD, entry([], refused)), [/by nobody/, /0 refusals, 1 events/]);
  const byId = force('l', { code: 18 });
  t.same(problemsOf(HELD, entry([byId])), [], 'REQUEST_MISMATCH leaves none');
  t.end();
});

t.test('operators: nobody is taken for a disabled name, and who is refused is covered', (t) => {
  const rule = entry([disable(null, 'l', 1)], event(KIND.disabled, 1, { place: 1 }));
  const taken = entry([acquire('l/x', { token: 2 })]);
  t.match(problemsOf(rule, taken), [/l\/x is disabled since 1, an acquire of it gave 0/]);
  t.match(problemsOf(rule, entry([acquire('l', { code: 10 })])), [/gave 10/]);
  t.same(problemsOf(rule, entry([acquire('k', { token: 2 })])), []);
  const refused = entry([acquire('l/x', { code: 14, revision: 1 })]);
  t.same(problemsOf(rule, refused), []);
  t.match(problemsOf(refused), [/by the log since undefined/]);
  const back = entry([enable(null, 'l', 2)], event(KIND.enabled, 2, { place: 1 }));
  t.same(problemsOf(rule, back, taken), []);
  t.match(problemsOf(rule, back, refused), [/was disabled since 1/]);
  const name = entry([enable('l', null, 0)]);
  t.match(problemsOf(rule, name, taken), [/is disabled/], 'the name is another rule');
  t.match(problemsOf(rule, entry([enable(null, 'l', 0)])), [/enabling l gave 0/]);
  const wrong = entry([disable('l', null, 1)], event(KIND.disabled, 1, { place: 1 }));
  t.match(problemsOf(wrong), [/has place 1/]);
  t.end();
});

t.test('operators: an expelled session has no lease left, and no other loses one', (t) => {
  const expelled = event(EXPELLED, 4, { lock: '', cause: FORCED });
  const told = expel({ revision: 4 });
  t.same(problemsOf(HELD, entry([told], END, expelled)), []);
  t.match(problemsOf(HELD, entry([told], expelled)), [/1 outlives the session/]);
  const foreign = entry([acquire('l', { token: 1 }, OTHER)], event(KIND.granted, 1, { token: 1 }));
  t.match(problemsOf(foreign, entry([told], END, expelled)), [/nobody asked to end 1/]);
  t.match(problemsOf(HELD, entry([told], END)), [/no event of it/]);
  t.end();
});

t.test('event stream: every kind has what belongs to it', (t) => {
  const sound = [
    event(KIND.disabled, 1, { place: 1, lock: '' }),
    event(KIND.enabled, 2),
    event(REFUSED, 3, { cause: 20, lock: '' }),
    event(FENCED, 4, { token: 3, place: 9, cause: 25 }),
    event(EXPELLED, 5, { lock: '', cause: FORCED }),
  ];
  t.same(checkEventStream(sound).problems, []);
  const wrong = [
    event(KIND.granted, 1),
    event(KIND.disabled, 1, { place: 2 }),
    event(KIND.enabled, 1, { lock: '' }),
    event(REFUSED, 1),
    event(FENCED, 1, { token: 3 }),
    event(EXPELLED, 1, { lock: '' }),
    event(KIND.left, 1, { place: 3 }),
    event(10, 1, { cause: 1 }),
  ];
  for (const one of wrong) {
    t.match(checkEventStream([one]).problems, [/no known form/], JSON.stringify(one));
  }
  t.end();
});

function answer(atUs: number, fields: Partial<Answer>): Answer {
  const numbers = { token: 0, revision: 0, deadline: 0, ttlMs: 0, place: 0, cause: 0 };
  const about = { code: 0, clusterTime: 1, isReplay: false, subject: '', rest: '' };
  return { atUs, ...about, ...numbers, ...fields };
}

function operation(fields: Partial<Operation>): Operation {
  const about = { client: 'c', id: 'i', kind: 'acquire', lock: 'l', session: '', target: '' };
  const numbers = { ttlMs: 1_000, waitMs: 0, aboutToken: 0, sentUs: 0 };
  return { ...about, ...numbers, answers: [], isAbandoned: false, ...fields };
}

function historyOf(operations: readonly Operation[], beliefs: readonly Belief[] = []): History {
  const history = new History();
  history.operations.push(...operations);
  history.beliefs.push(...beliefs);
  return history;
}

t.test('beliefs: who was forced may go on until it is told, and nobody else', (t) => {
  const belief = { client: 'c', lock: 'l', token: 1, fromUs: 0, untilUs: 200 };
  const both = [belief, { ...belief, client: 'd', token: 4, fromUs: 100, untilUs: 300 }];
  const forced = forcedEnds([{ ...END, stampMs: 90 }]);
  t.match(checkBeliefs(historyOf([], both)).problems, [/1 was believed/]);
  t.same(checkBeliefs(historyOf([], both), forced).problems, []);
  const third = { ...belief, client: 'e', token: 5, fromUs: 250, untilUs: 400 };
  const overlapping = checkBeliefs(historyOf([], [...both, third]), forced).problems;
  t.match(overlapping, [/4 was believed/], 'the one after it was not forced');
  const hidden = { ...belief, client: 'b', token: 0.5, untilUs: 150 };
  const before = checkBeliefs(historyOf([], [hidden, ...both]), forced).problems;
  t.match(before, [/0.5 was believed/, /0.5 was believed/], 'nor the one before it');
  const renew = { kind: 'renew', id: '', aboutToken: 1, sentUs: 80 };
  const late = operation({ ...renew, answers: [answer(120, { clusterTime: 91 })] });
  t.match(checkBeliefs(historyOf([late], both), forced).problems, [/1 was promised after 90/]);
  const told = operation({ ...renew, answers: [answer(150, { code: 17, cause: FORCED })] });
  t.match(checkBeliefs(historyOf([told], both), forced).problems, [/c was told of the end of 1/]);
  const inTime = operation({ ...renew, answers: [answer(200, { code: 17, cause: FORCED })] });
  t.same(checkBeliefs(historyOf([inTime], both), forced).problems, []);
  t.end();
});

function grant(id: string, sentUs: number, toldUs: number, token: number): Operation {
  return operation({ id, sentUs, answers: [answer(toldUs, { token, revision: token })] });
}

function forceOf(sentUs: number, fields: Partial<Operation>): Operation {
  return operation({ id: 'f', kind: 'force-release', sentUs, ...fields });
}

t.test('linearizability: a lease may end before its time by force, and by nothing else', (t) => {
  const grants = [grant('a', 0, 10, 1), grant('b', 40, 50, 4)];
  t.match(checkLinearizability(historyOf(grants)).problems, [/no order/]);
  const told = forceOf(20, { answers: [answer(30, { token: 1, revision: 3 })] });
  t.same(checkLinearizability(historyOf([...grants, told])).problems, []);
  const late = forceOf(60, { answers: [answer(70, { token: 1, revision: 3 })] });
  t.match(checkLinearizability(historyOf([...grants, late])).problems, [/no order/]);
  const untold = forceOf(20, { isAbandoned: true });
  t.same(checkLinearizability(historyOf([...grants, untold])).problems, [], 'it may have been');
  const other = forceOf(20, { isAbandoned: true, aboutToken: 7 });
  t.match(checkLinearizability(historyOf([...grants, other])).problems, [/no order/]);
  const conflict = forceOf(20, { answers: [answer(30, { code: 20, token: 9 })] });
  t.match(checkLinearizability(historyOf([...grants.slice(0, 1), conflict])).problems, [/./, /./]);
  const release = operation({ id: 'r', kind: 'release', aboutToken: 1, sentUs: 15 });
  release.answers.push(answer(35, { revision: 3 }));
  const twice = historyOf([...grants, told, release]);
  t.match(checkLinearizability(twice).problems, [/no order/], 'released and forced');
  t.end();
});

function rule(kind: string, sentUs: number, toldUs: number, target: string): Operation {
  const answers = toldUs > 0 ? [answer(toldUs, { revision: 9 })] : [];
  return operation({ id: target + sentUs, kind, lock: '', target, sentUs, answers });
}

t.test('linearizability: a try is not granted while its name is disabled', (t) => {
  const [off, on] = [rule('disable', 0, 10, 'prefix l'), rule('enable', 40, 50, 'prefix l')];
  const refused = operation({ sentUs: 20, answers: [answer(30, { code: 14 })] });
  t.same(checkLinearizability(historyOf([off, refused, on, grant('a', 45, 60, 1)])).problems, []);
  const inside = checkLinearizability(historyOf([off, on, grant('a', 20, 30, 1)]));
  t.match(inside.problems, [/no order/], 'granted between the two');
  t.match(checkLinearizability(historyOf([refused])).problems, [/no order/], 'nobody disabled it');
  const other = rule('disable', 0, 10, 'name l/');
  t.match(checkLinearizability(historyOf([other, refused])).problems, [/no order/]);
  t.same(checkLinearizability(historyOf([other, grant('a', 20, 30, 1)])).problems, []);
  const maybe = rule('disable', 0, 0, 'name l');
  t.same(checkLinearizability(historyOf([maybe, refused])).problems, [], 'nobody was told of it');
  t.same(checkLinearizability(historyOf([maybe, grant('a', 20, 30, 1)])).problems, []);
  const waited = operation({ waitMs: 9, sentUs: 20, answers: [answer(30, { token: 1 })] });
  t.same(
    checkLinearizability(historyOf([off, waited, on])).problems,
    [],
    'it may have queued before',
  );
  const busy = operation({ sentUs: 20, answers: [answer(30, { code: 10, token: 0 })] });
  t.match(checkLinearizability(historyOf([off, busy, on])).problems, [/no order/]);
  t.end();
});
