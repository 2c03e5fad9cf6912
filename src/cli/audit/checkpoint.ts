/**
 * Files that a consumer of the audit stream trusts after a crash: its checkpoint, files of lines.
 *
 * Owns: writing them so that a reader sees the old or the new content, never half of one. Never:
 * what the lines mean. Used by: sinks.ts, dead-letters.ts, commands/audit.ts.
 */
import fs from 'node:fs';
import path from 'node:path';
import { CliError } from '../exit-codes.js';

/** The end of a file is looked for in so many bytes. */
const TAIL_BYTES = 64 * 1_024;
const NEWLINE = 10;

/** How far a consumer has come. */
export interface Checkpoint {
  /** 32 hexadecimal digits: revisions of another cluster mean nothing here. */
  readonly clusterId: string;
  /** The first revision that was not delivered. */
  readonly next: number;
  readonly prefix: string;
}

/** Puts `text` in the place of `file`, durably. */
export function replaceFile(file: string, text: string): void {
  const draft = `${file}.draft`;
  const handle = fs.openSync(draft, 'w');
  try {
    fs.writeFileSync(handle, text);
    fs.fsyncSync(handle);
  } finally {
    fs.closeSync(handle);
  }
  fs.renameSync(draft, file);
  const folder = fs.openSync(path.dirname(path.resolve(file)), 'r');
  fs.fsyncSync(folder);
  fs.closeSync(folder);
}

/** Appends whole lines, durably. Returns the inode of the file that has them. */
export function appendLines(file: string, lines: readonly string[]): number {
  const handle = fs.openSync(file, 'a');
  try {
    fs.writeFileSync(handle, lines.map((line) => `${line}\n`).join(''));
    fs.fsyncSync(handle);
    return fs.fstatSync(handle).ino;
  } finally {
    fs.closeSync(handle);
  }
}

/**
 * Cuts a line that a crash left half written. Returns the whole lines in the last TAIL_BYTES.
 * A line is shorter than that.
 */
export function cutTornLine(file: string): readonly string[] {
  if (!fs.existsSync(file)) return [];
  const { size } = fs.statSync(file);
  const handle = fs.openSync(file, 'r+');
  try {
    const tail = Buffer.alloc(Math.min(size, TAIL_BYTES));
    fs.readSync(handle, tail, 0, tail.length, size - tail.length);
    const end = tail.lastIndexOf(NEWLINE) + 1;
    if (end < tail.length) {
      fs.ftruncateSync(handle, size - tail.length + end);
      fs.fsyncSync(handle);
    }
    const start = size === tail.length ? 0 : tail.indexOf(NEWLINE) + 1;
    return tail.toString('utf8', start, end).split('\n').slice(0, -1);
  } finally {
    fs.closeSync(handle);
  }
}

/** Null when there is none yet. Throws CliError USAGE for a file that is no checkpoint. */
export function readCheckpoint(file: string): Checkpoint | null {
  if (!fs.existsSync(file)) return null;
  try {
    const found = JSON.parse(fs.readFileSync(file, 'utf8')) as Record<string, unknown>;
    const { cluster_id: clusterId, next_revision: next, prefix } = found;
    if (typeof clusterId === 'string' && typeof prefix === 'string' && Number.isInteger(next)) {
      return { clusterId, next: Number(next), prefix };
    }
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
  }
  throw new CliError('USAGE', `${file} is no checkpoint of holdfast audit: name another file`, {
    option: '--checkpoint',
  });
}

export function writeCheckpoint(file: string, { clusterId, next, prefix }: Checkpoint): void {
  const content = { cluster_id: clusterId, next_revision: next, prefix };
  replaceFile(file, `${JSON.stringify(content)}\n`);
}
