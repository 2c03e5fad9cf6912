/**
 * `npm start` as a user runs it: a process group of its own, as a terminal would give it.
 *
 * Owns: the processes of the group, killed at the end of the test if they still run. Never: another
 * way to start the nodes. Used by: npm-start.test.ts.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { projectRoot } from '../../gate/paths.js';
import { isAlive } from '../process-state.js';
import { Hopeless, waitFor } from '../wait-for.js';

const READY = 'holdfast: cluster ready';
/** Npm may have to build first. */
const READY_MS_MAX = 150_000;

/** What a run uses of a tap test. */
export interface NpmTest {
  teardown(end: () => void): unknown;
}

/** How `npm start` ended. */
export interface NpmEnd {
  readonly status: number | null;
  readonly signal: NodeJS.Signals | null;
}

export class NpmStart {
  out = '';
  err = '';
  readonly ended: Promise<NpmEnd>;
  private readonly child: ChildProcess;

  constructor(
    test: NpmTest,
    private readonly folder: string,
    basePort: number,
  ) {
    const words = ['start', '--', '--data', folder, '--base-port', String(basePort)];
    this.child = spawn('npm', words, {
      cwd: projectRoot,
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.child.stdout?.on('data', (text: Buffer) => {
      this.out += text.toString();
    });
    this.child.stderr?.on('data', (text: Buffer) => {
      this.err += text.toString();
    });
    this.ended = new Promise((resolve) => {
      this.child.once('exit', (status, signal) => resolve({ status, signal }));
    });
    test.teardown(() => this.killGroup());
  }

  /** Lines that say that the cluster is ready. */
  get readyLines(): string[] {
    return this.out.split('\n').filter((line) => line.startsWith(READY));
  }

  /** Resolves when the ready line is printed. */
  async ready(): Promise<void> {
    const isReady = (): boolean => {
      const { exitCode } = this.child;
      if (exitCode !== null) throw new Hopeless(`npm start ended with ${exitCode}: ${this.err}`);
      return this.readyLines.length > 0;
    };
    await waitFor('the ready line of npm start', isReady, READY_MS_MAX);
  }

  /** Process ids of the running `serve` processes that work in this run's folder. */
  servePids(): number[] {
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map(Number)
      .filter((pid) => isAlive(pid) && this.isServe(pid));
  }

  /** Ctrl-C in the terminal: SIGINT to every process of the group. */
  pressControlC(): void {
    process.kill(-(this.child.pid as number), 'SIGINT');
  }

  /** A signal to npm alone. */
  signal(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }

  private isServe(pid: number): boolean {
    try {
      const words = readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
      return words.includes('serve') && words.some((word) => word.startsWith(`${this.folder}/`));
    } catch {
      return false; // it ended in between
    }
  }

  private killGroup(): void {
    try {
      process.kill(-(this.child.pid as number), 'SIGKILL');
    } catch {
      // ESRCH: everybody in the group has ended
    }
  }
}
