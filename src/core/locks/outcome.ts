/**
 * What `apply` answers: outcome codes and one reused record.
 *
 * Owns: the numbers of outcomes that the replicated machine decides (on the wire and in stored
 * results for ever; codes that a node decides before the log start at 40, see wire/errors.ts).
 * Never: texts, HTTP statuses, retry rules. Read by: lock machine, wire, replica.
 */

export const OutcomeCode = {
  Ok: 0,
  /** The acquire stands in the queue; its final result comes later under the same request id. */
  Queued: 1,

  LockBusy: 10,
  WaitTimeout: 11,
  Cancelled: 12,
  Deadlock: 13,
  Disabled: 14,
  ModeMismatch: 15,
  SessionExpired: 16,
  StaleLease: 17,
  RequestMismatch: 18,
  RequestForgotten: 19,
  Conflict: 20,
  Limit: 21,
  /** The request's not_after lay before the stamp of the entry that carried it. */
  DeadlinePassed: 22,
  BadRequest: 23,
  Forbidden: 24,
  StaleToken: 25,
} as const;
export type OutcomeCode = (typeof OutcomeCode)[keyof typeof OutcomeCode];

/** How a lease ended. 0: never issued, or ended longer ago than the ring of ended leases keeps. */
export const LeaseEnd = {
  Unknown: 0,
  Released: 1,
  Expired: 2,
  SessionExpired: 3,
  SessionClosed: 4,
  Forced: 5,
  TakenOver: 6,
  /** The state was restored from a time when the lease was held. */
  Restored: 7,
} as const;
export type LeaseEnd = (typeof LeaseEnd)[keyof typeof LeaseEnd];

const NO_BYTES = new Uint8Array(0);

/**
 * The answer to one command, or the final answer to a wait. Reused by whoever passes it in: read
 * it before the next call. Numbers that do not apply are 0; `blob` is empty.
 */
export class Outcome {
  code = 0;
  /** The command this answers (CommandKind): it selects the fields that are meaningful. */
  kind = 0;
  /** True when the effect is an earlier entry's: the result was stored, or the wait stood. */
  replay = false;
  /**
   * Cluster time in ms of the entry that had the effect: C of the safe deadline. For a repeated
   * Release or SessionClose under another request id, that of the entry which answers.
   */
  entryTime = 0;

  /** Lease id (Acquire) or session id (SessionOpen, SessionTakeOver): four signed words. */
  id0 = 0;
  id1 = 0;
  id2 = 0;
  id3 = 0;
  /** Session secret (SessionOpen, SessionTakeOver). */
  secret0 = 0;
  secret1 = 0;
  secret2 = 0;
  secret3 = 0;

  /** Fencing token of the grant; for LockBusy the holder's token, 0 when nobody holds. */
  token = 0;
  /** Revision of the effect; for Queued the revision of the place (the wait's number). */
  revision = 0;
  /** Deadline in cluster time, ms; for LockBusy the holder's. */
  deadline = 0;
  /** Granted TTL in ms. */
  ttlMs = 0;
  /** Queued: waiters ahead, the holder not counted; 0 for a replay of a wait that stood. */
  ahead = 0;
  /** StaleLease: how the lease ended (LeaseEnd). */
  cause = 0;
  /** LockBusy: cluster time at which the holder was granted, and its principal's number. */
  holderSince = 0;
  holderPrincipal = 0;
  /** LockBusy: the holder's metadata. BadRequest, Limit: the name of the offending field. */
  blob: Uint8Array = NO_BYTES;

  reset(): void {
    this.code = 0;
    this.kind = 0;
    this.replay = false;
    this.entryTime = 0;
    this.id0 = 0;
    this.id1 = 0;
    this.id2 = 0;
    this.id3 = 0;
    this.secret0 = 0;
    this.secret1 = 0;
    this.secret2 = 0;
    this.secret3 = 0;
    this.token = 0;
    this.revision = 0;
    this.deadline = 0;
    this.ttlMs = 0;
    this.ahead = 0;
    this.cause = 0;
    this.holderSince = 0;
    this.holderPrincipal = 0;
    this.blob = NO_BYTES;
  }
}
