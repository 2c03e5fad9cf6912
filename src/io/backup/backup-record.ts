/**
 * The file BACKUP.json: what a backup is of, for people and for programs.
 *
 * Owns: its fields, on disk for ever, and that each byte of it counts: what does not encode to
 * itself again is refused. Everything else of a backup (MANIFEST, chunks) is a snapshot as a node
 * has it. Format: one more whenever an older build could not read some part of a backup.
 * Used by: backup-folder.ts, server/backup.ts.
 */
import { crc32 } from 'node:zlib';

export const BACKUP_FILE = 'BACKUP.json';
export const BACKUP_FORMAT = 1;

export interface BackupMember {
  readonly nodeId: number;
  readonly peer: string;
  readonly client: string;
}

export interface BackupRecord {
  /** 32 hexadecimal digits. */
  readonly clusterId: string;
  readonly index: number;
  readonly term: number;
  readonly revision: number;
  readonly clusterTimeMs: number;
  readonly digest: string;
  readonly chunks: number;
  /** Bytes of the chunks. */
  readonly bytes: number;
  /** The node that gave it, and who was a member then. */
  readonly nodeId: number;
  readonly members: readonly BackupMember[];
  /** Version of the product, and wall clock in s: when the backup was begun. */
  readonly version: string;
  readonly takenAt: number;
}

/** Why a text is no record: a newer format, or what is wrong. */
export type BackupTextFault = { readonly newer: number } | { readonly found: string };

function fieldsOf(record: BackupRecord): Record<string, unknown> {
  return {
    format: BACKUP_FORMAT,
    cluster_id: record.clusterId,
    index: record.index,
    term: record.term,
    revision: record.revision,
    cluster_time: record.clusterTimeMs,
    digest: record.digest,
    chunks: record.chunks,
    bytes: record.bytes,
    node_id: record.nodeId,
    members: record.members.map(({ nodeId, peer, client }) => {
      return { node_id: nodeId, peer, client };
    }),
    version: record.version,
    taken_at: record.takenAt,
  };
}

export function encodeBackup(record: BackupRecord): string {
  const fields = fieldsOf(record);
  const crc = crc32(JSON.stringify(fields));
  return `${JSON.stringify({ ...fields, crc32: crc }, null, 2)}\n`;
}

/** The record in `text`, or why there is none. */
export function decodeBackup(text: string): BackupRecord | BackupTextFault {
  const fields = parse(text);
  if (fields === null) return { found: 'is no JSON object' };
  const { format } = fields;
  if (!isWhole(format) || format < 1) return { found: 'has no format' };
  if (format > BACKUP_FORMAT) return { newer: format };
  const record = recordOf(fields);
  if (record === null) return { found: 'lacks a field, or one is malformed' };
  return encodeBackup(record) === text ? record : { found: 'has a wrong checksum' };
}

function parse(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? { ...value } : null;
  } catch {
    return null; // the caller says so, with the name of the file
  }
}

function isWhole(value: unknown): value is number {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

const NUMBERS = [
  'index',
  'term',
  'revision',
  'cluster_time',
  'chunks',
  'bytes',
  'node_id',
  'taken_at',
] as const;
const TEXTS = ['cluster_id', 'digest', 'version'] as const;

function recordOf(fields: Readonly<Record<string, unknown>>): BackupRecord | null {
  if (!NUMBERS.every((name) => isWhole(fields[name]))) return null;
  if (!TEXTS.every((name) => typeof fields[name] === 'string')) return null;
  const members = membersOf(fields['members']);
  if (members === null) return null;
  const numberAt = (name: (typeof NUMBERS)[number]) => Number(fields[name]);
  const textAt = (name: (typeof TEXTS)[number]) => String(fields[name]);
  return {
    clusterId: textAt('cluster_id'),
    index: numberAt('index'),
    term: numberAt('term'),
    revision: numberAt('revision'),
    clusterTimeMs: numberAt('cluster_time'),
    digest: textAt('digest'),
    chunks: numberAt('chunks'),
    bytes: numberAt('bytes'),
    nodeId: numberAt('node_id'),
    members,
    version: textAt('version'),
    takenAt: numberAt('taken_at'),
  };
}

function membersOf(value: unknown): BackupMember[] | null {
  if (!Array.isArray(value)) return null;
  const members: BackupMember[] = [];
  for (const row of value as readonly unknown[]) {
    if (typeof row !== 'object' || row === null) return null;
    const { node_id: nodeId, peer, client } = row as Readonly<Record<string, unknown>>;
    if (!isWhole(nodeId) || typeof peer !== 'string' || typeof client !== 'string') return null;
    members.push({ nodeId, peer, client });
  }
  return members;
}
