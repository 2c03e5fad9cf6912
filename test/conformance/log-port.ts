/**
 * What every LogPort must do, whatever it writes to. The log on LMDB and the simulated one pass it.
 *
 * Used by: test/unit/io/log.test.ts, and the simulator's own tests.
 */
import fc from 'fast-check';
import type { Test } from 'tap';
import { EntryKind } from '../../src/core/raft/message.js';
import { LogDriver, makeEntries, makeEntry, type OpenLog, plain } from './log-driver.js';

/** Storage that outlives the log on it. `open` may be called again after `close` of the last. */
export interface LogStorage {
  open(): Promise<OpenLog>;
}

/** One step of a random run: cut so many entries, append some, perhaps restart. */
interface Step {
  readonly cut: number;
  readonly sizes: readonly number[];
  readonly term: number;
  readonly restart: boolean;
}

/**
 * Runs every rule, each on storage of its own that `makeStorage` makes.
 * @param runs random runs of the last rule; a log on a real disk takes about a second for one
 */
export function logConformance(t: Test, makeStorage: () => LogStorage, runs = 100): void {
  const start = async () => {
    const storage = makeStorage();
    const driver = new LogDriver(await storage.open());
    const reopen = async (last: LogDriver) => {
      await last.log.close();
      return new LogDriver(await storage.open());
    };
    return { driver, reopen };
  };

  t.test('a fresh log is empty', async (t) => {
    const { driver } = await start();
    t.match(driver.state, {
      firstIndex: 1,
      lastIndex: 0,
      commitIndex: 0,
      termStarts: [],
      tail: [],
    });
    t.strictSame(driver.state.hardState, { term: 0, votedFor: 0 });
    t.strictSame(await driver.read(1, 10), []);
    await driver.log.close();
  });

  t.test('what was reported durable is there after a restart', async (t) => {
    const { driver, reopen } = await start();
    const entries = [...makeEntries(1, 3, 1), ...makeEntries(4, 5, 4, 0), makeEntry(6, 4, 1 << 20)];
    const hardState = { term: 4, votedFor: 2 };
    await driver.append({ entries, hardState, commitIndex: 5 });
    const again = await reopen(driver);
    t.match(again.state, { firstIndex: 1, lastIndex: 6, commitIndex: 5, hardState });
    t.strictSame(again.state.termStarts, [
      { index: 1, term: 1 },
      { index: 4, term: 4 },
    ]);
    t.strictSame(plain(again.state.tail), plain(entries), 'the tail');
    t.strictSame(plain(await again.read(1, 6)), plain(entries), 'a read');
    await again.log.close();
  });

  t.test('term and vote are kept without an entry, the newest of several', async (t) => {
    const { driver, reopen } = await start();
    driver.give({ hardState: { term: 3, votedFor: 1 } });
    await driver.append({ hardState: { term: 7, votedFor: 0 } });
    const again = await reopen(driver);
    t.strictSame(again.state.hardState, { term: 7, votedFor: 0 });
    t.equal(again.state.lastIndex, 0);
    await again.log.close();
  });

  t.test('an order without anything to do is durable in its turn', async (t) => {
    const { driver } = await start();
    await driver.append({});
    t.equal(driver.durableIds.at(-1), 1);
    await driver.log.close();
  });

  t.test('the kind of an entry is kept', async (t) => {
    const { driver, reopen } = await start();
    const [one, two] = [makeEntry(1, 1), makeEntry(2, 1)];
    await driver.append({
      entries: [
        { ...one, kind: EntryKind.NoOp },
        { ...two, kind: EntryKind.Membership },
      ],
    });
    const again = await reopen(driver);
    const kinds = (await again.read(1, 2)).map(({ kind }) => kind);
    t.strictSame(kinds, [EntryKind.NoOp, EntryKind.Membership]);
    await again.log.close();
  });

  t.test('events come in order, and never from inside append or read', async (t) => {
    const { driver } = await start();
    for (let index = 1; index <= 50; index++) driver.give({ entries: [makeEntry(index, 1)] });
    const entries = await driver.read(1, 50);
    t.equal(entries.length, 50, 'a read sees the orders before it');
    await driver.durable(50);
    t.equal(driver.eventsInside, 0);
    t.strictSame(
      driver.durableIds,
      [...driver.durableIds].sort((a, b) => a - b),
    );
    t.equal(new Set(driver.durableIds).size, driver.durableIds.length, 'each id once at most');
    await driver.log.close();
  });

  t.test('the log borrows the bytes of an order only until it is durable', async (t) => {
    const { driver, reopen } = await start();
    const entry = makeEntry(1, 1);
    const wanted = plain([entry]);
    await driver.append({ entries: [entry] });
    entry.data.fill(0);
    t.strictSame(plain(await driver.read(1, 1)), wanted);
    const again = await reopen(driver);
    t.strictSame(plain(again.state.tail), wanted);
    await again.log.close();
  });

  t.test('a cut removes the suffix, and the order that cuts may append', async (t) => {
    const { driver, reopen } = await start();
    await driver.append({ entries: makeEntries(1, 40, 1) });
    await driver.append({ truncateFrom: 21, entries: makeEntries(21, 22, 2) });
    const wanted = [...makeEntries(1, 20, 1), ...makeEntries(21, 22, 2)];
    t.strictSame(plain(await driver.read(1, 100)), plain(wanted));
    await driver.append({ truncateFrom: 22 });
    t.strictSame(await driver.read(22, 22), [], 'what was cut reads as nothing');
    const again = await reopen(driver);
    t.strictSame(plain(await again.read(1, 100)), plain(wanted.slice(0, 21)));
    t.equal(again.state.lastIndex, 21);
    await again.log.close();
  });

  t.test('a cut from the first entry on leaves an empty log that goes on', async (t) => {
    const { driver, reopen } = await start();
    await driver.append({ entries: makeEntries(1, 30, 1) });
    await driver.append({ truncateFrom: 1 });
    const empty = await reopen(driver);
    t.match(empty.state, { firstIndex: 1, lastIndex: 0, termStarts: [] });
    await empty.append({ entries: makeEntries(1, 2, 3) });
    const again = await reopen(empty);
    t.strictSame(plain(again.state.tail), plain(makeEntries(1, 2, 3)));
    await again.log.close();
  });

  t.test('a read stops at its bytes, but gives one entry at least', async (t) => {
    const { driver } = await start();
    await driver.append({ entries: makeEntries(1, 10, 1, 1_000) });
    t.equal((await driver.read(3, 10, 1)).length, 1);
    const some = await driver.read(3, 10, 3_500);
    t.strictSame(plain(some), plain(makeEntries(3, 5, 1, 1_000)));
    t.equal((await driver.read(9, 100)).length, 2, 'and at the end of the log');
    await driver.log.close();
  });

  t.test('any run of appends, cuts and restarts leaves what a list would hold', async (t) => {
    const step = fc.record({
      cut: fc.option(fc.nat(30), { nil: 0, freq: 3 }),
      sizes: fc.array(fc.nat(6_000), { maxLength: 8 }),
      term: fc.nat(1),
      restart: fc.integer({ min: 0, max: 5 }).map((roll) => roll === 0),
    });
    const run = async (steps: Step[]) => {
      const { driver: first, reopen } = await start();
      let driver = first;
      let model: ReturnType<typeof makeEntry>[] = [];
      let term = 1;
      for (const { cut, sizes, term: rise, restart } of steps) {
        term += rise;
        const truncateFrom = cut === 0 ? 0 : Math.max(1, model.length + 1 - cut);
        if (truncateFrom !== 0) model = model.slice(0, truncateFrom - 1);
        const base = model.length;
        const entries = sizes.map((size, at) => makeEntry(base + 1 + at, term, size));
        model.push(...entries);
        const id = driver.give({ truncateFrom, entries });
        if (!restart) continue;
        await driver.durable(id);
        driver = await reopen(driver);
        if (driver.state.lastIndex !== model.length) return false;
      }
      const found = await driver.read(1, Number.MAX_SAFE_INTEGER);
      await driver.log.close();
      return JSON.stringify(plain(found)) === JSON.stringify(plain(model));
    };
    const property = fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 12 }), run);
    await t.resolves(fc.assert(property, { numRuns: runs }));
  });
}
