/**
 * RaftLog against a plain array of entries, on random operations.
 */
import fc from 'fast-check';
import t from 'tap';
import { RaftLog } from '../../../src/core/raft/log.js';
import { Entry, EntryKind } from '../../../src/core/raft/message.js';
import { entriesOf, termStartsOf } from '../../paper/single.js';

function logOf(
  terms: readonly number[],
  baseIndex = 0,
  baseTerm = 0,
  kept = terms.length,
): RaftLog {
  const log = new RaftLog(baseIndex, baseTerm);
  const entries = entriesOf(terms, baseIndex + 1);
  log.restore(termStartsOf(entries), baseIndex + terms.length, entries.slice(terms.length - kept));
  return log;
}

/** Terms that never fall, as steps of 0 or more. */
const arbitraryTerms = fc.array(fc.nat({ max: 2 }), { maxLength: 12 }).map((steps) => {
  let term = 1;
  return steps.map((step) => {
    term += step;
    return term;
  });
});

t.test('an empty log', (t) => {
  const log = new RaftLog(0, 0);
  t.equal(log.lastIndex, 0);
  t.equal(log.lastTerm, 0);
  t.equal(log.windowFirst, 1);
  t.equal(log.termAt(0), 0);
  t.equal(log.termAt(1), 0);
  t.ok(log.isMatch(0, 0));
  t.notOk(log.isMatch(1, 0), 'no term past the end matches');
  t.ok(log.isUpToDate(0, 0));
  t.equal(log.entryAt(1), undefined);
  t.end();
});

t.test('a log behind a snapshot', (t) => {
  const log = logOf([3, 4], 10, 3);
  t.equal(log.lastIndex, 12);
  t.strictSame(
    [9, 10, 11, 12, 13].map((index) => log.termAt(index)),
    [0, 3, 3, 4, 0],
  );
  t.ok(log.isMatch(10, 3));
  t.notOk(log.isMatch(9, 0));
  log.truncateFrom(11);
  t.equal(log.lastTerm, 3);
  t.equal(log.lastIndex, 10);
  t.throws(() => log.truncateFrom(10), 'never behind the base');
  log.append(new Entry(11, 3, EntryKind.Batch, new Uint8Array(0)));
  t.equal(log.termAt(11), 3);
  t.end();
});

t.test('appends are consecutive and terms never fall', (t) => {
  const log = logOf([1, 2]);
  const data = new Uint8Array(0);
  t.throws(() => log.append(new Entry(4, 2, EntryKind.Batch, data)), 'consecutive');
  t.throws(() => log.append(new Entry(2, 2, EntryKind.Batch, data)), 'consecutive');
  t.throws(() => log.append(new Entry(3, 1, EntryKind.Batch, data)), 'never fall');
  t.throws(() => log.restore([], 0, []), 'empty');
  t.end();
});

t.test('terms, entries and comparisons agree with an array, whatever is appended and cut', (t) => {
  const operation = fc.oneof(
    fc.record({ kind: fc.constant('append' as const), step: fc.nat({ max: 2 }) }),
    fc.record({ kind: fc.constant('cut' as const), back: fc.nat({ max: 5 }) }),
    fc.record({ kind: fc.constant('trim' as const), upTo: fc.nat({ max: 30 }), keep: fc.nat(4) }),
  );
  fc.assert(
    fc.property(arbitraryTerms, fc.array(operation, { maxLength: 40 }), (terms, operations) => {
      const log = logOf(terms);
      const model = entriesOf(terms).map((entry) => log.entryAt(entry.index) as Entry);
      for (const step of operations) {
        if (step.kind === 'append') {
          const term = (model.at(-1)?.term ?? 1) + step.step;
          const entry = new Entry(model.length + 1, term, EntryKind.Batch, new Uint8Array(3));
          log.append(entry);
          model.push(entry);
        } else if (step.kind === 'cut') {
          const from = Math.max(1, model.length + 1 - step.back);
          log.truncateFrom(from);
          model.length = from - 1;
        } else {
          log.trimWindow(step.upTo, step.keep, 1 << 30);
        }
        if (log.lastIndex !== model.length) return false;
        for (let index = 0; index <= model.length + 1; index += 1) {
          const entry = model[index - 1];
          if (log.termAt(index) !== (entry?.term ?? 0)) return false;
          const isInMemory = index >= log.windowFirst && index <= model.length;
          if (log.entryAt(index) !== (isInMemory ? entry : undefined)) return false;
        }
      }
      return log.windowFirst <= model.length + 1;
    }),
    { numRuns: 500 },
  );
  t.pass();
  t.end();
});

t.test('§5.4.1: isUpToDate orders logs by last term, then by length', (t) => {
  fc.assert(
    fc.property(arbitraryTerms, fc.nat(15), fc.nat(30), (terms, index, term) => {
      const lastTerm = terms.at(-1) ?? 0;
      const expected = term > lastTerm || (term === lastTerm && index >= terms.length);
      return logOf(terms).isUpToDate(index, term) === expected;
    }),
  );
  t.pass();
  t.end();
});

t.test('findConflictByTerm: the greatest index up to the given whose term is not higher', (t) => {
  fc.assert(
    fc.property(arbitraryTerms, fc.nat(15), fc.nat(30), (terms, index, term) => {
      let expected = Math.min(index, terms.length);
      while (expected > 0 && (terms[expected - 1] as number) > term) expected -= 1;
      const found = logOf(terms).findConflictByTerm(index, term);
      return found.index === expected && found.term === (terms[expected - 1] ?? 0);
    }),
    { numRuns: 1_000 },
  );
  t.strictSame(logOf([5, 6], 10, 4).findConflictByTerm(12, 4), { index: 10, term: 4 });
  t.strictSame(logOf([5, 6], 10, 4).findConflictByTerm(12, 1), { index: 10, term: 4 });
  t.end();
});

t.test('trimWindow keeps the newest entries within both bounds, and those after upTo', (t) => {
  const log = new RaftLog(0, 0);
  for (let index = 1; index <= 10; index += 1) {
    log.append(new Entry(index, 1, EntryKind.Batch, new Uint8Array(100)));
  }
  log.trimWindow(10, 6, 1 << 20);
  t.equal(log.windowFirst, 5);
  log.trimWindow(10, 6, 350);
  t.equal(log.windowFirst, 8, 'three of 100 bytes fit 350');
  log.trimWindow(8, 0, 0);
  t.equal(log.windowFirst, 9, 'not past upTo');
  log.trimWindow(10, 0, 0);
  t.equal(log.windowFirst, 11);
  t.equal(log.lastIndex, 10, 'they are still in the log');
  t.equal(log.termAt(3), 1);
  log.truncateFrom(4);
  t.equal(log.windowFirst, 4, 'a cut below the window');
  t.end();
});

t.test('what left the window is not kept alive', (t) => {
  const log = new RaftLog(0, 0);
  const bytes = 1 << 20;
  for (let index = 1; index <= 100; index += 1) {
    log.append(new Entry(index, 1, EntryKind.Batch, new Uint8Array(bytes)));
    log.trimWindow(index, 4_096, 4 * bytes);
    // Nothing but the log holds the entries: what it still reaches is what memory has to bear.
    const reachable = JSON.stringify(log, (key, value) =>
      key === 'data' ? (value as Uint8Array).length : value,
    );
    const held = reachable.split(`"data":${bytes}`).length - 1;
    if (held > 5) {
      t.fail(`${held} MiB are held, 4 are wanted`);
      break;
    }
  }
  t.equal(log.windowFirst, 97);
  t.end();
});
