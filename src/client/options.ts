/**
 * What a caller may ask of an acquire, and the checks before anything is sent.
 *
 * Owns: option names, defaults and the refusal of values that could never be right (NaN, negative,
 * fractions, beyond 2^53). Never: the ranges of TTLs and waits: those are replicated settings, and
 * the cluster refuses by them. Used by: client.ts, acquire.ts.
 */
import {
  METADATA_BYTES_MAX,
  NAME_BYTES_MAX,
  NAME_BYTES_MIN,
  OWNER_BYTES_MAX,
  REQUEST_DEADLINE_DEFAULT_MS,
  REQUEST_DEADLINE_MAX_MS,
  REQUEST_ID_BYTES_MAX,
  TRACE_ID_BYTES,
} from '../limits.js';
import { isPlainText } from '../wire/utf8.js';
import { WAIT_DEFAULT_MS } from './bounds.js';
import { badRequest } from './errors.js';
import { optionOfField } from './field-options.js';
import type { Session } from './session.js';

/** How to acquire one lock. Times are in ms. */
export interface AcquireOptions {
  /** TTL of the lease, 1,000 … 86,400,000 unless a policy says otherwise; default 30,000. */
  readonly ttlMs?: number;
  /** How long to wait in the queue, 0 … 3,600,000; default 10,000. 0: try once. */
  readonly waitMs?: number;
  /** Until when the request must be decided or queued, 1 … 60,000; default 10,000. */
  readonly deadlineMs?: number;
  /** Shown beside the lease, at most 1,024 bytes. */
  readonly metadata?: Uint8Array | string;
  /**
   * The session that keeps the lease. Absent: one session that the client opens for itself and
   * shares among all such acquires. null: no session, the lease is renewed by a loop of its own.
   */
  readonly session?: Session | null;
  /**
   * Own name for this acquire, 1 … 64 bytes, to ask again after a crash: the same name has one
   * effect. Only with `session: null`; otherwise the client chooses.
   */
  readonly requestId?: string;
  /** Cluster time after which a first arrival has no effect. Only with `session: null`. */
  readonly notAfterMs?: number;
  /** Refuse with CONFLICT if the lock was granted or ended after this revision. Tries once. */
  readonly expectedRevision?: number;
  /** Who acquires, for deadlock detection, at most 128 bytes. From a later feature level on. */
  readonly owner?: string;
  /** Delay before the next grant after this lease expired. From a later feature level on. */
  readonly lockDelayMs?: number;
  /** The longest hold over all renewals. From a later feature level on. */
  readonly holdMsMax?: number;
  /** W3C trace id, 16 bytes, to find the acquire in traces and audit. */
  readonly traceId?: Uint8Array;
  /**
   * True: inside withLock of the same name, in the same async context, enter again and count.
   * Absent or false: another acquire of the same name waits for the first, also in one process.
   */
  readonly reentrant?: boolean;
  /** Cancels the acquire. Exactly one of granted or cancelled: a grant that won is given back. */
  readonly signal?: AbortSignal;
}

/** Options of calls that only have a deadline. */
export interface CallOptions {
  /** Milliseconds until the call is failed, 1 … 60,000; default 10,000. */
  readonly deadlineMs?: number;
}

/** An acquire that passed the checks. null: absent on the wire. */
export interface AcquirePlan {
  readonly name: string;
  readonly ttlMs: number | null;
  readonly waitMs: number;
  readonly deadlineMs: number;
  /** What a place in the queue adds to the deadline, ms. */
  readonly extensionMs: number;
  readonly metadata: Uint8Array | null;
  readonly requestId: string | null;
  readonly notAfterMs: number | null;
  readonly expectedRevision: number | null;
  readonly owner: string | null;
  readonly lockDelayMs: number | null;
  readonly holdMsMax: number | null;
  readonly traceId: Uint8Array | null;
  readonly signal: AbortSignal | undefined;
}

