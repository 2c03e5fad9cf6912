/**
 * Encodes replies: [correlation, code, cluster_time|nil, replay, field, ...].
 *
 * Owns: which fields follow which code, in which order (docs/PROTOCOL.md). Never: the frame around
 * them, or an allocation for an outcome of the lock machine. Used by: replica.
 */
import { CommandKind } from '../core/locks/command.js';
import { type Outcome, OutcomeCode } from '../core/locks/outcome.js';
import type { LookupState } from '../core/locks/readings.js';
import { ERROR_CODE_MIN, ErrorCode } from './errors.js';
import {
  HEADER_BYTES_MAX,
  highOf,
  INTEGER_BYTES_MAX,
  PACKED_ID_BYTES,
  type PackValue,
  putArrayHeader,
  putBinary,
  putBoolean,
  putHalves,
  putId,
  putNil,
  putOptional,
  putUnsigned,
  putUtf8,
  writeText,
  writeValue,
} from './msgpack-writer.js';
import type { OutBuffer } from './out-buffer.js';

/** More than any outcome takes without its blob: 12 integers, two ids, a header. */
const OUTCOME_BYTES_MAX = 12 * INTEGER_BYTES_MAX + 2 * PACKED_ID_BYTES + 2 * HEADER_BYTES_MAX;
const HEAD_FIELDS = 4;

/**
 * Appends the reply to `correlation` that `outcome` is. Reads `code` and `kind` to know which of
 * its fields are meaningful; its blob is copied.
 */
export function encodeOutcome(out: OutBuffer, correlation: number, outcome: Outcome): void {
  out.reserve(OUTCOME_BYTES_MAX + outcome.blob.length);
  const bytes = out.bytes;
  const fields = outcomeFields(outcome);
  let at = putArrayHeader(bytes, out.length, HEAD_FIELDS + fields);
  at = putUnsigned(bytes, at, correlation);
  out.length = putOutcome(bytes, at, outcome, fields);
}

/** Fields after the head. */
function outcomeFields(outcome: Outcome): number {
  if (outcome.code === OutcomeCode.Ok) return grantedFields(outcome);
  if (outcome.code === OutcomeCode.Queued) return 2;
  switch (outcome.code) {
    case OutcomeCode.LockBusy:
      return 7;
    case OutcomeCode.StaleLease:
      return 4;
    case OutcomeCode.Conflict:
      return outcome.kind === CommandKind.ForceRelease ? 7 : 2;
    case OutcomeCode.BadRequest:
    case OutcomeCode.Limit:
    case OutcomeCode.Disabled:
      return 3;
    default:
      return 2;
  }
}

function grantedFields(outcome: Outcome): number {
  switch (outcome.kind) {
    case CommandKind.Acquire:
      return 5;
    case CommandKind.Renew:
      return 3;
    case CommandKind.Release:
      return 1;
    case CommandKind.SessionOpen:
    case CommandKind.SessionTakeOver:
      return 4;
    case CommandKind.SessionRenew:
      return 2;
    case CommandKind.Cancel:
      return isGrantCancelled(outcome) ? 6 : 1;
    case CommandKind.ForceRelease:
      return 6;
    case CommandKind.Disable:
    case CommandKind.Enable:
    case CommandKind.ExpireSession:
    case CommandKind.ReportRefusal:
      return 1;
    default:
      return 0;
  }
}

/** The cancelled request had been granted: its grant's fields follow. */
function isGrantCancelled(outcome: Outcome): boolean {
  return outcome.cause === OutcomeCode.Ok && outcome.token !== 0;
}

/** Writes everything after the correlation; `fields` is outcomeFields(outcome). */
function putOutcome(bytes: Uint8Array, from: number, outcome: Outcome, fields: number): number {
  let at = putUnsigned(bytes, from, outcome.code);
  at = putEntryTime(bytes, at, outcome);
  at = putBoolean(bytes, at, outcome.replay);
  if (outcome.code >= ERROR_CODE_MIN) return putRefused(bytes, at, outcome, fields);
  if (outcome.code === OutcomeCode.Queued) {
    at = putRevision(bytes, at, outcome);
    return putUnsigned(bytes, at, outcome.ahead);
  }
  return putGranted(bytes, at, outcome);
}

