/**
 * npm run sim -- --seeds N [--seed S] or --seeds A..B: runs seeds and stops at nothing.
 *
 * Owns: the processes over which many seeds are spread, and the last lines. What a seed prints is
 * in sweep.ts, `--planted` in planted.ts. Called by: package.json.
 */
import { fork } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { compiledFile } from '../gate/paths.js';
import { runPlanted } from './planted/planted.js';
import { openRunner } from './run-seed.js';
import { addTotals, noTotals, type Range, runRange, type Totals } from './sweep.js';

const REPORT_MS = 10_000;
/** Seeds that a process gets at once, and below which one process does all. */
const SHARE = 10;
const ALONE_MAX = 20;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    planted: { type: 'boolean', default: false },
    seeds: { type: 'string', default: '100' },
    seed: { type: 'string', default: '1' },
    jobs: { type: 'string', default: String(availableParallelism()) },
    trace: { type: 'boolean', default: false },
  },
});

function say(line: string): void {
  process.stdout.write(`${line}\n`);
}

/** The seeds asked for, or null when the words make no sense. */
function readRange(): Range | null {
  const [from, to] = values.seeds.split('..').map(Number);
  const first = to === undefined ? Number(values.seed) : (from as number);
  const count = to === undefined ? (from as number) : to - first + 1;
  const isSound = Number.isSafeInteger(first) && Number.isSafeInteger(count);
  return isSound && first >= 0 && count > 0 ? { first, count } : null;
}

function list(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .map(([name, count]) => `${name} ${count}`)
    .join(', ');
}

function report(totals: Totals, startedMs: number, jobs: number): void {
  const { seeds, failed, operations, faults } = totals;
  const seconds = (performance.now() - startedMs) / 1000;
  const perHour = Math.round((seeds / seconds) * 3_600);
  say(`faults: ${list(totals.faultCounts)}`);
  say(`looked at: ${list(totals.seen)}`);
  say(`snapshots: ${list(totals.snapshots)}`);
  say(`${operations} operations (${Math.round(operations / seeds)} a seed) under ${faults} faults`);
  say(`${seconds.toFixed(0)} s in ${jobs} processes, ${perHour} seeds an hour`);
  say(`${seeds} seeds: ${seeds - failed} passed, ${failed} failed`);
}

/** Spreads the range over processes, a share at a time. */
function spread({ first, count }: Range, jobs: number, totals: Totals): Promise<void> {
  let next = first;
  let reportedMs = performance.now();
  const work = (): Promise<void> => {
    const child = fork(compiledFile('test/sim/sweep-worker.ts'));
    return new Promise((resolve, reject) => {
      let isDone = false;
      child.on('message', (message: Totals | null) => {
        if (message !== null) addTotals(totals, message);
        if (performance.now() - reportedMs > REPORT_MS) {
          reportedMs = performance.now();
          say(`${totals.seeds} seeds, ${totals.failed} failed`);
        }
        const left = Math.min(SHARE, first + count - next);
        isDone = left <= 0;
        if (isDone) child.disconnect();
        else child.send({ first: next, count: left });
        next += Math.max(0, left);
      });
      child.on('exit', (code) => {
        if (isDone) resolve();
        else reject(new Error(`a process of the run has ended with ${code}`));
      });
    });
  };
  return Promise.all(Array.from({ length: jobs }, work)).then(() => undefined);
}

async function main(range: Range, jobs: number): Promise<void> {
  const totals = noTotals();
  const startedMs = performance.now();
  const isAlone = jobs === 1 || range.count <= ALONE_MAX || values.trace;
  if (isAlone) addTotals(totals, runRange(range, await openRunner(), values.trace, say));
  else await spread(range, jobs, totals);
  report(totals, startedMs, isAlone ? 1 : jobs);
  process.exitCode = totals.failed === 0 && totals.seeds === range.count ? 0 : 1;
}

const range = readRange();
const jobs = Number(values.jobs);
if (range === null || !Number.isSafeInteger(jobs) || jobs < 1) {
  process.stderr.write('sim: --seeds takes a count or A..B, --seed and --jobs whole numbers\n');
  process.exitCode = 64;
} else if (values.planted) process.exitCode = runPlanted(positionals);
else await main(range, jobs);
