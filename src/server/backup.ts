/**
 * Takes a backup: a snapshot of a node that serves, fetched chunk by chunk, and checked as a whole.
 *
 * Owns: whom to ask in which order, the wait for the node to make its snapshot, and that the folder
 * gets its name only when every byte is on disk and the state that it gives has the digest that the
 * node's own state had. Never: a change of the cluster; the node makes the snapshot that it would
 * have made anyway, a little earlier. Used by: cli/commands/backup.ts.
 */
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { OPERATION_VERSION } from '../core/locks/command.js';
import { checkBackup, stateOfManifest, writeBackupRecord } from '../io/backup/backup-folder.js';
import type { BackupRecord } from '../io/backup/backup-record.js';
import { askIdentity } from '../io/peers/founding-client.js';
import { fetchSnapshot } from '../io/peers/snapshot-client.js';
import { type FetchResult, NoSnapshotYet } from '../io/peers/snapshot-fetch.js';
import { incomingPlace } from '../io/snapshots/snapshot-folder.js';
import { BACKUP_ROUND_MS, ID_BYTES } from '../limits.js';
import type { FoundingRecord } from '../wire/founding.js';
import { PEER_VERSION } from '../wire/peer.js';
import { hexOf } from './founding.js';
import { readRecord } from './founding-peers.js';
import { demandEmpty, writeWhole } from './new-cluster.js';
import { type Endpoint, formatEndpoint } from './options.js';
import { RestoreRefused } from './restore-refused.js';
import { readVersion } from './version.js';

export interface BackupPlan {
  /** Folder to make. */
  readonly to: string;
  /** Peer ports, asked in this order; the first that gives its snapshot is taken. */
  readonly peers: readonly Endpoint[];
  /** The backup holds this entry, and all before it. */
  readonly leastIndex: number;
  /** How long the nodes are waited for, ms. */
  readonly waitMs: number;
  /** Hears, once, that it takes a while. */
  readonly onNote: (text: string) => void;
}

const MS_PER_S = 1_000;
/** Rounds that one node gets to make its snapshot before the next is asked to. */
const ROUNDS_EACH = 50;
/** The owner's alone: a backup holds lease ids and the secrets of sessions. */
const OWNER_ONLY = 0o700;

interface Given {
  readonly nodeId: number;
  readonly founding: FoundingRecord;
  readonly fetched: FetchResult;
}

/** One try at one node. Rejects with the reason; what was fetched stays for the next. */
async function fetchFrom(draft: string, address: Endpoint, leastIndex: number): Promise<Given> {
  const { nodeId, record } = await askIdentity(address);
  if (record === null) throw new Error('it is not founded');
  const founding = readRecord(record);
  const hello = {
    version: PEER_VERSION,
    featureLevel: OPERATION_VERSION,
    nodeId: 0,
    clusterId: founding.clusterId,
    diskId: new Uint8Array(ID_BYTES),
  };
  const task = { dataFolder: draft, address, hello, leastIndex, isBackup: true };
  return { nodeId, founding, fetched: await fetchSnapshot(task) };
}

/** Asks one node after the other, again and again. */
async function fetchAny(draft: string, plan: BackupPlan): Promise<Given> {
  const { peers, leastIndex, waitMs } = plan;
  const untilMs = performance.now() + waitMs;
  for (let round = 0; ; round += 1) {
    const reasons: string[] = [];
    const turned = Math.floor(round / ROUNDS_EACH) % peers.length;
    for (const address of [...peers.slice(turned), ...peers.slice(0, turned)]) {
      const name = formatEndpoint(address);
      try {
        return await fetchFrom(draft, address, leastIndex);
      } catch (error) {
        const text = error instanceof Error ? error.message : String(error);
        reasons.push(text.startsWith(name) ? text : `${name}: ${text}`);
        // It makes one now, and is asked again: a second node need not make another.
        if (error instanceof NoSnapshotYet) break;
      }
    }
    if (performance.now() >= untilMs) {
      const what = `no node gave a snapshot of index ${leastIndex} or later`;
      throw new RestoreRefused('NO_SNAPSHOT', `${what} in time: ${reasons.join('; ')}`);
    }
    if (round === 1) plan.onNote(`waiting for a snapshot of index ${leastIndex}`);
    await delay(BACKUP_ROUND_MS);
  }
}

/**
 * Takes a backup into `to`; resolves when it is whole, durable and verified. Rejects with
 * RestoreRefused FOLDER_NOT_EMPTY, NO_SNAPSHOT, BACKUP_DAMAGED; then nothing is left of it.
 */
export async function takeBackup(plan: BackupPlan): Promise<BackupRecord> {
  demandEmpty('--to', plan.to);
  const takenAt = Math.floor(Date.now() / MS_PER_S);
  let taken: BackupRecord | null = null;
  await writeWhole(plan.to, async (draft) => {
    fs.mkdirSync(path.join(draft, 'snapshots'));
    const { nodeId, founding, fetched } = await fetchAny(draft, plan);
    const folder = incomingPlace(draft, fetched.manifest.index);
    fs.chmodSync(folder, OWNER_ONLY);
    const members = founding.members.map(({ nodeId: id, peer, client }) => {
      return { nodeId: id, peer, client };
    });
    const state = stateOfManifest(fetched.manifest);
    const record = { ...state, nodeId, members, version: readVersion(), takenAt };
    writeBackupRecord(folder, record);
    const { faults } = checkBackup(folder);
    const [fault] = faults;
    if (fault !== undefined) {
      const message = `Take it again: what node ${nodeId} of cluster ${hexOf(founding.clusterId)}`;
      const text = `${message} gave is damaged: ${path.basename(fault.file)} ${fault.found}`;
      throw new RestoreRefused('BACKUP_DAMAGED', text);
    }
    taken = record;
    return folder;
  });
  if (taken === null) throw new Error('a backup was written without its record');
  return taken;
}
