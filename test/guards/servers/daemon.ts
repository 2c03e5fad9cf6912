/**
 * One process of a real server for the guard tests: started in a scratch folder, ended by its id.
 *
 * Owns: the process and the file of its output. Never: a server that it did not start. A server
 * that is not installed fails the test with the package's name: nothing is skipped.
 * Used by: the servers beside this file.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';

/** What stands before a command to run it as another user, and that user's ids. */
export interface RunAs {
  readonly uid: number;
  readonly gid: number;
}

export class Daemon {
  private child: ChildProcess | null = null;
  private readonly outputFile: string;

  constructor(
    readonly name: string,
    folder: string,
  ) {
    this.outputFile = path.join(folder, `${name}.log`);
  }

  start(command: string, words: readonly string[], runAs?: RunAs): void {
    const output = openSync(this.outputFile, 'a');
    const child = spawn(command, words, {
      stdio: ['ignore', output, output],
      cwd: path.dirname(this.outputFile),
      ...runAs,
    });
    closeSync(output);
    child.once('error', () => {
      this.child = null;
    });
    child.once('exit', () => {
      this.child = null;
    });
    this.child = child;
  }

  /** Throws with the server's last words when it has ended. For use in waitFor. */
  checkAlive(): void {
    if (this.child === null) throw new Error(`${this.name} ended: ${this.output.slice(-2_000)}`);
  }

  get output(): string {
    return existsSync(this.outputFile) ? readFileSync(this.outputFile, 'utf8') : '';
  }

  async end(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    const { child } = this;
    if (child === null) return;
    const gone = new Promise<void>((resolve) => child.once('exit', () => resolve()));
    child.kill(signal);
    await gone;
  }
}

/** The first of these files that exists; throws with the Debian package that has it. */
export function findProgram(candidates: readonly string[], debianPackage: string): string {
  const found = candidates.find((file) => existsSync(file));
  if (found !== undefined) return found;
  const message = `install the Debian package ${debianPackage}: none of ${candidates.join(', ')}`;
  throw new Error(`${message} exists, and a guard that is not tested is not shipped`);
}

/** Runs a short command to its end. Rejects with its output when it fails. */
export async function runTool(
  command: string,
  words: readonly string[],
  runAs?: RunAs,
): Promise<string> {
  const options = { encoding: 'utf8', timeout: 60_000, ...runAs } as const;
  return (await promisify(execFile)(command, words, options)).stdout;
}
