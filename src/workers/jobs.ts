/**
 * The jobs of a worker thread, by the names under which the pool asks for them.
 *
 * Owns: the list. Each job gets plain values and paths, and gives plain values; files that a job
 * writes are durable when it ends. Never: state of the node. Loaded by: piscina, on its threads.
 */
import { type Written, written } from '../io/failed-write.js';
import {
  type HistoryShape,
  keepSegments as linkSegments,
  keepSnapshots as moveSnapshots,
  trimHistory,
} from '../io/history/history-folder.js';
import { type FetchTask, fetchSnapshot } from '../io/peers/snapshot-client.js';
import type { FetchResult } from '../io/peers/snapshot-fetch.js';
import {
  draftPlace,
  incomingPlace,
  publishSnapshot,
  removeOlder,
  removeSnapshot,
} from '../io/snapshots/snapshot-folder.js';
import { type CompactionResult, type CompactionTask, compactLog } from './compaction.js';

export interface SnapshotName {
  readonly dataFolder: string;
  readonly index: number;
}

/** Makes a draft of the state at an index. */
export function compact(task: CompactionTask): Promise<Written<CompactionResult>> {
  return written(() => compactLog(task));
}

/** Fetches the newest snapshot of another member. */
export function fetch(task: FetchTask): Promise<Written<FetchResult>> {
  return written(() => fetchSnapshot(task));
}

/** The draft at `index` counts from now on. */
export function publishDraft({ dataFolder, index }: SnapshotName): void {
  publishSnapshot(dataFolder, draftPlace(dataFolder, index), index);
}

/** What was fetched of `index` counts from now on, and stands for every snapshot before it. */
export function publishFetched({ dataFolder, index }: SnapshotName): void {
  publishSnapshot(dataFolder, incomingPlace(dataFolder, index), index);
  removeOlder(dataFolder, index);
}

export function discardDraft({ dataFolder, index }: SnapshotName): void {
  removeSnapshot(draftPlace(dataFolder, index));
}

export function discardFetched({ dataFolder, index }: SnapshotName): void {
  removeSnapshot(incomingPlace(dataFolder, index));
}

/** Deletes the snapshots before `index`. */
export function removeBefore({ dataFolder, index }: SnapshotName): void {
  removeOlder(dataFolder, index);
}

/** Keeps the segments that the log is about to drop, those before `index`. */
export function keepSegments({ dataFolder, index }: SnapshotName): void {
  linkSegments(dataFolder, index);
}

export interface HistoryBound extends SnapshotName {
  /** Bytes of history that stay. */
  readonly bytesMax: number;
}

/** Moves the snapshots before `index` into the history, and drops what is too much of it. */
export function keepSnapshots({ dataFolder, index, bytesMax }: HistoryBound): HistoryShape {
  if (bytesMax === 0) removeOlder(dataFolder, index);
  else moveSnapshots(dataFolder, index);
  return trimHistory(dataFolder, bytesMax);
}
