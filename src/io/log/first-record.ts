/**
 * A log that begins with one entry, on a disk that nobody has open yet.
 *
 * Owns: the first segment of a folder that is made whole before a node ever sees it. Never: a log
 * that is there. Used by: server/new-cluster.ts.
 */
import type { Entry } from '../../core/raft/message.js';
import { SEGMENT_BYTES_MAX } from '../../limits.js';
import { CHAIN_START, RECORD_HEADER_BYTES, sealRecord, viewOf, writeHeader } from './record.js';
import { createSegment } from './segmented-log.js';

/** Makes the log in `folder`, which exists and is empty; durable when it returns. */
export function writeFirstRecord(folder: string, entry: Entry, commitIndex: number): void {
  const { index, term, kind, data } = entry;
  const record = new Uint8Array(RECORD_HEADER_BYTES + data.length);
  writeHeader(viewOf(record), 0, term, commitIndex, kind);
  record.set(data, RECORD_HEADER_BYTES);
  sealRecord(record, CHAIN_START);
  const segment = createSegment(folder, index, SEGMENT_BYTES_MAX);
  segment.commit(() => segment.put(index, record));
  segment.close();
}
