/**
 * What a holder says about its lease: renew it, release it (invariant I4).
 *
 * Owns: both commands, and the answer for a lease that has ended. Never: a lease of another
 * principal; that is answered as if it had never been. Called by: lock-machine.ts.
 */
import type { Command } from './command.js';
import type { MachineState } from './machine-state.js';
import { LeaseEnd, type Outcome, OutcomeCode } from './outcome.js';
import { endLease, endOverdueLease, leaseDeadline, settleLock } from './ownership.js';
import { answerKnown, refuseField, storeResult } from './requests.js';
import { enterSession } from './sessions.js';
import { NONE } from './tables/table.js';

/** The live lease that the command names, settled, or NONE. */
function findLive(state: MachineState, command: Command): number {
  const { leases } = state;
  const lease = leases.find(command.lease0, command.lease1, command.lease2, command.lease3);
  if (lease === NONE || leases.principal[lease] !== command.principal) return NONE;
  if (leaseDeadline(state, lease) > state.now) return lease;
  endOverdueLease(state, lease);
  return NONE;
}

export function applyRenew(state: MachineState, command: Command, outcome: Outcome): void {
  const lease = findLive(state, command);
  if (lease === NONE) {
    answerEnded(state, command, outcome);
    return;
  }
  const { leases, settings, now } = state;
  const { leaseTtlMsLeast, leaseTtlMsGreatest } = settings;
  const ttlMs = command.ttlMs === -1 ? (leases.ttlMs[lease] as number) : command.ttlMs;
  const isInRange = ttlMs >= leaseTtlMsLeast && ttlMs <= leaseTtlMsGreatest;
  if (command.ttlMs !== -1 && !isInRange) {
    refuseField(outcome, OutcomeCode.BadRequest, 'ttl_ms');
    return;
  }
  const before = leaseDeadline(state, lease);
  leases.digest.touch(lease);
  leases.renewedAt[lease] = now;
  if (command.ttlMs !== -1) {
    leases.ttlMs[lease] = ttlMs;
    leases.deadlineFloor[lease] = before;
  }
  if (command.metadataOffset !== -1) replaceMetadata(state, command, lease);
  const deadline = leaseDeadline(state, lease);
  leases.deadlines.update(lease, deadline);
  outcome.deadline = deadline;
  outcome.ttlMs = ttlMs;
  outcome.token = leases.token[lease] as number;
}

function replaceMetadata(state: MachineState, command: Command, lease: number): void {
  const { leases, store } = state;
  const old = leases.metadata[lease] as number;
  if (old !== 0) store.release(old);
  leases.metadata[lease] = state.keep(command.bytes, command.metadataOffset, command.metadataBytes);
}

export function applyRelease(state: MachineState, command: Command, outcome: Outcome): void {
  enterSession(state, command);
  if (answerKnown(state, command, outcome, settleLock)) return;
  const lease = findLive(state, command);
  if (lease !== NONE) outcome.revision = endLease(state, lease, LeaseEnd.Released);
  else answerReleased(state, command, outcome);
  storeResult(state, command, outcome);
}

/**
 * What its own release ended is released again, whatever the request id (etcd#22082 is what happens
 * else).
 */
function answerReleased(state: MachineState, command: Command, outcome: Outcome): void {
  answerEnded(state, command, outcome);
  if (outcome.cause !== LeaseEnd.Released) return;
  outcome.code = OutcomeCode.Ok;
  outcome.cause = LeaseEnd.Unknown;
  outcome.replay = true;
}

/** The lease is not live: STALE_LEASE with how it ended, as far as that is remembered. */
function answerEnded(state: MachineState, command: Command, outcome: Outcome): void {
  const { ended } = state;
  const slot = ended.find(
    command.lease0,
    command.lease1,
    command.lease2,
    command.lease3,
    command.principal,
  );
  outcome.code = OutcomeCode.StaleLease;
  if (slot === NONE) return;
  outcome.cause = ended.causeOf(slot);
  outcome.revision = ended.revisionOf(slot);
}
