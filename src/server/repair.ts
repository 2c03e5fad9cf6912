/**
 * Brings the data folder of a stopped node back from another member's snapshot.
 *
 * Owns: the order of the steps, so that a crash between any two leaves a folder that a start
 * refuses and a repair can go on with. The node's term, vote and disk id stay: it is the same
 * member. What it acknowledged is covered, since the snapshot is at least as new as everything that
 * the leader had when this node was down already (Raft §7: the same as an install). Nothing is
 * deleted; what was there is set aside. Never: runs on a folder that is open. Used by: cli/repair.
 */
import fs from 'node:fs';
import path from 'node:path';
import { OPERATION_VERSION } from '../core/locks/command.js';
import { historyFolder } from '../io/history/history-folder.js';
import { createSegment } from '../io/log/segmented-log.js';
import type { StateRecord } from '../io/log/state-record.js';
import { fetchSnapshot } from '../io/peers/snapshot-client.js';
import { logFolder } from '../io/scrub/places.js';
import { restoreNow } from '../io/snapshots/restore.js';
import {
  incomingPlace,
  listSnapshots,
  publishSnapshot,
  removeSnapshot,
  snapshotPlace,
} from '../io/snapshots/snapshot-folder.js';
import { syncFolder } from '../io/sync-folder.js';
import { SEGMENT_BYTES_MAX } from '../limits.js';
import type { FoundingRecord } from '../wire/founding.js';
import { PEER_VERSION } from '../wire/peer.js';
import type { SnapshotManifest } from '../wire/snapshot-manifest.js';
import type { Endpoint } from './options.js';

export interface RepairTask {
  readonly dataFolder: string;
  /** What the folder says of itself, checked. */
  readonly state: StateRecord;
  readonly founding: FoundingRecord;
  /** The snapshot must be of this index or later. */
  readonly leastIndex: number;
}

const ASIDE = 'damaged';

/** A folder of its own for what is set aside: damaged-1, or the next that is free. */
function makeAside(dataFolder: string): string {
  for (let number = 1; ; number += 1) {
    const folder = path.join(dataFolder, `${ASIDE}-${number}`);
    if (fs.existsSync(folder)) continue;
    fs.mkdirSync(folder);
    return folder;
  }
}

function moveInto(aside: string, place: string): void {
  if (!fs.existsSync(place)) return;
  fs.renameSync(place, path.join(aside, path.basename(place)));
  syncFolder(aside);
  syncFolder(path.dirname(place));
}

/** Sets aside what only the audit stream needs. Returns where it is now. */
export function setHistoryAside(dataFolder: string): string {
  const aside = makeAside(dataFolder);
  moveInto(aside, historyFolder(dataFolder));
  return aside;
}

/**
 * Fetches the newest snapshot of one member, durably and whole. Rejects with the reason, such as
 * that it has none of `leastIndex` or later; what was fetched stays for the next try.
 */
export async function fetchFrom(task: RepairTask, address: Endpoint): Promise<SnapshotManifest> {
  const { dataFolder, state, founding, leastIndex } = task;
  const { nodeId, diskId } = state;
  const { clusterId } = founding;
  const hello = {
    version: PEER_VERSION,
    featureLevel: OPERATION_VERSION,
    nodeId,
    clusterId,
    diskId,
  };
  fs.mkdirSync(path.join(dataFolder, 'snapshots'), { recursive: true });
  const { manifest } = await fetchSnapshot({ dataFolder, address, hello, leastIndex });
  const place = incomingPlace(dataFolder, manifest.index);
  const machine = restoreNow(place, manifest, new Uint32Array(2));
  if (typeof machine !== 'string') return manifest;
  removeSnapshot(place);
  throw new Error(`its snapshot ${machine}`);
}

/**
 * Makes the fetched snapshot what the node starts from, with an empty log behind it. Returns where
 * the old files are.
 */
export function adoptSnapshot(dataFolder: string, { index }: SnapshotManifest): string {
  const aside = makeAside(dataFolder);
  for (const old of listSnapshots(dataFolder)) moveInto(aside, snapshotPlace(dataFolder, old));
  publishSnapshot(dataFolder, incomingPlace(dataFolder, index), index);
  moveInto(aside, historyFolder(dataFolder));
  // From here until the new segment is there, a start is refused: no segment.
  moveInto(aside, logFolder(dataFolder));
  fs.mkdirSync(logFolder(dataFolder));
  syncFolder(dataFolder);
  createSegment(logFolder(dataFolder), index + 1, SEGMENT_BYTES_MAX).close();
  return aside;
}
