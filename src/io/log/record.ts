/**
 * The record of one log entry on disk: a header of 25 bytes, then the entry's data.
 *
 * Owns: its layout, for ever: u32 crc of all that follows, u32 crc of the record before it (the
 * chain), u64 term, u64 commit hint, u8 kind, data. All big-endian; the key is the index as u64.
 * Never: I/O. Used by: the log thread, and by the main thread, which lays records out in orders.
 */
import { crc32 } from 'node:zlib';
import { getU64, setU64 } from './u64.js';

const CHAIN = 4;
const TERM = 8;
const COMMIT = 16;
const KIND = 24;

/** Bytes of a record before the entry's data. */
export const RECORD_HEADER_BYTES = 25;

/** The chain value of the first record of all: nothing comes before it. */
export const CHAIN_START = 0;

/** A view over `record`'s bytes and no others. */
export function viewOf(record: Uint8Array): DataView {
  return new DataView(record.buffer, record.byteOffset, record.byteLength);
}

/** Writes a header at `offset` of `view`, its two checksums still open. */
export function writeHeader(
  view: DataView,
  offset: number,
  term: number,
  commitIndex: number,
  kind: number,
): void {
  setU64(view, offset + TERM, term);
  setU64(view, offset + COMMIT, commitIndex);
  view.setUint8(offset + KIND, kind);
}

/** Completes a record whose header and data are written. Returns its checksum. */
export function sealRecord(record: Uint8Array, predecessorCrc: number): number {
  const view = viewOf(record);
  view.setUint32(CHAIN, predecessorCrc);
  const crc = crc32(record.subarray(CHAIN));
  view.setUint32(0, crc);
  return crc;
}

/** What a stored record says about itself. */
export class RecordHeader {
  crc = 0;
  predecessorCrc = 0;
  term = 0;
  commitIndex = 0;
  kind = 0;

  /** Reads and checks `record`. False: too short, or its checksum is wrong. */
  tryRead(record: Uint8Array): boolean {
    if (record.length < RECORD_HEADER_BYTES) return false;
    const view = viewOf(record);
    this.crc = view.getUint32(0);
    if (crc32(record.subarray(CHAIN)) !== this.crc) return false;
    this.predecessorCrc = view.getUint32(CHAIN);
    this.term = getU64(view, TERM);
    this.commitIndex = getU64(view, COMMIT);
    this.kind = view.getUint8(KIND);
    return true;
  }
}
