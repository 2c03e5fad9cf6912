/**
 * The gate: types, build, lint, then the test suites. `npm test` runs all of it on a fresh clone,
 * `npm run gate` all but the clusters of real processes.
 *
 * With arguments it runs only the steps, suites, test files or folders named:
 * `npm test -- types`, `npm test -- unit`, `npm test -- test/unit/ring.test.ts`. Suites that take
 * minutes each and guard little that others do not are run only when they are named.
 * Prints one line a step with its time, then what failed, and last `N passed, N failed`: the
 * assertions of the tests, plus one for each other step. Running no test at all is a failure.
 * Called by package.json and .ci/run. Needs nothing installed: it installs first.
 */

import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { installMissing, listFiles, root } from './project.mjs';
import { excerptOf, runFiles } from './tap.mjs';

const tsc = 'node_modules/typescript/bin/tsc';
const biome = 'node_modules/@biomejs/biome/bin/biome';
const biomeWords = ['--config-path=test/gate/lint.json', '--error-on-warnings', '--colors=off'];

/** The steps that are not tests: each is a script and its arguments, and counts as one. */
const checks = [
  { name: 'types', words: [tsc, '-p', 'tsconfig.json', '--pretty', 'false'] },
  { name: 'types-core', words: [tsc, '-p', 'src/core/tsconfig.json', '--pretty', 'false'] },
  { name: 'build', words: ['test/gate/build.mjs'] },
  { name: 'lint', words: [biome, 'check', ...biomeWords, '--max-diagnostics=50', '.'] },
];

const cores = os.availableParallelism();

/**
 * The suites, in the order in which they run. Real processes are started one file at a time. A
 * suite of fewer files than `least` fails: tests do not get lost unnoticed.
 */
const suites = [
  { name: 'gate', jobs: cores, least: 5 },
  { name: 'unit', jobs: cores, least: 75 },
  { name: 'paper', jobs: cores, least: 12 },
  { name: 'golden', jobs: cores, least: 1 },
  { name: 'model', jobs: cores, least: 2 },
  { name: 'sim', jobs: cores, least: 4 },
  { name: 'guards', jobs: 1, least: 1 },
  { name: 'cluster', jobs: 1, least: 16 },
  { name: 'drills', jobs: 1, least: 3, isNamedOnly: true },
];

const totals = { passed: 0, failed: 0, tests: 0 };
const complaints = [];

function report(name, ok, detail, ms) {
  const time = `${(ms / 1_000).toFixed(1)} s`;
  console.log(`${ok ? 'ok    ' : 'FAILED'} ${name.padEnd(12)} ${detail.padEnd(36)} ${time}`);
}

function runCheck({ name, words }) {
  const started = Date.now();
  return new Promise((resolve) => {
    const child = spawn(process.execPath, words, { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (chunk) => {
        output += chunk;
      });
    }
    child.once('close', (status) => {
      const ok = status === 0;
      if (ok) totals.passed += 1;
      else totals.failed += 1;
      if (!ok) complaints.push(`--- ${name}\n${output.split('\n').slice(0, 300).join('\n')}`);
      report(name, ok, '', Date.now() - started);
      resolve();
    });
  });
}

/** Runs the checks two at a time: each is one thread of work on a machine of two cores. */
async function runChecks(wanted) {
  const queue = [...wanted];
  const work = async () => {
    for (let check = queue.shift(); check !== undefined; check = queue.shift()) {
      await runCheck(check);
    }
  };
  await Promise.all([work(), work()]);
}

function describe(result) {
  const skipped = result.skipped > 0 ? `, ${result.skipped} skipped` : '';
  const failed = result.failed > 0 ? `, ${result.failed} failed` : '';
  return `${result.passed} passed${failed}${skipped}`;
}

function sourceOf(output) {
  return output.replace(/^dist-test\//, '').replace(/\.js$/, '.ts');
}

async function runSuite(name, files, jobs, outputOf) {
  const started = Date.now();
  const verbose = name === 'tests';
  const onDone = (result) => {
    if (verbose) report(sourceOf(result.file), result.failed === 0, describe(result), result.ms);
  };
  const single = verbose && files.length === 1;
  const results = await runFiles(files.map(outputOf), jobs, single ? undefined : onDone);
  const sum = { passed: 0, failed: 0, skipped: 0 };
  for (const result of results) {
    sum.passed += result.passed;
    sum.failed += result.failed;
    sum.skipped += result.skipped;
    if (result.failed === 0) continue;
    const words = single ? '' : `\n${excerptOf(result.text)}\n${result.noise.slice(-4_000)}`;
    complaints.push(`--- ${sourceOf(result.file)}: ${result.reason}${words}`);
  }
  totals.passed += sum.passed;
  totals.failed += sum.failed;
  totals.tests += sum.passed + sum.failed;
  const count = `${files.length} ${files.length === 1 ? 'file' : 'files'}`;
  report(name, sum.failed === 0, `${describe(sum)} (${count})`, Date.now() - started);
}

function testFilesBelow(folder) {
  return listFiles([folder]).filter((file) => file.endsWith('.test.ts'));
}

/** Sorts the arguments into checks, suites and test files; refuses what is none of them. */
function select(words) {
  if (words.length === 0) {
    return { checks, suites: suites.filter(({ isNamedOnly }) => !isNamedOnly), files: [] };
  }
  const selection = { checks: [], suites: [], files: [] };
  for (const word of words) {
    const check = checks.find(({ name }) => name === word);
    const suite = suites.find(({ name }) => name === word);
    const file = path.relative(root, path.resolve(word));
    if (check !== undefined) selection.checks.push(check);
    else if (suite !== undefined) selection.suites.push(suite);
    else if (!fs.existsSync(path.join(root, file))) throw new Error(`no step or file: ${word}`);
    else if (file.endsWith('.ts')) selection.files.push(file);
    else selection.files.push(...testFilesBelow(file));
  }
  return selection;
}

async function runTests(selection) {
  const { compile, outputOf } = await import('./compile.mjs');
  compile();
  for (const { name, jobs, least } of selection.suites) {
    const files = testFilesBelow(`test/${name}`);
    if (files.length > 0) await runSuite(name, files, jobs, outputOf);
    if (files.length >= least) continue;
    totals.failed += 1;
    complaints.push(`--- ${name}: ${files.length} test files, wanted at least ${least}`);
  }
  if (selection.files.length > 0) {
    const hasCluster = selection.files.some((file) => /^test\/(cluster|drills)\//.test(file));
    const jobs = hasCluster ? 1 : cores;
    await runSuite('tests', selection.files, jobs, outputOf);
  }
}

async function main() {
  const started = Date.now();
  const selection = select(process.argv.slice(2));
  installMissing();
  await runChecks(selection.checks);
  if (selection.suites.length + selection.files.length > 0) {
    await runTests(selection);
    if (totals.tests === 0) {
      totals.failed += 1;
      complaints.push('--- no test ran');
    }
  }
  for (const complaint of complaints) console.log(`\n${complaint}`);
  console.log(`\n${((Date.now() - started) / 1_000).toFixed(1)} s`);
  console.log(`${totals.passed} passed, ${totals.failed} failed`);
  process.exitCode = totals.failed === 0 ? 0 : 1;
}

try {
  await main();
} catch (error) {
  console.log(error.stack);
  console.log(`${totals.passed} passed, ${totals.failed + 1} failed`);
  process.exitCode = 1;
}
