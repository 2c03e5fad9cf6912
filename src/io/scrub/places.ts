/**
 * What of a data folder can be checked: its segments and snapshots, by name.
 *
 * Owns: the order in which segments follow one another, over history and log. Never: opens one.
 * Used by: folder-check.ts, scrub-pass.ts, replay-check.ts.
 */
import fs from 'node:fs';
import path from 'node:path';
import { historyFolder } from '../history/history-folder.js';
import { listSegments, segmentFolder } from '../log/segment-files.js';
import { listSnapshots, snapshotPlace } from '../snapshots/snapshot-folder.js';
import { FaultKind } from './fault.js';

export interface SegmentPlace {
  /** Index of its first record, by its name. */
  readonly first: number;
  readonly folder: string;
  readonly kind: typeof FaultKind.Log | typeof FaultKind.History;
}

export interface SnapshotPlace {
  readonly index: number;
  readonly folder: string;
  readonly kind: typeof FaultKind.Snapshot | typeof FaultKind.History;
}

/** The folder that holds the segments of the log. */
export function logFolder(dataFolder: string): string {
  return path.join(dataFolder, 'log');
}

function segmentsIn(folder: string, kind: SegmentPlace['kind']): SegmentPlace[] {
  if (!fs.existsSync(folder)) return [];
  return listSegments(folder).map((first) => {
    return { first, folder: segmentFolder(folder, first), kind };
  });
}

/** Segments of the log, ascending; the newest is the one that a node writes. */
export function listLog(dataFolder: string): SegmentPlace[] {
  return segmentsIn(logFolder(dataFolder), FaultKind.Log);
}

/** Segments that history has and the log has not, ascending. */
export function listHistory(dataFolder: string): SegmentPlace[] {
  const inLog = new Set(listLog(dataFolder).map(({ first }) => first));
  const all = segmentsIn(historyFolder(dataFolder), FaultKind.History);
  return all.filter(({ first }) => !inLog.has(first));
}

/** Snapshots, ascending: those of history, and those that a node may start from. */
export function listStates(dataFolder: string): SnapshotPlace[] {
  const history = historyFolder(dataFolder);
  const kept = listSnapshots(history).map((index): SnapshotPlace => {
    return { index, folder: snapshotPlace(history, index), kind: FaultKind.History };
  });
  const own = listSnapshots(dataFolder).map((index): SnapshotPlace => {
    return { index, folder: snapshotPlace(dataFolder, index), kind: FaultKind.Snapshot };
  });
  return [...kept, ...own].sort((left, right) => left.index - right.index);
}
