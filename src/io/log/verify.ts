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
  isNewest: boolean,
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
  if (segment.last < first && !isNewest) throw corruptLog(place, 'the segment is empty');
  return segment;
}

/**
 * Verifies and opens the log in `folder`, which exists; creates its first segment when it has none.
 * Throws LogError LOG_CORRUPT as described above.
 */
export function openSegmentedLog(
  folder: string,
  segmentBytesMax: number,
  events: VerifyEvents,
): VerifiedLog {
  fs.rmSync(`${folder}/draft`, { recursive: true, force: true });
  let firsts = listSegments(folder);
  if (firsts.length === 0) {
    createSegment(folder, 1, segmentBytesMax).close();
    firsts = [1];
  }
  const verifier = new Verifier(firsts[0]!);
  const segments = firsts.map((first, position) =>
    verifySegment(folder, first, position === firsts.length - 1, verifier, events),
  );
  const log = new SegmentedLog(folder, segments, verifier.lastCrc, segmentBytesMax);
  return { log, termStarts: verifier.termStarts, commitIndex: verifier.commitIndex };
}
