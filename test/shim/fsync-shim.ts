/**
 * Builds the fsync shim and steers it: holds, delays or fails the disk of a process under test.
 *
 * Owns: dist-test/shim/ and one control file for each Shim. A command takes effect at the next
 * call that the process makes; `hold` ends as soon as another command is given. One commit of LMDB
 * comes by twice: fdatasync for its pages, then a synchronous write of its meta page.
 * Used by: tests that start processes.
 */
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { projectFile, projectRoot } from '../gate/paths.js';

const source = projectFile('test/shim/fsync-shim.c');
const library = path.join(projectRoot, 'dist-test/shim/fsync-shim.so');

/** True where the shim can be built and preloaded. */
export function hasShim(): boolean {
  if (process.platform !== 'linux') return false;
  return spawnSync('cc', ['--version'], { stdio: 'ignore' }).status === 0;
}

/** Compiles the shim unless it is newer than its source. Returns the path of the library. */
export function buildShim(): string {
  const built = fs.statSync(library, { throwIfNoEntry: false });
  if (built !== undefined && built.mtimeMs >= fs.statSync(source).mtimeMs) return library;
  fs.mkdirSync(path.dirname(library), { recursive: true });
  const draft = `${library}.${process.pid}`;
  const words = ['-O2', '-Wall', '-Wextra', '-Werror', '-shared', '-fPIC', '-o', draft, source];
  const result = spawnSync('cc', [...words, '-ldl'], { encoding: 'utf8' });
  if (result.status !== 0) throw new Error(`cc failed on ${source}:\n${result.stderr}`);
  // Renamed, so that a test file that runs beside this one never loads half a library.
  fs.renameSync(draft, library);
  return library;
}

/** The disk of one process under test, or of several. */
export class Shim {
  private readonly control: string;

  /** @param folder an existing folder of the test's own */
  constructor(folder: string) {
    this.control = path.join(folder, 'shim-control');
    this.pass();
  }

  /** What the process has to be started with, beside the rest of its environment. */
  get environment(): Record<string, string> {
    return { LD_PRELOAD: buildShim(), HOLDFAST_SHIM_CONTROL: this.control };
  }

  /** True when a call has been held since the last command was given. */
  get isHolding(): boolean {
    return fs.existsSync(`${this.control}.held`);
  }

  pass(): void {
    this.command('pass');
  }

  hold(): void {
    this.command('hold');
  }

  /** Holds files alone whose path contains `part`, such as '/state/': term and vote. */
  holdIn(part: string): void {
    this.command(`hold_in ${part}`);
  }

  delay(ms: number): void {
    this.command(`delay_ms ${ms}`);
  }

  fail(code: 'EIO' | 'ENOSPC'): void {
    this.command(`fail ${code}`);
  }

  private command(line: string): void {
    fs.rmSync(`${this.control}.held`, { force: true });
    // Renamed, since an emptied file would read as `pass` for a moment.
    fs.writeFileSync(`${this.control}.draft`, `${line}\n`);
    fs.renameSync(`${this.control}.draft`, this.control);
  }
}
