/**
 * One backup as a folder: BACKUP.json, and a snapshot's MANIFEST and chunks.
 *
 * Owns: what makes a backup whole, and that each fault is told with the name of its file. Checking
 * one is restoring it: the rows go through the restorer that a node starts with, and the digest of
 * what they give is the one that the live cluster had. Never: writes into a backup that is there.
 * Used by: server/backup.ts, server/restore.ts, cli/commands/verify.ts.
 */
import fs from 'node:fs';
import path from 'node:path';
import type { LockMachine } from '../../core/locks/lock-machine.js';
import type { SnapshotManifest } from '../../wire/snapshot-manifest.js';
import { restoreNow } from '../snapshots/restore.js';
import {
  chunkFile,
  MANIFEST_FILE,
  readChunk,
  readManifest,
  writeDurably,
} from '../snapshots/snapshot-files.js';
import { syncFolder } from '../sync-folder.js';
import { BACKUP_FILE, type BackupRecord, decodeBackup, encodeBackup } from './backup-record.js';

export interface BackupFault {
  /** Path of the file; of the folder where the files are whole and do not fit. */
  readonly file: string;
  readonly found: string;
}

export interface BackupReport {
  /** Null where it cannot be read. */
  readonly record: BackupRecord | null;
  /** The state that it gives; null with a fault. */
  readonly machine: LockMachine | null;
  readonly faults: readonly BackupFault[];
  /** Its format, where that is newer than this build knows; else 0. */
  readonly newerFormat: number;
}

/** True when `folder` looks like a backup, whole or damaged. */
export function isBackup(folder: string): boolean {
  return fs.existsSync(path.join(folder, BACKUP_FILE));
}

/** Makes the record, and every name in `folder`, durable. */
export function writeBackupRecord(folder: string, record: BackupRecord): void {
  writeDurably(path.join(folder, BACKUP_FILE), Buffer.from(encodeBackup(record)));
  syncFolder(folder);
}

/** What the manifest says of the state, as the record has it. */
export function stateOfManifest(manifest: SnapshotManifest) {
  const { clusterId, index, term, revision, stampMs, digest, chunks } = manifest;
  return {
    clusterId: Buffer.from(clusterId).toString('hex'),
    index,
    term,
    revision,
    clusterTimeMs: stampMs,
    digest,
    chunks: chunks.length,
    bytes: chunks.reduce((sum, { bytes }) => sum + bytes, 0),
  };
}

/** Reads everything. Throws only what the system refuses. */
export function checkBackup(folder: string): BackupReport {
  const faults: BackupFault[] = [];
  const fault = (file: string, found: string): void => {
    faults.push({ file: path.join(folder, file), found });
  };
  const text = decodeBackup(fs.readFileSync(path.join(folder, BACKUP_FILE), 'utf8'));
  if ('newer' in text) {
    fault(BACKUP_FILE, `has format ${text.newer}`);
    return { record: null, machine: null, faults, newerFormat: text.newer };
  }
  const record = 'found' in text ? null : text;
  if ('found' in text) fault(BACKUP_FILE, text.found);
  const manifest = readManifest(folder);
  if (typeof manifest === 'string') fault(MANIFEST_FILE, manifest.replace('the manifest ', ''));
  else checkChunks(folder, manifest, fault);
  let machine: LockMachine | null = null;
  if (faults.length === 0 && record !== null && typeof manifest !== 'string') {
    checkAgreement(record, manifest, fault);
    const restored = restoreNow(folder, manifest, new Uint32Array(2));
    if (typeof restored === 'string') fault('', `the state ${restored}`);
    else machine = restored;
  }
  if (faults.length > 0) machine = null;
  return { record, machine, faults, newerFormat: 0 };
}

type Tell = (file: string, found: string) => void;

function checkChunks(folder: string, manifest: SnapshotManifest, fault: Tell): void {
  const own = new Set([BACKUP_FILE, MANIFEST_FILE]);
  for (let position = 0; position < manifest.chunks.length; position += 1) {
    const name = path.basename(chunkFile(folder, position));
    own.add(name);
    const chunk = readChunk(folder, manifest, position);
    if (typeof chunk === 'string') fault(name, chunk.replace(`${name} `, ''));
  }
  for (const name of fs.readdirSync(folder)) {
    if (!own.has(name)) fault(name, 'is no part of the backup');
  }
}

/** Files that are each whole may be of two backups. */
function checkAgreement(record: BackupRecord, manifest: SnapshotManifest, fault: Tell): void {
  for (const [name, value] of Object.entries(stateOfManifest(manifest))) {
    const own = record[name as keyof BackupRecord];
    if (own === value) continue;
    fault(BACKUP_FILE, `says ${name} ${own}, ${MANIFEST_FILE} has ${value}`);
  }
}
