/**
 * Each checker finds its fault in a small history written by hand, and nothing in a sound one.
 */
import { Packr } from 'msgpackr';
import t from 'tap';
import { checkExclusion, checkTokens, checkTrespass } from './checkers/exclusion.js';
import { checkPlaces, checkQueues } from './checkers/fifo.js';
import { checkForgetting } from './checkers/forgetting.js';
import { checkIdempotency } from './checkers/idempotency.js';
import { checkBeliefs, checkClusterTime } from './checkers/lease-bounds.js';
import { checkLinearizability } from './checkers/linearizability.js';
import { type Answer, History, type Operation } from './history.js';
import type { LedgerEntry, SeenEvent } from './ledger.js';

const RETENTION_MS = 60_000;

function answer(atUs: number, fields: Partial<Answer>): Answer {
  const numbers = { token: 0, revision: 0, deadline: 0, ttlMs: 0, place: 0, cause: 0 };
  const rest = JSON.stringify(fields);
  return {
    atUs,
    code: 0,
    clusterTime: 1,
    isReplay: false,
    subject: '',
    ...numbers,
    rest,
    ...fields,
  };
}

function operation(fields: Partial<Operation>): Operation {
  const about = { client: 'c', id: '', kind: 'acquire', lock: 'l', session: 's', target: '' };
  const numbers = { ttlMs: 1_000, waitMs: 0, aboutToken: 0, sentUs: 0 };
  return { ...about, ...numbers, answers: [], isAbandoned: false, ...fields };
}

function historyOf(...operations: Operation[]): History {
  const history = new History();
  history.operations.push(...operations);
  // The form in which real runs are recorded.
  return History.fromLines(history.toLines());
}

function grant(id: string, sentUs: number, toldUs: number, token: number): Operation {
  return operation({ id, sentUs, answers: [answer(toldUs, { token, revision: token })] });
}

function release(id: string, sentUs: number, toldUs: number, token: number): Operation {
  const answers = [answer(toldUs, { revision: token + 1 })];
  return operation({ id, kind: 'release', aboutToken: token, sentUs, answers });
}

function get(sentUs: number, toldUs: number, token: number): Operation {
  return operation({ kind: 'get', session: '', sentUs, answers: [answer(toldUs, { token })] });
}

/** An entry with one operation, as src/wire/entry.ts lays it out. */
function loggedEntry(stampMs: number, fields: readonly unknown[]): Uint8Array {
  const body = new Packr({ useRecords: false }).pack(fields);
  const data = new Uint8Array(44 + body.length);
  const view = new DataView(data.buffer);
  view.setUint32(4, 1);
  view.setUint32(12, stampMs);
  view.setUint32(32 + 4, 1);
  view.setUint32(32 + 8, body.length);
  data.set(body, 44);
  return data;
}

function event(kind: number, revision: number, fields: Partial<SeenEvent> = {}): SeenEvent {
  const numbers = { token: 0, place: 0, cause: 0, stampMs: revision };
  return { kind, revision, lock: 'l', ...numbers, ...fields };
}

t.test('linearizability: a history that one lock could have given', (t) => {
  const sound = historyOf(
    grant('a', 0, 10, 1),
    get(12, 14, 1),
    release('b', 15, 30, 1),
    get(16, 29, 0),
    grant('c', 20, 40, 3),
    get(25, 50, 3),
  );
  t.same(checkLinearizability(sound).problems, []);
  t.end();
});

t.test('linearizability: a read that is stale', (t) => {
  const grants = [grant('a', 0, 10, 1), release('b', 15, 30, 1), grant('c', 35, 40, 3)];
  t.same(checkLinearizability(historyOf(...grants, get(36, 50, 0))).problems, [], 'in time');
  const stale = historyOf(...grants, get(41, 50, 1));
  t.match(checkLinearizability(stale).problems, [/no order/]);
  t.end();
});

t.test('linearizability: two holders at once', (t) => {
  const held = operation({ id: 'c', session: '', ttlMs: 1_000, sentUs: 0 });
  held.answers.push(answer(10, { token: 1 }));
  const second = historyOf(held, grant('d', 20, 30, 2));
  t.match(checkLinearizability(second).problems, [/no order/], 'before the first could expire');
  const later = historyOf(held, grant('d', 20, 2_000_000, 2));
  t.same(checkLinearizability(later).problems, []);
  const early = historyOf(held, grant('d', 20, 960_000, 2));
  t.match(checkLinearizability(early).problems, [/no order/], 'sooner than a sound clock may');
  const wild = { mayBeTwo: () => false, rateMax: 1.06 };
  t.same(checkLinearizability(early, wild).problems, [], 'but not than a wild one');
  t.end();
});

