/**
 * Group commit: whatever waits when a commit ends goes into the next one, term and vote first.
 *
 * Owns: the order in which orders and requests reach the disk, what is told when, and how a log is
 * opened. Never: a thread, a channel, a wait, or a retry: an Error thrown from here means that the
 * device failed and that nothing may be written any more (invariant I10).
 * Used by: log-thread.ts on LMDB, and by the simulator on simulated media.
 */
import { LOG_GROUP_BYTES_MAX, LOG_WINDOW_BYTES, LOG_WINDOW_ENTRIES } from '../../limits.js';
import { corruptLog } from './log-error.js';
import { type LogRequest, OrderReader, type PackedRecords, packRecords } from './protocol.js';
import { listSegments } from './segment-files.js';
import type { SegmentedLog } from './segmented-log.js';
import { StateStore } from './state-store.js';
import { type LogBase, openSegmentedLog, type TermStart, type VerifyEvents } from './verify.js';

/** Where orders come from. */
export interface OrderSource {
  /** The next order or request; null when none waits. An order's bytes are lent until release. */
  next(): OrderReader | LogRequest | null;
  /** Every order handed out is on disk. */
  release(): void;
}

/** Who hears of what was carried out. */
export interface GroupEvents {
  /** Called before an order of this many bytes is written; a throw ends the log. */
  beforeWrite(bytes: number): void;
  /** Everything up to this order is on disk. */
  onDurable(appendId: number): void;
  onRead(readId: number, records: PackedRecords): void;
  /** What was asked by this call is done and durable. */
  onDone(callId: number, firstIndex: number): void;
}

export class GroupCommit {
  private durableAppendId = -1;
  private groupBytes = 0;

  constructor(
    private readonly source: OrderSource,
    private readonly events: GroupEvents,
    private readonly state: StateStore,
    private readonly log: SegmentedLog,
  ) {}

  /** Carries out what waits. True: nothing waits any more, all is durable. False: it is closed. */
  run(): boolean {
    for (;;) {
      const item = this.source.next();
      if (item === null) {
        if (this.durableAppendId < 0) return true;
        this.commit();
      } else if (item instanceof OrderReader) this.addOrder(item);
      else if (!this.handle(item)) return false;
      if (this.groupBytes >= LOG_GROUP_BYTES_MAX) this.commit();
    }
  }

  private addOrder(order: OrderReader): void {
    this.events.beforeWrite(order.bytes.length);
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
    this.events.onDurable(this.durableAppendId);
    this.durableAppendId = -1;
    this.groupBytes = 0;
    this.source.release();
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
      const { readId, from, to, bytesMax } = request;
      this.events.onRead(readId, readRecords(this.log, from, to, bytesMax));
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
    this.events.onDone(request.callId, this.log.firstIndex);
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

/** A data folder's log and state, open, and what was learnt from them. */
export interface OpenedFolder {
  readonly state: StateStore;
  readonly log: SegmentedLog;
  readonly termStarts: readonly TermStart[];
  readonly commitIndex: number;
  readonly tail: PackedRecords;
}

export interface FolderOptions {
  /** The data folder; `log/` is in it. */
  readonly folder: string;
  readonly nodeId: number;
  readonly segmentBytesMax: number;
  /** The newest whole snapshot in the folder, null for none. */
  readonly snapshot: LogBase | null;
}

/** Verifies and opens what is in the folder. Throws LogError when it is not whole. */
export function openFolder(options: FolderOptions, events: VerifyEvents): OpenedFolder {
  const { folder, nodeId, segmentBytesMax, snapshot } = options;
  const logFolder = `${folder}/log`;
  const hasLog = listSegments(logFolder).length > 0;
  const state = StateStore.open(folder, nodeId, hasLog || snapshot !== null);
  // A folder that took part has a segment, if an empty one: without it, votes count for nothing.
  if (!hasLog && state.current.founding !== null)
    throw corruptLog(logFolder, 'no segment is there');
  const verified = openSegmentedLog(logFolder, segmentBytesMax, snapshot, events);
  const { log, termStarts, commitIndex } = verified;
  return { state, log, termStarts, commitIndex, tail: readTail(log) };
}
