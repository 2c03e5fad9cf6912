/**
 * Counter workers as real processes: starts them and waits for their end.
 *
 * Owns: the processes, killed at the end of the test if they still run. Never: judges the counter.
 * Used by: contended-file.test.ts.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { compiledFile } from '../../gate/paths.js';
import type { Failures } from './counter-worker.js';

export interface ProcessPlan {
  readonly endpoints: string;
  readonly folder: string;
  readonly processes: number;
  readonly rounds: number;
  readonly workMs: number;
}

/** What the processes use of a tap test. */
export interface ProcessTest {
  teardown(end: () => void): unknown;
}

/** Runs the workers to their end. Rejects when one ends with another status than 0. */
export async function runCounterProcesses(test: ProcessTest, plan: ProcessPlan): Promise<Failures> {
  const children: ChildProcess[] = [];
  test.teardown(() => {
    for (const child of children) child.kill('SIGKILL');
  });
  const ends: Promise<Failures>[] = [];
  for (let number = 0; number < plan.processes; number += 1) {
    const words = [plan.endpoints, plan.folder, String(plan.rounds), String(plan.workMs)];
    const script = compiledFile('test/cluster/acceptance/worker-process.ts');
    const child = spawn(process.execPath, ['--enable-source-maps', script, ...words], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    children.push(child);
    ends.push(endOf(child));
  }
  const total: Failures = new Map();
  for (const failures of await Promise.all(ends)) {
    for (const [code, count] of failures) total.set(code, (total.get(code) ?? 0) + count);
  }
  return total;
}

function endOf(child: ChildProcess): Promise<Failures> {
  let out = '';
  child.stdout?.on('data', (text: Buffer) => {
    out += text.toString();
  });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (status, signal) => {
      if (status === 0) resolve(new Map(Object.entries(JSON.parse(out) as Record<string, number>)));
      else reject(new Error(`a worker process ended with ${signal ?? `status ${status}`}`));
    });
  });
}
