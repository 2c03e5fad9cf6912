/**
 * The one table of errors: number, code, meaning, whether to retry, what became of the operation.
 *
 * Owns: the numbers of what a node or a client decides without the lock machine, 40 and above, and
 * the public words for all of them; every one is on the wire for ever. Never: how a message reads
 * in one case. docs/ERRORS.md is generated from it. Used by: wire, replica, HTTP, client, docs.
 */
import { OutcomeCode } from '../core/locks/outcome.js';

/** Every number that can stand in the code place of a reply. Below 10 it is no error. */
export const ErrorCode = {
  ...OutcomeCode,

  /** A part of a watch: more follow under the same correlation. */
  Watching: 2,

  Unauthenticated: 40,
  NotLeader: 41,
  NoQuorum: 42,
  Overloaded: 43,
  UnknownOutcome: 44,
  TooLarge: 45,
  UnsupportedVersion: 46,
  ShuttingDown: 47,
  Compacted: 48,
  CrossShard: 49,

  /** Never sent: the client's own verdict that its safe deadline has passed. */
  LeaseExpired: 60,
} as const;
export type ErrorCode = (typeof ErrorCode)[keyof typeof ErrorCode];

/** The least number that is an error. */
export const ERROR_CODE_MIN = 10;

/** What became of the operation: it had no effect, it had one, or nobody here can say. */
export type ErrorOutcome = 'none' | 'applied' | 'unknown';

export interface ErrorRow {
  readonly number: ErrorCode;
  /** Stable public name. */
  readonly code: string;
  readonly meaning: string;
  /** True when the same request, under the same id, may succeed later. */
  readonly retryable: boolean;
  readonly outcome: ErrorOutcome;
  /** Status of the HTTP interface. */
  readonly status: number;
}

type Retry = 'retry' | 'final';

function row(
  number: ErrorCode,
  code: string,
  retry: Retry,
  outcome: ErrorOutcome,
  status: number,
  meaning: string,
): ErrorRow {
  return { number, code, meaning, retryable: retry === 'retry', outcome, status };
}

const DECIDED_BY_THE_LOG: readonly ErrorRow[] = [
  row(
    OutcomeCode.LockBusy,
    'LOCK_BUSY',
    'retry',
    'none',
    409,
    'Somebody holds the lock or waits for it, and the request would not wait. Names the holder.',
  ),
  row(
    OutcomeCode.WaitTimeout,
    'WAIT_TIMEOUT',
    'retry',
    'none',
    408,
    'The place in the queue ran out of its wait_ms before the lock was free.',
  ),
  row(
    OutcomeCode.Cancelled,
    'CANCELLED',
    'final',
    'none',
    409,
    'The wait was cancelled, or its session was closed, before it was granted.',
  ),
  row(
    OutcomeCode.Deadlock,
    'DEADLOCK',
    'retry',
    'none',
    409,
    'Waiting would close a cycle of owners. Release something first.',
  ),
  row(
    OutcomeCode.Disabled,
    'DISABLED',
    'final',
    'none',
    409,
    'An administrator disabled the lock for new acquires.',
  ),
  row(
    OutcomeCode.ModeMismatch,
    'MODE_MISMATCH',
    'final',
    'none',
    409,
    'The lock is in use with another mode or capacity.',
  ),
  row(
    OutcomeCode.SessionExpired,
    'SESSION_EXPIRED',
    'final',
    'unknown',
    410,
    'The session is dead or was never issued. This attempt had no effect; an earlier one under ' +
      'the same sequence may have had one.',
  ),
  row(
    OutcomeCode.StaleLease,
    'STALE_LEASE',
    'final',
    'none',
    410,
    'The lease has ended or was never issued. Says how it ended when that is still known.',
  ),
  row(
    OutcomeCode.RequestMismatch,
    'REQUEST_MISMATCH',
    'final',
    'none',
    409,
    'The request id was used before with other parameters.',
  ),
  row(
    OutcomeCode.RequestForgotten,
    'REQUEST_FORGOTTEN',
    'final',
    'unknown',
    410,
    'The request was answered and acknowledged before; its result is no longer kept.',
  ),
  row(
    OutcomeCode.Conflict,
    'CONFLICT',
    'final',
    'none',
    409,
    'The lock changed after the expected revision, or is held by another lease than the one named.',
  ),
  row(
    OutcomeCode.Limit,
    'LIMIT',
    'retry',
    'none',
    429,
    'A bound was reached; the field says which.',
  ),
  row(
    OutcomeCode.DeadlinePassed,
    'DEADLINE_PASSED',
    'final',
    'none',
    408,
    'The request arrived after its own deadline or its not_after.',
  ),
  row(
    OutcomeCode.BadRequest,
    'BAD_REQUEST',
    'final',
    'none',
    400,
    'The request is malformed or out of range; the field says where.',
  ),
  row(
    OutcomeCode.Forbidden,
    'FORBIDDEN',
    'final',
    'none',
    403,
    'The principal may not do this to this name.',
  ),
  row(
    OutcomeCode.StaleToken,
    'STALE_TOKEN',
    'final',
    'none',
    410,
    'A guard has seen a newer fencing token.',
  ),
];

