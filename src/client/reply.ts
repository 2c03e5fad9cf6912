/**
 * The records that commands answer with, and how refusals become errors.
 *
 * Owns: which field of a reply means what to the client (docs/PROTOCOL.md) and the check that it is
 * of its type. Never: bytes; wire/response.ts decodes them. A field of another type is an error of
 * the node: the call fails with BAD_REQUEST `reply`, nothing is guessed.
 * Used by: leader.ts and whoever made a call.
 */
import type { Reply } from '../wire/response.js';
import {
  ErrorCode,
  type ErrorDetails,
  type Holder,
  HoldfastError,
  type LeaseEnd,
} from './errors.js';
import { optionOfField } from './field-options.js';

/** What an acquire, or the cancel of a granted one, answers with. */
export interface Grant {
  readonly leaseId: Uint8Array;
  readonly token: number;
  readonly revision: number;
  readonly deadlineMs: number;
  readonly ttlMs: number;
}

function malformed(what: string): HoldfastError {
  const message = `read a reply: ${what}`;
  return new HoldfastError(ErrorCode.BadRequest, {
    message,
    outcome: 'unknown',
    details: { field: 'reply' },
  });
}

/** The number at `index`, a safe integer from 0 up. Throws BAD_REQUEST `reply` otherwise. */
export function numberAt(fields: readonly unknown[], index: number): number {
  const value = fields[index];
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value;
  throw malformed(`field ${index} is ${typeof value}, wanted an integer`);
}

/** The bytes at `index`. Throws BAD_REQUEST `reply` otherwise. */
export function bytesAt(fields: readonly unknown[], index: number): Uint8Array {
  const value = fields[index];
  if (value instanceof Uint8Array) return value;
  throw malformed(`field ${index} is ${typeof value}, wanted bytes`);
}

/** The string at `index`. Throws BAD_REQUEST `reply` otherwise. */
export function textAt(fields: readonly unknown[], index: number): string {
  const value = fields[index];
  if (typeof value === 'string') return value;
  throw malformed(`field ${index} is ${typeof value}, wanted a string`);
}

/** The array at `index`. Throws BAD_REQUEST `reply` otherwise. */
export function listAt(fields: readonly unknown[], index: number): readonly unknown[] {
  const value: unknown = fields[index];
  if (Array.isArray(value)) return value;
  throw malformed(`field ${index} is ${typeof value}, wanted an array`);
}

/** Reads lease, token, revision, deadline, ttl from `from` on. */
export function grantAt(fields: readonly unknown[], from: number): Grant {
  return {
    leaseId: bytesAt(fields, from),
    token: numberAt(fields, from + 1),
    revision: numberAt(fields, from + 2),
    deadlineMs: numberAt(fields, from + 3),
    ttlMs: numberAt(fields, from + 4),
  };
}

/** One node as a hello names it. */
export interface Member {
  readonly nodeId: number;
  /** `host:port` of its client port. */
  readonly address: string;
  readonly role: string;
}

/** What a node says of itself and its cluster when it is greeted. */
export interface Greeting {
  readonly version: number;
  readonly featureLevel: number;
  readonly nodeId: number;
  /** 0 when the node knows no leader. */
  readonly leaderId: number;
  readonly clusterId: string;
  readonly members: readonly Member[];
}

/** Reads a list of members: node id, address, role each. Throws BAD_REQUEST `reply`. */
export function membersAt(fields: readonly unknown[], index: number): Member[] {
  return listAt(fields, index).map((_, position, all) => {
    const parts = listAt(all, position);
    return { nodeId: numberAt(parts, 0), address: textAt(parts, 1), role: wordAt(parts, 2) };
  });
}

/** A string, or a number that stands for one. */
function wordAt(fields: readonly unknown[], index: number): string {
  const value = fields[index];
  return typeof value === 'string' ? value : String(numberAt(fields, index));
}

/** An id as text: hexadecimal when it came as bytes. */
export function hexAt(fields: readonly unknown[], index: number): string {
  const value = fields[index];
  return typeof value === 'string' ? value : hexOf(bytesAt(fields, index));
}

/** Bytes as hexadecimal digits. */
export function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex');
}

