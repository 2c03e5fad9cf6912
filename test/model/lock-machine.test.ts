/**
 * The production lock machine and the naive one agree step by step on random logs.
 *
 * Every entry's outcomes, completions and events are compared, then what a reader sees of every
 * lock; the invariants are asserted on the events alone; and what the run never reached fails it.
 * HOLDFAST_MODEL_RUNS=N runs N logs instead of the gate's number, HOLDFAST_MODEL_SEED=S another
 * seed, HOLDFAST_MODEL_REPORT=1 prints what was reached. A failure prints the seed, and the log
 * that is left when nothing more can be taken from it.
 */

import fc from 'fast-check';
import t from 'tap';
import { Comparison } from './comparison.js';
import { Coverage } from './coverage.js';
import { type DraftEntry, logArbitrary } from './generator.js';
import { shrinkLog } from './shrink.js';

const RUNS = Number(process.env.HOLDFAST_MODEL_RUNS ?? 1_000);
const SEED = Number(process.env.HOLDFAST_MODEL_SEED ?? 20_261_129);
const ENTRIES_MAX = 150;

/** The reason for which a log fails, or an empty string. */
function failureOf(log: readonly DraftEntry[]): string {
  try {
    const comparison = new Comparison();
    for (const entry of log) comparison.applyEntry(entry, new Coverage());
    return '';
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

t.test('the machine does what the rules say, and keeps its invariants', async (t) => {
  const coverage = new Coverage();
  const property = fc.property(logArbitrary(ENTRIES_MAX), (log) => {
    const comparison = new Comparison();
    for (const entry of log) comparison.applyEntry(entry, coverage);
    coverage.addPaths(comparison.naive.paths);
  });
  const result = fc.check(property, { numRuns: RUNS, seed: SEED, endOnFailure: true });
  if (result.failed) {
    const [failing = []] = result.counterexample ?? [];
    const shortest = shrinkLog(failing, (log) => failureOf(log) !== '');
    for (const line of failureOf(shortest).split('\n')) t.comment(line);
    t.fail(`seed ${result.seed}, path ${result.counterexamplePath}`);
    return;
  }
  t.equal(result.numRuns, RUNS);
  if (process.env.HOLDFAST_MODEL_REPORT !== undefined) t.comment(coverage.report());
  t.strictSame(coverage.missing(), [], 'every answer, event and path was reached');
});
