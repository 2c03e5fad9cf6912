/**
 * Bodies of the frames in which a node fetches a snapshot from another, chunk by chunk.
 *
 * Owns: their layout, big-endian: ask [kind, u64 least index], tell [kind, manifest; nothing for
 * none], chunk ask [kind, u64 index, u32 position], chunk tell [kind, u64 index, u32 position,
 * bytes; nothing when it is gone]. One question is out at a time. Never: files, checksums of
 * chunks; the manifest has those. Used by: io (peer server, snapshot client).
 */
import { u32At, u64At } from './msgpack-reader.js';
import { putU32, putU64 } from './msgpack-writer.js';
import type { OutBuffer } from './out-buffer.js';
import { beginPeerFrame, type Checksum, endPeerFrame, PeerKind } from './peer.js';

const ASK_BYTES = 1 + 8;
const CHUNK_HEAD_BYTES = 1 + 8 + 4;

/** Which chunk of which snapshot. */
export interface ChunkName {
  readonly index: number;
  /** 0 for the first. */
  readonly position: number;
}

/** Asks for the manifest of a snapshot of `leastIndex` or later. */
export function encodeSnapshotAsk(out: OutBuffer, leastIndex: number, checksum: Checksum): void {
  const position = beginPeerFrame(out, PeerKind.SnapshotAsk);
  out.reserve(8);
  out.length = putU64(out.bytes, out.length, leastIndex);
  endPeerFrame(out, position, checksum);
}

/** The least index asked for, -1 when the body is no such question. */
export function decodeSnapshotAsk(bytes: Uint8Array, start: number, end: number): number {
  if (end - start !== ASK_BYTES || bytes[start] !== PeerKind.SnapshotAsk) return -1;
  return Math.max(-1, u64At(bytes, start + 1));
}

/** `manifest`: as encodeManifest gave it, empty for none. */
export function encodeSnapshotTell(out: OutBuffer, manifest: Uint8Array, checksum: Checksum): void {
  const position = beginPeerFrame(out, PeerKind.SnapshotTell);
  append(out, manifest);
  endPeerFrame(out, position, checksum);
}

/** The manifest's bytes, lent; null when the body is no such answer. */
export function decodeSnapshotTell(
  bytes: Uint8Array,
  start: number,
  end: number,
): Uint8Array | null {
  return bytes[start] === PeerKind.SnapshotTell ? bytes.subarray(start + 1, end) : null;
}

export function encodeChunkAsk(out: OutBuffer, name: ChunkName, checksum: Checksum): void {
  const position = beginPeerFrame(out, PeerKind.ChunkAsk);
  putName(out, name);
  endPeerFrame(out, position, checksum);
}

/** The chunk asked for; null when the body is no such question. */
export function decodeChunkAsk(bytes: Uint8Array, start: number, end: number): ChunkName | null {
  if (end - start !== CHUNK_HEAD_BYTES || bytes[start] !== PeerKind.ChunkAsk) return null;
  return nameAt(bytes, start);
}

/** `chunk`: empty when the snapshot is gone. */
export function encodeChunkTell(
  out: OutBuffer,
  name: ChunkName,
  chunk: Uint8Array,
  checksum: Checksum,
): void {
  const position = beginPeerFrame(out, PeerKind.ChunkTell);
  putName(out, name);
  append(out, chunk);
  endPeerFrame(out, position, checksum);
}

/** The chunk's bytes, lent, if the body answers the question for `wanted`; else null. */
export function decodeChunkTell(
  bytes: Uint8Array,
  start: number,
  end: number,
  wanted: ChunkName,
): Uint8Array | null {
  if (end - start < CHUNK_HEAD_BYTES || bytes[start] !== PeerKind.ChunkTell) return null;
  const name = nameAt(bytes, start);
  if (name?.index !== wanted.index || name.position !== wanted.position) return null;
  return bytes.subarray(start + CHUNK_HEAD_BYTES, end);
}

function putName(out: OutBuffer, { index, position }: ChunkName): void {
  out.reserve(CHUNK_HEAD_BYTES);
  out.length = putU32(out.bytes, putU64(out.bytes, out.length, index), position);
}

function nameAt(bytes: Uint8Array, start: number): ChunkName | null {
  const index = u64At(bytes, start + 1);
  return index < 0 ? null : { index, position: u32At(bytes, start + 9) };
}

function append(out: OutBuffer, bytes: Uint8Array): void {
  out.reserve(bytes.length);
  out.bytes.set(bytes, out.length);
  out.length += bytes.length;
}