t.test('linearizability: a token that nobody can have got', (t) => {
  t.match(checkLinearizability(historyOf(get(0, 10, 7))).problems, [/nobody/, /.*/]);
  const untold = operation({ id: 'x', sentUs: 0, isAbandoned: true });
  t.same(checkLinearizability(historyOf(untold, get(5, 10, 7))).problems, []);
  t.end();
});

t.test('linearizability: only an id that was forgotten can be two requests', (t) => {
  const refused = operation({ id: 'x', sentUs: 0, answers: [answer(4, { code: 21 })] });
  const history = historyOf(refused, get(5, 10, 7));
  const kept = { mayBeTwo: () => false, rateMax: 1.03 };
  t.match(checkLinearizability(history, kept).problems, [/nobody/, /.*/]);
  const forgotten = { ...kept, mayBeTwo: ({ id }: Operation) => id === 'x' };
  t.same(checkLinearizability(history, forgotten).problems, []);
  t.end();
});

t.test('linearizability: a grant that only a cancel told of, in a later life of its id', (t) => {
  const timedOut = operation({
    id: 'x',
    sentUs: 0,
    session: '',
    answers: [answer(9, { code: 11 })],
  });
  const about = { id: 'y', kind: 'cancel', target: 'x', sentUs: 40 };
  const cancel = operation({ ...about, answers: [answer(50, { token: 7 })] });
  const forgotten = { mayBeTwo: ({ id }: Operation) => id === 'x', rateMax: 1.03 };
  const sound = historyOf(timedOut, get(20, 30, 0), cancel);
  t.same(checkLinearizability(sound, forgotten).problems, []);
  const stale = historyOf(timedOut, cancel, get(60, 70, 0), get(80, 90, 7));
  t.match(checkLinearizability(stale, forgotten).problems, [/no order/]);
  t.end();
});

t.test('forgetting: kept until retention and not_after are over, then a new request', (t) => {
  const acquire = (stampMs: number, code: number, replay: boolean, notAfter: number | null) => {
    const fields = [36, 'x', null, null, null, 'l', 500, 0];
    const empty = [null, null, null, null, null, null];
    const data = loggedEntry(stampMs, [...fields, ...empty, notAfter]);
    const outcome = { code, replay, revision: 0, blob: new Uint8Array(0) };
    return { stampMs, data, outcomes: [outcome], completions: [] } as unknown as LedgerEntry;
  };
  const judge = (...entries: LedgerEntry[]) => checkForgetting(entries, 1_000);
  const first = acquire(100, 0, false, null);
  t.same(judge(first, acquire(1_099, 0, true, null)).verdict.problems, []);
  t.match(judge(first, acquire(1_099, 0, false, null)).verdict.problems, [/carried out anew/]);
  const again = judge(first, acquire(1_100, 0, false, null));
  t.same(again.verdict.problems, []);
  t.equal(again.lives.get('x'), 2);
  t.match(judge(first, acquire(1_100, 0, true, null)).verdict.problems, [/answered again/]);
  const named = acquire(100, 0, false, 3_000);
  t.same(judge(named, acquire(2_999, 0, true, 3_000)).verdict.problems, []);
  t.match(judge(named, acquire(2_999, 0, false, 3_000)).verdict.problems, [/carried out anew/]);
  const over = judge(named, acquire(3_000, 22, false, 3_000));
  t.same(over.verdict.problems, []);
  t.equal(over.lives.get('x'), 1);
  const cancelling = loggedEntry(1_100, [39, 'y', null, null, null, 'x']);
  const cancel = { ...acquire(1_100, 0, false, null), data: cancelling };
  t.equal(judge(first, cancel).lives.get('x'), 2, 'a cancel is the result of a forgotten id');
  const late = judge(named, acquire(3_000, 0, false, 3_000));
  t.match(late.verdict.problems, [/not after 3000/]);
  t.end();
});

t.test('cluster time: ahead of true time, or behind it, by more than a stamp is rounded', (t) => {
  const entry = (index: number, madeMs: number, stampMs: number): LedgerEntry => {
    const lists = { outcomes: [], completions: [], events: [] };
    const nothing = { data: new Uint8Array(0), hasDeadlines: true, ...lists };
    const about = {
      term: 1,
      makerId: 1,
      sum: 0,
      digest: '',
      revision: 0,
      appliedUs: madeMs * 1_000,
    };
    return { index, madeUs: madeMs * 1_000, stampMs, ...about, ...nothing };
  };
  const first = entry(1, 10, 10);
  t.same(checkClusterTime([first, entry(2, 110, 110), entry(3, 210, 209)], []).problems, []);
  t.match(checkClusterTime([first, entry(2, 110, 114)], []).problems, [/ahead of true time/]);
  t.match(checkClusterTime([first, entry(2, 110, 107)], []).problems, [/count as 97 ms/]);
  t.end();
});

