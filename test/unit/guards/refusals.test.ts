import { DatabaseSync } from '@photostructure/sqlite';
import t from 'tap';
import {
  type Refusal,
  RefusalBatches,
  type RefusalReporter,
} from '../../../src/guards/refusals.js';
import { SqliteGuard } from '../../../src/guards/sqlite/sqlite-guard.js';
import { isStaleToken } from '../../../src/guards/stale-token.js';
import { REFUSAL_REPORT_MS, REFUSED_LOCKS_MAX } from '../../../src/limits.js';
import { FakeClock, settle } from '../client/fake-clock.js';

/** Batches over a clock that is moved by hand, and what their reporter was told. */
function start(reporter?: RefusalReporter) {
  const clock = new FakeClock();
  const told: Refusal[] = [];
  const report = (refusal: Refusal): void => {
    told.push(refusal);
  };
  const batches = new RefusalBatches(reporter ?? { report }, clock);
  const refuse = (lock: string, offered: number, seen: number, resource = 'redis'): void =>
    batches.onRefused({ resource, lock, offered, seen });
  return { clock, told, batches, refuse };
}

t.test('the first refusal is reported at once, and never within the write', async (t) => {
  const { clock, told, refuse } = start();
  refuse('jobs/7', 41, 42);
  t.same(told, [], 'the guard goes on before anybody is told');
  await clock.advance(1);
  t.same(told, [{ resource: 'redis', lock: 'jobs/7', offered: 41, seen: 42, count: 1 }]);
  t.equal(clock.timers, 0, 'nothing is left that would hold a process');
});

t.test(
  'one report a lock and second has the count, the last token and the greatest mark',
  async (t) => {
    const { clock, told, batches, refuse } = start();
    refuse('jobs/7', 40, 42);
    await clock.advance(1);
    for (const [offered, seen] of [
      [41, 44],
      [40, 42],
      [39, 43],
    ] as const) {
      refuse('jobs/7', offered, seen);
      await clock.advance(100);
    }
    t.equal(told.length, 1);
    await clock.advance(REFUSAL_REPORT_MS);
    t.same(told.slice(1), [{ resource: 'redis', lock: 'jobs/7', offered: 39, seen: 44, count: 3 }]);
    t.equal(batches.reports, 2);
  },
);

t.test('a writer that tries without pause makes one report a second', async (t) => {
  const { clock, told, refuse } = start();
  const moments: number[] = [];
  for (let ms = 0; ms < 10_000; ms += 5) {
    refuse('jobs/7', 41, 42);
    await clock.advance(5);
    if (told.length > moments.length) moments.push(clock.nowMs());
  }
  await clock.advance(REFUSAL_REPORT_MS);
  t.equal(told.length, 11);
  const sum = told.reduce((count, refusal) => count + refusal.count, 0);
  t.equal(sum, 2_000, 'and every refusal is in one');
  const gaps = moments.slice(1).map((moment, at) => moment - (moments[at] ?? 0));
  t.ok(
    gaps.every((gap) => gap >= REFUSAL_REPORT_MS - 5),
    `${gaps}`,
  );
});

t.test('locks, and kinds of guards, are reported apart', async (t) => {
  const { clock, told, refuse } = start();
  refuse('a', 1, 2);
  refuse('b', 3, 4);
  refuse('a', 1, 2, 'postgres');
  refuse('a', 1, 2);
  await clock.advance(1);
  t.same(
    told.map(({ resource, lock, count }) => [resource, lock, count]),
    [
      ['redis', 'a', 2],
      ['redis', 'b', 1],
      ['postgres', 'a', 1],
    ],
  );
});

t.test('more locks than can be kept are counted, and the next second has room', async (t) => {
  const { clock, told, batches, refuse } = start();
  for (let lock = 0; lock < REFUSED_LOCKS_MAX + 7; lock += 1) refuse(`lock ${lock}`, 1, 2);
  refuse('lock 0', 1, 2);
  t.equal(batches.dropped, 7, 'a lock that is kept already still counts');
  await clock.advance(1);
  t.equal(told.length, REFUSED_LOCKS_MAX);
  t.equal(told[0]?.count, 2);
  refuse('another', 1, 2);
  await clock.advance(REFUSAL_REPORT_MS);
  t.equal(told.at(-1)?.lock, 'another');
  t.equal(batches.dropped, 7);
});

t.test('a reporter that throws, or rejects, is counted and asked again', async (t) => {
  let calls = 0;
  const reporter = {
    report: (): void => {
      calls += 1;
      if (calls === 1) throw new Error('no way to the cluster');
    },
  };
  const { clock, batches, refuse } = start(reporter);
  refuse('a', 1, 2);
  refuse('b', 1, 2);
  await clock.advance(1);
  t.match(batches, { reports: 2, reporterErrors: 1 }, 'the next lock is reported all the same');
  const later = start({ report: async () => Promise.reject(new Error('later')) });
  later.refuse('a', 1, 2);
  await later.clock.advance(1);
  await settle();
  t.match(later.batches, { reports: 1, reporterErrors: 1 }, 'and no rejection is left unhandled');
});

t.test('flush reports what waits, once', async (t) => {
  const { clock, told, batches, refuse } = start();
  refuse('a', 1, 2);
  batches.flush();
  t.equal(told.length, 1);
  batches.flush();
  await clock.advance(REFUSAL_REPORT_MS);
  t.equal(told.length, 1);
  refuse('a', 1, 2);
  await clock.advance(1);
  t.equal(told.length, 2, 'a second has gone by since');
});

t.test(
  'as the observer of a guard: refused, told, and the same whatever the reporter does',
  async (t) => {
    const clock = new FakeClock();
    const told: Refusal[] = [];
    const batches = new RefusalBatches(
      {
        report: (refusal) => {
          told.push(refusal);
          throw new Error('broken');
        },
      },
      clock,
    );
    const database = new DatabaseSync(':memory:');
    t.teardown(() => database.close());
    /** Two guards, as programs make them where they need them, and one place for their refusals. */
    for (const token of [41, 40]) {
      const guard = new SqliteGuard(database, { observer: batches });
      guard.transaction({ lock: 'jobs/7', token: 42 }, () => undefined);
      t.throws(() => guard.transaction({ lock: 'jobs/7', token }, () => undefined), {
        code: 'STALE_TOKEN',
        offered: token,
        seen: 42,
      });
      t.match(guard.tally, { accepted: 1, refused: 1, observerErrors: 0 });
    }
    await clock.advance(1);
    t.same(told, [{ resource: 'sqlite', lock: 'jobs/7', offered: 40, seen: 42, count: 2 }]);
    t.equal(batches.reporterErrors, 1);
  },
);

t.test('with the clock of the machine, a report comes by itself', async (t) => {
  const told = await new Promise<Refusal>((resolve) => {
    const batches = new RefusalBatches({ report: resolve });
    const guard = new SqliteGuard(new DatabaseSync(':memory:'), { observer: batches });
    guard.transaction({ lock: 'a', token: 2 }, () => undefined);
    try {
      guard.transaction({ lock: 'a', token: 1 }, () => undefined);
    } catch (error) {
      t.ok(isStaleToken(error));
    }
  });
  t.match(told, { lock: 'a', offered: 1, seen: 2, count: 1 });
});
