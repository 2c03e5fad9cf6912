/**
 * The jobs of a node's snapshots as steps: which follow which, and what counts when.
 *
 * Owns: which steps make a snapshot count (sealed, made, judged by the replica, renamed, then log
 * and older snapshots dropped) and which make a fetched one count (on disk, built, its digest
 * right, renamed). Never: waits or carries out a step; who drives a job does, and throws into it
 * what failed. Driven by: snapshots.ts on worker threads, by the simulator on simulated media.
 */
import { FailedWrite } from '../io/failed-write.js';
import type { FetchResult } from '../io/peers/snapshot-fetch.js';
import type { SnapshotLender } from '../io/snapshots/lender.js';
import { restoreSlices } from '../io/snapshots/restore.js';
import { incomingPlace } from '../io/snapshots/snapshot-folder.js';
import type { Logger } from '../observe/logger.js';
import type { SnapshotEvents } from '../replica/ports.js';
import type { CompactionResult } from '../workers/compaction.js';
import type { FolderJob } from '../workers/pool.js';

/** What takes time. */
export type Step =
  /** Everything ordered so far is durable, in segments that are written no more. */
  | { readonly kind: 'seal' }
  /** Gives a CompactionResult. */
  | { readonly kind: 'compact'; readonly index: number; readonly baseIndex: number }
  | { readonly kind: 'folder'; readonly job: FolderJob; readonly index: number }
  /** Gives the first index that is left. */
  | { readonly kind: 'drop'; readonly before: number }
  /** Snapshots before the one at `index` are needed no more to start from. */
  | { readonly kind: 'retire'; readonly index: number }
  /** Gives a FetchResult. */
  | { readonly kind: 'fetch'; readonly nodeId: number; readonly leastIndex: number }
  /** Whatever else waits for this thread goes first. */
  | { readonly kind: 'rest' };

/** A job: a value is a step to carry out, whose result comes back with the next call. */
export type Job = Generator<Step, void, unknown>;

export interface JobOptions {
  readonly dataFolder: string;
  /** Two u32 that only this node knows. */
  readonly hashSeeds: Uint32Array;
  readonly lender: SnapshotLender;
  readonly events: SnapshotEvents;
  readonly logger: Pick<Logger, 'info' | 'warn' | 'error'>;
  /** A fetched snapshot counts: what came before it is not known here. */
  readonly onInstalled: () => void;
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/**
 * Makes a draft of the state at `index`. A failure is told, and tried again later; a failed write
 * ends the job with it, and the node (I10).
 */
export function* makeDraft(options: JobOptions, index: number): Job {
  const { lender, events, logger } = options;
  yield { kind: 'seal' };
  let made: CompactionResult;
  try {
    made = (yield { kind: 'compact', index, baseIndex: lender.index }) as CompactionResult;
  } catch (error) {
    if (error instanceof FailedWrite) throw error;
    logger.error({ index, reason: describe(error) }, 'a snapshot could not be made');
    events.onDraft(null);
    return;
  }
  const { bytes, entries, manifest } = made;
  const replayMs = Math.round(made.replayMs);
  const writeMs = Math.round(made.writeMs);
  logger.info({ index, bytes, entries, replayMs, writeMs }, 'made a snapshot');
  events.onDraft({ index, digest: manifest.digest, bytes });
}

/** The draft counts from its rename on; what it stands for goes only then. */
export function* keepDraft(options: JobOptions, index: number, logFrom: number): Job {
  const { lender, events } = options;
  yield { kind: 'folder', job: 'publishDraft', index };
  lender.index = index;
  const firstIndex = (yield { kind: 'drop', before: logFrom }) as number;
  yield { kind: 'retire', index };
  events.onKept(index, firstIndex);
}

export function* discardDraft(options: JobOptions, index: number, digest: string): Job {
  const text = 'a snapshot does not agree with the live state: it is discarded, the log is kept';
  options.logger.error({ index, digest }, text);
  yield { kind: 'folder', job: 'discardDraft', index };
  options.events.onDiscarded();
}

/** Fetches the snapshot of `nodeId`, builds its machine, and makes it count. Fails as makeDraft. */
export function* fetchNewest(options: JobOptions, nodeId: number, leastIndex: number): Job {
  const { events, logger } = options;
  let fetched: FetchResult;
  try {
    fetched = (yield { kind: 'fetch', nodeId, leastIndex }) as FetchResult;
  } catch (error) {
    if (error instanceof FailedWrite) throw error;
    logger.warn({ from: nodeId, reason: describe(error) }, 'a snapshot could not be fetched');
    events.onFetched(null);
    return;
  }
  yield* restoreFetched(options, fetched);
}

function* restoreFetched(options: JobOptions, { manifest, resumed, bytes }: FetchResult): Job {
  const { dataFolder, lender, hashSeeds, logger, events, onInstalled } = options;
  const { index, term } = manifest;
  const slices = restoreSlices(incomingPlace(dataFolder, index), manifest, hashSeeds);
  let slice = slices.next();
  for (; slice.done !== true; slice = slices.next()) yield { kind: 'rest' };
  const machine = slice.value;
  if (typeof machine === 'string') {
    logger.error({ index, reason: machine }, 'a snapshot that was fetched is not sound');
    yield { kind: 'folder', job: 'discardFetched', index };
    events.onFetched(null);
    return;
  }
  yield { kind: 'folder', job: 'publishFetched', index };
  lender.index = index;
  onInstalled();
  const chunks = manifest.chunks.length;
  logger.info({ index, bytes, chunks, resumed }, 'fetched a snapshot');
  events.onFetched({ index, term, bytes, machine });
}
