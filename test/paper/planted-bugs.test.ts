/**
 * The random histories catch a raft with one rule broken: a checker that cannot fail is a defect.
 */
import t from 'tap';
import { buildRaft, PLANTS, TIGHT_LIMITS } from './patched-raft.js';
import { RandomSchedule } from './random-schedule.js';

const SCHEDULES_MAX = 20_000;
const STEPS = 300;

for (const plant of PLANTS) {
  t.test(`caught: ${plant.name}`, async (t) => {
    const raftClass = await buildRaft(TIGHT_LIMITS, plant);
    let found: string | null = null;
    const firstSeed = plant.seed ?? 1;
    for (let seed = firstSeed; seed < firstSeed + SCHEDULES_MAX && found === null; seed += 1) {
      found = new RandomSchedule({ seed, steps: STEPS, raftClass }).run().violation;
    }
    t.type(found, 'string', found ?? 'not caught');
    t.notMatch(found, /Progress|come to rest/, 'by a broken promise, not by a cluster at a stand');
  });
}
