/**
 * What an operator may do to a lock or a session, and what a guard reports (SEMANTICS, Admin).
 *
 * Owns: ForceRelease, Disable, Enable, ExpireSession, ReportRefusal. Each is a request with one
 * effect and one result (I6), and each leaves an event, also when it is refused: who asked, and
 * why, stands in the entry. Never: who may ask; that is for the nodes, before the log.
 * Called by: lock-machine.ts.
 */
import { showHolder } from './acquire.js';
import { type Command, CommandKind, RequestKind } from './command.js';
import { EventKind, type LockEvent } from './event.js';
import type { MachineState } from './machine-state.js';
import { LeaseEnd, type Outcome, OutcomeCode } from './outcome.js';
import { endLease, settleLock } from './ownership.js';
import { answerKnown, refuseField, storeResult } from './requests.js';
import { expelSession, settleSession } from './sessions.js';
import { SessionState } from './tables/session-table.js';
import { NONE } from './tables/table.js';

/** Part of what Disable means: another bound would be another version of the operation (I11). */
export const DISABLED_NAMES_MAX = 256;

/** Carries out one of the commands above, once: heard before, forgotten, or new. */
export function applyAdmin(state: MachineState, command: Command, outcome: Outcome): void {
  if (command.requestKind !== RequestKind.Free) {
    refuseField(outcome, OutcomeCode.BadRequest, 'request');
    return;
  }
  state.currentSession = NONE;
  if (answerKnown(state, command, outcome, settleLock)) return;
  carryOut(state, command, outcome);
  storeResult(state, command, outcome);
}

function carryOut(state: MachineState, command: Command, outcome: Outcome): void {
  switch (command.kind) {
    case CommandKind.ForceRelease:
      forceRelease(state, command, outcome);
      break;
    case CommandKind.Disable:
      disable(state, command, outcome);
      break;
    case CommandKind.Enable:
      enable(state, command, outcome);
      break;
    case CommandKind.ExpireSession:
      expireSession(state, command, outcome);
      break;
    default:
      reportRefusal(state, command, outcome);
  }
  if (outcome.code === OutcomeCode.Ok) return;
  const event = namedEvent(state, command, EventKind.Refused);
  event.cause = outcome.code;
}

/**
 * Ends the lease that is meant and hands over in the same entry. The revision of that end is the
 * barrier token: above every token of the lock so far, below the next holder's.
 */
function forceRelease(state: MachineState, command: Command, outcome: Outcome): void {
  const { locks } = state;
  const lock = locks.find(command.bytes, command.nameOffset, command.nameBytes);
  if (lock !== NONE) settleLock(state, lock);
  const holder = lock === NONE ? NONE : (locks.holder[lock] as number);
  if (holder !== NONE) showHolder(state, holder, outcome);
  if (holder === NONE || !isMeant(state, command, holder)) {
    outcome.code = OutcomeCode.Conflict;
    outcome.revision = lock === NONE ? state.idleFloor : (locks.lastRevision[lock] as number);
    return;
  }
  outcome.revision = endLease(state, holder, LeaseEnd.Forced);
}

/** The lease id and the token, as far as they are given, are the holder's. */
function isMeant(state: MachineState, command: Command, holder: number): boolean {
  const { leases } = state;
  if (command.token !== -1 && command.token !== leases.token[holder]) return false;
  if (!command.hasLease) return true;
  const { lease0, lease1, lease2, lease3 } = command;
  return leases.find(lease0, lease1, lease2, lease3) === holder;
}

/** No new acquire of the lock, or under the prefix, from here on; holder and queue stay. */
function disable(state: MachineState, command: Command, outcome: Outcome): void {
  const { disabled } = state;
  const { bytes, nameOffset, nameBytes, isPrefix } = command;
  const known = disabled.find(bytes, nameOffset, nameBytes, isPrefix);
  if (known !== undefined) {
    outcome.revision = known.revision;
    return;
  }
  if (disabled.count >= DISABLED_NAMES_MAX) {
    refuseField(outcome, OutcomeCode.Limit, 'disabled');
    return;
  }
  const name = state.keep(bytes, nameOffset, nameBytes);
  const event = adminEvent(state, command, EventKind.Disabled, name);
  event.place = isPrefix ? 1 : 0;
  outcome.revision = event.revision;
  disabled.add({
    name,
    isPrefix,
    revision: event.revision,
    since: state.now,
    principal: command.principal,
    actor: state.keep(bytes, command.ownerOffset, command.ownerBytes),
    reason: state.keep(bytes, command.metadataOffset, command.metadataBytes),
  });
}

/** Takes the rule of exactly this name or prefix away; revision 0 when there is none. */
function enable(state: MachineState, command: Command, outcome: Outcome): void {
  const { disabled } = state;
  const { bytes, nameOffset, nameBytes, isPrefix } = command;
  const rule = disabled.find(bytes, nameOffset, nameBytes, isPrefix);
  if (rule === undefined) return;
  disabled.remove(rule);
  const event = adminEvent(state, command, EventKind.Enabled, state.letPass(rule.name));
  event.place = isPrefix ? 1 : 0;
  outcome.revision = event.revision;
}

/** Ends a live session, whoever owns it, with its waits and leases. */
function expireSession(state: MachineState, command: Command, outcome: Outcome): void {
  const { sessions } = state;
  const { lease0, lease1, lease2, lease3 } = command;
  const session = sessions.find(lease0, lease1, lease2, lease3);
  if (session !== NONE) settleSession(state, session);
  if (session === NONE || sessions.state[session] !== SessionState.Live) {
    outcome.code = OutcomeCode.SessionExpired;
    return;
  }
  expelSession(state, session);
  const event = namedEvent(state, command, EventKind.Expelled);
  event.cause = LeaseEnd.Forced;
  event.principal = sessions.principal[session] as number;
  outcome.revision = event.revision;
}

/** Changes nothing: the event is the effect. */
function reportRefusal(state: MachineState, command: Command, outcome: Outcome): void {
  const event = namedEvent(state, command, EventKind.Fenced);
  event.token = command.token;
  event.place = command.mark;
  event.cause = OutcomeCode.StaleToken;
  outcome.revision = event.revision;
}

/** An event under the name that the command gives, which may be no lock's; '' when it has none. */
function namedEvent(state: MachineState, command: Command, kind: EventKind): LockEvent {
  const { bytes, nameOffset, nameBytes } = command;
  const name = state.keep(bytes, nameOffset, nameBytes);
  return adminEvent(state, command, kind, name === 0 ? 0 : state.letPass(name));
}

function adminEvent(
  state: MachineState,
  command: Command,
  kind: EventKind,
  name: number,
): LockEvent {
  const event = state.events.add();
  event.kind = kind;
  event.revision = state.nextRevision();
  event.token = 0;
  event.place = 0;
  event.cause = 0;
  event.principal = command.principal;
  event.name = name;
  return event;
}
