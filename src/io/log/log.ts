/**
 * The durable log of one replica, as the main thread sees it: orders go to the log thread, and
 * word of their durability comes back.
 *
 * Owns: the thread, the folder lock, the watchdog, and the orders not yet durable. Never: LMDB, or
 * a failure as a value: when the device fails, the process ends by SIGKILL (invariant I10).
 * Made by: server. Used by: replica, through LogPort.
 */
import { Worker } from 'node:worker_threads';
import {
  LOG_APPENDS_MAX,
  LOG_SILENCE_MS_MAX,
  LOG_WINDOW_BYTES,
  SEGMENT_BYTES_MAX,
} from '../../limits.js';
import type { AppendOrder, LogEvents, LogPort, LogState } from '../../replica/ports.js';
import type { SnapshotManifest } from '../../wire/snapshot-manifest.js';
import { openSnapshots } from '../snapshots/snapshot-folder.js';
import { FolderLock } from './folder-lock.js';
import { isUnfinished, makeFolders } from './folders.js';
import { LogError, LogErrorCode } from './log-error.js';
import { makeRing, RingWriter } from './order-ring.js';
import {
  type LogReply,
  type LogRequest,
  type OpenedLog,
  orderBytes,
  type ThreadOptions,
  unpackEntries,
  writeOrder,
} from './protocol.js';
import { endProcess, Watchdog, writeLastWords } from './watchdog.js';

export interface LogOptions {
  /** Data folder of the node; made when it is not there. */
  readonly folder: string;
  /** 1 …; a folder of another node is refused. */
  readonly nodeId: number;
  /** Called once, just before the process ends by SIGKILL because the device failed. */
  onFatal(reason: string): void;
  /** What an operator should read: the progress of a long verification. */
  onNote?(text: string): void;
  /** Bytes of one segment, SEGMENT_BYTES_MAX by default. */
  readonly segmentBytesMax?: number;
  /** Ms after which a silent disk ends the process, LOG_SILENCE_MS_MAX by default. */
  readonly silenceMsMax?: number;
}

/** Who this data folder belongs to. */
export interface NodeIdentity {
  readonly nodeId: number;
  /** 16 random bytes, drawn when the folder was first opened. */
  readonly diskId: Uint8Array;
  /** The founding record, null until storeFounding. */
  readonly founding: Uint8Array | null;
}

export interface OpenedLogPort {
  readonly log: LmdbLog;
  readonly state: LogState;
  readonly identity: NodeIdentity;
  /** The newest whole snapshot in the folder, null for none. */
  readonly snapshot: SnapshotManifest | null;
}

const NO_EVENTS: LogEvents = {
  onDurable: () => undefined,
  onRead: () => undefined,
};

/** The log of one data folder. Made by openLog. */
export class LmdbLog implements LogPort {
  private events: LogEvents = NO_EVENTS;
  private readonly watchdog: Watchdog;
  /** The last order given, and the last one known to be durable. */
  private askedAppendId = -1;
  private durableAppendId = -1;
  private callId = 0;
  private readonly calls = new Map<number, (firstIndex: number) => void>();
  private onClosed: (() => void) | null = null;
  private isEnding = false;

  constructor(
    private readonly worker: Worker,
    private readonly ring: RingWriter,
    private readonly lock: FolderLock,
    private readonly options: LogOptions,
    private free: number,
  ) {
    const silenceMsMax = options.silenceMsMax ?? LOG_SILENCE_MS_MAX;
    this.watchdog = new Watchdog(silenceMsMax, (ms) => {
      this.end(`the log has not answered for ${ms} ms`);
    });
    worker.on('message', (reply: LogReply) => this.onReply(reply));
    worker.on('error', (error) => this.end(`the log thread failed: ${error.message}`));
    worker.on('exit', () => this.onExit());
  }

  /** Who is told of durability and of reads; set before the first append. */
  setEvents(events: LogEvents): void {
    this.events = events;
  }

  append(order: AppendOrder): void {
    const { appendId } = order;
    if (this.askedAppendId >= 0 && appendId !== this.askedAppendId + 1) {
      throw new Error(`append id ${appendId}, wanted ${this.askedAppendId + 1}`);
    }
    if (this.askedAppendId < 0) this.durableAppendId = appendId - 1;
    if (appendId - this.durableAppendId > LOG_APPENDS_MAX) {
      throw new Error(`orders not yet durable: more than ${LOG_APPENDS_MAX}`);
    }
    this.askedAppendId = appendId;
    this.watchdog.onAsked();
    const length = orderBytes(order);
    const at = this.ring.tryBegin(length);
    if (at >= 0) {
      writeOrder(this.ring.bytes, this.ring.view, at, order);
      this.ring.end();
      return;
    }
    const bytes = new Uint8Array(length);
    writeOrder(bytes, new DataView(bytes.buffer), 0, order);
    this.worker.postMessage(bytes.buffer, [bytes.buffer]);
    this.ring.putPortFrame();
  }

  read(readId: number, fromIndex: number, toIndex: number, bytesMax: number): void {
    this.ask({ kind: 'read', readId, from: fromIndex, to: toIndex, bytesMax });
  }

  /**
   * Unlinks the segments that hold only entries before `index`; resolves, when they are gone, with
   * the first index that is left.
   */
  dropBefore(index: number): Promise<number> {
    return this.call((callId) => ({ kind: 'drop', callId, before: index }));
  }

  /**
   * Resolves when everything ordered so far is durable and lies in segments that are written no
   * more: another thread may read them.
   */
  async seal(): Promise<void> {
    await this.call((callId) => ({ kind: 'seal', callId }));
  }

