/**
 * The log thread: the only place in the process that opens LMDB, and the only writer of its files.
 *
 * Owns: group commit (whatever is queued when a commit ends goes into the next one, term and vote
 * first), reads for followers, and the guard against a full disk. Never: a retry. An Error ends it:
 * it tells the main thread and writes nothing any more, since after a failed fsync nobody knows
 * what the disk holds. Started by: log.ts. Speaks: protocol.ts.
 */
import fs from 'node:fs';
import path from 'node:path';
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { LOG_GROUP_BYTES_MAX, LOG_WINDOW_BYTES, LOG_WINDOW_ENTRIES } from '../../limits.js';
import { syncFolder } from '../sync-folder.js';
import { corruptLog, LogError } from './log-error.js';
import { RingReader } from './order-ring.js';
import {
  type LogReply,
  type LogRequest,
  OrderReader,
  type PackedRecords,
  packRecords,
  type ThreadOptions,
} from './protocol.js';
import { listSegments } from './segment-files.js';
import type { SegmentedLog } from './segmented-log.js';
import { freeBytesOf, SpaceGuard } from './space-guard.js';
import { StateStore } from './state-store.js';
import { openSegmentedLog, type VerifiedLog } from './verify.js';

/** Memory for orders between two commits; what does not fit is allocated. */
const ARENA_BYTES = 4 << 20;

function tell(reply: LogReply, transfer: ArrayBuffer[] = []): void {
  parentPort!.postMessage(reply, transfer);
}

/** Memory for the orders of one group, used again for the next. */
class Arena {
  private readonly bytes = new Uint8Array(ARENA_BYTES);
  private used = 0;

  /** Room for `length` bytes until release(). */
  take(length: number): Uint8Array {
    if (this.used + length > this.bytes.length) return new Uint8Array(length);
    this.used += length;
    return this.bytes.subarray(this.used - length, this.used);
  }

  /** The orders of the group are on disk: LMDB has copied them. */
  release(): void {
    this.used = 0;
  }
}

/** Serves one data folder. */
class LogThread {
  private readonly space: SpaceGuard;
  private readonly arena = new Arena();
  private readonly ring: RingReader;
  private durableAppendId = -1;
  private groupBytes = 0;

  constructor(
    options: ThreadOptions,
    private readonly state: StateStore,
    private readonly log: SegmentedLog,
  ) {
    this.ring = new RingReader(options.ring);
    this.space = new SpaceGuard(options.folder, freeBytesOf, (mib) => tell({ kind: 'free', mib }));
    this.space.expect(0);
  }

  get freeMib(): number {
    return this.space.toldMib;
  }

  /** Carries out what comes over the ring until it is told to close. */
  serve(): void {
    for (;;) {
      const length = this.ring.peek();
      if (length < 0) this.rest();
      else if (length > 0) this.addOrder(this.takeOrder(length));
      else if (!this.handle(this.takeRequest())) return;
      if (this.groupBytes >= LOG_GROUP_BYTES_MAX) this.commit();
    }
  }

  /** Commits what is queued; sleeps only when nothing came meanwhile. */
  private rest(): void {
    if (this.durableAppendId < 0) this.ring.wait();
    else this.commit();
  }

  private takeOrder(length: number): OrderReader {
    const bytes = this.arena.take(length);
    this.ring.take(bytes);
    return new OrderReader(bytes);
  }

  private takeRequest(): LogRequest {
    this.ring.takePortFrame();
    const received = receiveMessageOnPort(parentPort!) as { message: LogRequest } | undefined;
    // The main thread posts before it writes the frame, so the message is there.
    if (received === undefined) throw new Error('a request is missing on the port');
    return received.message;
  }

  private addOrder(order: OrderReader): void {
    this.space.expect(order.bytes.length);
    this.groupBytes += order.bytes.length;
    // Term and vote are durable before anything that they allow (Raft §5.2), a cut included.
    if (order.hasHardState) this.state.saveHardState(order.term, order.votedFor);
    if (order.resetTo !== 0) this.log.reset(order.resetTo);
    if (order.truncateFrom !== 0) this.log.truncate(order.truncateFrom);
    for (let i = 0; i < order.count; i++) {
      this.log.append(order.firstIndex + i, order.nextRecord());
    }
    this.durableAppendId = order.appendId;
  }

