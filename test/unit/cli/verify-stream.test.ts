/** The audit stream against its own rules and the state, with every kind of fault planted. */

import t, { type Test } from 'tap';
import { Findings } from '../../../src/cli/verify/finding.js';
import {
  checkStream,
  type LockPage,
  type StreamNode,
  type StreamPage,
} from '../../../src/cli/verify/stream-check.js';
import {
  BLOCK_REVISIONS,
  differingBlocks,
  type ShownLock,
  StreamModel,
  StreamRule,
} from '../../../src/cli/verify/stream-model.js';
import { ErrorCode, HoldfastError } from '../../../src/client/errors.js';
import type { Json } from '../../../src/wire/event-json.js';

function granted(revision: number, name: string, place = 0, token = revision): Json {
  return { type: 'granted', revision, name, fencing_token: token, place };
}
function ended(revision: number, name: string, token: number): Json {
  return { type: 'ended', revision, name, fencing_token: token, place: 0 };
}
function queued(revision: number, name: string, place = revision): Json {
  return { type: 'queued', revision, name, fencing_token: 0, place };
}
function left(revision: number, name: string, place: number): Json {
  return { type: 'left', revision, name, fencing_token: 0, place };
}

/** A stream in which everything that can happen happens to the lock `a`. */
const STORY: readonly Json[] = [
  granted(1, 'a'),
  queued(2, 'a'),
  queued(3, 'a'),
  queued(4, 'a'),
  left(5, 'a', 3),
  ended(6, 'a', 1),
  granted(7, 'a', 2),
  granted(8, 'b'),
  ended(9, 'b', 8),
];

function shown(name: string, token: number, waiters: number, lastRevision: number): ShownLock {
  return { name, token, waiters, lastRevision };
}

/** One event that breaks a rule. */
interface Fault {
  readonly rule: StreamRule;
  readonly revision: number;
  readonly name: string;
  readonly found: string;
}

function modelOf(events: readonly Json[], first = 1, isWhole = true) {
  const faults: Fault[] = [];
  const add = (rule: StreamRule, revision: number, name: string, found: string): void => {
    faults.push({ rule, revision, name, found });
  };
  const model = new StreamModel(first, { add }, isWhole);
  for (const event of events) model.take(event);
  return { model, faults };
}

function rule(revision: number, type: 'disabled' | 'enabled', name: string, isPrefix = true): Json {
  return { type, revision, name, fencing_token: 0, place: isPrefix ? 1 : 0 };
}
function said(revision: number, type: 'refused' | 'fenced' | 'expelled', name = 'a'): Json {
  return { type, revision, name, fencing_token: 3, place: 4 };
}

t.test('a stream that could have happened has no fault', async (t) => {
  const { model, faults } = modelOf(STORY);
  t.strictSame(faults, []);
  t.equal(model.next, 10);
  t.strictSame([...model.activeNames()], ['a']);
  t.strictSame([...model.holders()], [['a', 7]]);
  t.equal(model.compare(shown('a', 7, 1, 7)), null);
  t.equal(model.compare(shown('b', 0, 0, 9)), null);
});

t.test('a stream that begins late leaves open what was before', async (t) => {
  for (let first = 2; first <= 9; first += 1) {
    const { model, faults } = modelOf(STORY.slice(first - 1), first);
    t.strictSame(faults, [], `from ${first}`);
    t.equal(model.compare(shown('a', 7, 1, 7)), null);
    t.equal(model.compare(shown('old', 1, 3, 1)), null, 'a lock of before');
  }
});

