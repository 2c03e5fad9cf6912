/**
 * Makes the names in a folder durable: a new or renamed file is lost with its entry otherwise.
 *
 * Owns nothing. Never: the files' own bytes, which have an fsync of their own. Used by: the log and
 * the snapshots, before they promise that something is on disk.
 */
import fs from 'node:fs';

/** Returns when every name in `folder` is on disk. Throws the system's error. */
export function syncFolder(folder: string): void {
  const handle = fs.openSync(folder, 'r');
  try {
    fs.fsyncSync(handle);
  } finally {
    fs.closeSync(handle);
  }
}
