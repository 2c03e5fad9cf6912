/**
 * Encodes the parts of a watch: [correlation, 2, cluster_time, false, events, revision, locks|nil].
 *
 * Owns: the event row [revision, kind, name, token, place, cause, principal, cluster_time] and how
 * rows that were encoded once are put into many connections. Never: who watches what.
 * Used by: replica.
 */
import type { LockReading } from '../core/locks/readings.js';
import { ErrorCode } from './errors.js';
import {
  HEADER_BYTES_MAX,
  INTEGER_BYTES_MAX,
  putArrayHeader,
  putBoolean,
  putUnsigned,
  putUtf8,
  writeValue,
} from './msgpack-writer.js';
import type { OutBuffer } from './out-buffer.js';
import { lockRow } from './query-reply.js';
import { encodeRefusal } from './reply.js';

const EVENT_FIELDS = 8;
const PART_FIELDS = 6;
const EVENT_BYTES_MAX = (EVENT_FIELDS - 1) * INTEGER_BYTES_MAX + 2 * HEADER_BYTES_MAX;

/** Appends one event row. `name` is valid UTF-8. */
export function putEvent(
  out: OutBuffer,
  revision: number,
  kind: number,
  name: Uint8Array,
  token: number,
  place: number,
  cause: number,
  principal: number,
  stampMs: number,
): void {
  out.reserve(EVENT_BYTES_MAX + name.length);
  const { bytes } = out;
  let at = putArrayHeader(bytes, out.length, EVENT_FIELDS);
  at = putUnsigned(bytes, at, revision);
  at = putUnsigned(bytes, at, kind);
  at = putUtf8(bytes, at, name);
  at = putUnsigned(bytes, at, token);
  at = putUnsigned(bytes, at, place);
  at = putUnsigned(bytes, at, cause);
  at = putUnsigned(bytes, at, principal);
  out.length = putUnsigned(bytes, at, stampMs);
}

/** Appends a part with the `count` event rows that `rows` holds; 0 is a mark of progress. */
export function encodeEvents(
  out: OutBuffer,
  correlation: number,
  clusterTime: number,
  rows: OutBuffer,
  count: number,
  revision: number,
): void {
  out.reserve(2 * HEADER_BYTES_MAX + 5 * INTEGER_BYTES_MAX + rows.length);
  let at = putHead(out, PART_FIELDS, correlation, clusterTime);
  at = putArrayHeader(out.bytes, at, count);
  if (count > 0) out.bytes.set(rows.bytes.subarray(0, rows.length), at);
  if (count > 0) at += rows.length;
  out.length = putUnsigned(out.bytes, at, revision);
}

/** Appends a part of a snapshot. `revision`: nothing up to it will be told as an event. */
export function encodeSnapshotPart(
  out: OutBuffer,
  correlation: number,
  clusterTime: number,
  locks: readonly LockReading[],
  revision: number,
): void {
  out.reserve(2 * HEADER_BYTES_MAX + 5 * INTEGER_BYTES_MAX);
  let at = putHead(out, PART_FIELDS + 1, correlation, clusterTime);
  at = putArrayHeader(out.bytes, at, 0);
  out.length = putUnsigned(out.bytes, at, revision);
  writeValue(out, locks.map(lockRow));
}

function putHead(out: OutBuffer, fields: number, correlation: number, clusterTime: number): number {
  const { bytes } = out;
  let at = putArrayHeader(bytes, out.length, fields);
  at = putUnsigned(bytes, at, correlation);
  at = putUnsigned(bytes, at, ErrorCode.Watching);
  at = putUnsigned(bytes, at, clusterTime);
  return putBoolean(bytes, at, false);
}

/** Appends COMPACTED with the oldest revision that is kept and the last one there is. */
export function encodeCompacted(
  out: OutBuffer,
  correlation: number,
  message: string | null,
  oldest: number,
  revision: number,
): void {
  encodeRefusal(out, correlation, ErrorCode.Compacted, message, -1, [oldest, revision]);
}
