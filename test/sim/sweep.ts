/**
 * Runs a range of seeds and counts what they did.
 *
 * Owns: the report of a failing seed (its problems, the end of its story, where the whole of it is,
 * the line that runs it again) and the counts. One seed in fifty runs twice and must go alike,
 * event by event. Used by: main.ts, sweep-worker.ts.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { projectFile } from '../gate/paths.js';
import type { ChaosResult } from './chaos.js';
import type { RunSeed } from './run-seed.js';

const REPLAYED_EVERY = 50;
const TRACE_LINES = 60;

type Counts = Record<string, number>;

/** Plain values: they travel between processes. */
export interface Totals {
  seeds: number;
  failed: number;
  operations: number;
  faults: number;
  readonly faultCounts: Counts;
  readonly seen: Counts;
  readonly snapshots: Counts;
}

export interface Range {
  readonly first: number;
  readonly count: number;
}

export function noTotals(): Totals {
  const numbers = { seeds: 0, failed: 0, operations: 0, faults: 0 };
  return { ...numbers, faultCounts: {}, seen: {}, snapshots: {} };
}

function raise(counts: Counts, by: Iterable<readonly [string, number]>): void {
  for (const [name, count] of by) counts[name] = (counts[name] ?? 0) + count;
}

export function addTotals(to: Totals, from: Totals): void {
  to.seeds += from.seeds;
  to.failed += from.failed;
  to.operations += from.operations;
  to.faults += from.faults;
  raise(to.faultCounts, Object.entries(from.faultCounts));
  raise(to.seen, Object.entries(from.seen));
  raise(to.snapshots, Object.entries(from.snapshots));
}

function addResult(totals: Totals, result: ChaosResult): void {
  totals.seeds += 1;
  totals.operations += result.operations;
  totals.faults += result.faults;
  raise(totals.faultCounts, result.faultCounts);
  raise(totals.seen, result.seen);
  raise(totals.snapshots, Object.entries(result.snapshots));
}

function problemsOf(result: ChaosResult, runSeed: RunSeed): readonly string[] {
  if (result.seed % REPLAYED_EVERY !== 0) return result.problems;
  const again = runSeed(result.seed);
  if (again.digest === result.digest) return result.problems;
  return [...result.problems, `replay: ${result.digest}, then ${again.digest}`];
}

function traceLines(result: ChaosResult): string[] {
  const lines = result.trace();
  const folder = projectFile('dist-test/sim');
  mkdirSync(folder, { recursive: true });
  const file = path.join(folder, `seed-${result.seed}.txt`);
  writeFileSync(file, `${lines.join('\n')}\n`);
  const last = lines.slice(-TRACE_LINES).map((line) => `  | ${line}`);
  return [...last, `  the whole story: ${path.relative(projectFile(''), file)}`];
}

/** Runs the seeds of `range`; `say` gets each failing seed's report in one piece. */
export function runRange(
  { first, count }: Range,
  runSeed: RunSeed,
  isTraced: boolean,
  say: (text: string) => void,
): Totals {
  const totals = noTotals();
  for (let seed = first; seed < first + count; seed += 1) {
    const result = runSeed(seed);
    addResult(totals, result);
    const problems = problemsOf(result, runSeed);
    if (problems.length === 0 && !isTraced) continue;
    const lines = problems.map((problem) => `seed ${seed}: ${problem}`);
    lines.push(...traceLines(result));
    if (problems.length > 0) {
      totals.failed += 1;
      lines.push(`  again: npm run sim -- --seeds 1 --seed ${seed}`);
    }
    say(lines.join('\n'));
  }
  return totals;
}
