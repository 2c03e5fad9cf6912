/**
 * A process under test whose lines can be awaited.
 *
 * Owns: the process, its output so far, and who waits for a line. Kills it at teardown.
 * Used by: the tests of io that need a process to die.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import type { Test } from 'tap';
import { compiledFile } from '../../gate/paths.js';

export interface Ending {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

interface Waiter {
  has(line: string): boolean;
  resolve(line: string): void;
}

export class Child {
  readonly lines: string[] = [];
  errors = '';
  readonly ended: Promise<Ending>;
  private readonly process: ChildProcess;
  private rest = '';
  private readonly waiting: Waiter[] = [];

  /** @param script source path of the program, such as test/unit/io/log-writer.ts */
  constructor(t: Test, script: string, words: readonly string[], environment = {}) {
    this.process = spawn(process.execPath, [compiledFile(script), ...words], {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...environment },
    });
    this.process.stdout!.setEncoding('utf8').on('data', (text: string) => this.onText(text));
    this.process.stderr!.setEncoding('utf8').on('data', (text: string) => {
      this.errors += text;
    });
    this.ended = new Promise((resolve) => {
      this.process.once('close', (code, signal) => resolve({ code, signal }));
    });
    t.teardown(async () => {
      this.process.kill('SIGKILL');
      await this.ended;
    });
  }

  /** Resolves with the first line, past or to come, that matches. */
  line(pattern: RegExp): Promise<string> {
    const seen = this.lines.find((line) => pattern.test(line));
    if (seen !== undefined) return Promise.resolve(seen);
    return new Promise((resolve) => {
      this.waiting.push({ has: (line) => pattern.test(line), resolve });
    });
  }

  /** Resolves when a line `<word> <number>` came with a number of at least `least`. */
  async reach(word: string, least: number): Promise<void> {
    const has = (line: string) =>
      line.startsWith(`${word} `) && Number(line.split(' ')[1]) >= least;
    if (this.lines.some(has)) return;
    await new Promise<string>((resolve) => this.waiting.push({ has, resolve }));
  }

  signal(name: NodeJS.Signals): void {
    this.process.kill(name);
  }

  /** Kills the process and waits until all its output was read. */
  async kill(): Promise<Ending> {
    this.process.kill('SIGKILL');
    return this.ended;
  }

  private onText(text: string): void {
    const lines = (this.rest + text).split('\n');
    this.rest = lines.pop()!;
    for (const line of lines) {
      this.lines.push(line);
      for (const waiter of this.waiting) if (waiter.has(line)) waiter.resolve(line);
    }
  }
}