t.test('tokens: one for two requests, and one that falls in true time', (t) => {
  t.match(checkTokens(historyOf(grant('a', 0, 9, 4), grant('b', 1, 9, 4))).problems, [/4 for b/]);
  const falling = historyOf(grant('a', 0, 9, 4), grant('b', 10, 20, 3));
  t.match(checkTokens(falling).problems, [/after 4 was told/]);
  t.same(checkTokens(historyOf(grant('a', 0, 9, 4), grant('b', 8, 20, 3))).problems, []);
  t.end();
});

t.test('exclusion: granted twice, ended by another, tokens that fall', (t) => {
  const first = event(1, 1, { token: 1 });
  t.match(checkExclusion([first, event(1, 2, { token: 2 })]).problems, [/I1/]);
  t.match(checkExclusion([first, event(2, 2, { token: 9 })]).problems, [/I4/]);
  const fallen = [event(1, 5, { token: 5 }), event(1, 4, { token: 4, lock: 'm' })];
  t.match(checkExclusion(fallen).problems, [/I2/]);
  t.same(checkExclusion([first, event(2, 2, { token: 1 })]).problems, []);
  t.end();
});

t.test('fifo: barging, overtaking, a place that is not there', (t) => {
  const [one, two] = [event(3, 1, { place: 1 }), event(3, 2, { place: 2 })];
  t.match(checkQueues([one, event(1, 2, { token: 2 })]).problems, [/barges/]);
  t.match(checkQueues([one, two, event(1, 3, { token: 3, place: 2 })]).problems, [/before 1/]);
  t.match(checkQueues([event(4, 3, { place: 2 })]).problems, [/not there/]);
  t.same(checkQueues([one, two, event(1, 3, { token: 3, place: 1 })]).problems, []);
  const waited = (id: string, place: number, token: number): Operation => {
    const answers = [answer(5, { code: 1, place }), answer(9, { token })];
    return operation({ id, waitMs: 10, answers });
  };
  const overtaken = historyOf(waited('a', 1, 8), waited('b', 2, 7));
  t.match(checkPlaces(overtaken, RETENTION_MS).problems, [/b was granted before a/]);
  t.end();
});

t.test('trespass: a lease that answers to another principal', (t) => {
  const owned = { ...grant('a', 0, 9, 4), principal: 1 };
  const foreign = (fields: Partial<Answer>): History => {
    const answers = [answer(20, fields)];
    const about = { id: 'b', kind: 'release', aboutToken: 4, principal: 2 };
    return historyOf(owned, operation({ ...about, sentUs: 10, answers }));
  };
  t.same(checkTrespass(foreign({ code: 17 })).problems, []);
  t.match(checkTrespass(foreign({ code: 17, cause: 1 })).problems, [/release of 4/]);
  t.match(checkTrespass(foreign({ code: 0 })).problems, [/release of 4/]);
  t.end();
});

t.test('idempotency: an id with a not_after is kept until then', (t) => {
  const told = (at: number, token: number): Answer => answer(at, { clusterTime: at, token });
  const twice = (last: number, fields: Partial<Operation>): History =>
    historyOf(operation({ id: 'a', session: '', answers: [told(5, 4), told(last, 6)], ...fields }));
  t.match(checkIdempotency(twice(1_004, {}), 1_000).problems, [/a was 0/]);
  t.same(checkIdempotency(twice(1_005, {}), 1_000).problems, []);
  t.match(checkIdempotency(twice(2_999, { notAfter: 3_000 }), 1_000).problems, [/a was 0/]);
  t.end();
});

t.test('idempotency: another result under the same id', (t) => {
  const twice = grant('a', 0, 9, 4);
  twice.answers.push(answer(12, { token: 5 }));
  t.match(checkIdempotency(historyOf(twice), RETENTION_MS).problems, [/a was 0/]);
  const same = grant('a', 0, 9, 4);
  same.answers.push({ ...(same.answers[0] as Answer), atUs: 12, isReplay: true });
  t.same(checkIdempotency(historyOf(same), RETENTION_MS).problems, []);
  t.end();
});

t.test('beliefs: two holders at one moment of true time', (t) => {
  const history = new History();
  const belief = { client: 'c', lock: 'l', token: 1, fromUs: 0, untilUs: 100 };
  history.beliefs.push(belief, { ...belief, token: 2, fromUs: 100, untilUs: 200 });
  t.same(checkBeliefs(history).problems, []);
  history.beliefs.push({ ...belief, token: 3, fromUs: 150, untilUs: 300 });
  t.match(checkBeliefs(history).problems, [/2 was believed/]);
  t.end();
});
