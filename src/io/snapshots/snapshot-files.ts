/**
 * One snapshot as files: a folder with MANIFEST and one file for each chunk.
 *
 * Owns: their names and the order in which they become durable: chunks, then the manifest, then the
 * folder; a folder without a sound manifest is no snapshot. Never: which snapshot counts
 * (snapshot-folder.ts), what rows mean. Used by: the snapshot worker, a starting node, installs.
 */
import fs from 'node:fs';
import path from 'node:path';
import { crc32 } from 'node:zlib';
import {
  decodeManifest,
  encodeManifest,
  MANIFEST_BYTES_MAX,
  type SnapshotChunk,
  type SnapshotManifest,
} from '../../wire/snapshot-manifest.js';
import { writing } from '../failed-write.js';
import { syncFolder } from '../sync-folder.js';

export const MANIFEST_FILE = 'MANIFEST';
const CRC_BYTES = 4;

/** The file of a chunk, 0 for the first. */
export function chunkFile(folder: string, position: number): string {
  return path.join(folder, `chunk-${String(position).padStart(6, '0')}`);
}

/**
 * Writes `bytes` into a new file and returns when they are on disk; the name is not yet. Throws
 * FailedWrite.
 */
export function writeDurably(file: string, bytes: Uint8Array): void {
  writing(() => {
    const handle = fs.openSync(file, 'w');
    try {
      fs.writeFileSync(handle, bytes);
      fs.fsyncSync(handle);
    } finally {
      fs.closeSync(handle);
    }
  });
}

/** Adds chunks to `folder`, which is empty, and at the end its manifest. */
export class SnapshotFiles {
  readonly chunks: SnapshotChunk[] = [];
  /** Bytes of the chunks so far. */
  bytes = 0;

  /** Empties and makes `folder`. */
  constructor(readonly folder: string) {
    writing(() => {
      fs.rmSync(folder, { recursive: true, force: true });
      fs.mkdirSync(folder, { recursive: true });
    });
  }

  /** Returns when the chunk's bytes are on disk. */
  add(chunk: Uint8Array): void {
    writeDurably(chunkFile(this.folder, this.chunks.length), chunk);
    this.chunks.push({ bytes: chunk.length, crc: crc32(chunk) });
    this.bytes += chunk.length;
  }

  /** Returns when the whole snapshot is on disk, under the name that its folder has now. */
  finish(state: Omit<SnapshotManifest, 'chunks'>): SnapshotManifest {
    const manifest = { ...state, chunks: this.chunks };
    writeManifest(this.folder, manifest);
    return manifest;
  }
}

/** Makes the manifest and every name in `folder` durable. Throws FailedWrite. */
export function writeManifest(folder: string, manifest: SnapshotManifest): void {
  const body = encodeManifest(manifest);
  const bytes = new Uint8Array(CRC_BYTES + body.length);
  new DataView(bytes.buffer).setUint32(0, crc32(body));
  bytes.set(body, CRC_BYTES);
  writeDurably(path.join(folder, MANIFEST_FILE), bytes);
  writing(() => syncFolder(folder));
}

/** The manifest in `folder`, or in words why there is none. */
export function readManifest(folder: string): SnapshotManifest | string {
  const file = path.join(folder, MANIFEST_FILE);
  if (!fs.existsSync(file)) return 'the manifest is missing';
  if (fs.statSync(file).size > CRC_BYTES + MANIFEST_BYTES_MAX) return 'the manifest is too long';
  const bytes = fs.readFileSync(file);
  if (bytes.length < CRC_BYTES) return 'the manifest is cut short';
  const body = bytes.subarray(CRC_BYTES);
  if (bytes.readUInt32BE(0) !== crc32(body)) return 'the manifest has a wrong checksum';
  const manifest = decodeManifest(body);
  return typeof manifest === 'string' ? `the manifest ${manifest}` : manifest;
}

/** The manifest's own bytes, as they go to another node, which checks them. */
export async function manifestBody(folder: string): Promise<Uint8Array> {
  return (await fs.promises.readFile(path.join(folder, MANIFEST_FILE))).subarray(CRC_BYTES);
}

/** Null when `bytes` is the chunk that the manifest names, else what is wrong. */
export function chunkFault(bytes: Uint8Array, chunk: SnapshotChunk): string | null {
  if (bytes.length !== chunk.bytes) return `has ${bytes.length} bytes, wanted ${chunk.bytes}`;
  return crc32(bytes) === chunk.crc ? null : 'has a wrong checksum';
}

/** The chunk at `position`, or in words what is wrong with it. */
export function readChunk(
  folder: string,
  manifest: SnapshotManifest,
  position: number,
): Uint8Array | string {
  const file = chunkFile(folder, position);
  const name = path.basename(file);
  if (!fs.existsSync(file)) return `${name} is missing`;
  const bytes = fs.readFileSync(file);
  const fault = chunkFault(bytes, manifest.chunks[position]!);
  return fault === null ? bytes : `${name} ${fault}`;
}

/** Reads every chunk. Null when all are whole, else what is wrong with the first that is not. */
export function findChunkDamage(folder: string, manifest: SnapshotManifest): string | null {
  for (let position = 0; position < manifest.chunks.length; position += 1) {
    const chunk = readChunk(folder, manifest, position);
    if (typeof chunk === 'string') return chunk;
  }
  return null;
}
