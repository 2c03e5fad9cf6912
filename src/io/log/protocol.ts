/**
 * What the main thread and the log thread say to each other.
 *
 * Owns: the layout of an order in one buffer (fields, then records as they will lie on disk, their
 * checksums still open) and the shapes of the other messages. Never: the channel that carries them.
 * Used by: log.ts (main thread) and log-thread.ts.
 */
import type { EntryKind } from '../../core/raft/message.js';
import { Entry } from '../../core/raft/message.js';
import type { AppendOrder } from '../../replica/ports.js';
import { RECORD_HEADER_BYTES, viewOf, writeHeader } from './record.js';
import { getU64, setU64 } from './u64.js';
import type { LogBase, TermStart } from './verify.js';

/** Offsets in an order; after ORDER_BYTES come u32 length and record, once for each entry. */
const APPEND_ID = 0;
const TRUNCATE_FROM = 8;
const RESET_TO = 16;
const HAS_HARD_STATE = 24;
const TERM = 25;
const VOTED_FOR = 33;
const FIRST_INDEX = 37;
const COUNT = 45;
const ORDER_BYTES = 49;
const LENGTH_BYTES = 4;

/** Main thread to log thread; an order that does not fit the ring goes as its bare buffer. */
export type LogRequest =
  | ArrayBuffer
  | {
      readonly kind: 'read';
      readonly readId: number;
      readonly from: number;
      readonly to: number;
      readonly bytesMax: number;
    }
  | { readonly kind: 'drop'; readonly callId: number; readonly before: number }
  | { readonly kind: 'seal'; readonly callId: number }
  | { readonly kind: 'founding'; readonly callId: number; readonly record: Uint8Array }
  | { readonly kind: 'close' };

/** Records in one buffer, each after its u32 length: the answer to a read. */
export interface PackedRecords {
  readonly first: number;
  readonly count: number;
  readonly bytes: ArrayBuffer;
}

/** Log thread to main thread; durability of everything up to an append id goes as that number. */
export type LogReply =
  | number
  | { readonly kind: 'progress'; readonly index: number }
  | { readonly kind: 'free'; readonly mib: number }
  | ({ readonly kind: 'opened' } & OpenedLog)
  | { readonly kind: 'refused'; readonly code: string; readonly text: string }
  | { readonly kind: 'failed'; readonly text: string }
  | { readonly kind: 'read'; readonly readId: number; readonly records: PackedRecords }
  | { readonly kind: 'done'; readonly callId: number; readonly firstIndex: number };

/** What the log thread found when it opened the folder. */
export interface OpenedLog {
  readonly term: number;
  readonly votedFor: number;
  readonly diskId: Uint8Array;
  readonly founding: Uint8Array | null;
  readonly firstIndex: number;
  readonly lastIndex: number;
  readonly termStarts: readonly TermStart[];
  readonly commitIndex: number;
  readonly tail: PackedRecords;
  readonly freeMib: number;
}

/** What the log thread is started with. */
export interface ThreadOptions {
  readonly folder: string;
  readonly nodeId: number;
  readonly segmentBytesMax: number;
  /** The newest whole snapshot in the folder, null for none: the log goes on from there. */
  readonly snapshot: LogBase | null;
  /** Memory of the ring on which orders come (order-ring.ts). */
  readonly ring: SharedArrayBuffer;
}

/** Bytes that writeOrder writes for `order`. */
export function orderBytes(order: AppendOrder): number {
  const { entries } = order;
  let size = ORDER_BYTES;
  for (let i = 0; i < entries.length; i++) {
    size += LENGTH_BYTES + RECORD_HEADER_BYTES + entries[i]!.data.length;
  }
  return size;
}

/** Lays an order out at `start` of `bytes`, over which `view` lies. */
export function writeOrder(
  bytes: Uint8Array,
  view: DataView,
  start: number,
  order: AppendOrder,
): void {
  const { entries, hardState } = order;
  setU64(view, start + APPEND_ID, order.appendId);
  setU64(view, start + TRUNCATE_FROM, order.truncateFrom);
  setU64(view, start + RESET_TO, order.resetTo);
  view.setUint8(start + HAS_HARD_STATE, hardState === null ? 0 : 1);
  setU64(view, start + TERM, hardState === null ? 0 : hardState.term);
  view.setUint32(start + VOTED_FOR, hardState === null ? 0 : hardState.votedFor);
  setU64(view, start + FIRST_INDEX, entries.length === 0 ? 0 : entries[0]!.index);
  view.setUint32(start + COUNT, entries.length);
  let at = start + ORDER_BYTES;
  for (let i = 0; i < entries.length; i++) {
    const entry = entries[i]!;
    view.setUint32(at, RECORD_HEADER_BYTES + entry.data.length);
    at += LENGTH_BYTES;
    writeHeader(view, at, entry.term, order.commitIndex, entry.kind);
    bytes.set(entry.data, at + RECORD_HEADER_BYTES);
    at += RECORD_HEADER_BYTES + entry.data.length;
  }
}

/** Reads an order's fields, then its records one by one. */
export class OrderReader {
  readonly appendId: number;
  readonly truncateFrom: number;
  readonly resetTo: number;
  readonly hasHardState: boolean;
  readonly term: number;
  readonly votedFor: number;
  readonly firstIndex: number;
  readonly count: number;
  private readonly view: DataView;
  private at = ORDER_BYTES;

  /** @param bytes the order and no more; records are ranges of it */
  constructor(readonly bytes: Uint8Array) {
    const view = viewOf(bytes);
    this.view = view;
    this.appendId = getU64(view, APPEND_ID);
    this.truncateFrom = getU64(view, TRUNCATE_FROM);
    this.resetTo = getU64(view, RESET_TO);
    this.hasHardState = view.getUint8(HAS_HARD_STATE) === 1;
    this.term = getU64(view, TERM);
    this.votedFor = view.getUint32(VOTED_FOR);
    this.firstIndex = getU64(view, FIRST_INDEX);
    this.count = view.getUint32(COUNT);
  }

  /** The next record; call at most `count` times. */
  nextRecord(): Uint8Array {
    const start = this.at + LENGTH_BYTES;
    const length = this.view.getUint32(this.at);
    this.at = start + length;
    return this.bytes.subarray(start, this.at);
  }
}

/** Copies records into one buffer. */
export function packRecords(first: number, records: readonly Uint8Array[]): PackedRecords {
  let size = 0;
  for (const record of records) size += LENGTH_BYTES + record.length;
  const bytes = new Uint8Array(size);
  const view = new DataView(bytes.buffer);
  let at = 0;
  for (const record of records) {
    view.setUint32(at, record.length);
    bytes.set(record, at + LENGTH_BYTES);
    at += LENGTH_BYTES + record.length;
  }
  return { first, count: records.length, bytes: bytes.buffer };
}

/** The entries in `packed`; their data are ranges of its buffer, which they share and keep. */
export function unpackEntries(packed: PackedRecords): Entry[] {
  const view = new DataView(packed.bytes);
  const entries: Entry[] = [];
  let at = 0;
  for (let i = 0; i < packed.count; i++) {
    const length = view.getUint32(at);
    at += LENGTH_BYTES;
    const term = getU64(view, at + 8);
    const kind = view.getUint8(at + 24) as EntryKind;
    const dataAt = at + RECORD_HEADER_BYTES;
    const data = new Uint8Array(packed.bytes, dataAt, length - RECORD_HEADER_BYTES);
    entries.push(new Entry(packed.first + i, term, kind, data));
    at += length;
  }
  return entries;
}
