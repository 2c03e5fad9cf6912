/**
 * Makes folders, one level at a time.
 *
 * Owns: the way down from the deepest folder that is there. Node's recursive mkdir is not used for
 * what a user names: below /proc it never comes back. Never: deletes. Throws the system's error of
 * the level that cannot be made. Also the mark in the name of a folder that is not whole yet, which
 * no node may be started from. Used by: log.ts, server/new-cluster.ts, cli/commands/dev.ts.
 */
import fs from 'node:fs';
import path from 'node:path';

/** In the name of a folder that is being made and gets its own name when it is whole. */
export const UNFINISHED_MARK = '.unfinished-';

/** True when `folder` lies in what a command has left that was cut off. */
export function isUnfinished(folder: string): boolean {
  return path.resolve(folder).includes(UNFINISHED_MARK);
}

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