function putGranted(bytes: Uint8Array, at: number, outcome: Outcome): number {
  switch (outcome.kind) {
    case CommandKind.Acquire:
      return putGrant(bytes, at, outcome);
    case CommandKind.Release:
      return putRevision(bytes, at, outcome);
    case CommandKind.Renew:
      return putToken(bytes, putTerm(bytes, at, outcome), outcome);
    case CommandKind.SessionRenew:
      return putTerm(bytes, at, outcome);
    case CommandKind.SessionOpen:
    case CommandKind.SessionTakeOver:
      return putSession(bytes, at, outcome);
    case CommandKind.Cancel:
      at = putUnsigned(bytes, at, outcome.cause);
      return isGrantCancelled(outcome) ? putGrant(bytes, at, outcome) : at;
    case CommandKind.ForceRelease:
      return putHolder(bytes, putRevision(bytes, at, outcome), outcome);
    default:
      return outcomeFields(outcome) === 1 ? putRevision(bytes, at, outcome) : at;
  }
}

/** lease, token, revision, deadline, ttl. */
function putGrant(bytes: Uint8Array, from: number, outcome: Outcome): number {
  let at = putOutcomeId(bytes, from, outcome);
  at = putToken(bytes, at, outcome);
  at = putRevision(bytes, at, outcome);
  return putTerm(bytes, at, outcome);
}

/** deadline, ttl. */
function putTerm(bytes: Uint8Array, at: number, outcome: Outcome): number {
  return putUnsigned(bytes, putDeadline(bytes, at, outcome), outcome.ttlMs);
}

/** session, secret, deadline, ttl. */
function putSession(bytes: Uint8Array, from: number, outcome: Outcome): number {
  let at = putOutcomeId(bytes, from, outcome);
  at = putSecret(bytes, at, outcome);
  return putTerm(bytes, at, outcome);
}

/** message, retry_after_ms (both nil: the table has the words), then the detail of the code. */
function putRefused(bytes: Uint8Array, from: number, outcome: Outcome, fields: number): number {
  const at = putNil(bytes, putNil(bytes, from));
  switch (fields) {
    case 7:
      return putHolder(bytes, at, outcome);
    case 4:
      return putRevision(bytes, putUnsigned(bytes, at, outcome.cause), outcome);
    case 3:
      if (outcome.code === OutcomeCode.Disabled) return putRevision(bytes, at, outcome);
      return putUtf8(bytes, at, outcome.blob);
    default:
      return at;
  }
}

/** token, since, deadline, principal, metadata of who stands in the way, or was removed. */
function putHolder(bytes: Uint8Array, from: number, outcome: Outcome): number {
  let at = putToken(bytes, from, outcome);
  at = putSince(bytes, at, outcome);
  at = putDeadline(bytes, at, outcome);
  at = putUnsigned(bytes, at, outcome.holderPrincipal);
  return putBinary(bytes, at, outcome.blob);
}

/* Numbers that pass 2^31 within hours are handed over in halves: see putHalves. */

function putToken(bytes: Uint8Array, at: number, outcome: Outcome): number {
  return putHalves(bytes, at, highOf(outcome.token), outcome.token | 0);
}

function putRevision(bytes: Uint8Array, at: number, outcome: Outcome): number {
  return putHalves(bytes, at, highOf(outcome.revision), outcome.revision | 0);
}

function putDeadline(bytes: Uint8Array, at: number, outcome: Outcome): number {
  return putHalves(bytes, at, highOf(outcome.deadline), outcome.deadline | 0);
}

function putEntryTime(bytes: Uint8Array, at: number, outcome: Outcome): number {
  return putHalves(bytes, at, highOf(outcome.entryTime), outcome.entryTime | 0);
}

