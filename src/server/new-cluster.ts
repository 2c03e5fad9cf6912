/**
 * Writes the data folders of a new cluster that begins with a state of an old one.
 *
 * Owns: that the folders of all members are made at once, from values that are drawn once (cluster
 * id, disk ids, the terms of the restore), checked as `verify --folder` does, and get their name by
 * one rename: until then nothing is there that a node could be started from, and a node refuses the
 * name that the folder has before (io/log/folders.ts). Two restores never mix: another cluster id,
 * other disks. Never: a node, a socket, or a folder that holds anything.
 * Used by: server/restore.ts, server/unsafe-recover.ts, server/backup.ts (writeWhole).
 */
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { CommandKind, OPERATION_VERSION, PRINCIPAL_CLUSTER } from '../core/locks/command.js';
import type { LockMachine } from '../core/locks/lock-machine.js';
import { leapOf, type RestoreTerms } from '../core/locks/restored-state.js';
import { Entry, EntryKind } from '../core/raft/message.js';
import { writeFirstRecord } from '../io/log/first-record.js';
import { makeFolders, UNFINISHED_MARK } from '../io/log/folders.js';
import { StateStore } from '../io/log/state-store.js';
import { checkFolder } from '../io/scrub/folder-check.js';
import { logFolder } from '../io/scrub/places.js';
import { wordsOf } from '../io/snapshots/restore.js';
import { SnapshotFiles } from '../io/snapshots/snapshot-files.js';
import { snapshotPlace } from '../io/snapshots/snapshot-folder.js';
import { syncFolder } from '../io/sync-folder.js';
import { ID_BYTES, METADATA_BYTES_MAX, RESTORED_REVISION_MAX } from '../limits.js';
import { EntryWriter } from '../wire/entry.js';
import { encodeFounding, type FoundingRecord } from '../wire/founding.js';
import { writeValue } from '../wire/msgpack-writer.js';
import { OutBuffer } from '../wire/out-buffer.js';
import type { SnapshotManifest } from '../wire/snapshot-manifest.js';
import { hexOf } from './founding.js';
import { formatEndpoint, type MemberAddress, OptionError } from './options.js';
import { RestoreRefused } from './restore-refused.js';

const MS_PER_S = 1_000;
/** Bytes of a chunk; a restored state is small, it holds no lease. */
const CHUNK_BYTES = 1 << 20;

export interface NewClusterPlan {
  /** Folder to make, with `node-<id>` of each member in it; absent, or empty. */
  readonly folder: string;
  readonly members: readonly MemberAddress[];
  /** The old state, and the term of its last entry. */
  readonly machine: LockMachine;
  readonly term: number;
  /** Seconds since the state was saved, 0 where that is not known. */
  readonly ageSeconds: number;
  readonly revisionFloor: number;
  /** ms; null: the largest TTL of the state. */
  readonly graceMs: number | null;
  /** Stands in the audit stream: what was restored, by whom, why. */
  readonly reason: string;
}

export interface NewCluster {
  readonly clusterId: string;
  readonly index: number;
  readonly revisionBefore: number;
  /** The counter: every token is larger. */
  readonly revision: number;
  readonly graceMs: number;
  /** Of the restored state. */
  readonly digest: string;
  /** `node-<id>` of each member, as paths. */
  readonly folders: readonly string[];
}

/** Where a member's data folder is below the folder of the cluster. */
export function memberFolder(folder: string, nodeId: number): string {
  return path.join(folder, `node-${nodeId}`);
}

/** Throws RestoreRefused FOLDER_NOT_EMPTY when something is there. */
export function demandEmpty(option: string, folder: string): void {
  if (!fs.existsSync(folder)) return;
  const isFolder = fs.statSync(folder).isDirectory();
  if (isFolder && fs.readdirSync(folder).length === 0) return;
  const message =
    `Name another folder with ${option}, or move ${folder} away: it is not empty, and nothing ` +
    'is ever written over.';
  throw new RestoreRefused('FOLDER_NOT_EMPTY', message);
}

/**
 * Makes an empty folder beside `folder`, lets `fill` write into it, and renames what `fill` says to
 * `folder`. When `fill` fails nothing is left.
 */
export async function writeWhole(
  folder: string,
  fill: (draft: string) => Promise<string>,
): Promise<void> {
  const place = path.resolve(folder);
  const parent = path.dirname(place);
  makeFolders(parent);
  const draft = fs.mkdtempSync(`${place}${UNFINISHED_MARK}`);
  try {
    const whole = await fill(draft);
    syncFolder(path.dirname(whole));
    fs.renameSync(whole, place);
    syncFolder(parent);
  } finally {
    fs.rmSync(draft, { recursive: true, force: true });
  }
}

