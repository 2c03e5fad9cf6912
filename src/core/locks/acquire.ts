/**
 * Acquire: grant, queue or refuse (SEMANTICS, Commands; invariants I1, I7).
 *
 * Owns: the order of the checks. Never: hand-over or ids; ownership.ts and requests.ts do those.
 * Called by: lock-machine.ts.
 */
import { type Command, RequestKind } from './command.js';
import type { MachineState } from './machine-state.js';
import { type Outcome, OutcomeCode } from './outcome.js';
import { enqueue, grant, leaseDeadline, settleLock } from './ownership.js';
import { answerKnown, refuseField, storePending, storeResult } from './requests.js';
import { reserveLock } from './reserved-locks.js';
import { enterSession, isSessionLive } from './sessions.js';
import { NONE } from './tables/table.js';

export function applyAcquire(state: MachineState, command: Command, outcome: Outcome): void {
  if (command.requestKind === RequestKind.None) {
    refuseField(outcome, OutcomeCode.BadRequest, 'request');
    return;
  }
  enterSession(state, command);
  if (answerKnown(state, command, outcome, settleLock)) return;
  const wait = decide(state, command, outcome);
  if (wait === NONE) {
    storeResult(state, command, outcome);
    return;
  }
  state.waits.result[wait] = storePending(state, command, wait);
}

/** Carries the acquire out. Returns the wait's slot when it was queued, else NONE. */
function decide(state: MachineState, command: Command, outcome: Outcome): number {
  if (command.hasSession && !isSessionLive(state)) {
    outcome.code = OutcomeCode.SessionExpired;
    return NONE;
  }
  const { settings, locks } = state;
  const ttlMs = command.ttlMs === -1 ? settings.leaseTtlMsDefault : command.ttlMs;
  const waitMs = command.waitMs === -1 ? 0 : command.waitMs;
  if (!isWellFormed(state, command, ttlMs, waitMs, outcome)) return NONE;
  const counts = state.countsOf(command.principal);
  if (counts.leases + counts.waits >= settings.leasesPerPrincipalMax) {
    refuseField(outcome, OutcomeCode.Limit, 'leases');
    return NONE;
  }
  const rule = state.disabled.covering(command.bytes, command.nameOffset, command.nameBytes);
  if (rule !== undefined) {
    outcome.code = OutcomeCode.Disabled;
    outcome.revision = rule.revision;
    return NONE;
  }
  const lock = locks.find(command.bytes, command.nameOffset, command.nameBytes);
  if (lock !== NONE) settleLock(state, lock);
  const since = lock === NONE ? state.idleFloor : (locks.lastRevision[lock] as number);
  if (command.expectedRevision !== -1 && since > command.expectedRevision) {
    outcome.code = OutcomeCode.Conflict;
    outcome.revision = since;
    return NONE;
  }
  const isFree = lock === NONE || (locks.holder[lock] === NONE && locks.waiters[lock] === 0);
  if (isFree && state.now >= state.grantsFrom) {
    grantNow(state, command, lock, ttlMs, outcome);
    return NONE;
  }
  if (waitMs === 0) {
    refuseBusy(state, lock, outcome);
    return NONE;
  }
  if (lock !== NONE && (locks.waiters[lock] as number) >= settings.waitersPerLockMax) {
    refuseField(outcome, OutcomeCode.Limit, 'waiters');
    return NONE;
  }
  const place = isFree ? takeFree(state, command, lock) : lock;
  const wait = queue(state, command, place, ttlMs, waitMs, outcome);
  if (isFree) reserveLock(state, place);
  return wait;
}

/** The lock's record, made if there is none, not idle any more. */
function takeFree(state: MachineState, command: Command, known: number): number {
  const { locks } = state;
  if (known !== NONE) {
    locks.leaveIdle(known);
    return known;
  }
  const lock = locks.create(command.bytes, command.nameOffset, command.nameBytes);
  locks.lastRevision[lock] = state.idleFloor;
  return lock;
}