t.test('each rule that is broken is told, with revision and lock', async (t) => {
  const { Order, Tokens, Holders, Queues, Disabled } = StreamRule;
  const cases: [StreamRule, RegExp, readonly Json[]][] = [
    [Order, /revisions 2 to 3 are missing/, [granted(1, 'a'), granted(4, 'b')]],
    [Order, /it comes after revision 2/, [granted(1, 'a'), granted(2, 'b'), granted(2, 'c')]],
    [Tokens, /granted with token 9/, [granted(1, 'a', 0, 9)]],
    [Tokens, /token 1 is not above token 1/, [granted(1, 'a'), granted(2, 'b', 0, 1)]],
    [Holders, /granted while token 1 has not ended/, [granted(1, 'a'), granted(2, 'a')]],
    [
      Queues,
      /granted past those who wait/,
      [granted(1, 'a'), queued(2, 'a'), ended(3, 'a', 1), granted(4, 'a')],
    ],
    [
      Queues,
      /place 3 is granted, first is 2/,
      [granted(1, 'a'), queued(2, 'a'), queued(3, 'a'), ended(4, 'a', 1), granted(5, 'a', 3)],
    ],
    [Queues, /place 2 is granted, first is nobody/, [granted(1, 'b'), granted(2, 'a', 2)]],
    [Holders, /token 7 ended, and token 1 holds it/, [granted(1, 'a'), ended(2, 'a', 7)]],
    [
      Holders,
      /token 1 ended, and nobody holds it/,
      [granted(1, 'a'), ended(2, 'a', 1), ended(3, 'a', 1)],
    ],
    [Queues, /queued at place 1/, [granted(1, 'a'), queued(2, 'a', 1)]],
    [Queues, /place 9 leaves, and is not in the queue/, [granted(1, 'a'), left(2, 'a', 9)]],
    [Order, /of a kind that is not known: melted/, [{ ...granted(1, 'a'), type: 'melted' }]],
    [Disabled, /granted while a is dis/, [rule(1, 'disabled', 'a', false), granted(2, 'a')]],
    [Disabled, /granted while \* is dis/, [rule(1, 'disabled', ''), granted(2, 'a')]],
    [
      Disabled,
      /queued while a\* is disabled/,
      [granted(1, 'ab'), rule(2, 'disabled', 'a'), queued(3, 'ab')],
    ],
    [Disabled, /was already/, [rule(1, 'disabled', 'a'), rule(2, 'disabled', 'a')]],
    [Disabled, /was not disabled/, [rule(1, 'disabled', 'a'), rule(2, 'enabled', 'a', false)]],
  ];
  for (const [wanted, words, events] of cases) {
    const { faults } = modelOf(events);
    const hit = faults.find(({ found }) => words.test(found));
    t.ok(hit, `${words}: ${JSON.stringify(faults)}`);
    t.equal(hit?.rule, wanted, String(words));
    t.match(hit, { revision: Number, name: /^[abc]*$/ });
  }
});

t.test('what operators and guards say is no fault, and no lock changes hands by it', async (t) => {
  const story = [
    granted(1, 'ab'),
    queued(2, 'ab'),
    rule(3, 'disabled', 'a'),
    said(4, 'refused', 'ab'),
    said(5, 'fenced', 'ab'),
    ended(6, 'ab', 1),
    granted(7, 'ab', 2),
    granted(8, 'b'),
    said(9, 'expelled', ''),
    rule(10, 'enabled', 'a'),
    granted(11, 'ac'),
  ];
  const { model, faults } = modelOf(story);
  t.strictSame(faults, []);
  t.strictSame(
    [...model.holders()],
    [
      ['ab', 7],
      ['b', 8],
      ['ac', 11],
    ],
  );
  t.strictSame(modelOf(story.slice(9), 10).faults, [], 'the rule may be older than the stream');
});

t.test('where only a prefix is told, revisions of others lie between', async (t) => {
  const { faults } = modelOf([granted(3, 'a'), ended(7, 'a', 3)], 1, false);
  t.strictSame(faults, []);
  const { faults: late } = modelOf([granted(3, 'a'), granted(2, 'ab')], 1, false);
  t.match(late, [{ rule: StreamRule.Order, found: 'it comes after revision 3' }, Object]);
});

t.test('a lock that is shown otherwise than the stream left it is told', async (t) => {
  const { model } = modelOf(STORY);
  t.match(model.compare(shown('a', 8, 1, 7)), /token 8, by the stream it is 7/);
  t.match(model.compare(shown('a', 0, 1, 7)), /token 0, by the stream it is 7/);
  t.match(model.compare(shown('a', 7, 2, 7)), /2 waiters, by the stream it has 1/);
  t.match(model.compare(shown('a', 7, 1, 5)), /last revision 5, by the stream it is 7/);
  t.match(model.compare(shown('b', 8, 0, 8)), /token 8, the stream says it is free/);
});

t.test('two nodes that tell a block differently are found', async (t) => {
  const events = Array.from({ length: 2 * BLOCK_REVISIONS + 5 }, (_, at) =>
    granted(at + 1, `n${at + 1}`),
  );
  const { model: one } = modelOf(events);
  const { model: same } = modelOf(events.slice(50), 51);
  t.strictSame(differingBlocks(one, same), []);
  const changed = [...events];
  changed[1_500] = { ...granted(1_501, 'n1501'), principal: 9 };
  const { model: other } = modelOf(changed);
  t.strictSame(differingBlocks(one, other), [1_000]);
  t.ok(one.blocks.has(1) && !one.blocks.has(0) && !one.blocks.has(2), 'whole blocks alone count');
});