function termsOf(plan: NewClusterPlan): RestoreTerms {
  const { ageSeconds, revisionFloor, machine } = plan;
  const graceMs = plan.graceMs ?? machine.greatestTtlMs;
  const unixSeconds = Math.floor(Date.now() / MS_PER_S);
  const terms = { unixSeconds, ageSeconds, revisionFloor, graceMs };
  const revision = leapOf(machine.revision, terms);
  if (revision <= RESTORED_REVISION_MAX) return terms;
  const message = `the counter would be ${revision}, at most ${RESTORED_REVISION_MAX} leaves room`;
  throw new OptionError('--revision-floor', `${message}; look at it and at this machine’s clock`);
}

/** Draws what makes the cluster: nothing of it depends on the node. */
function draw({ members, machine }: NewClusterPlan): FoundingRecord {
  const rows = members.map(({ nodeId, peer, client }) => {
    const diskId = new Uint8Array(randomBytes(ID_BYTES));
    return {
      nodeId,
      diskId,
      peer: formatEndpoint(peer),
      client: formatEndpoint(client),
      zone: null,
    };
  });
  return {
    clusterId: new Uint8Array(randomBytes(ID_BYTES)),
    members: rows.sort((left, right) => left.nodeId - right.nodeId),
    settings: { ...machine.settings },
    featureLevel: OPERATION_VERSION,
  };
}

/** The entry behind the restored state, which tells the audit stream of it. */
function announcement(machine: LockMachine, term: number, reason: string): Entry {
  const bytes = Buffer.from(reason).subarray(0, METADATA_BYTES_MAX);
  const out = new OutBuffer();
  writeValue(out, [CommandKind.Restored, null, null, null, null, bytes]);
  const writer = new EntryWriter();
  writer.open();
  writer.addOperation(PRINCIPAL_CLUSTER, OPERATION_VERSION, out.bytes, 0, out.length);
  const data = writer.close(machine.now, OPERATION_VERSION, randomBytes(ID_BYTES));
  return new Entry(machine.appliedIndex + 1, term, EntryKind.Batch, data);
}

function writeSnapshot(
  dataFolder: string,
  machine: LockMachine,
  state: Omit<SnapshotManifest, 'chunks'>,
): void {
  const files = new SnapshotFiles(snapshotPlace(dataFolder, state.index));
  machine.writeSnapshot(CHUNK_BYTES, (chunk) => files.add(chunk));
  files.finish(state);
  syncFolder(path.dirname(files.folder));
}

/** One member's folder: log, snapshot, and last who it is. */
function writeMember(
  dataFolder: string,
  nodeId: number,
  record: FoundingRecord,
  machine: LockMachine,
  entry: Entry,
): void {
  const { clusterId, members } = record;
  const { term } = entry;
  fs.mkdirSync(logFolder(dataFolder), { recursive: true });
  writeFirstRecord(logFolder(dataFolder), entry, machine.appliedIndex);
  writeSnapshot(dataFolder, machine, {
    clusterId,
    index: machine.appliedIndex,
    term,
    stampMs: machine.now,
    revision: machine.revision,
    digest: machine.digest(),
  });
  const { diskId } = members.find((member) => member.nodeId === nodeId)!;
  const founding = encodeFounding(record);
  StateStore.write(dataFolder, { term, votedFor: 0, nodeId, diskId, founding });
  syncFolder(dataFolder);
}

/** Reads a folder back, every byte, and demands that it gives the state that was meant. */
function demandSound(dataFolder: string, machine: LockMachine): void {
  const { faults, replay } = checkFolder(dataFolder);
  const [fault] = faults;
  const found = fault === undefined ? '' : `${fault.file}: ${fault.found}`;
  const end = replay?.end;
  const isRight = end?.index === machine.appliedIndex + 1 && end.revision === machine.revision + 1;
  if (found === '' && isRight) return;
  throw new Error(`what was written to ${dataFolder} does not read back: ${found}`);
}

/**
 * Makes the folders of every member, durable and verified. Rejects with RestoreRefused or
 * OptionError before anything is written; after an error nothing is left of it.
 */
export async function writeNewCluster(plan: NewClusterPlan): Promise<NewCluster> {
  const { folder, members, term, reason } = plan;
  demandEmpty('--to', folder);
  const terms = termsOf(plan);
  const record = draw(plan);
  const machine = plan.machine.restored(terms, wordsOf(record.clusterId));
  const entry = announcement(machine, term, reason);
  const nodeIds = members.map(({ nodeId }) => nodeId);
  await writeWhole(folder, async (draft) => {
    for (const nodeId of nodeIds) {
      const dataFolder = memberFolder(draft, nodeId);
      fs.mkdirSync(dataFolder);
      writeMember(dataFolder, nodeId, record, machine, entry);
      demandSound(dataFolder, machine);
    }
    syncFolder(draft);
    // The counter names this second: whoever restores next has a later one, and larger tokens.
    await delay(MS_PER_S);
    return draft;
  });
  return {
    clusterId: hexOf(record.clusterId),
    index: machine.appliedIndex,
    revisionBefore: plan.machine.revision,
    revision: machine.revision,
    graceMs: terms.graceMs,
    digest: machine.digest(),
    folders: nodeIds.map((nodeId) => memberFolder(folder, nodeId)),
  };
}
