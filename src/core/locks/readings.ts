/**
 * What a reader is shown: locks, queues, results. Plain objects; reading is off the hot path.
 *
 * Owns: the read side. Never: changes anything; expiry is judged at the last applied stamp without
 * ending what is overdue. Called by: the replica, after a read point was reached.
 */
import type { MachineState } from './machine-state.js';
import type { Outcome } from './outcome.js';
import { leaseDeadline, waitDeadline } from './ownership.js';
import { ResultState } from './tables/result-table.js';
import { NONE } from './tables/table.js';

export interface HolderReading {
  readonly token: number;
  /** Cluster time in ms of the grant, the end of the lease, the last renewal. */
  readonly since: number;
  readonly deadline: number;
  readonly renewedAt: number;
  readonly principal: number;
  readonly hasSession: boolean;
  readonly metadata: Uint8Array | null;
}

export interface WaiterReading {
  readonly place: number;
  readonly since: number;
  readonly until: number;
  readonly principal: number;
  readonly metadata: Uint8Array | null;
}

export interface LockReading {
  readonly name: Uint8Array;
  /** Revision of the last grant or end. */
  readonly revision: number;
  /** Null when nobody holds, or the holder is overdue. */
  readonly holder: HolderReading | null;
  readonly waiters: number;
  /** The first waiters, as many as were asked for. */
  readonly queue: readonly WaiterReading[];
}

export interface LockPage {
  readonly locks: readonly LockReading[];
  /** The name after which the next page begins, null on the last page. */
  readonly cursor: Uint8Array | null;
  /** Names that were looked at: the work that the page cost. */
  readonly visits: number;
}

/** The lock with this name and its first `queueMax` waiters, or null when it has no record. */
export function readLock(
  state: MachineState,
  bytes: Uint8Array,
  offset: number,
  length: number,
  queueMax: number,
): LockReading | null {
  const lock = state.locks.find(bytes, offset, length);
  return lock === NONE ? null : readSlot(state, lock, queueMax);
}

/**
 * Locks whose name starts with `prefix`, after the name `cursor` (null: from the first), in byte
 * order, at most `limit`. Idle locks are passed over, at most `visitsMax` of them a page.
 */
export function listLocks(
  state: MachineState,
  prefix: Uint8Array,
  cursor: Uint8Array | null,
  limit: number,
  visitsMax: number,
): LockPage {
  const { order, name } = state.locks;
  if (cursor === null) order.seek(prefix, 0, prefix.length, false);
  else order.seek(cursor, 0, cursor.length, true);
  const found: LockReading[] = [];
  let visits = 0;
  let last = NONE;
  let lock = order.nextSlot();
  while (lock !== NONE && startsWith(state, lock, prefix)) {
    const isFull = found.length === limit && isShown(state, lock);
    if (isFull || visits === visitsMax) {
      return { locks: found, cursor: state.store.copyOf(name[last] as number), visits };
    }
    if (isShown(state, lock)) found.push(readSlot(state, lock, 0));
    visits += 1;
    last = lock;
    lock = order.nextSlot();
  }
  return { locks: found, cursor: null, visits };
}

/** Why no acquire of a lock is taken. */
export interface RuleReading {
  /** The lock, or the first bytes of its name. */
  readonly name: Uint8Array;
  readonly isPrefix: boolean;
  /** Revision of the event that told of it, and the stamp of its entry in ms. */
  readonly revision: number;
  readonly since: number;
  readonly principal: number;
  /** Who asked for it, as they named themselves, and why. */
  readonly actor: Uint8Array | null;
  readonly reason: Uint8Array | null;
}

/** The oldest rule that disables the lock of this name, or null. */
export function readRule(
  state: MachineState,
  bytes: Uint8Array,
  offset: number,
  length: number,
): RuleReading | null {
  const rule = state.disabled.covering(bytes, offset, length);
  if (rule === undefined) return null;
  const { isPrefix, revision, since, principal } = rule;
  const name = state.store.copyOf(rule.name);
  const [actor, reason] = [readBytes(state, rule.actor), readBytes(state, rule.reason)];
  return { name, isPrefix, revision, since, principal, actor, reason };
}

function isShown(state: MachineState, lock: number): boolean {
  const { locks } = state;
  return locks.holder[lock] !== NONE || (locks.waiters[lock] as number) > 0;
}

function startsWith(state: MachineState, lock: number, prefix: Uint8Array): boolean {
  const { store, locks } = state;
  const name = locks.name[lock] as number;
  if (store.lengthOf(name) < prefix.length) return false;
  const page = store.pageOf(name);
  const offset = store.offsetOf(name);
  for (let i = 0; i < prefix.length; i += 1) if (page[offset + i] !== prefix[i]) return false;
  return true;
}