  private commit(): void {
    if (this.durableAppendId < 0) return;
    this.log.commit();
    tell(this.durableAppendId);
    this.durableAppendId = -1;
    this.groupBytes = 0;
    this.arena.release();
  }

  /** False: closed. */
  private handle(request: LogRequest): boolean {
    if (request instanceof ArrayBuffer) {
      this.addOrder(new OrderReader(new Uint8Array(request)));
      return true;
    }
    // Requests are carried out in the order they came: what was appended before is committed.
    this.commit();
    if (request.kind === 'read') {
      const records = readRecords(this.log, request.from, request.to, request.bytesMax);
      tell({ kind: 'read', readId: request.readId, records }, [records.bytes]);
      return true;
    }
    if (request.kind === 'close') {
      this.log.close();
      this.state.close();
      return false;
    }
    if (request.kind === 'drop') this.log.dropBefore(request.before);
    else if (request.kind === 'seal') this.log.seal();
    else this.state.saveFounding(request.record);
    tell({ kind: 'done', callId: request.callId, firstIndex: this.log.firstIndex });
    return true;
  }
}

/** Records from `from` on, at least one if it is there, until `bytesMax` or `to`. */
function readRecords(log: SegmentedLog, from: number, to: number, bytesMax: number): PackedRecords {
  const records: Uint8Array[] = [];
  let bytes = 0;
  log.read(from, to, (_index, record) => {
    if (records.length > 0 && bytes + record.length > bytesMax) return false;
    records.push(record.slice());
    bytes += record.length;
    return true;
  });
  return packRecords(from, records);
}

/** The newest records, as many as a replica keeps in memory. */
function readTail(log: SegmentedLog): PackedRecords {
  let from = log.lastIndex + 1;
  let bytes = 0;
  const records: Uint8Array[] = [];
  while (from > log.firstIndex && records.length < LOG_WINDOW_ENTRIES) {
    let record = new Uint8Array(0);
    log.read(from - 1, from - 1, (_index, found) => {
      record = found.slice();
      return true;
    });
    bytes += record.length;
    if (bytes > LOG_WINDOW_BYTES && records.length > 0) break;
    records.push(record);
    from -= 1;
  }
  return packRecords(from, records.reverse());
}

function prepareFolders(folder: string): string {
  const logFolder = path.join(folder, 'log');
  fs.mkdirSync(logFolder, { recursive: true });
  syncFolder(folder);
  syncFolder(path.dirname(path.resolve(folder)));
  return logFolder;
}

function open(options: ThreadOptions): LogThread {
  const { folder, nodeId, segmentBytesMax, snapshot } = options;
  const logFolder = prepareFolders(folder);
  const hasLog = listSegments(logFolder).length > 0;
  const state = StateStore.open(folder, nodeId, hasLog || snapshot !== null);
  // A folder that took part has a segment, if an empty one: without it, votes count for nothing.
  if (!hasLog && state.current.founding !== null)
    throw corruptLog(logFolder, 'no segment is there');
  const verified: VerifiedLog = openSegmentedLog(logFolder, segmentBytesMax, snapshot, {
    onProgress: (index) => tell({ kind: 'progress', index }),
  });
  const { log, termStarts, commitIndex } = verified;
  const tail = readTail(log);
  const { term, votedFor, diskId, founding } = state.current;
  const { firstIndex, lastIndex } = log;
  const thread = new LogThread(options, state, log);
  const found = { term, votedFor, diskId, founding, firstIndex, lastIndex };
  const { freeMib } = thread;
  tell({ kind: 'opened', ...found, termStarts, commitIndex, tail, freeMib }, [tail.bytes]);
  return thread;
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/**
 * Opens the folder and serves it until closed; the main thread learns how it ended. The thread
 * blocks between requests and never comes back to its event loop.
 */
function main(): void {
  let thread: LogThread;
  try {
    thread = open(workerData as ThreadOptions);
  } catch (error) {
    const code = error instanceof LogError ? error.code : '';
    tell({ kind: 'refused', code, text: describe(error) });
    return;
  }
  try {
    thread.serve();
  } catch (error) {
    tell({ kind: 'failed', text: describe(error) });
  }
}

main();
