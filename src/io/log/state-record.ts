/**
 * The one record of term, vote and identity: what a replica must never forget, written at once.
 *
 * Owns: its layout, for ever: u32 crc of all that follows, u8 format, u64 term, u32 vote,
 * u32 node id, 16 bytes disk id, u32 length of the founding record or 2^32 - 1 for none, its bytes.
 * Never: I/O. Used by: state-store.ts.
 */
import { crc32 } from 'node:zlib';
import { viewOf } from './record.js';
import { getU64, setU64 } from './u64.js';

const FORMAT = 1;
const HEADER_BYTES = 41;
const DISK_ID = 21;
const NO_FOUNDING = 0xffff_ffff;

/** Bytes of a disk id: 128 random bits, drawn when a data folder is first opened. */
export const DISK_ID_BYTES = 16;

export interface StateRecord {
  readonly term: number;
  /** Node id voted for in `term`, 0 for none. */
  readonly votedFor: number;
  readonly nodeId: number;
  readonly diskId: Uint8Array;
  /** What the cluster was founded with (members, settings), null before that. */
  readonly founding: Uint8Array | null;
}

/** The bytes of `state`, checksum included. */
export function encodeState(state: StateRecord): Uint8Array {
  const founding = state.founding ?? new Uint8Array(0);
  const bytes = new Uint8Array(HEADER_BYTES + founding.length);
  const view = viewOf(bytes);
  view.setUint8(4, FORMAT);
  setU64(view, 5, state.term);
  view.setUint32(13, state.votedFor);
  view.setUint32(17, state.nodeId);
  bytes.set(state.diskId, DISK_ID);
  view.setUint32(37, state.founding === null ? NO_FOUNDING : founding.length);
  bytes.set(founding, HEADER_BYTES);
  view.setUint32(0, crc32(bytes.subarray(4)));
  return bytes;
}

/** The state in `bytes`, or in words why there is none. Copies what it keeps. */
export function decodeState(bytes: Uint8Array): StateRecord | string {
  if (bytes.length < HEADER_BYTES) return `has ${bytes.length} bytes, wanted ${HEADER_BYTES}`;
  const view = viewOf(bytes);
  if (crc32(bytes.subarray(4)) !== view.getUint32(0)) return 'has a wrong checksum';
  const format = view.getUint8(4);
  if (format !== FORMAT) return `has format ${format}, wanted ${FORMAT}`;
  const length = view.getUint32(37);
  const wanted = length === NO_FOUNDING ? 0 : length;
  if (bytes.length !== HEADER_BYTES + wanted) return 'has a founding record of another length';
  return {
    term: getU64(view, 5),
    votedFor: view.getUint32(13),
    nodeId: view.getUint32(17),
    diskId: bytes.slice(DISK_ID, DISK_ID + DISK_ID_BYTES),
    founding: length === NO_FOUNDING ? null : bytes.slice(HEADER_BYTES),
  };
}
