/**
 * Peer frames: u32 body length, u32 checksum of the body, then a body of fixed layout, big-endian.
 *
 * Owns: peer protocol version 1: hello, its reply, and every raft message. Founding bodies are in
 * founding-talk.ts, those of snapshots in snapshot-talk.ts. Never: sockets, or the checksum's
 * arithmetic; io passes the function in.
 * A body's first byte is its PeerKind. Used by: io (peer links, peer server), simulator.
 */
import { Entry, EntryKind, Message, MessageKind } from '../core/raft/message.js';
import { APPEND_ENTRIES_MAX, ID_BYTES, PEER_FRAME_BYTES_MAX } from '../limits.js';
import { copyOf } from './copy.js';
import { INVALID, u32At, u64At } from './msgpack-reader.js';
import { putU32, putU64 } from './msgpack-writer.js';
import type { OutBuffer } from './out-buffer.js';

export const PEER_VERSION = 1;
/** Bytes before a body: length and checksum. */
export const PEER_HEADER_BYTES = 8;

/** First byte of a body. */
export const PeerKind = {
  Hello: 1,
  HelloReply: 2,
  Message: 3,
  FoundingAsk: 4,
  FoundingTell: 5,
  FoundingRecord: 6,
  FoundingStored: 7,
  /** A hello on a connection that fetches a snapshot and carries no raft message. */
  FetchHello: 8,
  SnapshotAsk: 9,
  SnapshotTell: 10,
  ChunkAsk: 11,
  ChunkTell: 12,
  /** A hello of who is no member and takes a backup; node id and disk id mean nothing. */
  BackupHello: 13,
} as const;
export type PeerKind = (typeof PeerKind)[keyof typeof PeerKind];

/** Checksum of some bytes as a u32; both ends use the same one (CRC-32, as in zlib). */
export type Checksum = (bytes: Uint8Array) => number;

/**
 * Bytes of the frame that starts at `start`, header included; 0 while the header is incomplete;
 * INVALID when it claims 0 or more than PEER_FRAME_BYTES_MAX body bytes: close the connection.
 */
export function peerFrameBytesAt(bytes: Uint8Array, start: number, end: number): number {
  if (end - start < PEER_HEADER_BYTES) return 0;
  const body = u32At(bytes, start);
  return body === 0 || body > PEER_FRAME_BYTES_MAX ? INVALID : PEER_HEADER_BYTES + body;
}

/** True when the whole frame `start` … `end` carries the checksum of its body. */
export function isPeerFrameIntact(
  bytes: Uint8Array,
  start: number,
  end: number,
  checksum: Checksum,
): boolean {
  const body = bytes.subarray(start + PEER_HEADER_BYTES, end);
  return checksum(body) === u32At(bytes, start + 4);
}

/** Starts a frame of this kind. Returns its position, for endPeerFrame. */
export function beginPeerFrame(out: OutBuffer, kind: PeerKind): number {
  const position = out.length;
  out.reserve(PEER_HEADER_BYTES + 1);
  out.bytes[position + PEER_HEADER_BYTES] = kind;
  out.length = position + PEER_HEADER_BYTES + 1;
  return position;
}

/** Writes length and checksum of the frame begun at `position`. */
export function endPeerFrame(out: OutBuffer, position: number, checksum: Checksum): void {
  const start = position + PEER_HEADER_BYTES;
  putU32(out.bytes, position, out.length - start);
  putU32(out.bytes, position + 4, checksum(out.bytes.subarray(start, out.length)));
}

/** 'HFPR'. */
const HELLO_MAGIC = 0x4846_5052;
const HELLO_BODY_BYTES = 1 + 4 + 2 + 2 + 4 + 2 * ID_BYTES;

/** The first frame of a peer connection: who calls, and from which cluster. */
export interface PeerHello {
  /** PEER_VERSION of the caller. */
  readonly version: number;
  /** The highest feature level that the caller can apply. */
  readonly featureLevel: number;
  readonly nodeId: number;
  /** ID_BYTES of the founding record's cluster id; all zero before founding. */
  readonly clusterId: Uint8Array;
  /** ID_BYTES of the caller's data folder. */
  readonly diskId: Uint8Array;
}

/** Layout: kind, magic u32, version u16, feature level u16, node id u32, cluster id, disk id. */
export function encodePeerHello(
  out: OutBuffer,
  hello: PeerHello,
  checksum: Checksum,
  kind: PeerKind = PeerKind.Hello,
): void {
  const position = beginPeerFrame(out, kind);
  out.reserve(HELLO_BODY_BYTES);
  let at = putU32(out.bytes, out.length, HELLO_MAGIC);
  at = putU32(out.bytes, at, hello.version * 0x1_0000 + hello.featureLevel);
  at = putU32(out.bytes, at, hello.nodeId);
  out.bytes.set(hello.clusterId, at);
  out.bytes.set(hello.diskId, at + ID_BYTES);
  out.length = at + 2 * ID_BYTES;
  endPeerFrame(out, position, checksum);
}

