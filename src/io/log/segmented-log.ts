/**
 * The log of one replica on disk: consecutive records over a row of segments.
 *
 * Owns: which record lies in which segment, the chain of checksums at its end, rolling, cutting and
 * dropping. Never: the decision what to cut or drop, promises, or a retry after an error: an Error
 * thrown from here means that the device failed and the node must end (invariant I10).
 * Used by: the log thread. Opening is in verify.ts.
 */
import { Environment } from './environment.js';
import { corruptLog } from './log-error.js';
import { CHAIN_START, RecordHeader, sealRecord } from './record.js';
import { segmentFolder } from './segment-files.js';

/** Bytes that LMDB needs beside a value: key, node and page headers. */
const VALUE_OVERHEAD_BYTES = 40;
const PAGE_BYTES = 4_096;
/** Values above about half a page get pages of their own. */
const INLINE_BYTES_MAX = 2_000;

/** Bytes that a record of this length takes in its segment, about. */
export function storedBytes(recordBytes: number): number {
  if (recordBytes <= INLINE_BYTES_MAX) return recordBytes + VALUE_OVERHEAD_BYTES;
  return Math.ceil((recordBytes + VALUE_OVERHEAD_BYTES) / PAGE_BYTES) * PAGE_BYTES;
}

/** One segment: records `first` … `last`; last is first - 1 while it is empty. */
export class Segment {
  constructor(
    readonly first: number,
    public last: number,
    public bytes: number,
  ) {}
}

/** A record that waits for the next commit. */
interface Pending {
  readonly index: number;
  readonly record: Uint8Array;
}

export class SegmentedLog {
  private active: Environment;
  private reader: Environment | null = null;
  private readonly pending: Pending[] = [];
  private readonly header = new RecordHeader();

  /**
   * @param folder holds the segments
   * @param segments ascending and consecutive, at least one
   * @param lastCrc checksum of the last record, CHAIN_START without one
   * @param segmentBytesMax bytes after which the next record begins a new segment
   */
  constructor(
    private readonly folder: string,
    private readonly segments: Segment[],
    private lastCrc: number,
    private readonly segmentBytesMax: number,
  ) {
    this.active = Environment.open(segmentFolder(folder, this.newest.first));
  }

  get firstIndex(): number {
    return this.segments[0]!.first;
  }

  /** Index of the last record, the pending ones included. */
  get lastIndex(): number {
    return this.newest.last;
  }

  get segmentCount(): number {
    return this.segments.length;
  }

  /**
   * Adds the record of `index`; it is durable after commit. The record's checksums are set here.
   */
  append(index: number, record: Uint8Array): void {
    if (index !== this.lastIndex + 1) {
      throw new Error(`append index ${index}, wanted ${this.lastIndex + 1}`);
    }
    if (this.newest.bytes >= this.segmentBytesMax) this.roll(index);
    this.lastCrc = sealRecord(record, this.lastCrc);
    this.pending.push({ index, record });
    this.newest.last = index;
    this.newest.bytes += storedBytes(record.length);
  }

  /** Makes everything appended durable, in one transaction. */
  commit(): void {
    if (this.pending.length === 0) return;
    this.active.commit(() => {
      for (const { index, record } of this.pending) this.active.put(index, record);
    });
    this.pending.length = 0;
  }

  /**
   * Cuts the records from `from` on, newest segment first, so that a crash in between leaves a
   * shorter log and never one with a gap. Durable when it returns. The oldest segment stays, empty:
   * its name says where the log goes on.
   */
  truncate(from: number): void {
    if (from > this.lastIndex) return;
    if (from < this.firstIndex) {
      throw new Error(`truncate from ${from}, wanted at least ${this.firstIndex}`);
    }
    this.commit();
    this.closeReader();
    while (this.segments.length > 1 && this.newest.first >= from) this.removeNewest();
    if (this.newest.last >= from) this.removeRecords(from);
    this.lastCrc = from > this.firstIndex ? this.crcOf(from - 1) : CHAIN_START;
  }

