/**
 * The SnapshotPort of a node: its jobs in order, over the log, the worker pool and the files.
 *
 * Owns: which steps make a snapshot count (sealed, made, judged by the replica, renamed, then log
 * and older snapshots dropped) and which make a fetched one count (on disk, built, its digest
 * right, renamed). Never: when, or whether a digest is right; the replica decides. A job that fails
 * before its rename is told and tried again later; after it, the node ends. Made by: node.ts.
 */
import type { Settings } from '../core/locks/settings.js';
import type { LmdbLog } from '../io/log/log.js';
import type { PeerAddress } from '../io/peers/founding-client.js';
import type { FetchResult } from '../io/peers/snapshot-client.js';
import type { SnapshotLender } from '../io/snapshots/lender.js';
import { type Restored, restoreSlices } from '../io/snapshots/restore.js';
import { incomingPlace } from '../io/snapshots/snapshot-folder.js';
import { SNAPSHOT_CHUNK_BYTES } from '../limits.js';
import type { Logger } from '../observe/logger.js';
import type { SnapshotEvents, SnapshotPort } from '../replica/ports.js';
import type { PeerHello } from '../wire/peer.js';
import type { WorkerPool } from '../workers/pool.js';
import type { NodeHistory } from './history.js';

export interface NodeSnapshotsOptions {
  readonly dataFolder: string;
  readonly clusterId: Uint8Array;
  /** Settings of the founding record. */
  readonly settings: Settings;
  /** Two u32 that only this node knows. */
  readonly hashSeeds: Uint32Array;
  readonly log: LmdbLog;
  readonly pool: WorkerPool;
  readonly lender: SnapshotLender;
  /** What becomes of log and snapshots that are not needed any more. */
  readonly history: Pick<NodeHistory, 'beforeDrop' | 'afterDrop' | 'onInstalled'>;
  readonly hello: PeerHello;
  /** Where a member is reached, null for a node that is none. */
  readonly addressOf: (nodeId: number) => PeerAddress | null;
  readonly logger: Logger;
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

export class NodeSnapshots implements SnapshotPort {
  private isClosed = false;

  constructor(
    private readonly options: NodeSnapshotsOptions,
    private readonly events: SnapshotEvents,
  ) {}

  get isLent(): boolean {
    return this.options.lender.isLent;
  }

  make(index: number): void {
    this.begin(() => this.makeDraft(index));
  }

  keep(index: number, logFrom: number): void {
    this.begin(() => this.keepDraft(index, logFrom));
  }

  discard(index: number, digest: string): void {
    const text = 'a snapshot does not agree with the live state: it is discarded, the log is kept';
    this.options.logger.error({ index, digest }, text);
    this.begin(async () => {
      const { pool, dataFolder } = this.options;
      await pool.run('discardDraft', { dataFolder, index });
      this.events.onDiscarded();
    });
  }

  fetch(nodeId: number, index: number): void {
    this.begin(() => this.fetchFrom(nodeId, index));
  }

  /** Waits for nothing: what is not whole counts for nothing. */
  async close(): Promise<void> {
    this.isClosed = true;
    await this.options.pool.close();
  }

  /** A job that fails when its node closes has failed for that reason. */
  private begin(job: () => Promise<void>): void {
    job().catch((error: unknown) => {
      if (!this.isClosed) throw error;
    });
  }

  private async makeDraft(index: number): Promise<void> {
    const { dataFolder, clusterId, settings, log, pool, lender, logger } = this.options;
    await log.seal();
    const task = { dataFolder, index, baseIndex: lender.index, clusterId, settings };
    const made = await pool
      .compact({ ...task, chunkBytes: SNAPSHOT_CHUNK_BYTES })
      .catch((error: unknown) => describe(error));
    if (this.isClosed) return;
    if (typeof made === 'string') {
      logger.error({ index, reason: made }, 'a snapshot could not be made');
      this.events.onDraft(null);
      return;
    }
    const { bytes, entries, manifest } = made;
    const replayMs = Math.round(made.replayMs);
    const writeMs = Math.round(made.writeMs);
    logger.info({ index, bytes, entries, replayMs, writeMs }, 'made a snapshot');
    this.events.onDraft({ index, digest: manifest.digest, bytes });
  }

  private async keepDraft(index: number, logFrom: number): Promise<void> {
    const { dataFolder, log, pool, lender, history } = this.options;
    await pool.run('publishDraft', { dataFolder, index });
    lender.index = index;
    await history.beforeDrop(logFrom);
    const firstIndex = await log.dropBefore(logFrom);
    await history.afterDrop(index);
    if (!this.isClosed) this.events.onKept(index, firstIndex);
  }

  private async fetchFrom(nodeId: number, leastIndex: number): Promise<void> {
    const { logger } = this.options;
    const fetched = await this.download(nodeId, leastIndex);
    if (this.isClosed) return;
    if (typeof fetched === 'string') {
      logger.warn({ from: nodeId, reason: fetched }, 'a snapshot could not be fetched');
      this.events.onFetched(null);
      return;
    }
    await this.restoreFetched(fetched);
  }

  private async download(nodeId: number, leastIndex: number): Promise<FetchResult | string> {
    const { dataFolder, hello, pool, addressOf, logger } = this.options;
    const address = addressOf(nodeId);
    if (address === null) return `node ${nodeId} is no member`;
    logger.info({ from: nodeId, leastIndex }, 'fetching a snapshot');
    try {
      return await pool.fetch({ dataFolder, address, hello, leastIndex });
    } catch (error) {
      return describe(error);
    }
  }

  private async restoreFetched({ manifest, resumed, bytes }: FetchResult): Promise<void> {
    const { dataFolder, pool, lender, hashSeeds, logger } = this.options;
    const { index, term } = manifest;
    const folder = incomingPlace(dataFolder, index);
    const machine = await inSlices(restoreSlices(folder, manifest, hashSeeds));
    if (this.isClosed) return;
    if (typeof machine === 'string') {
      logger.error({ index, reason: machine }, 'a snapshot that was fetched is not sound');
      await pool.run('discardFetched', { dataFolder, index });
      this.events.onFetched(null);
      return;
    }
    await pool.run('publishFetched', { dataFolder, index });
    lender.index = index;
    this.options.history.onInstalled();
    const chunks = manifest.chunks.length;
    logger.info({ index, bytes, chunks, resumed }, 'fetched a snapshot');
    if (!this.isClosed) this.events.onFetched({ index, term, bytes, machine });
  }
}

/** Goes through the slices with everything else that the node does in between. */
function inSlices(slices: Generator<null, Restored>): Promise<Restored> {
  return new Promise((resolve, reject) => {
    const step = (): void => {
      try {
        const { done, value } = slices.next();
        if (done) resolve(value);
        else setImmediate(step);
      } catch (error) {
        reject(error as Error);
      }
    };
    step();
  });
}
