/**
 * The manifest of a snapshot: which state it is, and the chunks that it is made of.
 *
 * Owns: its layout, on disk and between nodes for ever: a MessagePack array [format, cluster id,
 * index, term, stamp, revision, digest, membership, row format, [bytes, CRC-32] of each chunk].
 * Never: files, or what is in a chunk. Used by: io (snapshots, peers), the snapshot worker.
 */
import {
  ID_BYTES,
  SAFE_INTEGER_MAX,
  SNAPSHOT_CHUNK_BYTES_MAX,
  SNAPSHOT_CHUNKS_MAX,
} from '../limits.js';
import { unpackValue } from './msgpack.js';
import { type PackValue, writeValue } from './msgpack-writer.js';
import { OutBuffer } from './out-buffer.js';

/** Version of the manifest, and of the rows in the chunks. */
const MANIFEST_FORMAT = 1;
const ROW_FORMAT = 1;
const MANIFEST_PARTS = 10;
const U32_MAX = 0xffff_ffff;
/** More than a manifest with every chunk takes. */
export const MANIFEST_BYTES_MAX = 1_024 + 16 * SNAPSHOT_CHUNKS_MAX;

export interface SnapshotChunk {
  /** 1 … SNAPSHOT_CHUNK_BYTES_MAX. */
  readonly bytes: number;
  readonly crc: number;
}

export interface SnapshotManifest {
  /** ID_BYTES: chunks of another cluster's state are never taken. */
  readonly clusterId: Uint8Array;
  /** The last entry that the state has applied, its term and its stamp in cluster time. */
  readonly index: number;
  readonly term: number;
  readonly stampMs: number;
  /** The last revision handed out. */
  readonly revision: number;
  /** State digest, 32 hexadecimal digits. */
  readonly digest: string;
  /** At least one. */
  readonly chunks: readonly SnapshotChunk[];
}

export function encodeManifest(manifest: SnapshotManifest): Uint8Array {
  const { clusterId, index, term, stampMs, revision, digest } = manifest;
  const chunks = manifest.chunks.map(({ bytes, crc }): PackValue => [bytes, crc]);
  const out = new OutBuffer();
  const head: PackValue[] = [MANIFEST_FORMAT, clusterId, index, term, stampMs, revision, digest];
  // Nil where a membership record will stand: the members are those of the founding.
  writeValue(out, [...head, null, ROW_FORMAT, chunks]);
  return out.take().slice();
}

/** The manifest in `bytes`, or what is wrong with it, as words for an operator. */
export function decodeManifest(bytes: Uint8Array): SnapshotManifest | string {
  if (bytes.length > MANIFEST_BYTES_MAX) return `is larger than ${MANIFEST_BYTES_MAX} bytes`;
  const value = unpackValue(bytes, 0, bytes.length);
  if (!Array.isArray(value) || value.length !== MANIFEST_PARTS) return 'is no manifest';
  const [format, clusterId, index, term, stampMs, revision, digest, membership, rows, list] =
    value as readonly unknown[];
  if (format !== MANIFEST_FORMAT) return `has format ${format}, wanted ${MANIFEST_FORMAT}`;
  if (rows !== ROW_FORMAT) return `has rows of format ${rows}, wanted ${ROW_FORMAT}`;
  if (membership !== null) return 'has a membership record, which this build does not know';
  if (!(clusterId instanceof Uint8Array) || clusterId.length !== ID_BYTES) return 'has no cluster';
  if (!isWhole(index, 1, SAFE_INTEGER_MAX)) return 'has no index';
  if (!isWhole(term, 1, SAFE_INTEGER_MAX)) return 'has no term';
  if (!isWhole(stampMs, 0, SAFE_INTEGER_MAX)) return 'has no stamp';
  if (!isWhole(revision, 0, SAFE_INTEGER_MAX)) return 'has no revision';
  if (typeof digest !== 'string' || !/^[0-9a-f]{32}$/.test(digest)) return 'has no digest';
  const chunks = chunksOf(list);
  if (chunks === null) return 'has no sound list of chunks';
  return { clusterId, index, term, stampMs, revision, digest, chunks };
}

function isWhole(value: unknown, least: number, greatest: number): value is number {
  return Number.isSafeInteger(value) && Number(value) >= least && Number(value) <= greatest;
}

function chunksOf(list: unknown): SnapshotChunk[] | null {
  if (!Array.isArray(list) || list.length === 0 || list.length > SNAPSHOT_CHUNKS_MAX) return null;
  const chunks: SnapshotChunk[] = [];
  for (const row of list as readonly unknown[]) {
    if (!Array.isArray(row) || row.length !== 2) return null;
    const [bytes, crc]: readonly unknown[] = row;
    if (!isWhole(bytes, 1, SNAPSHOT_CHUNK_BYTES_MAX) || !isWhole(crc, 0, U32_MAX)) return null;
    chunks.push({ bytes, crc });
  }
  return chunks;
}
