/**
 * Locks that nobody holds and somebody waits for: they are there only in the grace of a restore.
 *
 * Owns: the order in which they are handed over when the grace is over, that of their first
 * waiters' places. Never: the hand-over itself (ownership.ts, sweep.ts), or the grace
 * (restored-state.ts). Called by: acquire, ownership, the restorer of snapshots.
 */
import type { MachineState } from './machine-state.js';
import { NONE } from './tables/table.js';

/** A free lock has its first waiter, and is kept for it. */
export function reserveLock(state: MachineState, lock: number): void {
  const first = state.locks.firstWait[lock] as number;
  state.reserved.push(lock, state.grantsFrom, state.waits.place[first] as number);
}

/** A waiter has left: a lock that was kept for it goes to the next, or is idle. */
export function onReservedLeft(state: MachineState, lock: number): void {
  if (!state.reserved.has(lock)) return;
  state.reserved.remove(lock);
  if (state.locks.firstWait[lock] === NONE) state.locks.becomeIdle(lock);
  else reserveLock(state, lock);
}