/** The hello in the body `start` … `end`, or null when it is none. Any version is returned. */
export function decodePeerHello(
  bytes: Uint8Array,
  start: number,
  end: number,
  kind: PeerKind = PeerKind.Hello,
): PeerHello | null {
  if (end - start !== HELLO_BODY_BYTES || bytes[start] !== kind) return null;
  if (u32At(bytes, start + 1) !== HELLO_MAGIC) return null;
  const levels = u32At(bytes, start + 5);
  const ids = start + 13;
  return {
    version: levels >>> 16,
    featureLevel: levels & 0xffff,
    nodeId: u32At(bytes, start + 9),
    clusterId: copyOf(bytes, ids, ids + ID_BYTES),
    diskId: copyOf(bytes, ids + ID_BYTES, ids + 2 * ID_BYTES),
  };
}

/** Why a peer is let in or not. */
export const PeerVerdict = {
  Welcome: 0,
  UnsupportedVersion: 1,
  OtherCluster: 2,
  /** The node id is no member. */
  UnknownNode: 3,
  /** The member has another disk id: the node was wiped or its folder was copied. */
  OtherDisk: 4,
  /** The caller cannot apply the cluster's feature level. */
  FeatureLevel: 5,
  /** The node that answers has no founding record yet. */
  NotFounded: 6,
} as const;
export type PeerVerdict = (typeof PeerVerdict)[keyof typeof PeerVerdict];

export interface PeerHelloReply {
  readonly verdict: number;
  /** For the log of the refused node; ASCII, at most 255 bytes. */
  readonly text: string;
}

const HELLO_TEXT_BYTES_MAX = 255;

/** Layout: kind, verdict u16, then the text to the end. */
export function encodePeerHelloReply(
  out: OutBuffer,
  reply: PeerHelloReply,
  checksum: Checksum,
): void {
  const position = beginPeerFrame(out, PeerKind.HelloReply);
  out.reserve(2 + HELLO_TEXT_BYTES_MAX);
  out.bytes[out.length] = reply.verdict >>> 8;
  out.bytes[out.length + 1] = reply.verdict;
  out.length += 2;
  const length = Math.min(reply.text.length, HELLO_TEXT_BYTES_MAX);
  for (let index = 0; index < length; index += 1) {
    const unit = reply.text.charCodeAt(index);
    out.bytes[out.length + index] = unit < 0x80 ? unit : 0x3f;
  }
  out.length += length;
  endPeerFrame(out, position, checksum);
}

/** The hello reply in the body `start` … `end`, or null when it is none. */
export function decodePeerHelloReply(
  bytes: Uint8Array,
  start: number,
  end: number,
): PeerHelloReply | null {
  const length = end - start - 3;
  if (length < 0 || length > HELLO_TEXT_BYTES_MAX) return null;
  if (bytes[start] !== PeerKind.HelloReply) return null;
  let text = '';
  for (let at = start + 3; at < end; at += 1) {
    const byte = bytes[at]!;
    text += byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : '?';
  }
  return { verdict: (bytes[start + 1]! << 8) | bytes[start + 2]!, text };
}

/**
 * Body of a raft message: u8 PeerKind.Message, u8 message kind, u8 reject, u8 0, u32 shard,
 * u32 from, u32 to, u64 each of term, index, log term, commit, hint index, hint term, context,
 * free MiB, u32 entries, then each entry: u64 term, u8 kind, 3 bytes 0, u32 length, data. An
 * entry's index is not sent: entries follow `index` one by one.
 */
const MESSAGE_HEAD_BYTES = 16 + 8 * 8 + 4;
const ENTRY_HEAD_BYTES = 16;
const MESSAGE_NUMBERS_OFFSET = 16;
const SHARD = 0;

/** Appends the frame of one raft message. Entry data is copied. */
export function encodeMessage(out: OutBuffer, message: Message, checksum: Checksum): void {
  const position = beginPeerFrame(out, PeerKind.Message);
  out.length -= 1; // the kind is part of the first word below
  out.reserve(messageBytes(message));
  const bytes = out.bytes;
  const flags = message.reject ? 1 : 0;
  let at = putU32(
    bytes,
    out.length,
    (PeerKind.Message << 24) | (message.kind << 16) | (flags << 8),
  );
  at = putU32(bytes, at, SHARD);
  at = putU32(bytes, at, message.from);
  at = putU32(bytes, at, message.to);
  at = putU64(bytes, at, message.term);
  at = putU64(bytes, at, message.index);
  at = putU64(bytes, at, message.logTerm);
  at = putU64(bytes, at, message.commit);
  at = putU64(bytes, at, message.hintIndex);
  at = putU64(bytes, at, message.hintTerm);
  at = putU64(bytes, at, message.context);
  at = putU64(bytes, at, message.freeMiB);
  out.length = putEntries(bytes, at, message.entries);
  endPeerFrame(out, position, checksum);
}

