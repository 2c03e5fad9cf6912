/**
 * `npm run acceptance`: every promise of the release in full size, and a report with the figures.
 *
 * With arguments it runs only the tests whose file names contain one of them; `--quick` runs them
 * in the size of the gate. Ends with 0 only when every promise was kept. The report says on what
 * machine and under which load the figures were taken, since they mean nothing without. Called by
 * package.json.
 */

import { spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { installMissing, listFiles, root } from '../../gate/project.mjs';

const folder = 'test/cluster/acceptance';
const fileTimeMsMax = 900_000;

function git(...words) {
  const result = spawnSync('git', words, { cwd: root, encoding: 'utf8' });
  return result.status === 0 ? result.stdout.trim() : '';
}

function load() {
  return os
    .loadavg()
    .map((value) => value.toFixed(1))
    .join(' ');
}

function printMachine(size, before) {
  const changes = git('status', '--porcelain') === '' ? '' : ', with changes';
  const [cpu] = os.cpus();
  console.log(`size      ${size}`);
  console.log(`commit    ${git('rev-parse', '--short', 'HEAD') || 'unknown'}${changes}`);
  console.log(`machine   ${cpu?.model ?? 'unknown'}, ${os.availableParallelism()} cores`);
  console.log(`system    ${os.type()} ${os.release()}, Node ${process.version}`);
  console.log(`load      ${before} before, ${load()} after (1, 5, 15 minutes)`);
}

function printResult(result, figuresIn) {
  const name = path.basename(result.file, '.test.js');
  const verdict = result.failed === 0 ? 'kept  ' : 'BROKEN';
  const seconds = (result.ms / 1_000).toFixed(1);
  console.log(
    `\n${verdict} ${name}: ${result.passed} passed, ${result.failed} failed, ${seconds} s`,
  );
  for (const [, mark, promise] of result.text.matchAll(/^(ok|not ok) \d+ - (.*?) # time=.*$/gm)) {
    console.log(`  ${mark === 'ok' ? '+' : '!'} ${promise}`);
  }
  for (const figure of figuresIn(result.text)) console.log(`    ${figure}`);
}

/** Keeps what a broken file printed, its nodes included. Returns where. */
function keepOutput(result) {
  const output = path.join('dist-test/acceptance', `${path.basename(result.file, '.test.js')}.log`);
  mkdirSync(path.join(root, path.dirname(output)), { recursive: true });
  writeFileSync(path.join(root, output), `${result.text}\n${result.noise}`);
  return output;
}

async function main() {
  const words = process.argv.slice(2);
  const size = words.includes('--quick') ? 'quick' : 'full';
  const names = words.filter((word) => !word.startsWith('--'));
  installMissing();
  const { compile, outputOf } = await import('../../gate/compile.mjs');
  const { excerptOf, runFile } = await import('../../gate/tap.mjs');
  compile();
  const figures = path.join(root, outputOf(`${folder}/figures.ts`));
  const { figuresIn } = await import(pathToFileURL(figures).href);
  process.env.HOLDFAST_ACCEPTANCE = size;
  const before = load();
  const results = [];
  for (const file of listFiles([folder]).filter((name) => name.endsWith('.test.ts'))) {
    if (names.length > 0 && !names.some((name) => path.basename(file).includes(name))) continue;
    console.error(`running ${file}`);
    results.push(await runFile(outputOf(file), false, fileTimeMsMax));
  }
  console.log('\nHoldfast acceptance');
  printMachine(size, before);
  for (const result of results) printResult(result, figuresIn);
  const broken = results.filter((result) => result.failed > 0);
  for (const result of broken) {
    const output = keepOutput(result);
    console.log(`\n--- ${result.file}: ${result.reason}\n${excerptOf(result.text)}`);
    console.log(`everything that it and its nodes said: ${output}`);
  }
  console.log(`\n${results.length - broken.length} of ${results.length} files kept their promises`);
  process.exitCode = results.length > 0 && broken.length === 0 ? 0 : 1;
}

await main();
