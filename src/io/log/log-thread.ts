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
import {
  LOG_FREE_BYTES_MIN,
  LOG_GROUP_BYTES_MAX,
  LOG_WINDOW_BYTES,
  LOG_WINDOW_ENTRIES,
} from '../../limits.js';
import { syncFolder } from './environment.js';
import { LogError } from './log-error.js';
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
import { StateStore } from './state-store.js';
import { openSegmentedLog, type VerifiedLog } from './verify.js';

/** Bytes written, and ms, after which free space is asked for again. */
const SPACE_CHECK_BYTES = 1 << 20;
const SPACE_CHECK_MS = 200;
const MIB = 1 << 20;

function tell(reply: LogReply, transfer: ArrayBuffer[] = []): void {
  parentPort!.postMessage(reply, transfer);
}

/** Knows how much room the disk has, without asking at every commit. */
class SpaceGuard {
  private freeBytes = 0;
  private writtenBytes = 0;
  private askedAt = -Infinity;
  /** Free space as last told to the main thread. */
  toldMib = 0;

  constructor(private readonly folder: string) {}

  /** Throws when fewer than LOG_FREE_BYTES_MIN would be left after writing `bytes`. */
  expect(bytes: number): void {
    this.writtenBytes += bytes;
    const now = performance.now();
    if (this.writtenBytes >= SPACE_CHECK_BYTES || now - this.askedAt >= SPACE_CHECK_MS) {
      this.ask(now);
    }
    if (this.freeBytes - bytes >= LOG_FREE_BYTES_MIN) return;
    throw new Error(
      `free space on the disk of ${this.folder}: the log stops at ${LOG_FREE_BYTES_MIN} bytes ` +
        `free, there are ${this.freeBytes}`,
    );
  }

  private ask(now: number): void {
    const { bavail, bsize } = fs.statfsSync(this.folder);
    this.freeBytes = bavail * bsize;
    this.writtenBytes = 0;
    this.askedAt = now;
    const mib = Math.floor(this.freeBytes / MIB);
    if (mib === this.toldMib) return;
    this.toldMib = mib;
    tell({ kind: 'free', mib });
  }
}

/** Serves one data folder. */
class LogThread {
  private readonly space: SpaceGuard;
  private durableAppendId = -1;
  private groupBytes = 0;

  constructor(
    folder: string,
    private readonly state: StateStore,
    private readonly log: SegmentedLog,
  ) {
    this.space = new SpaceGuard(folder);
    this.space.expect(0);
  }

  get freeMib(): number {
    return this.space.toldMib;
  }

  /** Handles `first` and all that is queued behind it. False: closed. */
  serve(first: LogRequest): boolean {
    let request: LogRequest | undefined = first;
    while (request !== undefined) {
      if (request instanceof ArrayBuffer) this.addOrder(new OrderReader(request));
      else if (!this.handle(request)) return false;
      if (this.groupBytes >= LOG_GROUP_BYTES_MAX) this.commit();
      request = nextRequest();
      if (request !== undefined) continue;
      this.commit();
      request = nextRequest();
    }
    return true;
  }

  private addOrder(order: OrderReader): void {
    this.space.expect(order.bytes);
    this.groupBytes += order.bytes;
    // Term and vote are durable before anything that they allow (Raft §5.2), a cut included.
    if (order.hasHardState) this.state.saveHardState(order.term, order.votedFor);
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
  }

  private handle(request: Exclude<LogRequest, ArrayBuffer>): boolean {
    // Requests are carried out in the order they came: what was appended before is committed.
    this.commit();
    if (request.kind === 'read') {
      const records = readRecords(this.log, request.from, request.to, request.bytesMax);
      tell({ kind: 'read', readId: request.readId, records }, [records.bytes]);
      return true;
    }
    if (request.kind === 'drop') this.log.dropBefore(request.before);
    else if (request.kind === 'founding') this.state.saveFounding(request.record);
    else {
      this.log.close();
      this.state.close();
      return false;
    }
    tell({ kind: 'done', callId: request.callId });
    return true;
  }
}

function nextRequest(): LogRequest | undefined {
  return (receiveMessageOnPort(parentPort!) as { message: LogRequest } | undefined)?.message;
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
  const { folder, nodeId, segmentBytesMax } = options;
  const logFolder = prepareFolders(folder);
  const state = StateStore.open(folder, nodeId, listSegments(logFolder).length > 0);
  const verified: VerifiedLog = openSegmentedLog(logFolder, segmentBytesMax, {
    onProgress: (index) => tell({ kind: 'progress', index }),
    onNote: (text) => tell({ kind: 'note', text }),
  });
  const { log, termStarts, commitIndex } = verified;
  const tail = readTail(log);
  const { term, votedFor, diskId, founding } = state.current;
  const { firstIndex, lastIndex } = log;
  const thread = new LogThread(folder, state, log);
  const found = { term, votedFor, diskId, founding, firstIndex, lastIndex };
  const { freeMib } = thread;
  tell({ kind: 'opened', ...found, termStarts, commitIndex, tail, freeMib }, [tail.bytes]);
  return thread;
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Opens the folder and serves requests until closed; the main thread learns how it ended. */
function main(): void {
  let thread: LogThread;
  try {
    thread = open(workerData as ThreadOptions);
  } catch (error) {
    const code = error instanceof LogError ? error.code : '';
    tell({ kind: 'refused', code, text: describe(error) });
    return;
  }
  let failed = false;
  parentPort!.on('message', (request: LogRequest) => {
    if (failed) return;
    try {
      if (!thread.serve(request)) parentPort!.close();
    } catch (error) {
      failed = true;
      tell({ kind: 'failed', text: describe(error) });
    }
  });
}

main();