function messageBytes(message: Message): number {
  let total = MESSAGE_HEAD_BYTES;
  for (let index = 0; index < message.entries.length; index += 1) {
    total += ENTRY_HEAD_BYTES + message.entries[index]!.data.length;
  }
  return total;
}

function putEntries(bytes: Uint8Array, from: number, entries: readonly Entry[]): number {
  let at = putU32(bytes, from, entries.length);
  for (let index = 0; index < entries.length; index += 1) {
    const entry = entries[index]!;
    at = putU64(bytes, at, entry.term);
    at = putU32(bytes, at, entry.kind << 24);
    at = putU32(bytes, at, entry.data.length);
    bytes.set(entry.data, at);
    at += entry.data.length;
  }
  return at;
}

/**
 * The raft message in the body `start` … `end`, or null when it is none: unknown kind, reserved
 * bytes set, a number above 2^53 - 1, or entries that do not fill the body exactly. Everything is
 * checked before anything is allocated; entry data is copied, since it outlives the socket's
 * buffer. The frame's checksum has been checked by the caller.
 */
export function decodeMessage(bytes: Uint8Array, start: number, end: number): Message | null {
  if (end - start < MESSAGE_HEAD_BYTES) return null;
  const kind = messageKindAt(bytes, start);
  if (kind === 0 || !areNumbersSafe(bytes, start + MESSAGE_NUMBERS_OFFSET)) return null;
  const count = u32At(bytes, start + MESSAGE_HEAD_BYTES - 4);
  const entriesStart = start + MESSAGE_HEAD_BYTES;
  if (!areEntriesSound(bytes, entriesStart, end, count)) return null;
  const message = new Message(
    kind as MessageKind,
    u32At(bytes, start + 8),
    u32At(bytes, start + 12),
  );
  const numbers = start + MESSAGE_NUMBERS_OFFSET;
  message.reject = bytes[start + 2] === 1;
  message.term = u64At(bytes, numbers);
  message.index = u64At(bytes, numbers + 8);
  message.logTerm = u64At(bytes, numbers + 16);
  message.commit = u64At(bytes, numbers + 24);
  message.hintIndex = u64At(bytes, numbers + 32);
  message.hintTerm = u64At(bytes, numbers + 40);
  message.context = u64At(bytes, numbers + 48);
  message.freeMiB = u64At(bytes, numbers + 56);
  if (count > 0) message.entries = readEntries(bytes, entriesStart, count, message.index);
  return message;
}

const MESSAGE_KIND_MAX = Math.max(...Object.values(MessageKind));
const ENTRY_KIND_MAX = Math.max(...Object.values(EntryKind));

/** The message kind, 0 when the first two words are not those of a message. */
function messageKindAt(bytes: Uint8Array, start: number): number {
  if (bytes[start] !== PeerKind.Message) return 0;
  if (bytes[start + 2]! > 1 || bytes[start + 3] !== 0) return 0;
  if (u32At(bytes, start + 4) !== SHARD) return 0;
  const kind = bytes[start + 1]!;
  return kind <= MESSAGE_KIND_MAX ? kind : 0;
}

function areNumbersSafe(bytes: Uint8Array, start: number): boolean {
  for (let number = 0; number < 8; number += 1) {
    if (u64At(bytes, start + 8 * number) < 0) return false;
  }
  return true;
}

function areEntriesSound(bytes: Uint8Array, from: number, end: number, count: number): boolean {
  if (count > APPEND_ENTRIES_MAX) return false;
  let at = from;
  for (let index = 0; index < count; index += 1) {
    if (at + ENTRY_HEAD_BYTES > end || u64At(bytes, at) < 0) return false;
    const kind = bytes[at + 8]!;
    if (kind === 0 || kind > ENTRY_KIND_MAX) return false;
    if ((u32At(bytes, at + 8) & 0xff_ffff) !== 0) return false;
    at += ENTRY_HEAD_BYTES + u32At(bytes, at + 12);
    if (at > end) return false;
  }
  return at === end;
}

function readEntries(bytes: Uint8Array, from: number, count: number, previous: number): Entry[] {
  const entries: Entry[] = [];
  let at = from;
  for (let index = 1; index <= count; index += 1) {
    const term = u64At(bytes, at);
    const kind = bytes[at + 8]! as EntryKind;
    const dataStart = at + ENTRY_HEAD_BYTES;
    at = dataStart + u32At(bytes, at + 12);
    entries.push(new Entry(previous + index, term, kind, copyOf(bytes, dataStart, at)));
  }
  return entries;
}
