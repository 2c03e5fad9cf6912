/**
 * Decoders of the fields that several logged operations share, in place.
 *
 * Owns: the form of a name, a lifetime, an owner, metadata, a lease. Each takes the position of the
 * field and returns the one after it, or the negative fault. Never: which operation has which.
 * Used by: operation.ts, admin-operation.ts.
 */
import type { Command } from '../core/locks/command.js';
import { METADATA_BYTES_MAX, NAME_BYTES_MAX, NAME_BYTES_MIN, OWNER_BYTES_MAX } from '../limits.js';
import { Fault } from './fault.js';
import {
  idAt,
  integerBytes,
  NIL,
  rangeAt,
  rangeHeaderBytes,
  unsignedAt,
  wordAt,
} from './msgpack-reader.js';
import { isPlainText } from './utf8.js';

/** An array of names has its place here and is refused until a later feature level. */
export function decodeName(bytes: Uint8Array, at: number, end: number, command: Command): number {
  const length = rangeAt(bytes, at, end);
  if (length < NAME_BYTES_MIN || length > NAME_BYTES_MAX) return -Fault.Name;
  const offset = at + rangeHeaderBytes(bytes[at]!);
  if (!isPlainText(bytes, offset, offset + length)) return -Fault.Name;
  command.nameOffset = offset;
  command.nameBytes = length;
  return offset + length;
}

export function decodeTtl(bytes: Uint8Array, at: number, end: number, command: Command): number {
  const ttlMs = unsignedAt(bytes, at, end);
  if (ttlMs < NIL) return -Fault.TtlMs;
  command.ttlMs = ttlMs;
  return at + integerBytes(bytes[at]!);
}

export function decodeOwner(bytes: Uint8Array, at: number, end: number, command: Command): number {
  const length = rangeAt(bytes, at, end);
  if (length === NIL) return at + 1;
  if (length < 1 || length > OWNER_BYTES_MAX) return -Fault.Owner;
  command.ownerOffset = at + rangeHeaderBytes(bytes[at]!);
  command.ownerBytes = length;
  return command.ownerOffset + length;
}

/** Empty metadata is not absent metadata. */
export function decodeMetadata(
  bytes: Uint8Array,
  at: number,
  end: number,
  command: Command,
): number {
  const length = rangeAt(bytes, at, end);
  if (length === NIL) return at + 1;
  if (length < 0 || length > METADATA_BYTES_MAX) return -Fault.Metadata;
  command.metadataOffset = at + rangeHeaderBytes(bytes[at]!);
  command.metadataBytes = length;
  return command.metadataOffset + length;
}

export function decodeLease(bytes: Uint8Array, at: number, end: number, command: Command): number {
  const offset = idAt(bytes, at, end);
  if (offset < 0) return -Fault.Lease;
  command.hasLease = true;
  command.lease0 = wordAt(bytes, offset);
  command.lease1 = wordAt(bytes, offset + 4);
  command.lease2 = wordAt(bytes, offset + 8);
  command.lease3 = wordAt(bytes, offset + 12);
  return offset + 16;
}
