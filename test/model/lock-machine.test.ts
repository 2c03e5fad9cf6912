/**
 * The production lock machine and the naive one agree step by step on random logs.
 *
 * Every entry's outcomes, completions and events are compared, then what a reader sees of every
 * lock; the invariants are asserted on the events alone; and what the run never reached fails it.
 * HOLDFAST_MODEL_RUNS=N runs N logs instead of the gate's number, HOLDFAST_MODEL_SEED=S another
 * seed, HOLDFAST_MODEL_REPORT=1 prints what was reached. A failure prints the seed, and the log
 * that is left when nothing more can be taken from it.
 */

import t from 'tap';
import { checkLogs, runsOr } from './check-logs.js';
import { Comparison } from './comparison.js';
import { Coverage } from './coverage.js';

const RUNS_SMOKE = 700;
const ENTRIES_MAX = 150;

// A long run takes as long as it was asked to.
t.setTimeout(0);

t.test('the machine does what the rules say, and keeps its invariants', async (t) => {
  const coverage = new Coverage();
  const runs = runsOr(RUNS_SMOKE);
  checkLogs(t, runs, ENTRIES_MAX, (log) => {
    const comparison = new Comparison(log);
    for (const entry of log.entries) comparison.applyEntry(entry, coverage);
    coverage.addPaths(comparison.naive.paths);
  });
  if (process.env.HOLDFAST_MODEL_REPORT !== undefined) {
    for (const line of coverage.report()) t.comment(line);
  }
  if (runs < RUNS_SMOKE) return;
  t.strictSame(coverage.missing(), [], 'every answer, event and path was reached');
});
