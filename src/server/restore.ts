/**
 * From a backup to the data folders of a new cluster.
 *
 * Owns: the checks before anything is written. Never: what of the state stays (core/locks), or a
 * file (new-cluster.ts). Used by: cli/commands/restore.ts.
 */
import { hostname, userInfo } from 'node:os';
import { checkBackup, isBackup } from '../io/backup/backup-folder.js';
import { BACKUP_FORMAT, type BackupRecord } from '../io/backup/backup-record.js';
import { demandEmpty, type NewCluster, writeNewCluster } from './new-cluster.js';
import { type MemberAddress, OptionError } from './options.js';
import { RestoreRefused } from './restore-refused.js';

export interface RestorePlan {
  /** The backup. */
  readonly from: string;
  /** Folder to make. */
  readonly to: string;
  readonly members: readonly MemberAddress[];
  readonly revisionFloor: number;
  /** ms; null: the largest TTL of the state. */
  readonly graceMs: number | null;
  /** The operator's words; '' for none. */
  readonly reason: string;
}

const MS_PER_S = 1_000;

/** `alice@host`: who the audit stream says it was, as far as this machine knows. */
export function operatorName(): string {
  try {
    return `${userInfo().username}@${hostname()}`;
  } catch {
    return `user ${process.getuid?.() ?? '?'}@${hostname()}`; // a user without a name
  }
}

/** The words of the audit stream's first event. */
export function reasonOf(what: string, reason: string): string {
  return `${what}, by ${operatorName()}${reason === '' ? '' : `: ${reason}`}`;
}

/**
 * Restores; resolves when the folders are there, whole and verified. Rejects with RestoreRefused
 * FOLDER_NOT_EMPTY, BACKUP_DAMAGED, BACKUP_NEWER, or OptionError.
 */
export async function restoreBackup(
  plan: RestorePlan,
): Promise<{ readonly record: BackupRecord; readonly cluster: NewCluster }> {
  const { from, to, members, revisionFloor, graceMs } = plan;
  if (!isBackup(from))
    throw new OptionError('--from', `${from} is no backup: BACKUP.json is missing`);
  demandEmpty('--to', to);
  const { record, machine, faults, newerFormat } = checkBackup(from);
  if (newerFormat > 0) {
    const message =
      `Restore ${from} with the release that made it, or a newer one: it has format ` +
      `${newerFormat}, this build knows ${BACKUP_FORMAT}.`;
    throw new RestoreRefused('BACKUP_NEWER', message);
  }
  if (record === null || machine === null) {
    const [first] = faults;
    const message =
      `Take another backup: ${first?.file ?? from} ${first?.found ?? 'cannot be read'}. ` +
      '`holdfast verify --backup` names every fault.';
    throw new RestoreRefused('BACKUP_DAMAGED', message);
  }
  const { clusterId, index, term, revision, takenAt } = record;
  const ageSeconds = Math.max(0, Math.floor(Date.now() / MS_PER_S) - takenAt);
  const what = `from a backup of cluster ${clusterId} at index ${index}, revision ${revision}`;
  const reason = reasonOf(what, plan.reason);
  const rest = { machine, term, ageSeconds, revisionFloor, graceMs, reason };
  return { record, cluster: await writeNewCluster({ folder: to, members, ...rest }) };
}