function isWellFormed(
  state: MachineState,
  command: Command,
  ttlMs: number,
  waitMs: number,
  outcome: Outcome,
): boolean {
  const { settings } = state;
  const field = reservedField(command);
  if (field !== '') {
    refuseField(outcome, OutcomeCode.BadRequest, field);
    return false;
  }
  if (ttlMs < settings.leaseTtlMsLeast || ttlMs > settings.leaseTtlMsGreatest) {
    refuseField(outcome, OutcomeCode.BadRequest, 'ttl_ms');
    return false;
  }
  if (waitMs > settings.waitMsGreatest) {
    refuseField(outcome, OutcomeCode.BadRequest, 'wait_ms');
    return false;
  }
  if (command.expectedRevision !== -1 && waitMs > 0) {
    refuseField(outcome, OutcomeCode.BadRequest, 'expected_revision');
    return false;
  }
  return true;
}

/** The first field that has its place in the frame but not yet its feature level, or ''. */
function reservedField(command: Command): string {
  if (command.mode > 0) return 'mode';
  if (command.permits !== -1) return 'permits';
  if (command.capacity !== -1) return 'capacity';
  if (command.ownerOffset !== -1) return 'owner';
  if (command.lockDelayMs !== -1) return 'lock_delay_ms';
  if (command.holdMsMax !== -1) return 'hold_ms_max';
  return '';
}

function grantNow(
  state: MachineState,
  command: Command,
  known: number,
  ttlMs: number,
  outcome: Outcome,
): void {
  const { leases } = state;
  const lock = takeFree(state, command, known);
  const metadata = state.keep(command.bytes, command.metadataOffset, command.metadataBytes);
  const session = command.hasSession ? state.currentSession : NONE;
  const lease = grant(state, lock, session, command.principal, ttlMs, metadata, 0);
  outcome.code = OutcomeCode.Ok;
  outcome.id0 = leases.id0[lease] as number;
  outcome.id1 = leases.id1[lease] as number;
  outcome.id2 = leases.id2[lease] as number;
  outcome.id3 = leases.id3[lease] as number;
  outcome.token = leases.token[lease] as number;
  outcome.revision = outcome.token;
  outcome.deadline = leaseDeadline(state, lease);
  outcome.ttlMs = ttlMs;
}

/** LOCK_BUSY says who holds, or from when on somebody may: an operator reads it first. */
function refuseBusy(state: MachineState, lock: number, outcome: Outcome): void {
  outcome.code = OutcomeCode.LockBusy;
  const holder = lock === NONE ? NONE : (state.locks.holder[lock] as number);
  if (holder === NONE) outcome.deadline = state.grantsFrom;
  else showHolder(state, holder, outcome);
}

/** Puts the lease `holder` into an outcome: who holds, since when, until when. Never its id. */
export function showHolder(state: MachineState, holder: number, outcome: Outcome): void {
  const { leases, store } = state;
  outcome.token = leases.token[holder] as number;
  outcome.deadline = leaseDeadline(state, holder);
  outcome.holderSince = leases.grantedAt[holder] as number;
  outcome.holderPrincipal = leases.principal[holder] as number;
  const metadata = leases.metadata[holder] as number;
  if (metadata !== 0) outcome.blob = store.copyOf(metadata);
}

function queue(
  state: MachineState,
  command: Command,
  lock: number,
  ttlMs: number,
  waitMs: number,
  outcome: Outcome,
): number {
  const { locks, waits } = state;
  outcome.code = OutcomeCode.Queued;
  outcome.ahead = locks.waiters[lock] as number;
  const wait = enqueue(
    state,
    lock,
    command.hasSession ? state.currentSession : NONE,
    command.principal,
    ttlMs,
    waitMs,
    state.keep(command.bytes, command.metadataOffset, command.metadataBytes),
  );
  outcome.revision = waits.place[wait] as number;
  return wait;
}
