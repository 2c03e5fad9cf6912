/**
 * The records of the naive lock machine.
 *
 * Owns: their shapes and the deadlines that follow from them (docs/SEMANTICS.md, Leases and Waits).
 * Never: effects. Used by: naive machine.
 */

import type { ModelOutcome } from './model-types.js';

/** A request id that is known: a result, a wait that stands, or an acknowledgement. */
export interface RequestRecord {
  /** The parameters compared; null for a cancelled id, which any parameters match. */
  readonly parameters: string | null;
  readonly notAfter: number;
  state: 'pending' | 'final' | 'acknowledged';
  /** The result when final; Queued while pending. */
  outcome: ModelOutcome;
  /** Free-form ids: the result is dead from here on. */
  deadAt: number;
}

export interface SessionRecord {
  readonly number: number;
  readonly principal: number;
  ttlMs: number;
  lastRenewal: number;
  deadline: number;
  state: 'live' | 'expired' | 'closed';
  /** Its table of results is dead from here on, once it ended. */
  deadAt: number;
  floor: number;
  readonly table: Map<number, RequestRecord>;
}

export interface LeaseRecord {
  readonly token: number;
  readonly name: string;
  readonly principal: number;
  readonly session: SessionRecord | null;
  readonly granted: number;
  ttlMs: number;
  floor: number;
  ownRenewal: number;
  /** Absent is not empty. */
  metadata: string | undefined;
}

export interface WaitRecord {
  readonly place: number;
  readonly name: string;
  readonly principal: number;
  /** null: an implicit session keeps it, by keep-alives. */
  readonly session: SessionRecord | null;
  readonly queued: number;
  readonly waitMs: number;
  readonly ttlMs: number;
  readonly metadata: string | undefined;
  readonly request: RequestRecord;
  /** When the implicit session lapses. */
  lapse: number;
}

export interface EndedLease {
  readonly token: number;
  readonly principal: number;
  /** LeaseEnd. */
  readonly how: number;
  readonly revision: number;
}

/** No new acquires of a name, or of every name that begins with it. */
export interface DisabledRule {
  readonly name: string;
  readonly isPrefix: boolean;
  /** Since when. */
  readonly revision: number;
}

export interface LockRecord {
  readonly name: string;
  lastRevision: number;
}

/** Deadline of a lease in cluster time. */
export function leaseDeadline(lease: LeaseRecord): number {
  const renewed = Math.max(lease.granted, lease.ownRenewal, lease.session?.lastRenewal ?? 0);
  const own = Math.max(lease.floor, renewed + lease.ttlMs);
  return lease.session === null ? own : Math.min(lease.session.deadline, own);
}

/** When the session, or the implicit one, no longer carries the wait. */
export function waitCarriedUntil(wait: WaitRecord): number {
  return wait.session === null ? wait.lapse : wait.session.deadline;
}

/** Deadline of a wait in cluster time. */
export function waitDeadline(wait: WaitRecord): number {
  return Math.min(wait.queued + wait.waitMs, waitCarriedUntil(wait));
}

/** True when the wait's own time is what ends it, also on a tie. */
export function isTimedOut(wait: WaitRecord): boolean {
  return wait.queued + wait.waitMs <= waitCarriedUntil(wait);
}
