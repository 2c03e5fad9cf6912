/**
 * What a fetch of another member's snapshot asks for, one question after the other.
 *
 * Owns: the questions and the folder `incoming-…`: each chunk is checked against the manifest and
 * on disk before the next is asked for; a fetch that begins again finds them. Never: a connection,
 * a wait; never makes what it fetched count. Driven by: snapshot-client.ts, and by the simulator.
 */
import fs from 'node:fs';
import path from 'node:path';
import { copyOf } from '../../wire/copy.js';
import type { OutBuffer } from '../../wire/out-buffer.js';
import { decodeManifest, type SnapshotManifest } from '../../wire/snapshot-manifest.js';
import {
  decodeChunkTell,
  decodeSnapshotTell,
  encodeChunkAsk,
  encodeSnapshotAsk,
} from '../../wire/snapshot-talk.js';
import { writing } from '../failed-write.js';
import {
  chunkFault,
  chunkFile,
  readChunk,
  writeDurably,
  writeManifest,
} from '../snapshots/snapshot-files.js';
import { incomingPlace, removeOtherIncoming } from '../snapshots/snapshot-folder.js';
import { isSameId } from './membership.js';
import { checksum } from './peer-socket.js';

export interface FetchGoal {
  readonly dataFolder: string;
  /** ID_BYTES: chunks of another cluster's state are never taken. */
  readonly clusterId: Uint8Array;
  readonly leastIndex: number;
}

export interface FetchResult {
  readonly manifest: SnapshotManifest;
  /** Chunks that were there already, from an earlier try. */
  readonly resumed: number;
  readonly bytes: number;
}

/** The member has none that is new enough. */
export class NoSnapshotYet extends Error {
  constructor(leastIndex: number) {
    super(`it has no snapshot of index ${leastIndex} or later`);
  }
}

/** A question to the member: how to put it, and its answer's bytes, null for no answer to it. */
export interface Question {
  encode(out: OutBuffer): void;
  decode(bytes: Uint8Array, start: number, end: number): Uint8Array | null;
}

/** A value is a question; its answer, lent until the next call, comes back with that call. */
export type Fetch<T> = Generator<Question, T, Uint8Array>;

/**
 * Returns when the whole snapshot is durable in `incoming-…`, with its manifest. Throws the reason;
 * what was fetched stays for the next try, unless it is a FailedWrite: then nobody tries again.
 */
export function* fetchSteps(goal: FetchGoal): Fetch<FetchResult> {
  const manifest = yield* askManifest(goal);
  const folder = incomingPlace(goal.dataFolder, manifest.index);
  removeOtherIncoming(goal.dataFolder, manifest.index);
  writing(() => fs.mkdirSync(folder, { recursive: true }));
  let resumed = 0;
  let bytes = 0;
  for (let position = 0; position < manifest.chunks.length; position += 1) {
    if (yield* fetchChunk(folder, manifest, position)) resumed += 1;
    bytes += manifest.chunks[position]!.bytes;
  }
  writeManifest(folder, manifest);
  return { manifest, resumed, bytes };
}

function* askManifest({ clusterId, leastIndex }: FetchGoal): Fetch<SnapshotManifest> {
  const bytes = yield {
    encode: (out) => encodeSnapshotAsk(out, leastIndex, checksum),
    decode: decodeSnapshotTell,
  };
  if (bytes.length === 0) throw new NoSnapshotYet(leastIndex);
  const manifest = decodeManifest(copyOf(bytes, 0, bytes.length));
  if (typeof manifest === 'string') throw new Error(`its manifest ${manifest}`);
  if (!isSameId(manifest.clusterId, clusterId)) throw new Error('of another cluster');
  if (manifest.index < leastIndex) throw new Error(`it offers index ${manifest.index}`);
  return manifest;
}

/** Gets one chunk on disk, unless it is there already. True when it was. */
function* fetchChunk(folder: string, manifest: SnapshotManifest, position: number): Fetch<boolean> {
  const file = chunkFile(folder, position);
  const kept = readChunk(folder, manifest, position);
  if (typeof kept !== 'string') {
    // The process that wrote it may have ended before its sync, or by one that failed: what can be
    // read need not be on the disk, and nobody looks again before the snapshot counts.
    writeDurably(file, kept);
    return true;
  }
  const name = { index: manifest.index, position };
  const chunk = yield {
    encode: (out) => encodeChunkAsk(out, name, checksum),
    decode: (body, start, end) => decodeChunkTell(body, start, end, name),
  };
  // Lent by the socket: written before anything else is read from it.
  if (chunk.length === 0) throw new Error(`its snapshot of index ${manifest.index} is gone`);
  const fault = chunkFault(chunk, manifest.chunks[position]!);
  if (fault !== null) throw new Error(`its ${path.basename(file)} ${fault}`);
  writeDurably(file, chunk);
  return false;
}
