/**
 * Raft Figure 3 and §8 on random histories: whatever the network, the disks and the crashes do.
 *
 * HOLDFAST_SCHEDULES runs that many histories, HOLDFAST_SEED begins at that seed; a failure names
 * the seed that repeats it.
 */
import t from 'tap';
import { RandomSchedule } from './random-schedule.js';

const SCHEDULES_DEFAULT = 1_500;
const STEPS = 600;

const schedules = Number(process.env['HOLDFAST_SCHEDULES'] ?? SCHEDULES_DEFAULT);
const firstSeed = Number(process.env['HOLDFAST_SEED'] ?? 1);

t.test('random histories break no promise and end in progress', (t) => {
  const sums = { committed: 0, elections: 0, reads: 0 };
  const violations: string[] = [];
  for (let seed = firstSeed; seed < firstSeed + schedules; seed += 1) {
    const result = new RandomSchedule({ seed, steps: STEPS }).run();
    sums.committed += result.committed;
    sums.elections += result.elections;
    sums.reads += result.reads;
    if (result.violation !== null) violations.push(result.violation);
    if (violations.length === 5) break;
  }
  t.comment(`${schedules} histories: ${JSON.stringify(sums)}`);
  t.strictSame(violations, []);
  t.end();
});