const DECIDED_BY_A_NODE: readonly ErrorRow[] = [
  row(
    ErrorCode.Unauthenticated,
    'UNAUTHENTICATED',
    'final',
    'none',
    401,
    'No valid credentials, or a request before hello.',
  ),
  row(
    ErrorCode.NotLeader,
    'NOT_LEADER',
    'retry',
    'none',
    503,
    'This node does not lead. Names the leader when it knows one.',
  ),
  row(
    ErrorCode.NoQuorum,
    'NO_QUORUM',
    'retry',
    'none',
    503,
    'No majority can be reached, so nothing was attempted.',
  ),
  row(
    ErrorCode.Overloaded,
    'OVERLOADED',
    'retry',
    'none',
    429,
    'A queue is full or too old. Come back after retry_after_ms.',
  ),
  row(
    ErrorCode.UnknownOutcome,
    'UNKNOWN_OUTCOME',
    'retry',
    'unknown',
    504,
    'The operation was handed to the log and its result did not come in time. Ask again under ' +
      'the same request id.',
  ),
  row(
    ErrorCode.TooLarge,
    'TOO_LARGE',
    'final',
    'none',
    413,
    'A frame, an operation or a body exceeds its bound.',
  ),
  row(
    ErrorCode.UnsupportedVersion,
    'UNSUPPORTED_VERSION',
    'final',
    'none',
    400,
    'The frame version or protocol version is not spoken here.',
  ),
  row(
    ErrorCode.ShuttingDown,
    'SHUTTING_DOWN',
    'retry',
    'none',
    503,
    'The node is stopping. Use another one.',
  ),
  row(
    ErrorCode.Compacted,
    'COMPACTED',
    'final',
    'none',
    410,
    'The revision asked for is older than what is kept. Names the oldest.',
  ),
  row(
    ErrorCode.CrossShard,
    'CROSS_SHARD',
    'final',
    'none',
    400,
    'Reserved: names that cannot share one commit.',
  ),
];

const DECIDED_BY_THE_CLIENT: readonly ErrorRow[] = [
  row(
    ErrorCode.LeaseExpired,
    'LEASE_EXPIRED',
    'final',
    'unknown',
    410,
    'The lease may have ended: its safe deadline passed without a renewal that was answered.',
  ),
];

/** All errors, in the order of their numbers. */
export const ERROR_ROWS: readonly ErrorRow[] = [
  ...DECIDED_BY_THE_LOG,
  ...DECIDED_BY_A_NODE,
  ...DECIDED_BY_THE_CLIENT,
];

function indexRows(rows: readonly ErrorRow[]): ReadonlyMap<number, ErrorRow> {
  const byNumber = new Map<number, ErrorRow>();
  const codes = new Set<string>();
  for (const entry of rows) {
    if (byNumber.has(entry.number)) throw new Error(`error number ${entry.number} stands twice`);
    if (codes.has(entry.code)) throw new Error(`error code ${entry.code} stands twice`);
    byNumber.set(entry.number, entry);
    codes.add(entry.code);
  }
  return byNumber;
}

const ROW_BY_NUMBER = indexRows(ERROR_ROWS);

const UNKNOWN_ROW: ErrorRow = {
  number: ErrorCode.UnknownOutcome,
  code: 'UNKNOWN_OUTCOME',
  meaning: 'The node answered with a code that this build does not know.',
  retryable: false,
  outcome: 'unknown',
  status: 500,
};

/** The row of an error number; for a number that this build does not know, a cautious one. */
export function errorRow(number: number): ErrorRow {
  return ROW_BY_NUMBER.get(number) ?? UNKNOWN_ROW;
}
