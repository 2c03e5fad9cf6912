/**
 * The SnapshotPort of a node: its jobs in order, over the log, the worker pool and the files.
 *
 * Owns: how each step of a job is carried out, and waited for. Never: which steps there are
 * (snapshot-jobs.ts), when, or whether a digest is right; the replica decides. A job that fails
 * before its rename is told and tried again later; after it, or by a failed write, the node ends.
 * Made by: node.ts.
 */
import { setImmediate as rest } from 'node:timers/promises';
import type { Settings } from '../core/locks/settings.js';
import type { LmdbLog } from '../io/log/log.js';
import type { PeerAddress } from '../io/peers/founding-client.js';
import type { FetchResult } from '../io/peers/snapshot-fetch.js';
import { SNAPSHOT_CHUNK_BYTES } from '../limits.js';
import type { SnapshotEvents, SnapshotPort } from '../replica/ports.js';
import type { PeerHello } from '../wire/peer.js';
import type { WorkerPool } from '../workers/pool.js';
import type { NodeHistory } from './history.js';
import {
  discardDraft,
  fetchNewest,
  type Job,
  type JobOptions,
  keepDraft,
  makeDraft,
  type Step,
} from './snapshot-jobs.js';

export interface NodeSnapshotsOptions extends Omit<JobOptions, 'events' | 'onInstalled'> {
  readonly clusterId: Uint8Array;
  /** Settings of the founding record. */
  readonly settings: Settings;
  readonly log: LmdbLog;
  readonly pool: WorkerPool;
  /** What becomes of log and snapshots that are not needed any more. */
  readonly history: Pick<NodeHistory, 'beforeDrop' | 'afterDrop' | 'onInstalled'>;
  readonly hello: PeerHello;
  /** Where a member is reached, null for a node that is none. */
  readonly addressOf: (nodeId: number) => PeerAddress | null;
}

export class NodeSnapshots implements SnapshotPort {
  private isClosed = false;
  private jobsUnderWay = 0;
  private readonly jobs: JobOptions;

  constructor(
    private readonly options: NodeSnapshotsOptions,
    events: SnapshotEvents,
  ) {
    this.jobs = { ...options, events, onInstalled: () => options.history.onInstalled() };
  }

  get isLent(): boolean {
    return this.options.lender.isLent;
  }

  /** True while a snapshot is made, kept or fetched. */
  get isBusy(): boolean {
    return this.jobsUnderWay > 0;
  }

  make(index: number): void {
    this.begin(makeDraft(this.jobs, index));
  }

  keep(index: number, logFrom: number): void {
    this.begin(keepDraft(this.jobs, index, logFrom));
  }

  discard(index: number, digest: string): void {
    this.begin(discardDraft(this.jobs, index, digest));
  }

  fetch(nodeId: number, index: number): void {
    this.begin(fetchNewest(this.jobs, nodeId, index));
  }

  /** Waits for nothing: what is not whole counts for nothing. */
  async close(): Promise<void> {
    this.isClosed = true;
    await this.options.pool.close();
  }

  /** A job that fails when its node closes has failed for that reason. */
  private begin(job: Job): void {
    this.jobsUnderWay += 1;
    this.drive(job)
      .catch((error: unknown) => {
        if (!this.isClosed) throw error;
      })
      .finally(() => {
        this.jobsUnderWay -= 1;
      });
  }

  /** Carries out one step after the other; a job whose node closes is left where it is. */
  private async drive(job: Job): Promise<void> {
    let next = job.next();
    while (next.done !== true) {
      const result = await this.carryOut(next.value).then(
        (value) => () => job.next(value),
        (error: unknown) => () => job.throw(error),
      );
      if (this.isClosed) return;
      next = result();
    }
  }

  private async carryOut(step: Step): Promise<unknown> {
    const { dataFolder, clusterId, settings, log, pool, history } = this.options;
    switch (step.kind) {
      case 'seal':
        return log.seal();
      case 'compact': {
        const { index, baseIndex } = step;
        const chunkBytes = SNAPSHOT_CHUNK_BYTES;
        return pool.compact({ dataFolder, index, baseIndex, clusterId, settings, chunkBytes });
      }
      case 'folder':
        return pool.run(step.job, { dataFolder, index: step.index });
      case 'drop':
        await history.beforeDrop(step.before);
        return log.dropBefore(step.before);
      case 'retire':
        return history.afterDrop(step.index);
      case 'fetch':
        return this.download(step.nodeId, step.leastIndex);
      case 'rest':
        return rest();
    }
  }

  private async download(nodeId: number, leastIndex: number): Promise<FetchResult> {
    const { dataFolder, hello, pool, addressOf, logger } = this.options;
    const address = addressOf(nodeId);
    if (address === null) throw new Error(`node ${nodeId} is no member`);
    logger.info({ from: nodeId, leastIndex }, 'fetching a snapshot');
    return pool.fetch({ dataFolder, address, hello, leastIndex });
  }
}
