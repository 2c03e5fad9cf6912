/**
 * A lock machine from a snapshot's chunks on disk.
 *
 * Owns: the order chunk by chunk, and the last check: the digest of what was built is the one that
 * the manifest names. Never: which snapshot; never a machine that is half built. Used by: the start
 * of a node (at once), an install on a node that serves (in slices), the snapshot worker.
 */
import type { LockMachine } from '../../core/locks/lock-machine.js';
import { MachineRestorer } from '../../core/locks/snapshot-restorer.js';
import { SNAPSHOT_ROWS_AT_ONCE } from '../../limits.js';
import type { SnapshotManifest } from '../../wire/snapshot-manifest.js';
import { readChunk } from './snapshot-files.js';

/** 16 bytes as four big-endian u32: a cluster id as the key of its digests. */
export function wordsOf(bytes: Uint8Array): Uint32Array {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const words = new Uint32Array(4);
  for (let i = 0; i < 4; i += 1) words[i] = view.getUint32(i * 4);
  return words;
}

/** The machine, or in words why there is none. */
export type Restored = LockMachine | string;

/**
 * Builds the machine a slice at a time: a value `null` asks to be called again, whenever the caller
 * has time. The last value is the machine, or what is wrong.
 */
export function* restoreSlices(
  folder: string,
  manifest: SnapshotManifest,
  hashSeeds: Uint32Array,
): Generator<null, Restored> {
  const restorer = new MachineRestorer(wordsOf(manifest.clusterId), hashSeeds);
  for (let position = 0; position < manifest.chunks.length; position += 1) {
    const chunk = readChunk(folder, manifest, position);
    if (typeof chunk === 'string') return chunk;
    restorer.add(chunk);
    while (!restorer.step(SNAPSHOT_ROWS_AT_ONCE)) yield null;
    yield null;
  }
  const machine = restorer.finish();
  if (machine === null) return restorer.fault;
  if (machine.appliedIndex !== manifest.index) return `is of index ${machine.appliedIndex}`;
  const digest = machine.digest();
  return digest === manifest.digest ? machine : `has digest ${digest}, wanted ${manifest.digest}`;
}

/** The same at once: where nobody waits for the thread. */
export function restoreNow(
  folder: string,
  manifest: SnapshotManifest,
  hashSeeds: Uint32Array,
): Restored {
  const slices = restoreSlices(folder, manifest, hashSeeds);
  for (;;) {
    const { done, value } = slices.next();
    if (done) return value;
  }
}
