/**
 * npm run profile: five nodes under load, the leader under a profiler.
 *
 *     npm run profile -- cpu                 # self time by thread, the log thread included
 *     npm run profile -- heap                # who allocates, main thread
 *     npm run profile -- doctor --duration 20
 *     npm run profile -- flame               # pages by Clinic.js, main thread only
 *
 * Owns: the nodes, the load, which node leads. Clinic.js is fetched by npm at first use, at the
 * version below; cpu and heap need nothing but Node. Never: a figure for the history; a profiled
 * node is a slower one. Called by package.json.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import {
  type LocalNode,
  localNodes,
  NODE_ENVIRONMENT,
  NODE_FLAGS,
  serveWords,
} from '../src/cli/local-cluster.js';
import { NodeCall } from '../src/cli/node-call.js';
import { findLeader } from '../src/cli/node-status.js';
import { CommandKind } from '../src/wire/request.js';
import { compiledFile, projectFile } from '../test/gate/paths.js';
import { ClosedLoop } from './closed-loop.js';
import { NAMES_DEFAULT, sessionTtlMs } from './load.js';
import { EXIT_USAGE } from './options.js';
import { profileTable } from './profile-table.js';
import { Progress, say, sleep } from './window.js';

const CLINIC = 'clinic@13.0.0';
const KINDS = ['cpu', 'heap', 'doctor', 'flame'];
const OUTPUT = '.clinic';
/** Away from the ports of `npm start`. */
const BASE_PORT = 7_800;
const START_MS_MAX = 180_000;
const END_MS_MAX = 180_000;
const WARM_UP_MS = 3_000;
const MS_PER_S = 1_000;
const TRANSFER_MS_MAX = 10_000;
/** The node that is profiled. */
const PROFILED = 1;

/** The command line that runs node PROFILED under a profiler of this kind. */
function profiler(kind: string, folder: string, words: readonly string[]): string[] {
  const node = [process.execPath, ...NODE_FLAGS];
  if (kind === 'cpu') return [...node, '--cpu-prof', `--cpu-prof-dir=${folder}`, ...words];
  if (kind === 'heap') return [...node, '--heap-prof', `--heap-prof-dir=${folder}`, ...words];
  const clinic = ['npm', 'exec', '--yes', `--package=${CLINIC}`, '--', 'clinic', kind];
  return [...clinic, '--open=false', '--dest', folder, '--', ...node, ...words];
}

function start(kind: string, folder: string, nodes: readonly LocalNode[]): ChildProcess[] {
  return nodes.map((node) => {
    const isProfiled = node.nodeId === PROFILED;
    const script = compiledFile('src/cli/main.ts');
    const words = [script, ...serveWords(nodes, node, isProfiled), '--log-level', 'warn'];
    const plain = [process.execPath, ...NODE_FLAGS, ...words];
    const [program = '', ...rest] = isProfiled ? profiler(kind, folder, words) : plain;
    // NO_INSIGHT: without it Clinic.js asks a question and ends.
    const env = { ...process.env, ...NODE_ENVIRONMENT, NO_INSIGHT: '1' };
    const child = spawn(program, rest, { stdio: ['pipe', 2, 2], env });
    child.stdin?.on('error', () => undefined); // it ended first; the wait for its end tells
    return child;
  });
}

/** Waits for a leader, and hands leadership to the profiled node if another has it. */
async function lead(nodes: readonly LocalNode[]): Promise<LocalNode> {
  const untilMs = performance.now() + START_MS_MAX;
  const profiled = nodes[PROFILED - 1] as LocalNode;
  while (performance.now() < untilMs) {
    const leader = await findLeader(nodes.map((node) => node.client));
    if (leader === PROFILED) return profiled;
    const other = nodes.find((node) => node.nodeId === leader);
    if (other !== undefined) {
      const call = await NodeCall.open(other.client, TRANSFER_MS_MAX);
      // Refused while it is behind or led meanwhile by another: the next look tells.
      await call.request([CommandKind.Transfer, PROFILED]).catch(() => undefined);
      call.close();
    }
    await sleep(200);
  }
  throw new Error(`node ${PROFILED} does not lead after ${START_MS_MAX} ms`);
}

/** Ends a node in order, by the end of its standard input: a profiler writes when it ends. */
async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
  child.stdin?.end();
  const late = setTimeout(() => child.kill('SIGKILL'), END_MS_MAX);
  await gone;
  clearTimeout(late);
}

async function drive(place: LocalNode, seconds: number, inflight: number): Promise<void> {
  const load = new ClosedLoop({
    ...place.client,
    connections: 8,
    inflight,
    names: NAMES_DEFAULT,
    sessionTtlMs: sessionTtlMs(seconds),
  });
  await load.open();
  load.start();
  await sleep(WARM_UP_MS);
  load.meter.isRecording = true;
  const progress = new Progress(load.meter, 'profile');
  await sleep(seconds * MS_PER_S);
  progress.stop();
  load.meter.isRecording = false;
  await load.stop();
  await load.close();
  if (load.meter.errors > 0) throw new Error(`${load.meter.errors} errors under load`);
  say(`${Math.round(load.meter.operations / seconds)} ops/s with node ${PROFILED} profiled`);
}

function tell(folder: string): void {
  for (const name of readdirSync(folder).sort()) {
    const file = path.join(folder, name);
    if (name.endsWith('.html')) say(`written: ${file}`);
    if (!/\.(cpu|heap)profile$/.test(name)) continue;
    say(`\nwritten: ${file}`);
    for (const line of profileTable(JSON.parse(readFileSync(file, 'utf8')))) say(line);
  }
}

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    options: {
      duration: { type: 'string', default: '10' },
      inflight: { type: 'string', default: '2048' },
    },
    allowPositionals: true,
  });
  const [kind = ''] = positionals;
  if (!KINDS.includes(kind)) {
    say(`usage: npm run profile -- ${KINDS.join('|')} [--duration S] [--inflight I]`);
    return EXIT_USAGE;
  }
  const folder = projectFile(path.join(OUTPUT, `${kind}-${Date.now()}`));
  const data = path.join(folder, 'nodes');
  mkdirSync(data, { recursive: true });
  const nodes = localNodes(data, BASE_PORT);
  const children = start(kind, folder, nodes);
  try {
    await drive(await lead(nodes), Number(values.duration), Number(values.inflight));
  } finally {
    await Promise.all(children.map(end));
    rmSync(data, { recursive: true, force: true });
  }
  tell(folder);
  return 0;
}

process.exitCode = await main();