const ENCODER = new TextEncoder();
const LONE_SURROGATE = /\p{Surrogate}/u;

/** A safe integer from `least` up, or null when absent. Throws BAD_REQUEST `field`. */
function optionalInteger(field: string, value: number | undefined, least: number): number | null {
  if (value === undefined) return null;
  if (Number.isSafeInteger(value) && value >= least) return value;
  const wanted = `a whole number from ${least} up`;
  throw badRequest(field, `${optionOfField(field)} is ${shown(value)}, wanted ${wanted}`);
}

/** A value in a sentence; strings in quotes, so that '5' is not taken for 5. */
function shown(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value);
  return typeof value === 'object' && value !== null ? 'an object' : String(value);
}

/**
 * Checks that `options` is an object, or absent, with known names only: a name that is mistyped
 * would have no effect, and nobody would know. Throws BAD_REQUEST `options`.
 *
 * @param call as the caller wrote it: `acquire`.
 * @param names every option of the call.
 */
export function checkOptions(call: string, options: unknown, names: readonly string[]): void {
  if (options === undefined) return;
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    const given = options === null ? 'null' : typeof options;
    throw badRequest('options', `${call}: options is ${given}, wanted an object`);
  }
  for (const name of Object.keys(options)) {
    if (names.includes(name)) continue;
    throw badRequest('options', `${call}: no option ${name}; options: ${names.join(', ')}`);
  }
}

/** Checks a function that the caller gives. Throws BAD_REQUEST `work`. */
export function checkWork(call: string, work: unknown): void {
  if (typeof work === 'function') return;
  throw badRequest('work', `${call}: work is ${typeof work}, wanted a function`);
}

/** The names of AcquireOptions. */
export const ACQUIRE_OPTIONS: readonly (keyof AcquireOptions)[] = [
  'ttlMs',
  'waitMs',
  'deadlineMs',
  'metadata',
  'session',
  'requestId',
  'notAfterMs',
  'expectedRevision',
  'owner',
  'lockDelayMs',
  'holdMsMax',
  'traceId',
  'reentrant',
  'signal',
];
/** The names of CallOptions. */
export const CALL_OPTIONS: readonly (keyof CallOptions)[] = ['deadlineMs'];

/** Checks a lock name: 1 … 512 bytes of valid UTF-8 without control characters. */
export function checkName(name: string): string {
  if (typeof name !== 'string') throw badRequest('name', `name is ${typeof name}, wanted a string`);
  if (LONE_SURROGATE.test(name)) throw badRequest('name', 'name has half a surrogate pair');
  const bytes = ENCODER.encode(name);
  if (bytes.length < NAME_BYTES_MIN || bytes.length > NAME_BYTES_MAX) {
    const wanted = `${NAME_BYTES_MIN} to ${NAME_BYTES_MAX}`;
    throw badRequest('name', `name has ${bytes.length} bytes, wanted ${wanted}`);
  }
  if (!isPlainText(bytes, 0, bytes.length)) {
    throw badRequest('name', 'name has control characters');
  }
  return name;
}

/** The first bytes of names, maybe none. Throws BAD_REQUEST `prefix`. */
export function checkPrefix(prefix: string | undefined): string {
  if (typeof prefix !== 'string') {
    throw badRequest('prefix', `prefix is ${typeof prefix}, wanted a string`);
  }
  const { length } = ENCODER.encode(prefix);
  if (length <= NAME_BYTES_MAX && !LONE_SURROGATE.test(prefix)) return prefix;
  throw badRequest('prefix', `prefix has ${length} bytes, wanted at most ${NAME_BYTES_MAX}`);
}

/** The deadline of a call in ms. Throws BAD_REQUEST `deadline_ms`. */
export function checkDeadline(value: number | undefined): number {
  if (value === undefined) return REQUEST_DEADLINE_DEFAULT_MS;
  return checkMs('deadline_ms', value, REQUEST_DEADLINE_MAX_MS);
}

