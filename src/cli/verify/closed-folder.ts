/**
 * That a folder is a node's, and that no process has it open.
 *
 * Owns: the two refusals and their words. Never: a file, or the lock: who only reads takes none.
 * Used by: commands/verify.ts, commands/repair.ts.
 */
import fs from 'node:fs';
import path from 'node:path';
import { OptionError } from '../../server/options.js';
import { CliError } from '../exit-codes.js';

const FOLDER_PARTS = ['state', 'log', 'snapshots'] as const;

/** Rejects with OptionError, or with CliError FOLDER_IN_USE. */
export async function demandClosed(folder: string): Promise<void> {
  const isThere = FOLDER_PARTS.some((part) => fs.existsSync(path.join(folder, part)));
  if (!isThere) throw new OptionError('--folder', `${folder} is no data folder of a node`);
  const { findFolderHolder } = await import('../../io/log/folder-lock.js');
  const holder = await findFolderHolder(folder);
  if (holder === null) return;
  const message =
    `Stop ${holder} first: it has ${folder} open, and what it writes looks like damage. ` +
    'A running node is verified by its cluster: holdfast verify --scrub.';
  throw new CliError('FOLDER_IN_USE', message, { folder });
}
