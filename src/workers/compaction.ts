/**
 * Makes a snapshot from what is on disk: on a worker thread, with the production code of apply.
 *
 * Owns: the task from paths and an index to a durable draft and its digest. It gets no state: it
 * reads the last snapshot and the sealed log behind it, so that every snapshot is a rehearsal of
 * recovery, and a state that memory alone has corrupted cannot reach the disk. Never: the log's
 * newest segment, the decision whether the draft counts. Run by: jobs.ts.
 */
import path from 'node:path';
import { LockMachine } from '../core/locks/lock-machine.js';
import type { Settings } from '../core/locks/settings.js';
import { readSealed } from '../io/log/sealed-reader.js';
import { restoreNow, wordsOf } from '../io/snapshots/restore.js';
import { readManifest, SnapshotFiles } from '../io/snapshots/snapshot-files.js';
import { draftPlace, snapshotPlace } from '../io/snapshots/snapshot-folder.js';
import { Replayer } from '../replica/replay.js';
import type { SnapshotManifest } from '../wire/snapshot-manifest.js';

export interface CompactionTask {
  readonly dataFolder: string;
  /** The draft is the state at this index; the log is sealed behind it. */
  readonly index: number;
  /** Index of the snapshot to start from, 0 for the founding record. */
  readonly baseIndex: number;
  /** ID_BYTES of the cluster. */
  readonly clusterId: Uint8Array;
  /** Settings of the founding record. */
  readonly settings: Settings;
  /** Bytes after which a chunk is closed. */
  readonly chunkBytes: number;
}

/** What the draft holds, and what it cost. */
export interface CompactionResult {
  readonly manifest: SnapshotManifest;
  readonly bytes: number;
  readonly entries: number;
  readonly replayMs: number;
  readonly writeMs: number;
}

interface Base {
  readonly machine: LockMachine;
  readonly term: number;
}

function openBase(task: CompactionTask): Base {
  const { dataFolder, baseIndex, clusterId, settings } = task;
  if (baseIndex === 0) return { machine: new LockMachine(settings, wordsOf(clusterId)), term: 0 };
  const folder = snapshotPlace(dataFolder, baseIndex);
  const manifest = readManifest(folder);
  if (typeof manifest === 'string') throw new Error(`snapshot ${folder}: ${manifest}`);
  const machine = restoreNow(folder, manifest, new Uint32Array(2));
  if (typeof machine === 'string') throw new Error(`snapshot ${folder}: ${machine}`);
  return { machine, term: manifest.term };
}

/**
 * Throws when the disk does not hold what the log promised.
 * @param nowMs elapsed time, for the figures of the result only
 */
export function compactLog(
  task: CompactionTask,
  nowMs: () => number = () => performance.now(),
): CompactionResult {
  const startedMs = nowMs();
  const base = openBase(task);
  const { machine } = base;
  let { term } = base;
  const replayer = new Replayer(machine);
  const logFolder = path.join(task.dataFolder, 'log');
  readSealed(logFolder, task.baseIndex + 1, task.index, (index, entryTerm, data) => {
    replayer.apply(index, data);
    term = entryTerm;
  });
  const replayedMs = nowMs();
  const draft = new SnapshotFiles(draftPlace(task.dataFolder, task.index));
  machine.writeSnapshot(task.chunkBytes, (chunk) => draft.add(chunk));
  const manifest = draft.finish({
    clusterId: task.clusterId,
    index: task.index,
    term,
    stampMs: machine.now,
    revision: machine.revision,
    digest: machine.digest(),
  });
  return {
    manifest,
    bytes: draft.bytes,
    entries: task.index - task.baseIndex,
    replayMs: replayedMs - startedMs,
    writeMs: nowMs() - replayedMs,
  };
}
