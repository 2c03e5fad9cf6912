/**
 * Syncs a folder in each of the ways of src/io and says how it went: folder-syncer.js FOLDER.
 * Started by: sync-folder.test.ts, under a disk that fails.
 */
import path from 'node:path';
import {
  chunkFile,
  SnapshotFiles,
  writeDurably,
} from '../../../src/io/snapshots/snapshot-files.js';
import {
  draftPlace,
  openSnapshots,
  publishSnapshot,
  removeSnapshot,
} from '../../../src/io/snapshots/snapshot-folder.js';
import { syncFolder } from '../../../src/io/sync-folder.js';

const [folder = ''] = process.argv.slice(2);
const draft = draftPlace(folder, 7);

const WAYS: readonly (readonly [string, () => unknown])[] = [
  ['a folder', () => syncFolder(folder)],
  ['the start', () => openSnapshots(folder, () => undefined)],
  ['a file', () => writeDurably(chunkFile(new SnapshotFiles(draft).folder, 0), Buffer.from('a'))],
  ['a rename', () => publishSnapshot(folder, draft, 7)],
  ['a removal', () => removeSnapshot(path.join(folder, 'snapshots', 'removed'))],
];

for (const [name, way] of WAYS) {
  let said = 'done';
  try {
    way();
  } catch (error) {
    said = `${(error as Error).name} ${(error as Error).message}`;
  }
  process.stdout.write(`${name}: ${said}\n`);
}
