import t from 'tap';
import { runChaos } from './chaos.js';

const SEEDS = Number(process.env['HOLDFAST_SIM_SEEDS'] ?? 12);
const FIRST = Number(process.env['HOLDFAST_SIM_SEED'] ?? 1);

t.test('no seed breaks an invariant, and every healed cluster serves everyone', (t) => {
  let operations = 0;
  let faults = 0;
  for (let seed = FIRST; seed < FIRST + SEEDS; seed += 1) {
    const result = runChaos(seed);
    operations += result.operations;
    faults += result.faults;
    t.same(result.problems, [], `seed ${seed}`);
  }
  t.ok(operations > SEEDS * 50, `${operations} operations`);
  t.ok(faults > SEEDS * 5, `${faults} faults`);
  t.end();
});

t.test('a seed replays exactly', (t) => {
  t.same(runChaos(FIRST), runChaos(FIRST));
  t.end();
});
