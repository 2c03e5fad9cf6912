/**
 * npm run sim -- --seeds N [--seed S]: runs seeds S, S+1, … and stops at nothing.
 *
 * Owns: the loop and the report. A failing seed prints its problems and the line that replays it;
 * one seed in fifty runs twice and must give the same digest. Called by: package.json.
 */
import { parseArgs } from 'node:util';
import { type ChaosResult, runChaos } from './chaos.js';

const REPLAYED_EVERY = 50;
const REPORT_MS = 10_000;

const { values } = parseArgs({
  options: {
    seeds: { type: 'string', default: '100' },
    seed: { type: 'string', default: '1' },
  },
});
const seeds = Number(values.seeds);
const first = Number(values.seed);
if (!Number.isSafeInteger(seeds) || seeds < 1 || !Number.isSafeInteger(first) || first < 0) {
  process.stderr.write('sim: --seeds takes a whole number above 0, --seed one from 0\n');
  process.exit(64);
}

function attempt(seed: number): ChaosResult | Error {
  try {
    return runChaos(seed);
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

function problemsOf(seed: number, result: ChaosResult | Error): readonly string[] {
  if (result instanceof Error) return [result.stack ?? result.message];
  if (seed % REPLAYED_EVERY !== 0) return result.problems;
  const again = attempt(seed);
  const isSame = !(again instanceof Error) && again.digest === result.digest;
  return isSame ? result.problems : [...result.problems, 'the seed does not replay exactly'];
}

let failed = 0;
let operations = 0;
let faults = 0;
let reportedMs = performance.now();
const startedMs = reportedMs;
for (let seed = first; seed < first + seeds; seed += 1) {
  const result = attempt(seed);
  const problems = problemsOf(seed, result);
  if (!(result instanceof Error)) {
    operations += result.operations;
    faults += result.faults;
  }
  if (problems.length > 0) {
    failed += 1;
    for (const problem of problems) process.stdout.write(`seed ${seed}: ${problem}\n`);
    process.stdout.write(`  again: npm run sim -- --seeds 1 --seed ${seed}\n`);
  }
  if (performance.now() - reportedMs > REPORT_MS) {
    reportedMs = performance.now();
    process.stdout.write(`${seed - first + 1} seeds, ${failed} failed\n`);
  }
}
const hours = (performance.now() - startedMs) / 3_600_000;
process.stdout.write(`${operations} operations under ${faults} faults, `);
process.stdout.write(`${Math.round(seeds / hours)} seeds an hour\n`);
process.stdout.write(`${seeds - failed} passed, ${failed} failed\n`);
process.exitCode = failed === 0 ? 0 : 1;
