/**
 * The HistoryPort of a node: events that have left memory, from the log and snapshots on disk.
 *
 * Owns: the thread that reads (started when it is needed, ended when idle), up to where the log is
 * sealed for it, and what of log and snapshots is kept behind the newest snapshot. Never: on the
 * way of a commit; a history that is damaged is given up, told, and begins anew. Made by: node.ts.
 */
import { Worker } from 'node:worker_threads';
import type { Settings } from '../core/locks/settings.js';
import { type HistoryShape, readHistory, wipeHistory } from '../io/history/history-folder.js';
import { HISTORY_IDLE_MS } from '../limits.js';
import type { Logger } from '../observe/logger.js';
import type { HistoryEvents, HistoryPort, HistoryRequest } from '../replica/ports.js';
import type { HistoryReaderOptions } from '../workers/history-reader.js';
import type { HistoryQuestion, HistoryReport } from '../workers/history-thread.js';
import type { WorkerPool } from '../workers/pool.js';

export interface NodeHistoryOptions {
  readonly dataFolder: string;
  readonly clusterId: Uint8Array;
  /** Settings of the founding record. */
  readonly settings: Settings;
  readonly log: { seal(): Promise<void> };
  readonly pool: Pick<WorkerPool, 'keepSegments' | 'keepSnapshots' | 'run'>;
  /** Bytes kept behind the newest snapshot; 0: none. */
  readonly bytesMax: number;
  readonly logger: Logger;
  /** HISTORY_IDLE_MS by default. */
  readonly idleMs?: number;
}

export class NodeHistory implements HistoryPort {
  oldestRevision: number;
  /** Bytes kept behind the newest snapshot. */
  bytes: number;
  /** It could not be read, and nothing was kept since. */
  isGivenUp = false;
  private worker: Worker | null = null;
  private idle: NodeJS.Timeout | null = null;
  private readonly asked = new Set<number>();
  private sealedIndex = 0;
  private sealedRevision = 0;
  private sealing: Promise<void> = Promise.resolve();
  private isClosed = false;

  constructor(
    private readonly options: NodeHistoryOptions,
    private readonly events: HistoryEvents,
  ) {
    const shape = readHistory(options.dataFolder);
    this.oldestRevision = oldestOf(shape);
    this.bytes = shape.bytes;
  }

  read(request: HistoryRequest): void {
    const { readId } = request;
    this.asked.add(readId);
    this.ask(request).catch((error: unknown) => {
      if (!this.isClosed) throw error;
    });
  }

  /** The log is about to drop what lies before `index`. What cannot be kept is given up aloud. */
  async beforeDrop(index: number): Promise<void> {
    const { pool, dataFolder, bytesMax } = this.options;
    if (bytesMax === 0) return;
    await pool.keepSegments({ dataFolder, index }).catch((error: unknown) => this.lose(error));
  }

  /** The snapshot at `index` counts: those before it are history, or go. */
  async afterDrop(index: number): Promise<void> {
    const { pool, dataFolder, bytesMax } = this.options;
    try {
      this.take(await pool.keepSnapshots({ dataFolder, index, bytesMax }));
    } catch (error) {
      this.lose(error);
      await pool.run('removeBefore', { dataFolder, index });
      this.take(readHistory(dataFolder));
    }
  }

  /** The state is another node's from here on: what came before it is not known here. */
  onInstalled(): void {
    const { dataFolder } = this.options;
    this.endWorker();
    wipeHistory(dataFolder);
    this.sealedIndex = 0;
    this.sealedRevision = 0;
    // The log is reset behind the snapshot only after this: what it still has counts no more.
    const newest = readHistory(dataFolder).bases.at(-1);
    this.oldestRevision = (newest?.revision ?? 0) + 1;
    this.bytes = 0;
    this.isGivenUp = false;
  }

  close(): void {
    this.isClosed = true;
    this.endWorker();
  }

  private take(shape: HistoryShape): void {
    this.oldestRevision = oldestOf(shape);
    this.bytes = shape.bytes;
    this.isGivenUp = false;
  }

  private async ask(request: HistoryRequest): Promise<void> {
    const { readId, from, prefix, limit, appliedIndex, revision } = request;
    if (from > this.sealedRevision) await this.sealUpTo(appliedIndex, revision);
    if (this.isClosed || !this.asked.has(readId)) return;
    const { sealedIndex } = this;
    const question: HistoryQuestion = { readId, ask: { from, prefix, limit, sealedIndex } };
    this.thread().postMessage(question);
  }

  /** What is applied was handed to the log before: once it is sealed, all of it can be read. */
  private async sealUpTo(index: number, revision: number): Promise<void> {
    this.sealing = this.sealing.then(() => this.options.log.seal());
    await this.sealing;
    this.sealedIndex = Math.max(this.sealedIndex, index);
    this.sealedRevision = Math.max(this.sealedRevision, revision);
  }

  private thread(): Worker {
    if (this.idle !== null) clearTimeout(this.idle);
    this.idle = null;
    if (this.worker !== null) return this.worker;
    const { dataFolder, clusterId, settings } = this.options;
    const workerData: HistoryReaderOptions = { dataFolder, clusterId, settings };
    const worker = new Worker(new URL('../workers/history-thread.js', import.meta.url), {
      workerData,
    });
    worker.on('message', (report: HistoryReport) => {
      if (worker === this.worker) this.onReport(report);
    });
    worker.on('error', (error) => {
      if (worker === this.worker) this.giveUp(error.message);
    });
    this.worker = worker;
    return worker;
  }

  private onReport({ readId, answer, fault }: HistoryReport): void {
    if (fault !== '') {
      wipeHistory(this.options.dataFolder);
      this.bytes = 0;
      this.giveUp(fault);
      return;
    }
    this.asked.delete(readId);
    if (this.asked.size === 0) {
      const idleMs = this.options.idleMs ?? HISTORY_IDLE_MS;
      this.idle = setTimeout(() => this.endWorker(), idleMs);
      this.idle.unref();
    }
    this.events.onHistory(readId, answer);
  }

  /** The history begins with the newest snapshot: what lies before it could not be read. */
  private giveUp(reason: string): void {
    const { dataFolder, logger } = this.options;
    logger.error(
      { reason },
      'the history cannot be read: it is given up, the state is not touched',
    );
    this.isGivenUp = true;
    const newest = readHistory(dataFolder).bases.at(-1);
    this.oldestRevision = (newest?.revision ?? 0) + 1;
    this.endWorker();
  }

  /** It cannot be kept, on a disk without second names for instance: locks do not depend on it. */
  private lose(error: unknown): void {
    const reason = error instanceof Error ? error.message : String(error);
    if (this.isClosed) return;
    try {
      wipeHistory(this.options.dataFolder);
    } catch (fault) {
      this.options.logger.warn({ reason: String(fault) }, 'what is left of the history stays');
    }
    this.giveUp(reason);
  }

  /** Who still waits is told that it is not there. */
  private endWorker(): void {
    if (this.idle !== null) clearTimeout(this.idle);
    this.idle = null;
    const { worker } = this;
    this.worker = null;
    void worker?.terminate();
    const owed = [...this.asked];
    this.asked.clear();
    if (this.isClosed) return;
    for (const readId of owed) this.events.onHistory(readId, null);
  }
}

/** The first revision that can be replayed. */
function oldestOf({ bases }: HistoryShape): number {
  return (bases[0]?.revision ?? Number.MAX_SAFE_INTEGER - 1) + 1;
}
