/**
 * What a decoder found wrong with an operation: a number on the hot path, a field name for people.
 *
 * Owns: the numbers (in memory only) and the field names that BAD_REQUEST carries, which are on
 * the wire for ever. Never: texts. Used by: operation and query decoders (return), admission
 * (turns a fault into a refusal).
 */
import { ErrorCode } from './errors.js';

export const Fault = {
  None: 0,
  /** The operation is larger than OPERATION_BYTES_MAX: TOO_LARGE, everything else BAD_REQUEST. */
  Size: 1,
  /** The operation is no array, is cut off, or has bytes after its last element. */
  Operation: 2,
  Command: 3,
  /** More elements than the command has at this feature level. */
  Fields: 4,
  Request: 5,
  Session: 6,
  Acknowledged: 7,
  Trace: 8,
  Name: 9,
  TtlMs: 10,
  WaitMs: 11,
  Mode: 12,
  Permits: 13,
  Capacity: 14,
  ExpectedRevision: 15,
  Owner: 16,
  Metadata: 17,
  NotAfter: 18,
  LockDelayMs: 19,
  HoldMsMax: 20,
  Lease: 21,
  Secret: 22,
  Target: 23,
  Places: 24,
  Settings: 25,
  Version: 26,
  ClientName: 27,
  Credential: 28,
  Stale: 29,
  AtLeastRevision: 30,
  Prefix: 31,
  Cursor: 32,
  Limit: 33,
  Token: 34,
  NodeId: 35,
  Correlation: 36,
  Place: 37,
  Revision: 38,
  Snapshot: 39,
  Reason: 40,
} as const;
export type Fault = (typeof Fault)[keyof typeof Fault];

/** Field names by fault number. */
const FAULT_FIELDS: readonly string[] = [
  '',
  'operation',
  'operation',
  'command',
  'fields',
  'request',
  'session',
  'acknowledged',
  'trace',
  'name',
  'ttl_ms',
  'wait_ms',
  'mode',
  'permits',
  'capacity',
  'expected_revision',
  'owner',
  'metadata',
  'not_after',
  'lock_delay_ms',
  'hold_ms_max',
  'lease',
  'secret',
  'target',
  'places',
  'settings',
  'version',
  'client_name',
  'credential',
  'stale',
  'at_least_revision',
  'prefix',
  'cursor',
  'limit',
  'token',
  'node_id',
  'correlation',
  'place',
  'revision',
  'snapshot',
  'reason',
];

/** The offending field as BAD_REQUEST names it; empty for Fault.None. */
export function faultField(fault: number): string {
  return FAULT_FIELDS[fault] ?? '';
}

/** The error code a fault is refused with, 0 for Fault.None. */
export function faultCode(fault: number): number {
  if (fault === Fault.None) return 0;
  return fault === Fault.Size ? ErrorCode.TooLarge : ErrorCode.BadRequest;
}
