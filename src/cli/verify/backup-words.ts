/**
 * What is said of a backup, for people and for programs.
 *
 * Owns: the lines, and the names in the JSON. Never: a check; that is in io/backup.
 * Used by: commands/verify.ts, commands/backup.ts.
 */
import path from 'node:path';
import type { BackupReport } from '../../io/backup/backup-folder.js';
import { BACKUP_FORMAT, type BackupRecord } from '../../io/backup/backup-record.js';

const MIB = 1 << 20;
const MS_PER_S = 1_000;

export function recordJson(record: BackupRecord): Record<string, unknown> {
  return {
    cluster_id: record.clusterId,
    index: record.index,
    term: record.term,
    revision: record.revision,
    cluster_time: record.clusterTimeMs,
    digest: record.digest,
    bytes: record.bytes,
    node_id: record.nodeId,
    version: record.version,
    taken_at: record.takenAt,
  };
}

export function recordLines(record: BackupRecord): string[] {
  const { clusterId, index, term, revision, digest, bytes, chunks, nodeId, takenAt } = record;
  const taken = new Date(takenAt * MS_PER_S).toISOString();
  return [
    `cluster    ${clusterId}, by node ${nodeId}, ${taken}, holdfast ${record.version}`,
    `state      index ${index}, term ${term}, revision ${revision}, digest ${digest}`,
    `size       ${(bytes / MIB).toFixed(1)} MiB in ${chunks} chunks`,
  ];
}

export function backupJson(folder: string, report: BackupReport): Record<string, unknown> {
  const { record, faults, newerFormat, machine } = report;
  return {
    backup: folder,
    sound: faults.length === 0,
    ...(record === null ? {} : recordJson(record)),
    newer_format: newerFormat === 0 ? null : newerFormat,
    ...(machine === null ? {} : { counts: machine.counts }),
    faults: faults.map(({ file, found }) => ({ file, found })),
  };
}

export function backupLines(folder: string, report: BackupReport): string[] {
  const { record, faults, newerFormat, machine } = report;
  if (newerFormat > 0) {
    return [
      `${folder} has format ${newerFormat}, this build knows ${BACKUP_FORMAT}`,
      '  do: verify and restore it with the release that made it, or a newer one',
    ];
  }
  const lines = record === null ? [] : recordLines(record);
  if (machine !== null) {
    const { locks, leases, sessions } = machine.counts;
    lines.push(`holds      ${locks} locks, ${leases} leases, ${sessions} sessions`);
  }
  for (const { file, found } of faults) lines.push(`damaged: ${path.normalize(file)}: ${found}`);
  if (faults.length > 0) lines.push('  do: take another backup; this one cannot be restored');
  lines.push(faults.length === 0 ? 'no fault' : `${faults.length} faults`);
  return lines;
}
