/**
 * The state that a new cluster begins with, made from the state of one that is no more (I2).
 *
 * Owns: what is kept of it (settings, what is remembered of ended leases), what is dropped (every
 * session, lease, wait, result and lock record), how far the revision counter leaps, and how long
 * nothing is granted. Nobody knows what the old cluster has granted behind that state: the leap is
 * past all of it, and the grace outlives it. Never: a clock; the caller passes seconds in, once.
 * Called by: lock-machine.ts.
 */
import type { StateDigest } from '../../collections/digest.js';
import { type Command, PRINCIPAL_CLUSTER } from './command.js';
import { EventKind } from './event.js';
import { MachineState } from './machine-state.js';
import { LeaseEnd, type Outcome, OutcomeCode } from './outcome.js';

const TAG_GRACE = 12;

/** The counter leaps by at least so many revisions. */
export const RESTORE_LEAP = 2 ** 40;
/** Revisions for each second of the wall clock: no cluster grants faster. */
export const REVISIONS_PER_SECOND = 2 ** 20;

/** What the operator and the clock say at a restore; the same on every node of the new cluster. */
export interface RestoreTerms {
  /** Wall clock, s: the one use that is made of it. */
  readonly unixSeconds: number;
  /** Seconds since the state was saved, 0 where that is not known. */
  readonly ageSeconds: number;
  /** The counter becomes at least this. */
  readonly revisionFloor: number;
  /** Cluster time in ms during which nothing is granted. */
  readonly graceMs: number;
}

/**
 * The counter after a restore. It grows with the age, so that a later restore of the same state
 * begins above what an earlier one has granted meanwhile.
 */
export function leapOf(revision: number, terms: RestoreTerms): number {
  const { unixSeconds, ageSeconds, revisionFloor } = terms;
  const leapt = revision + RESTORE_LEAP + ageSeconds * REVISIONS_PER_SECOND;
  return Math.max(leapt, unixSeconds * REVISIONS_PER_SECOND, revisionFloor);
}

/**
 * The largest TTL in a state, ms: of what is held, waited for or open, and of who names none. What
 * was granted behind the state under the same habits is over after as long.
 */
export function greatestTtl(state: MachineState): number {
  const { leases, waits, sessions, settings } = state;
  let greatest = settings.leaseTtlMsDefault;
  for (const table of [leases, waits, sessions]) {
    for (let slot = 0; slot <= table.slots.highest; slot += 1) {
      if (table.isLive(slot)) greatest = Math.max(greatest, table.ttlMs[slot] as number);
    }
  }
  return greatest;
}

/** The state of the new cluster, at the same index and stamp. `source` stays as it is. */
export function restoredState(
  source: MachineState,
  terms: RestoreTerms,
  digestKey: Uint32Array,
  hashSeeds: Uint32Array,
): MachineState {
  const state = new MachineState({ ...source.settings }, digestKey, hashSeeds);
  state.appliedIndex = source.appliedIndex;
  state.now = source.now;
  state.revision = leapOf(source.revision, terms);
  // Every lock may have been granted and ended behind the saved state: no expected_revision of
  // before passes.
  state.idleFloor = state.revision;
  state.sessionNumber = source.sessionNumber;
  state.results.lastOrdinal = source.results.lastOrdinal;
  state.grantsFrom = source.now + terms.graceMs;
  copyEnded(source, state);
  copyDisabled(source, state);
  return state;
}

/** What an operator disabled stays so until one enables it. */
function copyDisabled(source: MachineState, state: MachineState): void {
  const { disabled, store } = source;
  const copy = (handle: number): number => {
    if (handle === 0) return 0;
    return state.store.store(store.pageOf(handle), store.offsetOf(handle), store.lengthOf(handle));
  };
  for (let position = 0; position < disabled.count; position += 1) {
    const rule = disabled.at(position);
    const { name, actor, reason } = rule;
    state.disabled.add({ ...rule, name: copy(name), actor: copy(actor), reason: copy(reason) });
  }
}

/** What has ended stays ended; what was held ends by the restore, in the order of its tokens. */
function copyEnded(source: MachineState, state: MachineState): void {
  const { ended, leases } = source;
  for (let position = 0; position < ended.count; position += 1) {
    const slot = ended.slotAt(position);
    const [id0, id1] = [ended.wordOf(slot, 0), ended.wordOf(slot, 1)];
    const [id2, id3] = [ended.wordOf(slot, 2), ended.wordOf(slot, 3)];
    const [principal, cause] = [ended.principalOf(slot), ended.causeOf(slot)];
    state.ended.add(id0, id1, id2, id3, principal, cause, ended.revisionOf(slot));
  }
  const held: number[] = [];
  for (let slot = 0; slot <= leases.slots.highest; slot += 1) {
    if (leases.isLive(slot)) held.push(slot);
  }
  held.sort((a, b) => (leases.token[a] as number) - (leases.token[b] as number));
  for (const slot of held) {
    state.ended.add(
      leases.id0[slot] as number,
      leases.id1[slot] as number,
      leases.id2[slot] as number,
      leases.id3[slot] as number,
      leases.principal[slot] as number,
      LeaseEnd.Restored,
      state.revision,
    );
  }
}

/** The grace is a record of its own: a state without one has the digest that it always had. */
export function digestGrace(state: MachineState, sum: StateDigest): void {
  if (state.grantsFrom === 0) return;
  const { hash } = state;
  hash.begin(TAG_GRACE);
  hash.number(state.grantsFrom);
  hash.finish();
  sum.add(hash.h0, hash.h1, hash.h2, hash.h3);
}

/** The first entry behind a restored state: the event that the audit stream begins with. */
export function applyRestored(state: MachineState, command: Command, outcome: Outcome): void {
  if (command.principal !== PRINCIPAL_CLUSTER) {
    outcome.code = OutcomeCode.Forbidden;
    return;
  }
  const event = state.events.add();
  event.kind = EventKind.Restored;
  event.revision = state.nextRevision();
  event.token = 0;
  event.place = 0;
  event.cause = 0;
  event.principal = command.principal;
  event.name = 0;
}
