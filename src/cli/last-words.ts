/**
 * The last words of a node that ended: why it did, from the end of its log.
 *
 * Owns: finding them. A fatal line is JSON and has its reason in `message`; a node that did not
 * come so far has printed a line that starts with `holdfast:`. Never: words of an earlier run, or
 * of a node that was killed in the middle of its work. Used by: dev-children.ts.
 */
import { closeSync, fstatSync, openSync, readSync } from 'node:fs';

const TAIL_BYTES = 8_192;
const PREFIX = 'holdfast: ';

function readTail(file: string, from: number): string {
  const handle = openSync(file, 'r');
  try {
    const { size } = fstatSync(handle);
    const start = Math.max(from, size - TAIL_BYTES);
    const bytes = Buffer.alloc(Math.max(0, size - start));
    const length = readSync(handle, bytes, 0, bytes.length, start);
    return bytes.toString('utf8', 0, length);
  } finally {
    closeSync(handle);
  }
}

function fatalReason(line: string): string {
  try {
    const { level, message } = JSON.parse(line) as { level?: unknown; message?: unknown };
    return level === 'fatal' && typeof message === 'string' ? message : '';
  } catch {
    return ''; // not one of the logger's lines
  }
}

/**
 * Why the writer of `file` ended, '' when it does not say.
 *
 * @param from bytes of the file that are of earlier runs.
 */
export function lastWordsIn(file: string, from: number): string {
  const lines = readTail(file, from).trimEnd().split('\n').reverse();
  for (const line of lines) {
    const reason = fatalReason(line);
    if (reason !== '') return reason;
  }
  const [last = ''] = lines;
  return last.startsWith(PREFIX) ? last.slice(PREFIX.length) : '';
}