/** A node with a stream and a state that go on while they are read. */
class FakeNode implements StreamNode {
  pages = 0;
  gets = 0;
  /** Called before each read of the state. */
  onRead: () => void = () => undefined;
  readonly events: Json[];
  oldest = 1;
  locks: ShownLock[] = [shown('a', 7, 1, 7)];
  /** True: the audit page asked for is no longer kept, once. */
  isCutOnce = false;

  constructor(events: readonly Json[]) {
    this.events = [...events];
  }

  get revision(): number {
    return Number(this.events.at(-1)?.['revision'] ?? 0);
  }

  async page(from: number | null): Promise<StreamPage> {
    this.pages += 1;
    const { oldest, revision } = this;
    if (from === null) return { events: [], next: revision + 1, oldest, revision };
    if (this.isCutOnce) {
      this.isCutOnce = false;
      throw new HoldfastError(ErrorCode.Compacted, { message: 'no longer kept' });
    }
    const events = this.events.filter((event) => Number(event['revision']) >= from).slice(0, 2);
    const next = Number(events.at(-1)?.['revision'] ?? from - 1) + 1;
    return { events, next, oldest, revision };
  }

  async list(cursor: string | null): Promise<LockPage> {
    this.onRead();
    const rest = this.locks.filter(({ name }) => cursor === null || name > cursor);
    const locks = rest.slice(0, 1);
    const isLast = rest.length <= 1;
    return { locks, cursor: isLast ? null : locks[0]!.name, revision: this.revision };
  }

  async get(name: string) {
    this.gets += 1;
    this.onRead();
    const lock = this.locks.find((each) => each.name === name) ?? shown(name, 0, 0, 0);
    return { lock, revision: this.revision };
  }
}

async function judge(t: Test, node: FakeNode) {
  const findings = new Findings();
  const report = await checkStream(node, findings);
  t.ok(report, 'there is a stream');
  return { findings: findings.told, report };
}

t.test('state and stream are compared at one revision while both go on', async (t) => {
  const node = new FakeNode(STORY);
  let next = 10;
  node.onRead = () => {
    // Between two pages a lock is granted, and shown from then on.
    const name = `z${String(next).padStart(4, '0')}`;
    if (next > 40) return;
    node.events.push(granted(next, name));
    node.locks.push(shown(name, next, 0, next));
    next += 1;
  };
  const { findings, report } = await judge(t, node);
  t.strictSame(findings, []);
  t.ok((report?.locks ?? 0) > 20, `${report?.locks} locks`);
  t.match(report, { from: 1, to: node.revision, events: node.revision });
});

t.test('what differs for a moment is read again, what stays is told', async (t) => {
  const node = new FakeNode(STORY);
  node.locks = [shown('a', 0, 1, 7)];
  node.onRead = () => {
    if (node.gets === 2) node.locks = [shown('a', 7, 1, 7)];
  };
  t.strictSame((await judge(t, node)).findings, []);
  const wrong = new FakeNode(STORY);
  wrong.locks = [shown('a', 8, 1, 7)];
  t.match((await judge(t, wrong)).findings, [
    { check: 'state', where: 'a at revision 9', found: /token 8, by the stream it is 7/ },
  ]);
  const lost = new FakeNode(STORY);
  lost.locks = [];
  t.match((await judge(t, lost)).findings, [{ where: 'a at revision 9', found: /token 0, by/ }]);
  const made = new FakeNode(STORY);
  made.locks.push(shown('never', 5, 0, 5));
  t.match((await judge(t, made)).findings, [
    { where: 'never at revision 9', found: /token 5, the stream says it is free/ },
  ]);
});

t.test('a stream without an event is none', async (t) => {
  const node = new FakeNode([]);
  t.equal(await checkStream(node, new Findings()), null);
});

t.test('a stream that is cut while it is read ends the reading', async (t) => {
  const node = new FakeNode(STORY);
  node.isCutOnce = true;
  await t.rejects(checkStream(node, new Findings()), { code: 'COMPACTED' });
});

t.test('findings are told up to a bound, and counted beyond it', async (t) => {
  const node = new FakeNode(Array.from({ length: 100 }, (_, at) => granted(2 * at + 1, 'x')));
  node.locks = [];
  const findings = new Findings();
  await checkStream(node, findings);
  t.match(findings.told[0], { check: 'stream', where: 'revision 3 of x' });
  t.equal(findings.told.length, Findings.MAX);
  t.ok(findings.leftOut > 100);
  t.ok(findings.isFull);
});
