/**
 * What of log and snapshots is kept for history: the folder `history/` beside them.
 *
 * Owns: how a segment and a snapshot get there before they are dropped (a second name for the same
 * file, a rename), and how the oldest go when there is too much. History is what can be replayed: a
 * snapshot, or the founding, and every entry behind it. Never: a byte of its own; never anything
 * that a node needs to start. Used by: the jobs of the worker pool, sealed-walk.ts, server.
 */
import fs from 'node:fs';
import path from 'node:path';
import { listSegments, segmentFolder } from '../log/segment-files.js';
import { readManifest } from '../snapshots/snapshot-files.js';
import { listSnapshots, removeSnapshot, snapshotPlace } from '../snapshots/snapshot-folder.js';
import { syncFolder } from '../sync-folder.js';

const DATA = 'data.mdb';

/** Where a replay may begin. */
export interface HistoryBase {
  /** Index of the snapshot, 0 for the founding. */
  readonly index: number;
  /** Revision of the state there. */
  readonly revision: number;
  /** Folder of the snapshot, '' for the founding. */
  readonly folder: string;
}

export interface HistoryShape {
  /** Bases, the oldest first; never empty where a node has served. */
  readonly bases: readonly HistoryBase[];
  /** Bytes that the folder takes on disk. */
  readonly bytes: number;
}

/** The folder's place; it looks like a data folder, with `snapshots/` and segments in it. */
export function historyFolder(dataFolder: string): string {
  return path.join(dataFolder, 'history');
}

function logFolder(dataFolder: string): string {
  return path.join(dataFolder, 'log');
}

/** Segments with a file: a process may have ended between their folder and its second name. */
function listIfThere(folder: string): number[] {
  if (!fs.existsSync(folder)) return [];
  const firsts = listSegments(folder);
  return firsts.filter((first) => fs.existsSync(path.join(segmentFolder(folder, first), DATA)));
}

/** Every segment of history and log, ascending: its first index and its folder. */
export function historySegments(dataFolder: string): ReadonlyMap<number, string> {
  const places = new Map<number, string>();
  const history = historyFolder(dataFolder);
  for (const first of listIfThere(history)) places.set(first, segmentFolder(history, first));
  const log = logFolder(dataFolder);
  for (const first of listIfThere(log)) {
    if (!places.has(first)) places.set(first, segmentFolder(log, first));
  }
  return new Map([...places].sort(([left], [right]) => left - right));
}

/**
 * Gives the sealed segments whose entries all lie before `before` a second name, durably: they
 * stay when the log drops them.
 */
export function keepSegments(dataFolder: string, before: number): void {
  const log = logFolder(dataFolder);
  const history = historyFolder(dataFolder);
  const firsts = listSegments(log);
  const dropped = firsts.filter((_, at) => (firsts[at + 1] ?? Number.POSITIVE_INFINITY) <= before);
  if (dropped.length === 0) return;
  fs.mkdirSync(history, { recursive: true });
  for (const first of dropped) {
    const folder = segmentFolder(history, first);
    fs.mkdirSync(folder, { recursive: true });
    const file = path.join(folder, DATA);
    if (fs.existsSync(file)) continue;
    fs.linkSync(path.join(segmentFolder(log, first), DATA), file);
    syncFolder(folder);
  }
  syncFolder(history);
  syncFolder(dataFolder);
}

/** Moves the snapshots before `index` into the history; one that is damaged is deleted. */
export function keepSnapshots(dataFolder: string, index: number): void {
  const history = historyFolder(dataFolder);
  for (const older of listSnapshots(dataFolder)) {
    if (older >= index) continue;
    const from = snapshotPlace(dataFolder, older);
    const to = snapshotPlace(history, older);
    if (typeof readManifest(from) === 'string' || fs.existsSync(to)) {
      removeSnapshot(from);
      continue;
    }
    fs.mkdirSync(path.dirname(to), { recursive: true });
    fs.renameSync(from, to);
    syncFolder(path.dirname(to));
    syncFolder(path.dirname(from));
  }
}

/** What there is, and from where it can be replayed. */
export function readHistory(dataFolder: string): HistoryShape {
  const firstIndex = [...historySegments(dataFolder).keys()][0] ?? 1;
  const bases: HistoryBase[] = [];
  if (firstIndex === 1) bases.push({ index: 0, revision: 0, folder: '' });
  const found = [historyFolder(dataFolder), dataFolder].flatMap((parent) =>
    listSnapshots(parent).map((index) => ({ index, folder: snapshotPlace(parent, index) })),
  );
  for (const { index, folder } of found.sort((left, right) => left.index - right.index)) {
    if (index + 1 < firstIndex) continue;
    const manifest = readManifest(folder);
    if (typeof manifest === 'string') continue;
    bases.push({ index, revision: manifest.revision, folder });
  }
  return { bases, bytes: bytesBelow(historyFolder(dataFolder)) };
}

/** Bytes that the files below a folder take on disk; a sparse file takes what was written. */
function bytesBelow(folder: string): number {
  if (!fs.existsSync(folder)) return 0;
  let bytes = 0;
  for (const entry of fs.readdirSync(folder, { withFileTypes: true })) {
    const place = path.join(folder, entry.name);
    bytes += entry.isDirectory() ? bytesBelow(place) : fs.statSync(place).blocks * 512;
  }
  return bytes;
}

/**
 * Drops the oldest until at most `bytesMax` are left, and no more than the disk has free: base
 * after base, each with the entries that only it needed. The newest snapshot is no part of this.
 */
export function trimHistory(dataFolder: string, bytesMax: number): HistoryShape {
  for (;;) {
    const shape = readHistory(dataFolder);
    const { bavail, bsize } = fs.statfsSync(dataFolder);
    const bound = Math.min(bytesMax, bavail * bsize);
    if (shape.bytes <= bound && bound > 0) return shape;
    if (bound === 0 || !dropOldest(dataFolder, shape.bases)) {
      wipeHistory(dataFolder);
      return readHistory(dataFolder);
    }
  }
}

/**
 * Goes on from the first base that needs fewer entries than the oldest one: drops the bases before
 * it and the entries that only they needed. A segment ends behind the snapshot that it was sealed
 * for, so the next base may need all of them too. The bases go last: until then what is left can
 * still be told to be incomplete. False: nothing could be dropped.
 */
function dropOldest(dataFolder: string, bases: readonly HistoryBase[]): boolean {
  const history = historyFolder(dataFolder);
  const firsts = [...historySegments(dataFolder).keys()];
  const second = firsts[1];
  if (second === undefined) return false;
  const kept = bases.findIndex(({ index }, at) => at > 0 && second <= index + 1);
  const base = bases[kept];
  if (base === undefined) return false;
  const own = new Set(listIfThere(history));
  const dropped = firsts.filter((first, at) => {
    return own.has(first) && (firsts[at + 1] ?? Number.POSITIVE_INFINITY) <= base.index + 1;
  });
  for (const first of dropped) {
    fs.rmSync(segmentFolder(history, first), { recursive: true, force: true });
  }
  const gone = bases.slice(0, kept).filter(({ folder }) => folder.startsWith(history));
  for (const { folder } of gone) removeSnapshot(folder);
  return dropped.length + gone.length > 0;
}

/** Forgets everything: this node continues from another's state, or its history is damaged. */
export function wipeHistory(dataFolder: string): void {
  fs.rmSync(historyFolder(dataFolder), { recursive: true, force: true });
  syncFolder(dataFolder);
}