  /** Stores the founding record beside term and vote; resolves when it is durable. */
  async storeFounding(record: Uint8Array): Promise<void> {
    await this.call((callId) => ({ kind: 'founding', callId, record }));
  }

  /** Free space on the log's disk in MiB, as of the last few commits. */
  freeMiB(): number {
    return this.free;
  }

  /** Carries out what was ordered, then closes the files and gives the folder back. */
  async close(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.onClosed = resolve;
      this.ask({ kind: 'close' });
    });
    this.watchdog.stop();
    await this.lock.release();
  }

  private ask(request: Exclude<LogRequest, ArrayBuffer>): void {
    this.watchdog.onAsked();
    this.worker.postMessage(request);
    this.ring.putPortFrame();
  }

  /** Resolves with the first index stored, once the thread has done what was asked. */
  private call(make: (callId: number) => Exclude<LogRequest, ArrayBuffer>): Promise<number> {
    this.callId += 1;
    const { callId } = this;
    return new Promise((resolve) => {
      this.calls.set(callId, resolve);
      this.ask(make(callId));
    });
  }

  private onReply(reply: LogReply): void {
    if (typeof reply === 'number') {
      this.watchdog.onAnswered(reply - this.durableAppendId);
      this.durableAppendId = reply;
      this.events.onDurable(reply);
    } else if (reply.kind === 'free') {
      this.free = reply.mib;
    } else if (reply.kind === 'read') {
      this.watchdog.onAnswered(1);
      this.events.onRead(reply.readId, unpackEntries(reply.records));
    } else if (reply.kind === 'done') {
      this.watchdog.onAnswered(1);
      this.calls.get(reply.callId)?.(reply.firstIndex);
      this.calls.delete(reply.callId);
    } else if (reply.kind === 'failed') {
      this.end(reply.text);
    }
  }

  private onExit(): void {
    if (this.onClosed === null) this.end('the log thread has ended');
    else this.onClosed();
  }

  /** The end of the node: nothing more may be promised. */
  private end(reason: string): void {
    if (this.isEnding) return;
    this.isEnding = true;
    const text = `node ${this.options.nodeId} ends: ${reason}`;
    writeLastWords(text);
    try {
      this.options.onFatal(reason);
    } finally {
      endProcess('killed by its own log (see above)');
    }
  }
}

function stateOf(opened: OpenedLog): LogState {
  const { term, votedFor, firstIndex, lastIndex, termStarts, commitIndex } = opened;
  const tail = unpackEntries(opened.tail);
  return { hardState: { term, votedFor }, firstIndex, lastIndex, termStarts, tail, commitIndex };
}

/** Resolves with what the thread found, rejects with a LogError when it refused. */
function awaitOpened(worker: Worker, options: LogOptions): Promise<OpenedLog> {
  return new Promise((resolve, reject) => {
    const onError = (error: Error) => {
      reject(new LogError(LogErrorCode.ThreadFailed, `the log thread failed: ${error.message}`));
    };
    const onExit = () => onError(new Error('it ended before the log was open'));
    const onMessage = (reply: LogReply) => {
      if (typeof reply === 'number') return;
      if (reply.kind === 'progress') options.onNote?.(`verified the log up to ${reply.index}`);
      if (reply.kind !== 'opened' && reply.kind !== 'refused') return;
      worker.off('error', onError).off('exit', onExit).off('message', onMessage);
      if (reply.kind === 'opened') return resolve(reply);
      const code = (reply.code || LogErrorCode.ThreadFailed) as LogErrorCode;
      reject(new LogError(code, reply.text));
    };
    worker.on('error', onError).on('exit', onExit).on('message', onMessage);
  });
}

/** Makes the data folder. Throws LogError FOLDER_UNUSABLE with the system's code. */
function makeDataFolder(folder: string): void {
  if (isUnfinished(folder)) {
    const text = `Delete ${folder}, and restore again: a restore was cut off before it was whole.`;
    throw new LogError(LogErrorCode.FolderUnusable, text);
  }
  try {
    makeFolders(folder);
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    const text = `Choose another data folder: ${folder} cannot be made (${code}).`;
    throw new LogError(LogErrorCode.FolderUnusable, text);
  }
}

/**
 * Opens the log in `options.folder`: locks the folder, starts the log thread, verifies everything.
 * Rejects with LogError FOLDER_UNUSABLE, FOLDER_LOCKED, FOLDER_FOREIGN, STATE_CORRUPT, LOG_CORRUPT,
 * THREAD_FAILED.
 */
export async function openLog(options: LogOptions): Promise<OpenedLogPort> {
  makeDataFolder(options.folder);
  const lock = await FolderLock.take(options.folder);
  const segmentBytesMax = options.segmentBytesMax ?? SEGMENT_BYTES_MAX;
  const { folder, nodeId } = options;
  const ring = makeRing();
  const snapshot = openSnapshots(folder, (text) => options.onNote?.(text));
  const base = snapshot && { index: snapshot.index, term: snapshot.term };
  const threadOptions: ThreadOptions = { folder, nodeId, segmentBytesMax, snapshot: base, ring };
  const worker = new Worker(new URL('./log-thread.js', import.meta.url), {
    workerData: threadOptions,
    // The tail of the log and a read answer are all that lives on the thread's heap.
    resourceLimits: { maxOldGenerationSizeMb: Math.ceil(LOG_WINDOW_BYTES >> 20) * 8 },
  });
  try {
    const opened = await awaitOpened(worker, options);
    const log = new LmdbLog(worker, new RingWriter(ring), lock, options, opened.freeMib);
    const { diskId, founding } = opened;
    return { log, state: stateOf(opened), identity: { nodeId, diskId, founding }, snapshot };
  } catch (error) {
    await worker.terminate();
    await lock.release();
    throw error;
  }
}