function readSlot(state: MachineState, lock: number, queueMax: number): LockReading {
  const { locks, waits, store, now } = state;
  const queue: WaiterReading[] = [];
  let wait = locks.firstWait[lock] as number;
  while (wait !== NONE && queue.length < queueMax) {
    if (waitDeadline(state, wait) > now) queue.push(readWaiter(state, wait));
    wait = waits.nextInQueue[wait] as number;
  }
  return {
    name: store.copyOf(locks.name[lock] as number),
    revision: locks.lastRevision[lock] as number,
    holder: readHolder(state, locks.holder[lock] as number),
    waiters: locks.waiters[lock] as number,
    queue,
  };
}

function readHolder(state: MachineState, lease: number): HolderReading | null {
  if (lease === NONE) return null;
  const { leases } = state;
  const deadline = leaseDeadline(state, lease);
  if (deadline <= state.now) return null;
  return {
    token: leases.token[lease] as number,
    since: leases.grantedAt[lease] as number,
    deadline,
    renewedAt: leases.renewedAt[lease] as number,
    principal: leases.principal[lease] as number,
    hasSession: leases.session[lease] !== NONE,
    metadata: readBytes(state, leases.metadata[lease] as number),
  };
}

function readWaiter(state: MachineState, wait: number): WaiterReading {
  const { waits } = state;
  return {
    place: waits.place[wait] as number,
    since: waits.queuedAt[wait] as number,
    until: waitDeadline(state, wait),
    principal: waits.principal[wait] as number,
    metadata: readBytes(state, waits.metadata[wait] as number),
  };
}

function readBytes(state: MachineState, handle: number): Uint8Array | null {
  return handle === 0 ? null : state.store.copyOf(handle);
}

/** What became of a request id. */
export type LookupState = 'done' | 'queued' | 'unknown' | 'forgotten';

/** Looks a sequence up in a session slot; `outcome` is filled when it is done or queued. */
export function lookupSequence(
  state: MachineState,
  session: number,
  sequence: number,
  outcome: Outcome,
): LookupState {
  const slot = state.results.findSequence(session, sequence);
  if (slot !== NONE) return lookupSlot(state, slot, outcome);
  return sequence <= (state.sessions.floor[session] as number) ? 'forgotten' : 'unknown';
}

/** Looks a free-form id up; a forgotten one is unknown. */
export function lookupFree(
  state: MachineState,
  principal: number,
  id: Uint8Array,
  outcome: Outcome,
): LookupState {
  const { results } = state;
  const slot = results.findFree(principal, id, 0, id.length);
  if (slot === NONE) return 'unknown';
  const isOver = results.retentions.has(slot) && results.retentions.deadlineOf(slot) <= state.now;
  return isOver ? 'unknown' : lookupSlot(state, slot, outcome);
}

function lookupSlot(state: MachineState, slot: number, outcome: Outcome): LookupState {
  const { results } = state;
  if (results.state[slot] === ResultState.Acknowledged) return 'forgotten';
  results.read(slot, outcome);
  outcome.replay = true;
  return results.state[slot] === ResultState.Pending ? 'queued' : 'done';
}

/** What became of a lease. */
export interface LeaseReading {
  /** `overdue`: past its deadline, and no entry has ended it yet. */
  readonly state: 'held' | 'overdue' | 'ended' | 'unknown';
  /** The lock; null where only the end is remembered. */
  readonly name: Uint8Array | null;
  readonly token: number;
  readonly deadline: number;
  /** Ended: how (LeaseEnd), and the revision of that event. */
  readonly cause: number;
  readonly revision: number;
}

const UNKNOWN_LEASE: LeaseReading = {
  state: 'unknown',
  name: null,
  token: 0,
  deadline: 0,
  cause: 0,
  revision: 0,
};

/** The lease with this id, four words, if `principal` owns it; as if it never was otherwise. */
export function readLease(
  state: MachineState,
  principal: number,
  id0: number,
  id1: number,
  id2: number,
  id3: number,
): LeaseReading {
  const { leases, locks, store, ended, now } = state;
  const lease = leases.find(id0, id1, id2, id3);
  if (lease !== NONE && leases.principal[lease] === principal) {
    const deadline = leaseDeadline(state, lease);
    return {
      ...UNKNOWN_LEASE,
      state: deadline > now ? 'held' : 'overdue',
      name: store.copyOf(locks.name[leases.lock[lease] as number] as number),
      token: leases.token[lease] as number,
      deadline,
    };
  }
  const slot = ended.find(id0, id1, id2, id3, principal);
  if (slot === NONE) return UNKNOWN_LEASE;
  const [cause, revision] = [ended.causeOf(slot), ended.revisionOf(slot)];
  return { ...UNKNOWN_LEASE, state: 'ended', cause, revision };
}
