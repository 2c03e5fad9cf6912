/**
 * Who owns a lock and who is next: grants, ends, places in the queue, hand-over (I1, I2, I4, I7).
 *
 * Owns: every change of a lock's holder and queue, and the event that tells of it. Never: request
 * ids or parameters; commands have checked those. Called by: sweep, commands.
 */
import { assert } from '../../collections/assert.js';
import { EventKind } from './event.js';
import { DrawPurpose, type MachineState } from './machine-state.js';
import { LeaseEnd, OutcomeCode } from './outcome.js';
import { finishPending } from './requests.js';
import { onReservedLeft } from './reserved-locks.js';
import { NONE } from './tables/table.js';

/** When the lease dies: SEMANTICS, Leases. */
export function leaseDeadline(state: MachineState, lease: number): number {
  const leases = state.leases;
  const session = leases.session[lease] as number;
  const renewedAt = leases.renewedAt[lease] as number;
  const ttlMs = leases.ttlMs[lease] as number;
  const floor = leases.deadlineFloor[lease] as number;
  if (session === NONE) return Math.max(floor, renewedAt + ttlMs);
  const sessions = state.sessions;
  const kept = Math.max(renewedAt, sessions.renewedAt[session] as number);
  return Math.min(sessions.deadline[session] as number, Math.max(floor, kept + ttlMs));
}

/** When the wait's session, explicit or implicit, dies. */
function waitSessionDeadline(state: MachineState, wait: number): number {
  const session = state.waits.session[wait] as number;
  if (session !== NONE) return state.sessions.deadline[session] as number;
  return state.waits.keptUntil[wait] as number;
}

/** When the wait dies: its own bound or its session's, whichever comes first. */
export function waitDeadline(state: MachineState, wait: number): number {
  return Math.min(state.waits.until[wait] as number, waitSessionDeadline(state, wait));
}

/** The final result of a wait that died by itself. */
function deathOf(state: MachineState, wait: number): number {
  const until = state.waits.until[wait] as number;
  return until <= waitSessionDeadline(state, wait)
    ? OutcomeCode.WaitTimeout
    : OutcomeCode.SessionExpired;
}

/**
 * Gives a free lock to one owner and returns the lease's slot. `metadata` is a byte handle that the
 * lease takes over; `place` is the queue place of a waiter, 0 for a grant at once.
 */
export function grant(
  state: MachineState,
  lock: number,
  session: number,
  principal: number,
  ttlMs: number,
  metadata: number,
  place: number,
): number {
  const locks = state.locks;
  assert(locks.holder[lock] === NONE, 'I1: a lock is granted only when nobody holds it');
  assert(state.now >= state.grantsFrom, 'I2: nothing is granted in the grace of a restore');
  const token = state.nextRevision();
  assert(token > (locks.lastRevision[lock] as number), 'I2: a token exceeds all before it');
  state.nextDraw();
  const id = state.draw(DrawPurpose.Lease);
  const leases = state.leases;
  const lease = leases.create(id[0] as number, id[1] as number, id[2] as number, id[3] as number);
  leases.lock[lease] = lock;
  leases.session[lease] = session;
  leases.principal[lease] = principal;
  leases.token[lease] = token;
  leases.grantedAt[lease] = state.now;
  leases.renewedAt[lease] = state.now;
  leases.ttlMs[lease] = ttlMs;
  leases.deadlineFloor[lease] = 0;
  leases.metadata[lease] = metadata;
  if (session !== NONE) appendToSession(state, lease, session);
  leases.deadlines.push(lease, leaseDeadline(state, lease), token);
  locks.holder[lock] = lease;
  locks.lastRevision[lock] = token;
  locks.digest.touch(lock);
  state.countsOf(principal).leases += 1;
  const event = state.events.add();
  event.kind = EventKind.Granted;
  event.revision = token;
  event.token = token;
  event.place = place;
  event.cause = 0;
  event.principal = principal;
  event.name = locks.name[lock] as number;
  return lease;
}

/** Puts a lease at the end of its session's list, which is in token order. */
export function appendToSession(state: MachineState, lease: number, session: number): void {
  const { leases, sessions } = state;
  const last = sessions.lastLease[session] as number;
  leases.previousInSession[lease] = last;
  if (last === NONE) sessions.firstLease[session] = lease;
  else leases.nextInSession[last] = lease;
  sessions.lastLease[session] = lease;
}

