/**
 * One segment of the log, record by record.
 *
 * Owns: what makes a row of records whole: each with its checksum, indices without a gap, terms
 * that never fall, each naming the checksum of the one before it. The same rules as log/verify.ts
 * has at a start, but it goes on behind a fault and tells all of them. Never: writes.
 * Used by: folder-check.ts, scrub-pass.ts.
 */
import { CHAIN_START, RECORD_HEADER_BYTES, RecordHeader } from '../log/record.js';
import { PageDamage, PageFile } from './page-file.js';

/** A checksum that is not known: the next record is not held against it. */
export const CRC_UNKNOWN = -1;

/** Where a row of records has come to. */
export interface ChainPoint {
  /** Index of the last record. */
  readonly index: number;
  readonly term: number;
  /** Its checksum, or CRC_UNKNOWN. */
  readonly crc: number;
}

/** Before the first record of all. */
export const FOUNDING_POINT: ChainPoint = { index: 0, term: 0, crc: CHAIN_START };

export interface SegmentEvents {
  /** `index`: the record's, 0 where a page has none. */
  onFault(index: number, found: string): void;
  /** A record with a right checksum; `data` is valid during the call. */
  onRecord?(index: number, header: RecordHeader, data: Uint8Array): void;
}

export interface SegmentReading {
  /** The last record of the segment, or the point before it when the segment is empty. */
  readonly end: ChainPoint;
  readonly records: number;
  /** Highest commit hint beside a record, 0 for none. */
  readonly commitIndex: number;
  /** True when damage at its end hides records: those are not to be called missing as well. */
  readonly isEndHidden: boolean;
  /** True when the file was written while it was read: what was found says nothing. */
  readonly hasChanged: boolean;
}

class Row {
  records = 0;
  commitIndex = 0;
  isGapExplained = false;
  private readonly header = new RecordHeader();

  constructor(
    public point: ChainPoint,
    private readonly events: SegmentEvents,
  ) {}

  take(index: number, record: Uint8Array): void {
    const { header, events, point } = this;
    this.records += 1;
    const wanted = point.index + 1;
    const isNext = index === wanted;
    if (index > wanted && !this.isGapExplained) {
      events.onFault(wanted, missingWords(wanted, index - 1));
    } else if (index < wanted) {
      events.onFault(index, `the record is out of place, wanted ${wanted}`);
    }
    this.isGapExplained = false;
    if (!header.tryRead(record)) {
      events.onFault(index, 'the record has a wrong checksum');
      this.point = { index, term: point.term, crc: CRC_UNKNOWN };
      return;
    }
    if (isNext && point.crc !== CRC_UNKNOWN && header.predecessorCrc !== point.crc) {
      events.onFault(index, 'the record does not follow the record before it');
    }
    if (header.term < point.term) {
      events.onFault(index, `the record has term ${header.term} after ${point.term}`);
    }
    this.commitIndex = Math.max(this.commitIndex, header.commitIndex);
    this.point = { index, term: Math.max(header.term, point.term), crc: header.crc };
    events.onRecord?.(index, header, record.subarray(RECORD_HEADER_BYTES));
  }
}

/** Says which records are not there. */
export function missingWords(from: number, to: number): string {
  return from === to ? 'the record is missing' : `the records ${from} to ${to} are missing`;
}

/**
 * Reads the segment in `folder`; a value is the bytes read since the last one, so that the caller
 * can keep to a rate. `before`: the record that the segment's first must follow.
 */
export function* checkSegment(
  folder: string,
  before: ChainPoint,
  events: SegmentEvents,
): Generator<number, SegmentReading> {
  const row = new Row(before, events);
  const reading = (hasChanged: boolean): SegmentReading => {
    const { point: end, records, commitIndex, isGapExplained: isEndHidden } = row;
    return { end, records, commitIndex, isEndHidden, hasChanged };
  };
  let file: PageFile;
  try {
    file = PageFile.open(folder);
  } catch (error) {
    if (!(error instanceof PageDamage)) throw error;
    events.onFault(0, error.message);
    row.isGapExplained = true;
    return reading(false);
  }
  try {
    let told = 0;
    for (const item of file.walk()) {
      if (item.kind === 'damage') {
        const behind = row.records === 0 ? '' : `, behind the record of index ${row.point.index}`;
        events.onFault(0, item.found + behind);
        row.isGapExplained = true;
      } else {
        row.take(item.key, item.value);
      }
      const bytes = file.bytesRead - told;
      if (bytes === 0) continue;
      told = file.bytesRead;
      yield bytes;
    }
    return reading(isChanged(file));
  } finally {
    file.close();
  }
}

/** A file whose meta pages cannot be read any more has changed, whatever it is now. */
function isChanged(file: PageFile): boolean {
  try {
    return file.hasChanged();
  } catch (error) {
    if (error instanceof PageDamage) return true;
    throw error;
  }
}