  /**
   * Drops everything: a snapshot at `base` stands for it, and the next record is that of base + 1.
   * Newest first, and never without a segment. A crash on the way leaves records of before `base`
   * with a gap behind them, or none that reaches it: opening finishes the work.
   */
  reset(base: number): void {
    this.commit();
    this.closeReader();
    while (this.segments.length > 1) this.removeNewest();
    const oldest = this.newest;
    if (oldest.last >= oldest.first) this.removeRecords(oldest.first);
    this.lastCrc = CHAIN_START;
    if (oldest.first === base + 1) return;
    this.roll(base + 1);
    this.segments.shift();
    Environment.delete(segmentFolder(this.folder, oldest.first));
  }

  /** Begins a new segment: every record so far lies in one that is not written any more. */
  seal(): void {
    if (this.newest.last >= this.newest.first) this.roll(this.lastIndex + 1);
  }

  /** Unlinks every segment whose records all lie before `index`; the newest always stays. */
  dropBefore(index: number): void {
    this.closeReader();
    while (this.segments.length > 1 && this.segments[0]!.last < index) {
      const oldest = this.segments.shift()!;
      Environment.delete(segmentFolder(this.folder, oldest.first));
    }
  }

  /**
   * Calls `visit` with the records `from` … `to` in order, until `visit` answers false. The bytes
   * are valid during the call. Indices outside the log are passed over: they were cut or dropped.
   * Throws LogError LOG_CORRUPT when a record is missing or its checksum is wrong.
   */
  read(from: number, to: number, visit: (index: number, record: Uint8Array) => boolean): void {
    const last = Math.min(to, this.lastIndex);
    for (let index = from; index <= last && index >= this.firstIndex; index++) {
      const record = this.environmentOf(index).get(index);
      if (record === null || !this.header.tryRead(record)) {
        const found = record === null ? 'is missing' : 'has a wrong checksum';
        throw corruptLog(this.folder, `the record of index ${index} ${found}`);
      }
      if (!visit(index, record)) break;
    }
    this.active.endReads();
    this.reader?.endReads();
  }

  close(): void {
    this.closeReader();
    this.active.close();
  }

  private get newest(): Segment {
    return this.segments[this.segments.length - 1]!;
  }

  private roll(first: number): void {
    this.commit();
    this.active.close();
    this.active = createSegment(this.folder, first, this.segmentBytesMax);
    this.segments.push(new Segment(first, first - 1, 0));
  }

  private removeNewest(): void {
    const removed = this.segments.pop()!;
    this.active.close();
    Environment.delete(segmentFolder(this.folder, removed.first));
    this.active = Environment.open(segmentFolder(this.folder, this.newest.first));
  }

  private removeRecords(from: number): void {
    const segment = this.newest;
    this.active.commit(() => {
      for (let index = from; index <= segment.last; index++) this.active.delete(index);
    });
    segment.last = from - 1;
    // Freed pages are used again: the count errs to the high side, except where it must be right,
    // since a full segment without a record could not be told from the next by its name.
    if (segment.last < segment.first) segment.bytes = 0;
  }

  private crcOf(index: number): number {
    let crc = CHAIN_START;
    this.read(index, index, () => {
      crc = this.header.crc;
      return true;
    });
    return crc;
  }

  private environmentOf(index: number): Environment {
    const segment = this.segmentOf(index);
    if (segment === this.newest) return this.active;
    const folder = segmentFolder(this.folder, segment.first);
    if (this.reader?.folder !== folder) {
      this.closeReader();
      this.reader = Environment.open(folder);
    }
    return this.reader!;
  }

  private segmentOf(index: number): Segment {
    let position = this.segments.length - 1;
    while (this.segments[position]!.first > index) position -= 1;
    return this.segments[position]!;
  }

  private closeReader(): void {
    this.reader?.close();
    this.reader = null;
  }
}

/** Creates the segment whose first record will be `first`. */
export function createSegment(folder: string, first: number, segmentBytesMax: number): Environment {
  return Environment.create(segmentFolder(folder, first), segmentBytesMax);
}
