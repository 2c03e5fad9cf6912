/**
 * npm run sim -- --seeds N [--seed S]: runs seeds S, S+1, … and stops at nothing.
 *
 * Owns: the loop and the report. A failing seed prints its problems, the end of its story, where
 * the whole of it is, and the line that runs it again; one seed in fifty runs twice and must go
 * alike, event by event. `--planted` is in planted.ts. Called by: package.json.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { projectFile } from '../gate/paths.js';
import type { ChaosResult } from './chaos.js';
import { runPlanted } from './planted/planted.js';
import { openRunner, type RunSeed } from './run-seed.js';

const REPLAYED_EVERY = 50;
const REPORT_MS = 10_000;
const TRACE_LINES = 60;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    planted: { type: 'boolean', default: false },
    seeds: { type: 'string', default: '100' },
    seed: { type: 'string', default: '1' },
    trace: { type: 'boolean', default: false },
  },
});
const seeds = Number(values.seeds);
const first = Number(values.seed);
if (!Number.isSafeInteger(seeds) || seeds < 1 || !Number.isSafeInteger(first) || first < 0) {
  process.stderr.write('sim: --seeds takes a whole number above 0, --seed one from 0\n');
  process.exit(64);
}

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

function problemsOf(result: ChaosResult, runSeed: RunSeed): readonly string[] {
  if (result.seed % REPLAYED_EVERY !== 0) return result.problems;
  const again = runSeed(result.seed);
  if (again.digest === result.digest) return result.problems;
  return [...result.problems, `replay: ${result.digest}, then ${again.digest}`];
}

function keepTrace(result: ChaosResult): void {
  const lines = result.trace();
  const folder = projectFile('dist-test/sim');
  mkdirSync(folder, { recursive: true });
  const file = path.join(folder, `seed-${result.seed}.txt`);
  writeFileSync(file, `${lines.join('\n')}\n`);
  for (const line of lines.slice(-TRACE_LINES)) say(`  | ${line}`);
  say(`  the whole story: ${path.relative(projectFile(''), file)}`);
}

class Totals {
  failed = 0;
  operations = 0;
  faults = 0;
  readonly faultCounts = new Map<string, number>();
  readonly seen = new Map<string, number>();

  add(result: ChaosResult): void {
    this.operations += result.operations;
    this.faults += result.faults;
    for (const [name, count] of result.faultCounts) raise(this.faultCounts, name, count);
    for (const [name, count] of result.seen) raise(this.seen, name, count);
  }
}

function raise(counts: Map<string, number>, name: string, count: number): void {
  counts.set(name, (counts.get(name) ?? 0) + count);
}

function list(counts: ReadonlyMap<string, number>): string {
  return [...counts].map(([name, count]) => `${name} ${count}`).join(', ');
}

function main(runSeed: RunSeed): void {
  const totals = new Totals();
  const startedMs = performance.now();
  let reportedMs = startedMs;
  for (let seed = first; seed < first + seeds; seed += 1) {
    const result = runSeed(seed);
    totals.add(result);
    const problems = problemsOf(result, runSeed);
    for (const problem of problems) say(`seed ${seed}: ${problem}`);
    if (problems.length > 0) totals.failed += 1;
    if (problems.length > 0 || values.trace) keepTrace(result);
    if (problems.length > 0) say(`  again: npm run sim -- --seeds 1 --seed ${seed}`);
    if (performance.now() - reportedMs <= REPORT_MS) continue;
    reportedMs = performance.now();
    say(`${seed - first + 1} seeds, ${totals.failed} failed`);
  }
  const hours = (performance.now() - startedMs) / 3_600_000;
  say(`faults: ${list(totals.faultCounts)}`);
  say(`looked at: ${list(totals.seen)}`);
  say(`${totals.operations} operations under ${totals.faults} faults, `);
  say(`${Math.round(seeds / hours)} seeds an hour`);
  say(`${seeds - totals.failed} passed, ${totals.failed} failed`);
  process.exitCode = totals.failed === 0 ? 0 : 1;
}

if (values.planted) process.exitCode = runPlanted(positionals);
else main(await openRunner());
