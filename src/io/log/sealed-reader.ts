/**
 * Reads the sealed segments of a log from another thread than the one that writes it.
 *
 * Owns: the walk over segments by their names, and the check of each record it hands out (checksum,
 * chain). Never: the newest segment, which is being written; whoever asks has had the log sealed
 * behind the last index that it wants. Used by: the snapshot worker, verification of a folder.
 */
import { Environment, findDamage } from './environment.js';
import { corruptLog } from './log-error.js';
import { RECORD_HEADER_BYTES, RecordHeader } from './record.js';
import { listSegments, segmentFolder } from './segment-files.js';

/** Hears of each entry in order; `data` is valid during the call. */
export type EntryVisitor = (index: number, term: number, data: Uint8Array) => void;

/**
 * Calls `visit` with the entries `from` … `to`. Throws LogError LOG_CORRUPT, naming the place, when
 * one of them is missing or damaged.
 */
export function readSealed(logFolder: string, from: number, to: number, visit: EntryVisitor): void {
  const header = new RecordHeader();
  const firsts = listSegments(logFolder);
  let index = from;
  let lastCrc = -1;
  for (const [position, first] of firsts.entries()) {
    const next = firsts[position + 1] ?? Number.POSITIVE_INFINITY;
    if (next <= index || first > to) continue;
    const place = segmentFolder(logFolder, first);
    const damage = findDamage(place);
    if (damage !== null) throw corruptLog(place, damage);
    const environment = Environment.openToRead(place);
    try {
      for (; index <= to && index < next; index += 1) {
        const record = environment.get(index);
        if (record === null) throw corruptLog(place, `the record of index ${index} is missing`);
        const isSound = header.tryRead(record);
        if (!isSound || (lastCrc >= 0 && header.predecessorCrc !== lastCrc)) {
          throw corruptLog(place, `the record of index ${index} is damaged`);
        }
        lastCrc = header.crc;
        visit(index, header.term, record.subarray(RECORD_HEADER_BYTES));
      }
    } finally {
      environment.endReads();
      environment.close();
    }
  }
  if (index <= to) throw corruptLog(logFolder, `the record of index ${index} is missing`);
}
