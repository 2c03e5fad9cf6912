/** When a long run over the guards has shown what it should: test/guards/report.ts. */
import t from 'tap';
import { failedRow, type GuardRow, reportOf, violationsOf } from '../../guards/report.js';

const GOOD: GuardRow = {
  kind: 'redis',
  server: 'Redis 7',
  pauses: 90,
  writes: 1_200,
  refused: 41,
  unknown: 0,
  lost: 0,
  faults: [],
};

t.test('a guard that refused, wrote and lost nothing has no violation', async (t) => {
  t.same(violationsOf(GOOD), []);
  t.same(violationsOf({ ...GOOD, unknown: 3 }), [], 'an unknown outcome is told, no violation');
});

t.test('every other one has', async (t) => {
  t.match(violationsOf({ ...GOOD, refused: 0 }), ['redis: no stale write was refused']);
  t.match(violationsOf({ ...GOOD, lost: 1 }), ['redis: 1 updates were lost']);
  t.match(violationsOf({ ...GOOD, writes: 0 }), ['redis: nothing was written']);
  t.same(violationsOf({ ...GOOD, faults: ['the mark is 3'] }), ['redis: the mark is 3']);
  const failed = violationsOf(failedRow('s3', 'Ceph', new Error('no gateway')));
  t.match(failed[0], 's3: the run failed: no gateway');
});

t.test('the report has a line a guard, its violations, and the verdict last', async (t) => {
  const lines = reportOf([GOOD, { ...GOOD, kind: 'sqlite', server: 'SQLite 3', refused: 0 }]);
  t.equal(lines.length, 5);
  t.match(lines[1], /^redis +1200 +41 +0 +0 +90 +Redis 7$/);
  t.match(lines[3], /^VIOLATION sqlite: no stale write/);
  t.equal(lines.at(-1), '1 violations');
  t.equal(reportOf([GOOD]).at(-1), 'no violation');
});