/** A number of ms from 1 to `greatest`. Throws BAD_REQUEST `field`. */
export function checkMs(field: string, value: number, greatest: number): number {
  if (typeof value === 'number' && value >= 1 && value <= greatest) return value;
  throw badRequest(field, `${optionOfField(field)} is ${shown(value)}, wanted 1 to ${greatest}`);
}

/** A TTL in ms, or null when absent. Throws BAD_REQUEST `ttl_ms`. */
export function checkTtl(value: number | undefined): number | null {
  return optionalInteger('ttl_ms', value, 1);
}

/** Metadata as bytes, or null when absent. Throws BAD_REQUEST `metadata`. */
export function checkMetadata(value: Uint8Array | string | undefined): Uint8Array | null {
  if (value === undefined) return null;
  const bytes = typeof value === 'string' ? ENCODER.encode(value) : value;
  if (!(bytes instanceof Uint8Array)) {
    throw badRequest('metadata', `metadata is ${typeof value}, wanted a string or bytes`);
  }
  if (bytes.length <= METADATA_BYTES_MAX) return bytes;
  const message = `metadata has ${bytes.length} bytes, wanted at most ${METADATA_BYTES_MAX}`;
  throw badRequest('metadata', message);
}

/** A text of 1 to `bytesMax` bytes, or null when absent. Throws BAD_REQUEST `field`. */
export function checkText(
  field: string,
  value: string | undefined,
  bytesMax: number,
): string | null {
  if (value === undefined) return null;
  const name = optionOfField(field);
  if (typeof value !== 'string') {
    throw badRequest(field, `${name} is ${shown(value)}, wanted a string`);
  }
  const length = ENCODER.encode(value).length;
  if (length >= 1 && length <= bytesMax) return value;
  throw badRequest(field, `${name} has ${length} bytes, wanted 1 to ${bytesMax}`);
}

/** Checks a request id of the caller: 1 … 64 bytes. Throws BAD_REQUEST `request`. */
export function checkRequestId(value: string | undefined): string | null {
  return checkText('request', value, REQUEST_ID_BYTES_MAX);
}

function checkTrace(value: Uint8Array | undefined): Uint8Array | null {
  if (value === undefined) return null;
  if (value.length === TRACE_ID_BYTES) return value;
  throw badRequest('trace', `traceId has ${value.length} bytes, wanted ${TRACE_ID_BYTES}`);
}

/** Checks an acquire. Throws BAD_REQUEST that names the option; nothing was sent. */
export function planAcquire(name: string, options: AcquireOptions): AcquirePlan {
  const requestId = checkRequestId(options.requestId);
  const notAfterMs = optionalInteger('not_after', options.notAfterMs, 0);
  if (options.session !== null && (requestId !== null || notAfterMs !== null)) {
    const field = requestId === null ? 'not_after' : 'request';
    throw badRequest(field, 'requestId and notAfterMs go with `session: null` only');
  }
  const expectedRevision = optionalInteger('expected_revision', options.expectedRevision, 0);
  const waitMs =
    optionalInteger('wait_ms', options.waitMs, 0) ??
    (expectedRevision === null ? WAIT_DEFAULT_MS : 0);
  if (expectedRevision !== null && waitMs > 0) {
    throw badRequest('expected_revision', 'expectedRevision goes with waitMs 0 only');
  }
  return {
    name: checkName(name),
    ttlMs: checkTtl(options.ttlMs),
    waitMs,
    deadlineMs: checkDeadline(options.deadlineMs),
    extensionMs: waitMs,
    metadata: checkMetadata(options.metadata),
    requestId,
    notAfterMs,
    expectedRevision,
    owner: checkText('owner', options.owner, OWNER_BYTES_MAX),
    lockDelayMs: optionalInteger('lock_delay_ms', options.lockDelayMs, 0),
    holdMsMax: optionalInteger('hold_ms_max', options.holdMsMax, 1),
    traceId: checkTrace(options.traceId),
    signal: options.signal,
  };
}
