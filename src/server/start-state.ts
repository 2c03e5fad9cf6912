/**
 * The state that a node starts from: that of its newest whole snapshot, or the founding.
 *
 * Owns: the check that log and snapshot fit together, and the build of the machine. Never: which
 * snapshot is whole (io/snapshots), what of the log counts (io/log). Called by: node.ts, and by the
 * simulator at each start of a node.
 */
import { corruptLog } from '../io/log/log-error.js';
import { restoreNow } from '../io/snapshots/restore.js';
import { snapshotPlace } from '../io/snapshots/snapshot-folder.js';
import type { Logger } from '../observe/logger.js';
import type { FetchedSnapshot } from '../replica/ports.js';
import type { SnapshotManifest } from '../wire/snapshot-manifest.js';

export interface StartOptions {
  readonly dataFolder: string;
  /** The newest whole snapshot, null for none. */
  readonly snapshot: SnapshotManifest | null;
  /** First index that the log holds. */
  readonly firstIndex: number;
  /** Two u32 that only this node knows. */
  readonly hashSeeds: Uint32Array;
}

/**
 * Null for the founding. Throws LogError when the log does not begin where the snapshot ends, or
 * the snapshot is not what its manifest says.
 * @param nowMs elapsed time, for the figure that is logged only
 */
export function restoreStart(
  { dataFolder, snapshot, firstIndex, hashSeeds }: StartOptions,
  logger: Pick<Logger, 'info'>,
  nowMs: () => number = () => performance.now(),
): FetchedSnapshot | null {
  const index = snapshot?.index ?? 0;
  if (firstIndex > index + 1) {
    const found = `the log begins at ${firstIndex}, the newest whole snapshot is ${index}`;
    throw corruptLog(dataFolder, found);
  }
  if (snapshot === null) return null;
  const startedMs = nowMs();
  const machine = restoreNow(snapshotPlace(dataFolder, index), snapshot, hashSeeds);
  if (typeof machine === 'string') throw corruptLog(dataFolder, `snapshot ${index} ${machine}`);
  const ms = Math.round(nowMs() - startedMs);
  logger.info({ index, ms, ...machine.counts }, 'restored a snapshot');
  const { grantsFrom, now } = machine;
  if (grantsFrom > now) {
    const text = 'this cluster was restored: nothing is granted before that cluster time';
    logger.info({ grants_from: grantsFrom, cluster_time: now }, text);
  }
  const bytes = snapshot.chunks.reduce((sum, chunk) => sum + chunk.bytes, 0);
  return { index, term: snapshot.term, bytes, machine };
}
