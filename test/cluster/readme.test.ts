import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import t from 'tap';
import { readStatus } from '../../src/cli/node-status.js';
import { parseEndpoint } from '../../src/server/options.js';
import { projectFile, projectRoot } from '../gate/paths.js';
import { codeBlocks, readPage } from '../unit/docs/markdown.js';
import { Cluster } from './harness.js';
import { waitFor } from './wait-for.js';

const README = readPage('README.md');
/** Inside the package, so that Node finds it by its own name, as a reader's file does. */
const FOLDER = projectFile(`dist-test/readme-${process.pid}`);

interface Ended {
  readonly status: number | null;
  readonly out: string;
  readonly error: string;
}

/** Runs words in the clone; resolves when the process has ended. */
function run(
  words: readonly [string, ...string[]],
  environment: Readonly<Record<string, string>>,
): Promise<Ended> {
  const [program, ...rest] = words;
  const env = { ...process.env, ...environment };
  const child = spawn(program, rest, { cwd: projectRoot, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let out = '';
  let error = '';
  child.stdout.on('data', (chunk) => {
    out += chunk;
  });
  child.stderr.on('data', (chunk) => {
    error += chunk;
  });
  return new Promise((resolve) => {
    child.once('close', (status) => resolve({ status, out, error }));
  });
}

/**
 * Runs a line of shell. `npx` is a stand-in that starts the built command at once: what the real
 * one finds is a test of its own.
 */
function runLine(line: string, endpoints: string): Promise<Ended> {
  const PATH = `${path.join(FOLDER, 'bin')}:${process.env['PATH']}`;
  return run(['sh', '-c', line], { HOLDFAST_ENDPOINTS: endpoints, PATH });
}

/** The lines of the README's shell blocks, block by block. */
function shellBlocks(): string[][] {
  return codeBlocks(README)
    .filter(({ language }) => language === 'sh')
    .map(({ text }) => text.trim().split('\n'));
}

function example(): string {
  const block = codeBlocks(README).find(({ language }) => language === 'ts');
  if (block === undefined) throw new Error('the README has no TypeScript example');
  return block.text;
}

/** The example with the addresses of this cluster in place of those of `npm start`. */
function exampleFor(cluster: Cluster): string {
  const addresses = cluster.endpoints.map((endpoint) => `'${endpoint}'`).join(', ');
  return example().replace(/\[('127\.0\.0\.1:\d+'(, )?)+\]/, `[${addresses}]`);
}

/** Brings dist up to date, as the gate has done before its tests; types are a step of their own. */
function buildIfStale(): void {
  const builder = pathToFileURL(projectFile('test/gate/build.mjs')).href;
  const program = `import { build, isBuilt } from '${builder}'; isBuilt() || build(1);`;
  const words = ['--input-type=module', '--eval', program];
  const built = spawnSync(process.execPath, words, { cwd: projectRoot, encoding: 'utf8' });
  if (built.status !== 0) throw new Error(`no build: ${built.stdout}${built.stderr}`);
}

t.before(() => {
  buildIfStale();
  mkdirSync(path.join(FOLDER, 'bin'), { recursive: true });
  const main = projectFile('dist/cli/main.js');
  const script = `#!/bin/sh\nshift\nexec '${process.execPath}' '${main}' "$@"\n`;
  writeFileSync(path.join(FOLDER, 'bin/npx'), script, { mode: 0o755 });
});

t.teardown(() => rmSync(FOLDER, { recursive: true, force: true }));

t.test('npx finds holdfast in the clone', async (t) => {
  // A cache of its own: npx remembers what a clone had to offer when it was first asked.
  const cache = path.join(FOLDER, 'npm-cache');
  const ended = await run(['npx', 'holdfast', '--version'], { npm_config_cache: cache });
  t.equal(ended.status, 0, ended.error);
  t.match(ended.out, /^\d+\.\d+\.\d+\n$/);
});

t.test('what the README shows works against a cluster', async (t) => {
  const cluster = await Cluster.start({ test: t });
  const endpoints = cluster.endpointList;

  await t.test('the example runs in the clone and gives the lock back', async (t) => {
    const source = exampleFor(cluster);
    t.not(source, example(), 'the addresses were replaced');
    const script = path.join(FOLDER, 'first-lock.mjs');
    writeFileSync(script, source);
    const ended = await run([process.execPath, script], {});
    t.equal(ended.status, 0, ended.error);
    t.match(ended.out, /^writing the report under token \d+\n$/);
    const after = await runLine('npx holdfast get reports/daily', endpoints);
    t.match(after.out, /free/, 'withLock has released');
  });

  await t.test('the shell lines do what the README says of them', async (t) => {
    const [[holding = ''] = [], meanwhile = []] = shellBlocks();
    t.match(holding, /^npx holdfast lock nightly -- sleep 5$/);
    t.equal(meanwhile.length, 3);
    // The command waits to be told to end, so that a slow machine does not outlast it.
    const pipe = path.join(FOLDER, 'pipe');
    t.equal(spawnSync('mkfifo', [pipe]).status, 0);
    const holder = runLine(holding.replace('sleep 5', `cat '${pipe}'`), endpoints);
    await waitFor('the lock to be held', async () => {
      const { out } = await runLine('npx holdfast get nightly', endpoints);
      return /held/.test(out) ? true : null;
    });
    const [shown, refused, status] = await Promise.all(
      meanwhile.map((line) => runLine(line, endpoints)),
    );
    t.equal(shown?.status, 0, shown?.error ?? 'get is answered');
    t.match(shown?.out, /^nightly\s+held\n/);
    t.equal(refused?.status, 75, refused?.error ?? 'lock is refused');
    t.match(refused?.error, /nightly is held by .*with token \d+/);
    t.notMatch(refused?.out, /mine/, 'the command was not started');
    t.equal(status?.status, 0, status?.error ?? 'status is answered');
    t.match(status?.out, /leader/);
    await writeFile(pipe, 'done');
    const ended = await holder;
    t.equal(ended.status, 0, ended.error);
    t.equal(ended.out, 'done');
  });

  await t.test('every grant has a larger token than the one before', async (t) => {
    const tokens: number[] = [];
    for (let at = 0; at < 2; at += 1) {
      const line = 'npx holdfast lock nightly -- sh -c \'echo "$HOLDFAST_TOKEN"\'';
      tokens.push(Number((await runLine(line, endpoints)).out));
    }
    t.ok((tokens[0] ?? 0) > 0 && (tokens[1] ?? 0) > (tokens[0] ?? 0), tokens.join(' < '));
  });

  await t.test('the nodes agree at the end', async (t) => {
    const statuses = await cluster.settled();
    t.equal(new Set(statuses.map((status) => status.digest)).size, 1);
    const first = parseEndpoint('endpoint', cluster.endpoints[0] ?? '');
    t.equal((await readStatus(first, 2_000)).nodeId, 1);
  });
});
