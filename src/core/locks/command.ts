/**
 * The operations that the replicated log can carry, as numbers and as one reused record.
 *
 * Owns: command numbers and modes (they are on the wire and on disk for ever) and the shape that
 * a decoded operation has. Never: bytes on a wire; wire/operation.ts fills a Command from them.
 * Read by: the lock machine, wire (tables, decoder), replica.
 */
import { ACKNOWLEDGED_SINGLES_MAX } from '../../limits.js';

/** Numbers below 32 never reach the log: they are answered by the node that is asked. */
export const CommandKind = {
  Hello: 1,
  Authenticate: 2,
  Ping: 3,
  Members: 4,
  SessionAttach: 5,
  Get: 6,
  List: 7,
  Lookup: 8,
  Check: 9,
  Status: 10,
  Watch: 11,
  Unwatch: 12,
  Transfer: 13,
  /** The caller of a queued acquire has gone: this connection keeps its place alive no more. */
  Abandon: 14,
  Audit: 15,
  Explain: 16,

  SessionOpen: 32,
  SessionRenew: 33,
  SessionClose: 34,
  SessionTakeOver: 35,
  Acquire: 36,
  Renew: 37,
  Release: 38,
  Cancel: 39,
  /** A node's batched keep-alive of the implicit sessions whose connections it holds. */
  KeepWaits: 40,
  /** Changes the replicated settings. */
  Settings: 41,

  /* What an operator does, with a name and a reason, and what a guard reports. */
  ForceRelease: 42,
  Disable: 43,
  Enable: 44,
  ExpireSession: 45,
  /** A guard tells that it refused a stale token. */
  ReportRefusal: 46,
  /** Says that the state behind it was restored. Written by the restore itself, never proposed. */
  Restored: 62,
} as const;
export type CommandKind = (typeof CommandKind)[keyof typeof CommandKind];

/** The first command number that is logged. */
export const LOGGED_COMMAND_MIN = 32;

/** How a lock may be held. Only Exclusive is at feature level 1; the others have their place. */
export const Mode = { Exclusive: 0, Shared: 1, Semaphore: 2 } as const;
export type Mode = (typeof Mode)[keyof typeof Mode];

/** How a request names itself (invariant I6). */
export const RequestKind = { None: 0, Sequence: 1, Free: 2 } as const;
export type RequestKind = (typeof RequestKind)[keyof typeof RequestKind];

/** The version of the operation's fields; above the cluster's feature level it is refused. */
export const OPERATION_VERSION = 1;

/** The principal of every client until there are credentials. 0 is the cluster itself. */
export const PRINCIPAL_CLUSTER = 0;
export const PRINCIPAL_BUILT_IN = 1;

const NO_BYTES = new Uint8Array(0);

/**
 * One decoded operation. Reused: the decoder sets every field each time. Byte fields are ranges of
 * `bytes`, which belongs to the caller and is valid until `apply` of this command returns; the
 * machine copies what it keeps. Absent is -1 for numbers and offset -1 for ranges, so that an
 * absent field stays distinguishable from an empty one (parameter digest, I6).
 */
export class Command {
  kind = 0;
  principal = 0;
  bytes: Uint8Array = NO_BYTES;

  requestKind: RequestKind = RequestKind.None;
  /** Sequence in its session, 1 … SAFE_INTEGER_MAX, when requestKind is Sequence. */
  sequence = -1;
  /** Range of the free-form id when requestKind is Free; for Cancel see targetKind. */
  requestOffset = -1;
  requestBytes = 0;

  hasSession = false;
  /** The session's id as four big-endian words, signed: small integers to the engine. */
  session0 = 0;
  session1 = 0;
  session2 = 0;
  session3 = 0;

  /** Every sequence up to here is acknowledged; -1 when the request says nothing. */
  acknowledgedMark = -1;
  /** Single acknowledged sequences above the mark: the first acknowledgedCount elements. */
  readonly acknowledged = new Float64Array(ACKNOWLEDGED_SINGLES_MAX);
  acknowledgedCount = 0;

  traceOffset = -1;

  nameOffset = -1;
  nameBytes = 0;

  hasLease = false;
  /**
   * The lease's id as four big-endian words, signed (Renew, Release, ForceRelease); the id of the
   * session to end (ExpireSession).
   */
  lease0 = 0;
  lease1 = 0;
  lease2 = 0;
  lease3 = 0;

  /** The session's secret (SessionTakeOver). */
  secret0 = 0;
  secret1 = 0;
  secret2 = 0;
  secret3 = 0;

  ttlMs = -1;
  waitMs = -1;
  mode = -1;
  permits = -1;
  capacity = -1;
  expectedRevision = -1;
  /** Who would deadlock (Acquire, reserved); who asks, as they name themselves (admin commands). */
  ownerOffset = -1;
  ownerBytes = 0;
  /** Metadata; why it is asked for (admin commands); the guard's kind (ReportRefusal). */
  metadataOffset = -1;
  metadataBytes = 0;
  /** Cluster time in ms after which a first arrival has no effect. */
  notAfter = -1;
  lockDelayMs = -1;
  holdMsMax = -1;

  /** Cancel: the id of the wait to cancel, in the form that its request used. */
  targetKind: RequestKind = RequestKind.None;
  targetSequence = -1;
  targetOffset = -1;
  targetBytes = 0;

  /** ForceRelease: the token that is meant. ReportRefusal: the token that was refused. */
  token = -1;
  /** ReportRefusal: the newest token that the resource has seen, and how many were refused. */
  mark = -1;
  refusals = -1;
  /** Disable, Enable: the name is a prefix. */
  isPrefix = false;

  /** KeepWaits: the queued revisions to keep alive; Settings: pairs of (setting, value). */
  numbers: Float64Array = new Float64Array(0);
  numbersCount = 0;

  /** Sets every field to absent, for the decoder. */
  reset(): void {
    this.kind = 0;
    this.principal = 0;
    this.bytes = NO_BYTES;
    this.requestKind = RequestKind.None;
    this.sequence = -1;
    this.requestOffset = -1;
    this.requestBytes = 0;
    this.hasSession = false;
    this.session0 = 0;
    this.session1 = 0;
    this.session2 = 0;
    this.session3 = 0;
    this.acknowledgedMark = -1;
    this.acknowledgedCount = 0;
    this.traceOffset = -1;
    this.nameOffset = -1;
    this.nameBytes = 0;
    this.hasLease = false;
    this.lease0 = 0;
    this.lease1 = 0;
    this.lease2 = 0;
    this.lease3 = 0;
    this.secret0 = 0;
    this.secret1 = 0;
    this.secret2 = 0;
    this.secret3 = 0;
    this.resetArguments();
  }

  private resetArguments(): void {
    this.ttlMs = -1;
    this.waitMs = -1;
    this.mode = -1;
    this.permits = -1;
    this.capacity = -1;
    this.expectedRevision = -1;
    this.ownerOffset = -1;
    this.ownerBytes = 0;
    this.metadataOffset = -1;
    this.metadataBytes = 0;
    this.notAfter = -1;
    this.lockDelayMs = -1;
    this.holdMsMax = -1;
    this.targetKind = RequestKind.None;
    this.targetSequence = -1;
    this.targetOffset = -1;
    this.targetBytes = 0;
    this.token = -1;
    this.mark = -1;
    this.refusals = -1;
    this.isPrefix = false;
    this.numbersCount = 0;
  }
}
