/**
 * A backup without a cluster, for tests of what reads one.
 *
 * Owns: the folder's shape: the state of snapshot-maker.ts, as server/backup.ts would leave it.
 * Used by: tests of backups and restores.
 */
import { stateOfManifest, writeBackupRecord } from '../../../src/io/backup/backup-folder.js';
import type { BackupRecord } from '../../../src/io/backup/backup-record.js';
import { SnapshotFiles } from '../../../src/io/snapshots/snapshot-files.js';
import { CLUSTER_ID, machineWith } from './snapshot-maker.js';

export const TAKEN_AT = 1_800_000_000;

/** Writes the backup of the state at `index` in term 3 into `folder`, in several chunks. */
export function makeBackup(folder: string, index: number): BackupRecord {
  const machine = machineWith(index);
  const files = new SnapshotFiles(folder);
  machine.writeSnapshot(5_000, (chunk) => files.add(chunk));
  const manifest = files.finish({
    clusterId: CLUSTER_ID,
    index,
    term: 3,
    stampMs: machine.now,
    revision: machine.revision,
    digest: machine.digest(),
  });
  const record = {
    ...stateOfManifest(manifest),
    nodeId: 2,
    members: [{ nodeId: 2, peer: '127.0.0.1:7602', client: '127.0.0.1:7402' }],
    version: '0.1.0',
    takenAt: TAKEN_AT,
  };
  writeBackupRecord(folder, record);
  return record;
}
