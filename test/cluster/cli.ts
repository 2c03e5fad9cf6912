/**
 * Runs `holdfast` as a process of its own and looks at what it prints and how it ends.
 *
 * Owns: the processes it starts: the test that started one ends it. Used by: test/cluster.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { compiledFile } from '../gate/paths.js';

/** How a run of the CLI ended. */
export interface CliEnd {
  /** Exit status, or the signal's name. */
  readonly status: number | string;
  readonly out: string;
  readonly err: string;
}

/** What a run uses of a tap test. */
export interface CliTest {
  teardown(end: () => void): unknown;
}

export class Cli {
  out = '';
  err = '';
  readonly child: ChildProcess;
  readonly ended: Promise<CliEnd>;

  /** Starts `holdfast` with these words; killed at the end of the test if it still runs. */
  constructor(
    test: CliTest,
    words: readonly string[],
    environment: Readonly<Record<string, string>> = {},
  ) {
    this.child = spawn(
      process.execPath,
      ['--enable-source-maps', compiledFile('src/cli/main.ts'), ...words],
      { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...environment } },
    );
    this.child.stdout?.on('data', (text: Buffer) => {
      this.out += text.toString();
    });
    this.child.stderr?.on('data', (text: Buffer) => {
      this.err += text.toString();
    });
    this.ended = new Promise((resolve) => {
      this.child.once('exit', (status, signal) => {
        // Pipes may stay open in what the command left behind; the last bytes come right after.
        setImmediate(() => {
          resolve({ status: status ?? signal ?? '', out: this.out, err: this.err });
        });
      });
    });
    test.teardown(() => this.child.kill('SIGKILL'));
  }

  signal(signal: NodeJS.Signals): void {
    this.child.kill(signal);
  }
}

/** Runs to the end. */
export function runCli(
  test: CliTest,
  words: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<CliEnd> {
  return new Cli(test, words, environment).ended;
}
