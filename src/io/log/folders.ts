/**
 * Makes folders, one level at a time.
 *
 * Owns: the way down from the deepest folder that is there. Node's recursive mkdir is not used for
 * what a user names: below /proc it never comes back. Never: deletes. Throws the system's error of
 * the level that cannot be made. Used by: log.ts, cli/commands/dev.ts.
 */
import fs from 'node:fs';
import path from 'node:path';

/** Makes `folder` and what is missing above it. Throws ENOTDIR, EACCES, ENOENT, ENOSPC, … */
export function makeFolders(folder: string): void {
  const missing: string[] = [];
  let level = path.resolve(folder);
  while (!fs.existsSync(level)) {
    missing.push(level);
    level = path.dirname(level);
  }
  for (let next = missing.pop(); next !== undefined; next = missing.pop()) makeOne(next);
  if (!fs.statSync(folder).isDirectory()) throw notFolder(folder);
}

function makeOne(folder: string): void {
  try {
    fs.mkdirSync(folder);
  } catch (error) {
    // Another process was faster; whether it is a folder is asked at the end.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}

function notFolder(folder: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${folder} is no folder`), { code: 'ENOTDIR' });
}
