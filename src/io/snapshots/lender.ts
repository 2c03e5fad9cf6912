/**
 * Lends this node's newest snapshot to other members, chunk by chunk.
 *
 * Owns: which snapshot is lent, and when it was last asked for. Reads are asynchronous: a member
 * that fetches costs the event loop no disk time. Never: sockets; never a promise that a snapshot
 * stays: a chunk that is gone is answered as gone. Used by: peer server, server/snapshots.ts.
 */
import fs from 'node:fs/promises';
import { SNAPSHOT_LENT_MS } from '../../limits.js';
import type { ChunkName } from '../../wire/snapshot-talk.js';
import { chunkFile, manifestBody } from './snapshot-files.js';
import { snapshotPlace } from './snapshot-folder.js';

const NOTHING = new Uint8Array(0);

export class SnapshotLender {
  private lentAtMs = Number.NEGATIVE_INFINITY;

  /**
   * `index`: that of the newest snapshot, 0 for none. `nowMs`: elapsed time.
   */
  constructor(
    private readonly dataFolder: string,
    public index: number,
    private readonly nowMs: () => number = () => performance.now(),
  ) {}

  get isLent(): boolean {
    return this.nowMs() - this.lentAtMs < SNAPSHOT_LENT_MS;
  }

  /** Nobody reads it any more. */
  giveBack(): void {
    this.lentAtMs = Number.NEGATIVE_INFINITY;
  }

  /** Folder of the snapshot that is lent to who needs `leastIndex` or later, '' for none. */
  lendManifest(leastIndex: number): string {
    const { index } = this;
    if (index === 0 || index < leastIndex) return '';
    this.lentAtMs = this.nowMs();
    return snapshotPlace(this.dataFolder, index);
  }

  /** File of the chunk that is lent, '' when its snapshot is not the newest any more. */
  lendChunk({ index, position }: ChunkName): string {
    if (index !== this.index) return '';
    this.lentAtMs = this.nowMs();
    return chunkFile(snapshotPlace(this.dataFolder, index), position);
  }

  /** The manifest's bytes, empty when there is no snapshot of `leastIndex` or later. */
  async manifest(leastIndex: number): Promise<Uint8Array> {
    const folder = this.lendManifest(leastIndex);
    return folder === '' ? NOTHING : this.read(() => manifestBody(folder));
  }

  /** The chunk's bytes, empty when it is gone. The receiver checks them against the manifest. */
  async chunk(name: ChunkName): Promise<Uint8Array> {
    const file = this.lendChunk(name);
    return file === '' ? NOTHING : this.read(() => fs.readFile(file));
  }

  private async read(work: () => Promise<Uint8Array>): Promise<Uint8Array> {
    try {
      return await work();
    } catch {
      return NOTHING; // replaced while it was read, or a bad disk: the member asks anew, or another
    }
  }
}