function putSince(bytes: Uint8Array, at: number, outcome: Outcome): number {
  return putHalves(bytes, at, highOf(outcome.holderSince), outcome.holderSince | 0);
}

function putSecret(bytes: Uint8Array, at: number, outcome: Outcome): number {
  const first = outcome.secret0 | 0;
  const second = outcome.secret1 | 0;
  return putId(bytes, at, first, second, outcome.secret2 | 0, outcome.secret3 | 0);
}

function putOutcomeId(bytes: Uint8Array, at: number, outcome: Outcome): number {
  return putId(bytes, at, outcome.id0 | 0, outcome.id1 | 0, outcome.id2 | 0, outcome.id3 | 0);
}

const NO_DETAIL: readonly PackValue[] = [];

/**
 * Appends a refusal that a node decides without the log.
 * `correlation` 0 makes it a notice to the whole connection. `code` is an ErrorCode from 10 up,
 * `message` null when the table's words suffice, `retryAfterMs` -1 for none, `detail` the fields
 * that PROTOCOL.md lists for the code (BadRequest, Limit: the field name).
 */
export function encodeRefusal(
  out: OutBuffer,
  correlation: number,
  code: number,
  message: string | null = null,
  retryAfterMs = -1,
  detail: readonly PackValue[] = NO_DETAIL,
): void {
  out.reserve(HEADER_BYTES_MAX + 3 * INTEGER_BYTES_MAX);
  let at = putArrayHeader(out.bytes, out.length, HEAD_FIELDS + 2 + detail.length);
  at = putUnsigned(out.bytes, at, correlation);
  at = putUnsigned(out.bytes, at, code);
  at = putBoolean(out.bytes, putNil(out.bytes, at), false);
  out.length = message === null ? putNil(out.bytes, at) : at;
  if (message !== null) writeText(out, message);
  out.reserve(INTEGER_BYTES_MAX);
  out.length = putOptional(out.bytes, out.length, retryAfterMs);
  for (let index = 0; index < detail.length; index += 1) writeValue(out, detail[index]!);
}

/** Appends NOT_LEADER; `leaderId` 0 and an empty address when no leader is known. */
export function encodeNotLeader(
  out: OutBuffer,
  correlation: number,
  leaderId: number,
  address: string,
): void {
  encodeRefusal(out, correlation, ErrorCode.NotLeader, null, -1, [leaderId, address]);
}

/**
 * Appends a reply with any fields, off the hot path.
 * `code` is Ok or another number below 10; `clusterTime` -1 when there is none to give.
 */
export function encodeFields(
  out: OutBuffer,
  correlation: number,
  code: number,
  clusterTime: number,
  fields: readonly PackValue[],
): void {
  out.reserve(HEADER_BYTES_MAX + 3 * INTEGER_BYTES_MAX + 1);
  let at = putArrayHeader(out.bytes, out.length, HEAD_FIELDS + fields.length);
  at = putUnsigned(out.bytes, at, correlation);
  at = putUnsigned(out.bytes, at, code);
  at = putOptional(out.bytes, at, clusterTime);
  out.length = putBoolean(out.bytes, at, false);
  for (const field of fields) writeValue(out, field);
}

/**
 * Appends the reply to a lookup: state, then for done and queued the stored reply as an array
 * [code, cluster_time, replay, field, ...], else nil.
 */
export function encodeLookup(
  out: OutBuffer,
  correlation: number,
  clusterTime: number,
  state: LookupState,
  outcome: Outcome | null,
): void {
  encodeFields(out, correlation, OutcomeCode.Ok, clusterTime, [state, null]);
  if (outcome === null) return;
  out.length -= 1; // the nil that stands in the stored reply's place
  out.reserve(OUTCOME_BYTES_MAX + outcome.blob.length);
  const fields = outcomeFields(outcome);
  const at = putArrayHeader(out.bytes, out.length, HEAD_FIELDS - 1 + fields);
  out.length = putOutcome(out.bytes, at, outcome, fields);
}
