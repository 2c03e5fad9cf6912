/**
 * One snapshot's files: the manifest, and every chunk against it.
 *
 * Owns: the way through the chunks, one at a time. Never: builds a state (replay-check.ts does);
 * never writes. Used by: folder-check.ts, scrub-pass.ts.
 */

import type { SnapshotManifest } from '../../wire/snapshot-manifest.js';
import { chunkFile, readChunk, readManifest } from '../snapshots/snapshot-files.js';

export interface SnapshotEvents {
  onFault(file: string, found: string): void;
}

/** What `read` gives; a read error of the medium in words, as damage. */
function readable<T>(read: () => T): T | string {
  try {
    return read();
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (code !== 'EIO') throw error;
    return `cannot be read (${code})`;
  }
}

/**
 * Reads the snapshot of `index` in `folder`; a value is the bytes read since the last one. Gives
 * the manifest when nothing is wrong, else null.
 */
export function* checkSnapshot(
  folder: string,
  index: number,
  events: SnapshotEvents,
): Generator<number, SnapshotManifest | null> {
  const manifest = readable(() => readManifest(folder));
  if (typeof manifest === 'string') {
    events.onFault(folder, manifest);
    return null;
  }
  let isSound = true;
  if (manifest.index !== index) {
    events.onFault(folder, `the manifest is of index ${manifest.index}`);
    isSound = false;
  }
  for (const [position, { bytes }] of manifest.chunks.entries()) {
    const chunk = readable(() => readChunk(folder, manifest, position));
    if (typeof chunk === 'string') {
      events.onFault(chunkFile(folder, position), chunk);
      isSound = false;
    }
    yield bytes;
  }
  return isSound ? manifest : null;
}
