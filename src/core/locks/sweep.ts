/**
 * What time ends: the bounded work at the start of every entry (SEMANTICS, Time and order).
 *
 * Owns: the order and the bound. Heap keys are lower bounds of deadlines: what comes to the top too
 * early is put back, uncounted. Never: a timer; only an entry's stamp ends anything (I8).
 * Called by: lock-machine.ts.
 */
import type { MachineState } from './machine-state.js';
import {
  endOverdueLease,
  leaseDeadline,
  leaveOverdue,
  releaseReserved,
  waitDeadline,
} from './ownership.js';
import { endSession, forgetSession } from './sessions.js';
import { SessionState } from './tables/session-table.js';
import { NONE } from './tables/table.js';

/** Deletes idle locks beyond the setting, oldest first; their last revisions raise the floor F. */
export function forgetIdleLocks(state: MachineState): void {
  const { locks, settings } = state;
  while (locks.idleCount > settings.idleLocksMax) {
    const lock = locks.oldestIdle;
    state.idleFloor = Math.max(state.idleFloor, locks.lastRevision[lock] as number);
    locks.remove(lock);
  }
}

/** Frees what is overdue, at most the setting of each kind; notes whether anything is left. */
export function sweep(state: MachineState): void {
  const areLeasesDrained = sweepLeases(state);
  const areWaitsDrained = sweepWaits(state);
  const isGraceOver = sweepReserved(state);
  const areSessionsDrained = sweepSessions(state);
  state.isDrained = areLeasesDrained && areWaitsDrained && isGraceOver && areSessionsDrained;
  sweepResults(state);
  sweepEndedSessions(state);
}

function sweepLeases(state: MachineState): boolean {
  const heap = state.leases.deadlines;
  let freed = 0;
  while (heap.count > 0 && heap.topDeadline() <= state.now) {
    const lease = heap.top();
    const deadline = leaseDeadline(state, lease);
    if (deadline > heap.topDeadline()) {
      heap.update(lease, deadline);
      continue;
    }
    if (freed === state.settings.expiriesPerEntryMax) return false;
    endOverdueLease(state, lease);
    freed += 1;
  }
  return true;
}

function sweepWaits(state: MachineState): boolean {
  const heap = state.waits.deadlines;
  let freed = 0;
  while (heap.count > 0 && heap.topDeadline() <= state.now) {
    const wait = heap.top();
    const deadline = waitDeadline(state, wait);
    if (deadline > heap.topDeadline()) {
      heap.update(wait, deadline);
      continue;
    }
    if (freed === state.settings.expiriesPerEntryMax) return false;
    leaveOverdue(state, wait);
    freed += 1;
  }
  return true;
}

/** Once the grace of a restore is over, the locks that it kept free go to who waits for them. */
function sweepReserved(state: MachineState): boolean {
  const { reserved, settings } = state;
  if (state.grantsFrom === 0 || state.now < state.grantsFrom) return true;
  for (let freed = 0; reserved.count > 0; freed += 1) {
    if (freed === settings.expiriesPerEntryMax) return false;
    releaseReserved(state, reserved.top());
  }
  state.grantsFrom = 0;
  return true;
}

function sweepSessions(state: MachineState): boolean {
  const { sessions } = state;
  const heap = sessions.deadlines;
  let freed = 0;
  while (heap.count > 0 && heap.topDeadline() <= state.now) {
    const session = heap.top();
    const isEmpty = sessions.firstLease[session] === NONE && sessions.firstWait[session] === NONE;
    if (!isEmpty || freed === state.settings.expiriesPerEntryMax) return false;
    endSession(state, session, SessionState.Expired);
    freed += 1;
  }
  return true;
}

function sweepResults(state: MachineState): void {
  const heap = state.results.retentions;
  let freed = 0;
  while (heap.count > 0 && heap.topDeadline() <= state.now) {
    if (freed === state.settings.expiriesPerEntryMax) return;
    state.results.remove(heap.top());
    freed += 1;
  }
}

function sweepEndedSessions(state: MachineState): void {
  const heap = state.sessions.retentions;
  let freed = 0;
  while (heap.count > 0 && heap.topDeadline() <= state.now) {
    if (freed >= state.settings.expiriesPerEntryMax) return;
    freed += 1 + forgetSession(state, heap.top());
  }
}
