/**
 * Walks over the entries of history and log, one at a time, on a thread that only reads.
 *
 * Owns: the segment that is open, and the check of each record (checksum, chain). A segment that
 * was dropped from the log while it is open stays readable. Never: the newest segment, which is
 * being written: whoever asks has had the log sealed behind the last index that it wants.
 * Used by: workers/history-reader.ts.
 */
import { Environment, findDamage } from '../log/environment.js';
import { corruptLog } from '../log/log-error.js';
import { RECORD_HEADER_BYTES, RecordHeader } from '../log/record.js';
import { historySegments } from './history-folder.js';

export class SealedWalk {
  private readonly header = new RecordHeader();
  private environment: Environment | null = null;
  private place = '';
  /** First index of the segment after the open one. */
  private until = 0;
  private lastCrc = -1;

  /** `index`: that of the entry before the first one wanted. */
  constructor(
    private readonly dataFolder: string,
    public index: number,
  ) {}

  /** The data of the next entry, valid until the next call. Throws LogError without one. */
  next(): Uint8Array {
    const index = this.index + 1;
    if (this.environment === null || index >= this.until) this.open(index);
    const environment = this.environment as unknown as Environment;
    const record = environment.get(index);
    if (record === null) throw corruptLog(this.place, `the record of index ${index} is missing`);
    const { header } = this;
    const isSound = header.tryRead(record);
    if (!isSound || (this.lastCrc >= 0 && header.predecessorCrc !== this.lastCrc)) {
      throw corruptLog(this.place, `the record of index ${index} is damaged`);
    }
    this.lastCrc = header.crc;
    this.index = index;
    return record.subarray(RECORD_HEADER_BYTES);
  }

  close(): void {
    this.environment?.endReads();
    this.environment?.close();
    this.environment = null;
  }

  private open(index: number): void {
    this.close();
    const segments = [...historySegments(this.dataFolder)];
    const at = segments.findLastIndex(([first]) => first <= index);
    const segment = segments[at];
    if (segment === undefined) {
      throw corruptLog(this.dataFolder, `the record of index ${index} is missing`);
    }
    const [, place] = segment;
    const damage = findDamage(place);
    if (damage !== null) throw corruptLog(place, damage);
    this.environment = Environment.openToRead(place);
    this.place = place;
    this.until = segments[at + 1]?.[0] ?? Number.POSITIVE_INFINITY;
  }
}
