/**
 * Bodies of the frames in which unfounded nodes find each other on the peer port.
 *
 * Owns: their layout: the kind's byte, then for tell and stored a MessagePack array, for record the
 * founding record's own bytes. Everything is bounded and checked; these frames come before any
 * hello. Never: who answers what. Used by: io (peer server, founding peers).
 */
import { ID_BYTES } from '../limits.js';
import { copyOf } from './copy.js';
import { FOUNDING_BYTES_MAX, NODE_ID_MAX } from './founding.js';
import { unpackValue } from './msgpack.js';
import { writeValue } from './msgpack-writer.js';
import type { OutBuffer } from './out-buffer.js';
import { beginPeerFrame, type Checksum, endPeerFrame, PeerKind } from './peer.js';

/** Who a node is, and what it was founded with. */
export interface FoundingTell {
  readonly nodeId: number;
  /** ID_BYTES. */
  readonly diskId: Uint8Array;
  /** The bytes of its founding record, null when it has none. */
  readonly record: Uint8Array | null;
}

/** Whether the record that was offered is on disk. */
export interface FoundingStored {
  readonly isStored: boolean;
  /** Why not; empty when it is. */
  readonly reason: string;
}

/** Appends the question who a node is. */
export function encodeFoundingAsk(out: OutBuffer, checksum: Checksum): void {
  endPeerFrame(out, beginPeerFrame(out, PeerKind.FoundingAsk), checksum);
}

/** Appends the answer to it: [node id, disk id, record|nil]. */
export function encodeFoundingTell(out: OutBuffer, tell: FoundingTell, checksum: Checksum): void {
  const position = beginPeerFrame(out, PeerKind.FoundingTell);
  writeValue(out, [tell.nodeId, tell.diskId, tell.record]);
  endPeerFrame(out, position, checksum);
}

/** Appends the offer of a founding record, as encodeFounding gave it. */
export function encodeFoundingRecord(out: OutBuffer, record: Uint8Array, checksum: Checksum): void {
  const position = beginPeerFrame(out, PeerKind.FoundingRecord);
  out.reserve(record.length);
  out.bytes.set(record, out.length);
  out.length += record.length;
  endPeerFrame(out, position, checksum);
}

/** Appends the answer to an offer: [is stored, reason]. */
export function encodeFoundingStored(
  out: OutBuffer,
  stored: FoundingStored,
  checksum: Checksum,
): void {
  const position = beginPeerFrame(out, PeerKind.FoundingStored);
  writeValue(out, [stored.isStored, stored.reason]);
  endPeerFrame(out, position, checksum);
}

/** Body values after the kind, or undefined when the body is not of that kind. */
function partsOf(
  bytes: Uint8Array,
  start: number,
  end: number,
  kind: PeerKind,
  count: number,
): readonly unknown[] | undefined {
  if (end - start > 2 * FOUNDING_BYTES_MAX || bytes[start] !== kind) return undefined;
  const value = unpackValue(bytes, start + 1, end);
  return Array.isArray(value) && value.length === count ? value : undefined;
}

/** True when the body `start` … `end` is the question who a node is. */
export function isFoundingAsk(bytes: Uint8Array, start: number, end: number): boolean {
  return end - start === 1 && bytes[start] === PeerKind.FoundingAsk;
}

/** The answer in the body `start` … `end`, or null when it is none. The record is unchecked. */
export function decodeFoundingTell(
  bytes: Uint8Array,
  start: number,
  end: number,
): FoundingTell | null {
  const parts = partsOf(bytes, start, end, PeerKind.FoundingTell, 3);
  if (parts === undefined) return null;
  const [nodeId, diskId, record] = parts;
  if (!Number.isSafeInteger(nodeId) || Number(nodeId) < 1 || Number(nodeId) > NODE_ID_MAX) {
    return null;
  }
  if (!(diskId instanceof Uint8Array) || diskId.length !== ID_BYTES) return null;
  if (record !== null && !(record instanceof Uint8Array)) return null;
  return { nodeId: Number(nodeId), diskId, record };
}

/** A copy of the record in the body `start` … `end`, or null when it is none. Unchecked. */
export function decodeFoundingRecord(
  bytes: Uint8Array,
  start: number,
  end: number,
): Uint8Array | null {
  if (bytes[start] !== PeerKind.FoundingRecord || end - start - 1 > FOUNDING_BYTES_MAX) return null;
  return copyOf(bytes, start + 1, end);
}

/** The answer in the body `start` … `end`, or null when it is none. */
export function decodeFoundingStored(
  bytes: Uint8Array,
  start: number,
  end: number,
): FoundingStored | null {
  const parts = partsOf(bytes, start, end, PeerKind.FoundingStored, 2);
  if (parts === undefined) return null;
  const [isStored, reason] = parts;
  if (typeof isStored !== 'boolean' || typeof reason !== 'string') return null;
  return { isStored, reason };
}
