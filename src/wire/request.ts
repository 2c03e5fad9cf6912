/**
 * Encodes requests for clients: [correlation, deadline_ms|nil, operation].
 *
 * Owns: the places of a request. The general form takes an operation as values; the fast forms
 * write acquire, release and renew in a session without an object. Never: the frame around them
 * (frame.ts), or a check that the node makes. Used by: client, load generator, CLI.
 */
import { CommandKind as CoreCommandKind } from '../core/locks/command.js';
import {
  HEADER_BYTES_MAX,
  INTEGER_BYTES_MAX,
  PACKED_ID_BYTES,
  type PackValue,
  putArrayHeader,
  putBinary,
  putNil,
  putOptional,
  putUnsigned,
  putUtf8,
  writeValue,
} from './msgpack-writer.js';
import type { OutBuffer } from './out-buffer.js';

/** Command numbers, for those who may not see the core. */
export const CommandKind = CoreCommandKind;
export type CommandKind = CoreCommandKind;

/** More than a fast request takes without its name. */
const REQUEST_BYTES_MAX = 2 * PACKED_ID_BYTES + 8 * INTEGER_BYTES_MAX + 3 * HEADER_BYTES_MAX;

/**
 * Appends one request. `correlation` is 1 to CORRELATION_MAX and free on this connection,
 * `deadlineMs` the time left, -1 for the default; trailing nils of `operation` may be left out.
 */
export function encodeRequest(
  out: OutBuffer,
  correlation: number,
  deadlineMs: number,
  operation: readonly PackValue[],
): void {
  out.reserve(REQUEST_BYTES_MAX);
  out.length = putRequestHead(out.bytes, out.length, correlation, deadlineMs);
  writeValue(out, operation);
}

function putRequestHead(
  bytes: Uint8Array,
  from: number,
  correlation: number,
  deadlineMs: number,
): number {
  let at = putArrayHeader(bytes, from, 3);
  at = putUnsigned(bytes, at, correlation);
  return putOptional(bytes, at, deadlineMs);
}

/** command, sequence, session, acknowledged, trace (nil). */
function putSequenceHead(
  bytes: Uint8Array,
  from: number,
  command: number,
  sequence: number,
  session: Uint8Array,
  acknowledged: number,
): number {
  let at = putUnsigned(bytes, from, command);
  at = putUnsigned(bytes, at, sequence);
  at = putBinary(bytes, at, session);
  at = putOptional(bytes, at, acknowledged);
  return putNil(bytes, at);
}

/**
 * Appends an exclusive acquire named by a sequence in a session.
 * `session` is its 16-byte id, `acknowledged` the mark or -1, `name` valid UTF-8, `ttlMs` and
 * `waitMs` -1 for the defaults.
 */
export function encodeAcquire(
  out: OutBuffer,
  correlation: number,
  deadlineMs: number,
  session: Uint8Array,
  sequence: number,
  acknowledged: number,
  name: Uint8Array,
  ttlMs: number,
  waitMs: number,
): void {
  out.reserve(REQUEST_BYTES_MAX + name.length);
  const bytes = out.bytes;
  let at = putRequestHead(bytes, out.length, correlation, deadlineMs);
  at = putArrayHeader(bytes, at, 8);
  at = putSequenceHead(bytes, at, CoreCommandKind.Acquire, sequence, session, acknowledged);
  at = putUtf8(bytes, at, name);
  at = putOptional(bytes, at, ttlMs);
  out.length = putOptional(bytes, at, waitMs);
}

/** Appends a release named by a sequence in a session; `lease` is the 16-byte id. */
export function encodeRelease(
  out: OutBuffer,
  correlation: number,
  deadlineMs: number,
  session: Uint8Array,
  sequence: number,
  acknowledged: number,
  lease: Uint8Array,
): void {
  out.reserve(REQUEST_BYTES_MAX);
  const bytes = out.bytes;
  let at = putRequestHead(bytes, out.length, correlation, deadlineMs);
  at = putArrayHeader(bytes, at, 6);
  at = putSequenceHead(bytes, at, CoreCommandKind.Release, sequence, session, acknowledged);
  out.length = putBinary(bytes, at, lease);
}

/** Appends a renewal, which needs no request id; `ttlMs` -1 keeps the TTL as it is. */
export function encodeRenew(
  out: OutBuffer,
  correlation: number,
  deadlineMs: number,
  lease: Uint8Array,
  ttlMs: number,
): void {
  out.reserve(REQUEST_BYTES_MAX);
  const bytes = out.bytes;
  let at = putRequestHead(bytes, out.length, correlation, deadlineMs);
  at = putArrayHeader(bytes, at, 7);
  at = putUnsigned(bytes, at, CoreCommandKind.Renew);
  for (let absent = 0; absent < 4; absent += 1) at = putNil(bytes, at);
  at = putBinary(bytes, at, lease);
  out.length = putOptional(bytes, at, ttlMs);
}
