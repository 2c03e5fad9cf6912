/**
 * The smoke part of the simulator: some seeds, each of them twice.
 */
import t from 'tap';
import { openRunner } from './run-seed.js';

const SEEDS = Number(process.env['HOLDFAST_SIM_SEEDS'] ?? 16);
const FIRST = Number(process.env['HOLDFAST_SIM_SEED'] ?? 1);

t.test(
  'no seed breaks an invariant, every healed cluster serves everyone, all replay',
  async (t) => {
    const runSeed = await openRunner();
    let operations = 0;
    let faults = 0;
    const seen = new Map<string, number>();
    for (let seed = FIRST; seed < FIRST + SEEDS; seed += 1) {
      const result = runSeed(seed);
      operations += result.operations;
      faults += result.faults;
      for (const [checker, count] of result.seen) {
        seen.set(checker, (seen.get(checker) ?? 0) + count);
      }
      t.same(result.problems, [], `seed ${seed}`);
      t.equal(runSeed(seed).digest, result.digest, `seed ${seed} goes alike a second time`);
    }
    t.ok(operations > SEEDS * 300, `${operations} operations`);
    t.ok(faults > SEEDS * 3, `${faults} faults`);
    for (const [checker, count] of seen)
      t.ok(count > SEEDS * 3, `${checker} looked at ${count} things`);
  },
);
