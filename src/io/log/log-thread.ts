/**
 * The log thread: the only place in the process that opens LMDB, and the only writer of its files.
 *
 * Owns: the channels to the main thread, memory for orders, and the guard against a full disk; what
 * is written in which order is group-commit.ts. Never: a retry. An Error ends it: it tells the main
 * thread and writes nothing any more, since after a failed fsync nobody knows what the disk holds.
 * Started by: log.ts. Speaks: protocol.ts.
 */
import fs from 'node:fs';
import path from 'node:path';
import { parentPort, receiveMessageOnPort, workerData } from 'node:worker_threads';
import { syncFolder } from '../sync-folder.js';
import {
  GroupCommit,
  type GroupEvents,
  type OpenedFolder,
  type OrderSource,
  openFolder,
} from './group-commit.js';
import { LogError } from './log-error.js';
import { RingReader } from './order-ring.js';
import { type LogReply, type LogRequest, OrderReader, type ThreadOptions } from './protocol.js';
import { freeBytesOf, SpaceGuard } from './space-guard.js';

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

/** Orders as they come over the ring, requests as they come over the port. */
class RingSource implements OrderSource {
  private readonly arena = new Arena();
  private readonly ring: RingReader;

  constructor(ring: SharedArrayBuffer) {
    this.ring = new RingReader(ring);
  }

  next(): OrderReader | LogRequest | null {
    const length = this.ring.peek();
    if (length < 0) return null;
    if (length === 0) return this.takeRequest();
    const bytes = this.arena.take(length);
    this.ring.take(bytes);
    return new OrderReader(bytes);
  }

  release(): void {
    this.arena.release();
  }

  /** Sleeps until something has come. */
  wait(): void {
    this.ring.wait();
  }

  private takeRequest(): LogRequest {
    this.ring.takePortFrame();
    const received = receiveMessageOnPort(parentPort!) as { message: LogRequest } | undefined;
    // The main thread posts before it writes the frame, so the message is there.
    if (received === undefined) throw new Error('a request is missing on the port');
    return received.message;
  }
}

/** Tells the main thread what was carried out. */
class PortEvents implements GroupEvents {
  private readonly space: SpaceGuard;

  constructor(folder: string) {
    this.space = new SpaceGuard(folder, freeBytesOf, (mib) => tell({ kind: 'free', mib }));
    this.space.expect(0);
  }

  get freeMib(): number {
    return this.space.toldMib;
  }

  beforeWrite(bytes: number): void {
    this.space.expect(bytes);
  }

  onDurable(appendId: number): void {
    tell(appendId);
  }

  onRead(readId: number, records: OpenedFolder['tail']): void {
    tell({ kind: 'read', readId, records }, [records.bytes]);
  }

  onDone(callId: number, firstIndex: number): void {
    tell({ kind: 'done', callId, firstIndex });
  }
}

function prepareFolders(folder: string): void {
  fs.mkdirSync(path.join(folder, 'log'), { recursive: true });
  syncFolder(folder);
  syncFolder(path.dirname(path.resolve(folder)));
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Opens the folder and tells what was found. Returns what serves it. */
function open(options: ThreadOptions, source: OrderSource): GroupCommit {
  prepareFolders(options.folder);
  const onProgress = (index: number): void => tell({ kind: 'progress', index });
  const { state, log, termStarts, commitIndex, tail } = openFolder(options, { onProgress });
  const events = new PortEvents(options.folder);
  const { term, votedFor, diskId, founding } = state.current;
  const { firstIndex, lastIndex } = log;
  const found = { term, votedFor, diskId, founding, firstIndex, lastIndex };
  const { freeMib } = events;
  tell({ kind: 'opened', ...found, termStarts, commitIndex, tail, freeMib }, [tail.bytes]);
  return new GroupCommit(source, events, state, log);
}

/**
 * Opens the folder and serves it until closed; the main thread learns how it ended. The thread
 * blocks between requests and never comes back to its event loop.
 */
function main(): void {
  const options = workerData as ThreadOptions;
  const source = new RingSource(options.ring);
  let group: GroupCommit;
  try {
    group = open(options, source);
  } catch (error) {
    const code = error instanceof LogError ? error.code : '';
    tell({ kind: 'refused', code, text: describe(error) });
    return;
  }
  try {
    while (group.run()) source.wait();
  } catch (error) {
    tell({ kind: 'failed', text: describe(error) });
  }
}

main();
