/**
 * Raft Figure 3 and §8 on random histories: whatever the network, the disks and the crashes do.
 *
 * HOLDFAST_SCHEDULES runs that many histories with each set of limits, HOLDFAST_SEED begins at
 * that seed; a failure names the seed that repeats it.
 */
import t from 'tap';
import { Raft } from '../../src/core/raft/raft.js';
import { buildRaft, TIGHT_LIMITS } from './patched-raft.js';
import { RandomSchedule } from './random-schedule.js';

const SCHEDULES_DEFAULT = 2_000;
const STEPS = 300;
const VIOLATIONS_MAX = 5;

const schedules = Number(process.env['HOLDFAST_SCHEDULES'] ?? SCHEDULES_DEFAULT);
const firstSeed = Number(process.env['HOLDFAST_SEED'] ?? 1);

// The gate bounds a file's time; a longer run is somebody's wish.
t.setTimeout(0);

for (const limits of ['usual', 'tight'] as const) {
  t.test(`${limits} limits: histories break no promise and end in progress`, async (t) => {
    const raftClass = limits === 'usual' ? Raft : await buildRaft(TIGHT_LIMITS);
    const sums = { committed: 0, elections: 0, reads: 0 };
    const violations: string[] = [];
    for (let seed = firstSeed; seed < firstSeed + schedules; seed += 1) {
      const result = new RandomSchedule({ seed, steps: STEPS, raftClass }).run();
      sums.committed += result.committed;
      sums.elections += result.elections;
      sums.reads += result.reads;
      if (result.violation !== null) violations.push(result.violation);
      if (violations.length === VIOLATIONS_MAX) break;
    }
    t.comment(`${schedules} histories: ${JSON.stringify(sums)}`);
    t.strictSame(violations, []);
    t.ok(sums.committed > schedules, 'the histories commit');
    t.ok(sums.elections > schedules, 'the histories elect');
    t.ok(sums.reads > schedules / 4, 'the histories read');
  });
}
