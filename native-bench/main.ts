/**
 * npm run native-bench: the ceilings under the product on this machine, as one table.
 *
 *     npm run native-bench                     # all, three rounds, kept in history.jsonl
 *     npm run native-bench -- --rounds 1 --no-history disk socket
 *
 * Owns: a process for each bench and round, the median of the rounds, the history. Rounds go over
 * all benches in turn, so that a bad minute of the machine does not fall on one of them. Never: a
 * measurement of its own. Called by package.json.
 */
import { spawnSync } from 'node:child_process';
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { readCommit, readLoad, readMachine } from '../loadtest/machine.js';
import { compiledFile, projectFile } from '../test/gate/paths.js';
import type { Figure } from './figure.js';

const BENCHES = ['disk', 'socket', 'codec', 'memory', 'threads', 'apply', 'leases', 'log'];
const HISTORY = 'native-bench/history.jsonl';
/** For the counting of bytes: nothing is collected while an operation is watched. */
const FLAGS = ['--expose-gc', '--min-semi-space-size=64', '--max-semi-space-size=128'];
const BENCH_MS_MAX = 60_000;

interface Row extends Figure {
  readonly least: number;
  readonly most: number;
}

/** One line of the history. */
interface Kept {
  readonly at: string;
  readonly commit: string;
  readonly machine: ReturnType<typeof readMachine>;
  readonly machine_load: string;
  readonly rounds: number;
  readonly figures: readonly Row[];
}

function runBench(name: string): Figure[] {
  const script = compiledFile('native-bench/one.ts');
  const ran = spawnSync(process.execPath, [...FLAGS, script, name], {
    encoding: 'utf8',
    timeout: BENCH_MS_MAX,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  if (ran.status !== 0) throw new Error(`${name} ended with ${ran.signal ?? ran.status}`);
  return JSON.parse(ran.stdout) as Figure[];
}

function rowsOf(rounds: readonly Figure[][]): Row[] {
  const first = rounds[0] ?? [];
  return first.map((figure, at) => {
    const values = rounds.map((round) => round[at]?.value ?? Number.NaN);
    values.sort((left, right) => left - right);
    return {
      ...figure,
      value: values[values.length >> 1] ?? Number.NaN,
      least: values[0] ?? Number.NaN,
      most: values[values.length - 1] ?? Number.NaN,
    };
  });
}

function lastKept(): Kept | null {
  const file = projectFile(HISTORY);
  if (!existsSync(file)) return null;
  const line = readFileSync(file, 'utf8').trimEnd().split('\n').pop();
  return line === undefined || line === '' ? null : (JSON.parse(line) as Kept);
}

function text(value: number): string {
  if (value >= 1_000)
    return Math.round(value)
      .toString()
      .replace(/\B(?=(\d{3})+$)/g, ',');
  return value.toFixed(value >= 100 ? 0 : value >= 10 ? 1 : 2);
}

function print(rows: readonly Row[], before: Kept | null): void {
  const width = Math.max(...rows.map(({ name }) => name.length));
  const then = before === null ? '' : `at ${before.commit}`;
  console.log(
    `${''.padEnd(width)}  ${'median'.padStart(12)}${'least – most'.padStart(24)}  ${then}`,
  );
  for (const row of rows) {
    const old = before?.figures.find((each) => each.name === row.name && each.unit === row.unit);
    const spread = `${text(row.least)} – ${text(row.most)}`;
    const middle = `${text(row.value)} ${row.unit}`;
    const was = old === undefined ? '' : text(old.value);
    console.log(`${row.name.padEnd(width)}  ${middle.padStart(12)}${spread.padStart(24)}  ${was}`);
  }
}

function main(): void {
  const { values, positionals } = parseArgs({
    options: {
      rounds: { type: 'string', default: '3' },
      'no-history': { type: 'boolean', default: false },
    },
    allowPositionals: true,
  });
  const wanted = positionals.length === 0 ? BENCHES : positionals;
  for (const name of wanted) {
    if (!BENCHES.includes(name)) throw new Error(`no bench ${name}: ${BENCHES.join(', ')}`);
  }
  const rounds = Number(values.rounds);
  const load = readLoad();
  const found = new Map<string, Figure[][]>();
  for (let round = 1; round <= rounds; round += 1) {
    for (const name of wanted) {
      process.stderr.write(`round ${round} of ${rounds}: ${name}\n`);
      found.set(name, [...(found.get(name) ?? []), runBench(name)]);
    }
  }
  const rows = wanted.flatMap((name) => rowsOf(found.get(name) ?? []));
  const machine = readMachine();
  const commit = readCommit();
  console.log(`${machine.cpu}, ${machine.cores} cores, Linux ${machine.kernel}, ${machine.node}`);
  console.log(`commit ${commit}, load before ${load}, ${rounds} rounds\n`);
  print(rows, lastKept());
  if (values['no-history'] || positionals.length > 0) return;
  const at = new Date().toISOString();
  const kept: Kept = { at, commit, machine, machine_load: load, rounds, figures: rows };
  appendFileSync(projectFile(HISTORY), `${JSON.stringify(kept)}\n`);
}

main();
