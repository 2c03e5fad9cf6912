/**
 * The threads for long work: at most one job at a time, at a lower priority than the node's own.
 *
 * Owns: the pool (piscina) and its bounds. A thread that is idle ends, so that its memory, as large
 * as the state, is not kept between two snapshots. Never: a job's meaning. The only file that
 * imports piscina. Used by: the server's snapshots.
 */
import { Piscina } from 'piscina';
import { receivedFrom, type Written } from '../io/failed-write.js';
import type { HistoryShape } from '../io/history/history-folder.js';
import type { FetchTask } from '../io/peers/snapshot-client.js';
import type { FetchResult } from '../io/peers/snapshot-fetch.js';
import type { CompactionResult, CompactionTask } from './compaction.js';
import type { HistoryBound, SnapshotName } from './jobs.js';

/** Jobs that wait; more would mean that somebody asks twice. */
const QUEUE_MAX = 4;
/** An idle thread ends after this long. */
const IDLE_MS = 1_000;
/** The scheduler prefers the threads that serve. */
const NICE = 10;

/** Jobs on a snapshot that give nothing back. */
export type FolderJob =
  | 'publishDraft'
  | 'publishFetched'
  | 'discardDraft'
  | 'discardFetched'
  | 'removeBefore';

export class WorkerPool {
  private readonly pool = new Piscina({
    filename: new URL('./jobs.js', import.meta.url).href,
    minThreads: 0,
    maxThreads: 1,
    maxQueue: QUEUE_MAX,
    idleTimeout: IDLE_MS,
    niceIncrement: NICE,
  });

  /** Makes a draft; rejects with the reason when there is none: FailedWrite for the disk's. */
  async compact(task: CompactionTask): Promise<CompactionResult> {
    return receivedFrom(
      (await this.pool.run(task, { name: 'compact' })) as Written<CompactionResult>,
    );
  }

  /** Fetches another member's snapshot; rejects as compact does when it is not whole. */
  async fetch(task: FetchTask): Promise<FetchResult> {
    return receivedFrom((await this.pool.run(task, { name: 'fetch' })) as Written<FetchResult>);
  }

  /** Keeps the log before an index, which is about to be dropped, for history. */
  async keepSegments(name: SnapshotName): Promise<void> {
    await this.pool.run(name, { name: 'keepSegments' });
  }

  /** Keeps the snapshots before an index for history, within a bound; gives what is left. */
  keepSnapshots(bound: HistoryBound): Promise<HistoryShape> {
    return this.pool.run(bound, { name: 'keepSnapshots' }) as Promise<HistoryShape>;
  }

  /** Resolves when the job is done, durably; rejects with the system's error. */
  async run(job: FolderJob, name: SnapshotName): Promise<void> {
    await this.pool.run(name, { name: job });
  }

  /** Ends every thread, also one that works: a draft that is not whole counts for nothing. */
  async close(): Promise<void> {
    await this.pool.destroy();
  }
}