function removeFromSession(state: MachineState, lease: number, session: number): void {
  const { leases, sessions } = state;
  const previous = leases.previousInSession[lease] as number;
  const next = leases.nextInSession[lease] as number;
  if (previous === NONE) sessions.firstLease[session] = next;
  else leases.nextInSession[previous] = next;
  if (next === NONE) sessions.lastLease[session] = previous;
  else leases.previousInSession[next] = previous;
}

/** Ends a lease and hands its lock over in the same entry. Returns the revision of the end. */
export function endLease(state: MachineState, lease: number, cause: number): number {
  const lock = state.leases.lock[lease] as number;
  const revision = endOnly(state, lease, cause);
  handOver(state, lock);
  return revision;
}

/** Ends a lease that is past its deadline, by the cause that applies to it. */
export function endOverdueLease(state: MachineState, lease: number): void {
  endLease(state, lease, overdueCause(state, lease));
}

function overdueCause(state: MachineState, lease: number): number {
  const session = state.leases.session[lease] as number;
  const isSessionDead =
    session !== NONE && state.now >= (state.sessions.deadline[session] as number);
  return isSessionDead ? LeaseEnd.SessionExpired : LeaseEnd.Expired;
}

function endOnly(state: MachineState, lease: number, cause: number): number {
  const { leases, locks } = state;
  const lock = leases.lock[lease] as number;
  assert(locks.holder[lock] === lease, 'I4: only the current lease of a lock can end');
  const revision = state.nextRevision();
  const principal = leases.principal[lease] as number;
  locks.holder[lock] = NONE;
  locks.lastRevision[lock] = revision;
  locks.digest.touch(lock);
  state.ended.add(
    leases.id0[lease] as number,
    leases.id1[lease] as number,
    leases.id2[lease] as number,
    leases.id3[lease] as number,
    principal,
    cause,
    revision,
  );
  const event = state.events.add();
  event.kind = EventKind.Ended;
  event.revision = revision;
  event.token = leases.token[lease] as number;
  event.place = 0;
  event.cause = cause;
  event.principal = principal;
  event.name = locks.name[lock] as number;
  const session = leases.session[lease] as number;
  if (session !== NONE) removeFromSession(state, lease, session);
  state.countsOf(principal).leases -= 1;
  leases.remove(lease);
  return revision;
}

/**
 * Puts an acquire at the end of the lock's queue and returns the wait's slot; `metadata` is a byte
 * handle that the wait takes over.
 */
export function enqueue(
  state: MachineState,
  lock: number,
  session: number,
  principal: number,
  ttlMs: number,
  waitMs: number,
  metadata: number,
): number {
  const { waits } = state;
  const place = state.nextRevision();
  const wait = waits.create(place);
  waits.lock[wait] = lock;
  waits.session[wait] = session;
  waits.principal[wait] = principal;
  waits.queuedAt[wait] = state.now;
  waits.until[wait] = state.now + waitMs;
  waits.keptUntil[wait] = state.now + state.settings.implicitLapseMs;
  waits.ttlMs[wait] = ttlMs;
  waits.metadata[wait] = metadata;
  linkWait(state, wait);
  waits.deadlines.push(wait, waitDeadline(state, wait), place);
  state.countsOf(principal).waits += 1;
  waitEvent(state, wait, EventKind.Queued, place, 0);
  return wait;
}

/** Puts a wait, whose place is the greatest, at the end of its lock's queue and session's list. */
export function linkWait(state: MachineState, wait: number): void {
  const { locks, waits, sessions } = state;
  const lock = waits.lock[wait] as number;
  const session = waits.session[wait] as number;
  const last = locks.lastWait[lock] as number;
  waits.previousInQueue[wait] = last;
  if (last === NONE) locks.firstWait[lock] = wait;
  else waits.nextInQueue[last] = wait;
  locks.lastWait[lock] = wait;
  locks.waiters[lock] = (locks.waiters[lock] as number) + 1;
  if (session !== NONE) {
    const lastInSession = sessions.lastWait[session] as number;
    waits.previousInSession[wait] = lastInSession;
    if (lastInSession === NONE) sessions.firstWait[session] = wait;
    else waits.nextInSession[lastInSession] = wait;
    sessions.lastWait[session] = wait;
  }
}

function waitEvent(
  state: MachineState,
  wait: number,
  kind: number,
  revision: number,
  cause: number,
): void {
  const event = state.events.add();
  event.kind = kind;
  event.revision = revision;
  event.token = 0;
  event.place = state.waits.place[wait] as number;
  event.cause = cause;
  event.principal = state.waits.principal[wait] as number;
  event.name = state.locks.name[state.waits.lock[wait] as number] as number;
}