/** The greeting that a reply to hello is; null when its fields are not those of one. */
export function greetingOf(reply: Reply): Greeting | null {
  const { fields } = reply;
  try {
    return {
      version: numberAt(fields, 0),
      featureLevel: numberAt(fields, 1),
      nodeId: numberAt(fields, 2),
      leaderId: numberAt(fields, 3),
      clusterId: hexAt(fields, 5),
      members: membersAt(fields, 7),
    };
  } catch (error) {
    if (error instanceof HoldfastError) return null;
    throw error;
  }
}

/** By the numbers of LeaseEnd on the wire. */
const LEASE_ENDS: readonly LeaseEnd[] = [
  'unknown',
  'released',
  'expired',
  'session_expired',
  'session_closed',
  'forced',
  'taken_over',
  'restored',
];

/** Reads the holder of a LOCK_BUSY or CONFLICT; `clusterTimeMs` is that of the answer. */
function busyHolderAt(fields: readonly unknown[], clusterTimeMs: number): Holder {
  const deadlineMs = numberAt(fields, 2);
  const metadata = bytesAt(fields, 4);
  return {
    token: numberAt(fields, 0),
    sinceMs: numberAt(fields, 1),
    deadlineMs,
    endsInMs: Math.max(0, deadlineMs - Math.max(0, clusterTimeMs)),
    principal: numberAt(fields, 3),
    metadata: metadata.length === 0 ? null : metadata,
  };
}

function detailsOf(code: number, fields: readonly unknown[], clusterTimeMs: number): ErrorDetails {
  switch (code) {
    case ErrorCode.LockBusy:
      return { holder: busyHolderAt(fields, clusterTimeMs) };
    case ErrorCode.Conflict:
      return fields.length === 0 ? {} : { holder: busyHolderAt(fields, clusterTimeMs) };
    case ErrorCode.Disabled:
      return fields.length === 0 ? {} : { revision: numberAt(fields, 0) };
    case ErrorCode.StaleLease:
      return {
        leaseEnd: LEASE_ENDS[numberAt(fields, 0)] ?? 'unknown',
        revision: numberAt(fields, 1),
      };
    case ErrorCode.BadRequest:
    case ErrorCode.Limit:
      return fields.length === 0 ? {} : { field: textAt(fields, 0) };
    case ErrorCode.Compacted:
      return fields.length === 0 ? {} : { oldestRevision: numberAt(fields, 0) };
    case ErrorCode.NotLeader:
      return fields.length < 2 ? {} : { leader: textAt(fields, 1) };
    default:
      return {};
  }
}

/** A refusal in words, with what it names; '' where the table's words are all there is to say. */
function wordsOf(code: number, details: ErrorDetails): string {
  const { field = '', holder } = details;
  if (code === ErrorCode.BadRequest && field !== '') {
    return `the cluster refuses ${optionOfField(field)}: malformed or out of range`;
  }
  if (code === ErrorCode.Limit && field !== '') return `a bound was reached: ${field}`;
  if (code === ErrorCode.Disabled && details.revision !== undefined) {
    return `new acquires are disabled since revision ${details.revision}`;
  }
  if (holder === undefined) return '';
  const isMeant = code === ErrorCode.Conflict;
  if (holder.token === 0) {
    if (!isMeant && holder.endsInMs > 0) {
      return `the cluster was restored: nothing is granted for another ${holder.endsInMs} ms`;
    }
    return isMeant ? 'nobody holds the lock' : 'nobody holds the lock, but others wait for it';
  }
  const metadata = holder.metadata === null ? '' : ` by ${quoted(holder.metadata)}`;
  const held = `the lock is held${metadata} with token ${holder.token}`;
  return isMeant ? `another lease is meant: ${held}` : held;
}

function quoted(metadata: Uint8Array): string {
  return JSON.stringify(new TextDecoder().decode(metadata));
}

/**
 * The error that a refusal is. `mayHaveEffect` is true when an earlier attempt of the same request
 * was lost: what a node says without the log about the last attempt does not settle that one.
 */
export function errorOf(reply: Reply, mayHaveEffect: boolean): HoldfastError {
  const isNodes = reply.clusterTimeMs < 0;
  const details = detailsOf(reply.code, reply.fields, reply.clusterTimeMs);
  const message = reply.message || wordsOf(reply.code, details);
  return new HoldfastError(reply.code, {
    details,
    retryAfterMs: reply.retryAfterMs,
    ...(message === '' ? {} : { message }),
    ...(isNodes && mayHaveEffect ? { outcome: 'unknown' } : {}),
  });
}
