/**
 * Counter workers in real processes: starts them, lets them begin together, waits for their end.
 *
 * Owns: the processes, killed at the end of the test if they still run. Never: judges the counter.
 * Used by: contended-file.test.ts.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { compiledFile } from '../../gate/paths.js';
import { Hopeless, waitFor } from '../wait-for.js';
import { addFailures, type Failures } from './counter-worker.js';

export interface ProcessPlan {
  readonly endpoints: string;
  readonly folder: string;
  readonly processes: number;
  /** Workers in each process. */
  readonly workers: number;
  readonly rounds: number;
  readonly workMs: number;
}

/** What the processes use of a tap test. */
export interface ProcessTest {
  teardown(end: () => void): unknown;
}

const READY_MS_MAX = 120_000;

class CounterProcess {
  readonly child: ChildProcess;
  readonly ended: Promise<Failures>;
  private out = '';

  constructor(plan: ProcessPlan) {
    const numbers = [plan.workers, plan.rounds, plan.workMs].map(String);
    const script = compiledFile('test/cluster/acceptance/worker-process.ts');
    const words = ['--enable-source-maps', script, plan.endpoints, plan.folder, ...numbers];
    this.child = spawn(process.execPath, words, { stdio: ['pipe', 'pipe', 'inherit'] });
    this.child.stdout?.on('data', (text: Buffer) => {
      this.out += text.toString();
    });
    this.ended = new Promise((resolve, reject) => {
      this.child.once('error', reject);
      this.child.once('close', (status, signal) => {
        if (status === 0) resolve(this.failures());
        else reject(new Error(`a worker process ended with ${signal ?? `status ${status}`}`));
      });
    });
    this.ended.catch(() => undefined); // told to whoever waits for the end
  }

  get isReady(): boolean {
    if (this.child.exitCode !== null) throw new Hopeless('a worker process ended at its start');
    return this.out.startsWith('ready');
  }

  private failures(): Failures {
    const line = this.out.trim().split('\n').at(-1) ?? '{}';
    return new Map(Object.entries(JSON.parse(line) as Record<string, number>));
  }
}

export class CounterProcesses {
  private constructor(private readonly all: readonly CounterProcess[]) {}

  /** Starts the processes; resolves when every one of them is connected. */
  static async start(test: ProcessTest, plan: ProcessPlan): Promise<CounterProcesses> {
    const all = Array.from({ length: plan.processes }, () => new CounterProcess(plan));
    test.teardown(() => {
      for (const { child } of all) child.kill('SIGKILL');
    });
    const areReady = (): boolean => all.every(({ isReady }) => isReady);
    await waitFor('every worker process to be connected', areReady, READY_MS_MAX);
    return new CounterProcesses(all);
  }

  /** Lets them begin; resolves at the end of all. Rejects when one does not end with 0. */
  async run(): Promise<Failures> {
    for (const { child } of this.all) child.stdin?.end();
    const total: Failures = new Map();
    for (const failures of await Promise.all(this.all.map(({ ended }) => ended))) {
      addFailures(total, failures);
    }
    return total;
  }
}