/** A waiter leaves without a grant; `code` becomes its final result. */
export function leaveQueue(state: MachineState, wait: number, code: number): void {
  const revision = state.nextRevision();
  waitEvent(state, wait, EventKind.Left, revision, code);
  const completion = state.completions.add(state.waits.place[wait] as number);
  completion.outcome.code = code;
  completion.outcome.revision = revision;
  finishPending(state, state.waits.result[wait] as number, completion.outcome);
  const lock = state.waits.lock[wait] as number;
  removeWait(state, wait);
  onReservedLeft(state, lock);
}

/** A waiter that is past its deadline leaves, by the cause that applies to it. */
export function leaveOverdue(state: MachineState, wait: number): void {
  leaveQueue(state, wait, deathOf(state, wait));
}

function removeWait(state: MachineState, wait: number): void {
  const { locks, waits, sessions } = state;
  const lock = waits.lock[wait] as number;
  const previous = waits.previousInQueue[wait] as number;
  const next = waits.nextInQueue[wait] as number;
  if (previous === NONE) locks.firstWait[lock] = next;
  else waits.nextInQueue[previous] = next;
  if (next === NONE) locks.lastWait[lock] = previous;
  else waits.previousInQueue[next] = previous;
  locks.waiters[lock] = (locks.waiters[lock] as number) - 1;
  const session = waits.session[wait] as number;
  if (session !== NONE) {
    const before = waits.previousInSession[wait] as number;
    const after = waits.nextInSession[wait] as number;
    if (before === NONE) sessions.firstWait[session] = after;
    else waits.nextInSession[before] = after;
    if (after === NONE) sessions.lastWait[session] = before;
    else waits.previousInSession[after] = before;
  }
  state.countsOf(waits.principal[wait] as number).waits -= 1;
  waits.remove(wait);
}

/** A free lock goes to its first live waiter; the dead ones before it leave (I7). */
export function handOver(state: MachineState, lock: number): void {
  const { locks } = state;
  let wait = locks.firstWait[lock] as number;
  while (wait !== NONE && waitDeadline(state, wait) <= state.now) {
    leaveOverdue(state, wait);
    wait = locks.firstWait[lock] as number;
  }
  if (wait === NONE) {
    locks.becomeIdle(lock);
    return;
  }
  grantWaiter(state, lock, wait);
}

function grantWaiter(state: MachineState, lock: number, wait: number): void {
  const waits = state.waits;
  const place = waits.place[wait] as number;
  const metadata = waits.metadata[wait] as number;
  // The lease takes the bytes over; removing the wait must not release them.
  waits.metadata[wait] = 0;
  const lease = grant(
    state,
    lock,
    waits.session[wait] as number,
    waits.principal[wait] as number,
    waits.ttlMs[wait] as number,
    metadata,
    place,
  );
  const outcome = state.completions.add(place).outcome;
  const leases = state.leases;
  outcome.code = OutcomeCode.Ok;
  outcome.id0 = leases.id0[lease] as number;
  outcome.id1 = leases.id1[lease] as number;
  outcome.id2 = leases.id2[lease] as number;
  outcome.id3 = leases.id3[lease] as number;
  outcome.token = leases.token[lease] as number;
  outcome.revision = outcome.token;
  outcome.deadline = leaseDeadline(state, lease);
  outcome.ttlMs = leases.ttlMs[lease] as number;
  finishPending(state, waits.result[wait] as number, outcome);
  removeWait(state, wait);
}

/** The grace is over for a lock that was kept free: its first live waiter is granted. */
export function releaseReserved(state: MachineState, lock: number): void {
  state.reserved.remove(lock);
  handOver(state, lock);
}

/** Ends what is overdue on this lock, as the sweep would have (SEMANTICS, Time and order). */
export function settleLock(state: MachineState, lock: number): void {
  if (state.isDrained) return;
  const { locks, waits } = state;
  const holder = locks.holder[lock] as number;
  const isFreed = holder !== NONE && leaseDeadline(state, holder) <= state.now;
  if (isFreed) endOnly(state, holder, overdueCause(state, holder));
  let wait = locks.firstWait[lock] as number;
  while (wait !== NONE) {
    const next = waits.nextInQueue[wait] as number;
    if (waitDeadline(state, wait) <= state.now) leaveOverdue(state, wait);
    wait = next;
  }
  if (isFreed) handOver(state, lock);
  else if (state.now >= state.grantsFrom && state.reserved.has(lock)) releaseReserved(state, lock);
}
