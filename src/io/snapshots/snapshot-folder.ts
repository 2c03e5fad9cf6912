/**
 * The snapshots of one data folder: which there are, and how one comes and goes whole.
 *
 * Owns: the names below `snapshots/` and the rename that makes a draft count. A draft is another
 * folder until everything in it is durable; one that goes loses its manifest first. So at every
 * crash point a folder named `snapshot-…` with a manifest is whole. Never: which one to drop or
 * make; that is the replica's. Used by: log.ts (at open), the server, the snapshot worker.
 */
import fs from 'node:fs';
import path from 'node:path';
import type { SnapshotManifest } from '../../wire/snapshot-manifest.js';
import { writing } from '../failed-write.js';
import { syncFolder } from '../sync-folder.js';
import { findChunkDamage, readManifest } from './snapshot-files.js';

const PARENT = 'snapshots';
const DIGITS = 16;
const PATTERN = /^snapshot-(\d{16})$/;

function place(dataFolder: string, kind: string, index: number): string {
  return path.join(dataFolder, PARENT, `${kind}-${String(index).padStart(DIGITS, '0')}`);
}

/** The folder of the whole snapshot at `index`. */
export function snapshotPlace(dataFolder: string, index: number): string {
  return place(dataFolder, 'snapshot', index);
}

/** Where this node makes a snapshot; deleted at the next start. */
export function draftPlace(dataFolder: string, index: number): string {
  return place(dataFolder, 'draft', index);
}

/** Where chunks of another node's snapshot are gathered; kept over a restart. */
export function incomingPlace(dataFolder: string, index: number): string {
  return place(dataFolder, 'incoming', index);
}

/** Indices of the folders named like snapshots, the newest first. */
export function listSnapshots(dataFolder: string): number[] {
  const parent = path.join(dataFolder, PARENT);
  if (!fs.existsSync(parent)) return [];
  const indices: number[] = [];
  for (const name of fs.readdirSync(parent)) {
    const match = PATTERN.exec(name);
    if (match !== null) indices.push(Number(match[1]));
  }
  return indices.sort((left, right) => right - left);
}

/**
 * Makes the whole, durable folder `from` the snapshot at `index`. When it returns, the snapshot
 * survives a crash; before, the one that stood does.
 */
export function publishSnapshot(dataFolder: string, from: string, index: number): void {
  const to = snapshotPlace(dataFolder, index);
  if (fs.existsSync(to)) removeSnapshot(to);
  fs.renameSync(from, to);
  syncFolder(path.dirname(to));
}

/** Deletes a snapshot, a draft or what was gathered, its manifest first. Throws FailedWrite. */
export function removeSnapshot(folder: string): void {
  const manifest = path.join(folder, 'MANIFEST');
  writing(() => {
    if (fs.existsSync(manifest)) {
      fs.rmSync(manifest);
      syncFolder(folder);
    }
    fs.rmSync(folder, { recursive: true, force: true });
  });
}

/** Deletes the snapshots before `index`. */
export function removeOlder(dataFolder: string, index: number): void {
  for (const older of listSnapshots(dataFolder)) {
    if (older < index) removeSnapshot(snapshotPlace(dataFolder, older));
  }
}

/** Deletes what was gathered of other snapshots than that at `index`. */
export function removeOtherIncoming(dataFolder: string, index: number): void {
  const parent = path.join(dataFolder, PARENT);
  const kept = path.basename(incomingPlace(dataFolder, index));
  for (const name of fs.readdirSync(parent)) {
    if (name.startsWith('incoming-') && name !== kept) removeSnapshot(path.join(parent, name));
  }
}

/**
 * At the start of a node: deletes drafts and half-deleted snapshots, reads every chunk of the
 * newest, and returns the manifest of the newest that is whole, null for none. `note` hears of each
 * one that is damaged; it stays where it is, for whoever wants to know what happened.
 */
export function openSnapshots(
  dataFolder: string,
  note: (text: string) => void,
): SnapshotManifest | null {
  const parent = path.join(dataFolder, PARENT);
  fs.mkdirSync(parent, { recursive: true });
  syncFolder(dataFolder);
  // A process may have ended between a rename and its sync: what this start goes on from, and drops
  // log for, must still be there at the next.
  syncFolder(parent);
  for (const name of fs.readdirSync(parent)) {
    if (name.startsWith('draft-')) fs.rmSync(path.join(parent, name), { recursive: true });
  }
  for (const index of listSnapshots(dataFolder)) {
    const folder = snapshotPlace(dataFolder, index);
    if (!fs.existsSync(path.join(folder, 'MANIFEST'))) {
      removeSnapshot(folder);
      continue;
    }
    const manifest = readManifest(folder);
    const damage = typeof manifest === 'string' ? manifest : findChunkDamage(folder, manifest);
    if (damage === null) return manifest as SnapshotManifest;
    note(`damaged snapshot ${folder}: ${damage}`);
  }
  return null;
}
