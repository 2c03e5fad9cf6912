/**
 * Opening a log: every record of every segment is read and checked before the node takes part.
 *
 * Owns: what counts as whole (checksum, chain, consecutive indices, terms that never fall). What is
 * not is refused with LOG_CORRUPT, naming segment and index, at the very end as in the middle: LMDB
 * commits whole records or none, so a bad one may have been acknowledged (docs/decisions/0005).
 * Never: a cut, a repair.
 * Used by: the log thread, once.
 */
import fs from 'node:fs';
import { Environment, findDamage } from './environment.js';
import { corruptLog } from './log-error.js';
import { CHAIN_START, RecordHeader } from './record.js';
import { listSegments, segmentFolder } from './segment-files.js';
import { createSegment, Segment, SegmentedLog, storedBytes } from './segmented-log.js';

/** Records between two reports of progress. */
const PROGRESS_RECORDS = 4_096;

/** Where a new term starts. */
export interface TermStart {
  readonly index: number;
  readonly term: number;
}

/** Where a log begins when it does not begin with index 1: behind a snapshot. */
export interface LogBase {
  readonly index: number;
  readonly term: number;
}

/** Told while a log is verified. */
export interface VerifyEvents {
  /** About every PROGRESS_RECORDS records. */
  onProgress(index: number): void;
}

/** A verified log and what was learnt on the way. */
export interface VerifiedLog {
  readonly log: SegmentedLog;
  readonly termStarts: TermStart[];
  /** Highest commit hint beside an entry, 0 when none. */
  readonly commitIndex: number;
}

class Verifier {
  readonly termStarts: TermStart[] = [];
  readonly header = new RecordHeader();
  commitIndex = 0;
  term = 0;
  lastCrc = CHAIN_START;
  /** Index of the last good record; the next must follow it. */
  last: number;
  /** The chain of the first record is anchored only when nothing was dropped before it. */
  private anchored: boolean;

  constructor(first: number) {
    this.last = first - 1;
    this.anchored = first === 1;
  }

  /** Null when `record` may follow what was seen so far, else what is wrong with it. */
  check(record: Uint8Array): string | null {
    if (!this.header.tryRead(record)) return 'has a wrong checksum';
    if (this.anchored && this.header.predecessorCrc !== this.lastCrc) {
      return 'does not follow the record before it';
    }
    if (this.header.term < this.term) return `has term ${this.header.term} after ${this.term}`;
    return null;
  }

  accept(): void {
    this.last += 1;
    this.anchored = true;
    this.lastCrc = this.header.crc;
    if (this.header.commitIndex > this.commitIndex) this.commitIndex = this.header.commitIndex;
    if (this.header.term === this.term) return;
    this.term = this.header.term;
    this.termStarts.push({ index: this.last, term: this.term });
  }
}

function verifySegment(
  folder: string,
  first: number,
  mayBeEmpty: boolean,
  verifier: Verifier,
  events: VerifyEvents,
): Segment {
  const place = segmentFolder(folder, first);
  if (first !== verifier.last + 1) {
    throw corruptLog(place, `index ${verifier.last + 1} is missing before this segment`);
  }
  const damage = findDamage(place);
  if (damage !== null) throw corruptLog(place, damage);
  const environment = Environment.open(place);
  const segment = new Segment(first, first - 1, 0);
  const keys = environment.keys();
  for (const index of keys) {
    if (index !== verifier.last + 1)
      throw corruptLog(place, `index ${verifier.last + 1} is missing`);
    const record = environment.get(index)!;
    const fault = verifier.check(record);
    if (fault !== null) throw corruptLog(place, `the record of index ${index} ${fault}`);
    verifier.accept();
    segment.last = index;
    segment.bytes += storedBytes(record.length);
    if (index % PROGRESS_RECORDS === 0) events.onProgress(index);
  }
  environment.close();
  if (segment.last < first && !mayBeEmpty) throw corruptLog(place, 'the segment is empty');
  return segment;
}

/** Verified segments, and what was learnt from them. */
interface Verified {
  readonly segments: Segment[];
  readonly verifier: Verifier;
}

/**
 * Verifies segment after segment. A gap that ends within what the snapshot covers was left by an
 * install that a crash cut short: what lies before it is superseded, and dropped.
 */
function verifyAll(
  folder: string,
  firsts: readonly number[],
  baseIndex: number,
  events: VerifyEvents,
): Verified {
  let verifier = new Verifier(firsts[0]!);
  const segments: Segment[] = [];
  for (const [position, first] of firsts.entries()) {
    if (first !== verifier.last + 1 && first <= baseIndex + 1) {
      for (const { first: old } of segments) Environment.delete(segmentFolder(folder, old));
      segments.length = 0;
      verifier = new Verifier(first);
    }
    const next = firsts[position + 1];
    const mayBeEmpty = next === undefined || next <= baseIndex + 1;
    segments.push(verifySegment(folder, first, mayBeEmpty, verifier, events));
  }
  return { segments, verifier };
}

/** The term at `index`, 0 when the log does not hold it. */
function termIn(verifier: Verifier, firstIndex: number, index: number): number {
  if (index < firstIndex || index > verifier.last) return 0;
  let term = 0;
  for (const start of verifier.termStarts) if (start.index <= index) term = start.term;
  return term;
}

/**
 * Verifies and opens the log in `folder`, which exists; creates its first segment when it has none.
 * A log that ends before the snapshot at `base`, or has another term at its index, is from before
 * that snapshot was installed (Raft §7): it is dropped and goes on behind it.
 * Throws LogError LOG_CORRUPT as described above.
 */
export function openSegmentedLog(
  folder: string,
  segmentBytesMax: number,
  base: LogBase | null,
  events: VerifyEvents,
): VerifiedLog {
  fs.rmSync(`${folder}/draft`, { recursive: true, force: true });
  const baseIndex = base === null ? 0 : base.index;
  let firsts = listSegments(folder);
  if (firsts.length === 0) {
    createSegment(folder, baseIndex + 1, segmentBytesMax).close();
    firsts = [baseIndex + 1];
  }
  const { segments, verifier } = verifyAll(folder, firsts, baseIndex, events);
  const log = new SegmentedLog(folder, segments, verifier.lastCrc, segmentBytesMax);
  const { termStarts, commitIndex } = verifier;
  if (base === null || log.firstIndex > baseIndex) return { log, termStarts, commitIndex };
  if (termIn(verifier, log.firstIndex, baseIndex) === base.term) {
    return { log, termStarts, commitIndex };
  }
  log.reset(baseIndex);
  return { log, termStarts: [], commitIndex: baseIndex };
}
