/**
 * A client's presence: open, renew, close, and what ends with a session.
 *
 * Owns: session commands and the end of a session. Never: attachment to a connection, which is not
 * replicated. Called by: lock-machine.ts, sweep.ts, and commands that name a session.
 */
import type { Command } from './command.js';
import { RequestKind } from './command.js';
import { DrawPurpose, type MachineState } from './machine-state.js';
import { LeaseEnd, type Outcome, OutcomeCode } from './outcome.js';
import {
  endLease,
  endOverdueLease,
  leaseDeadline,
  leaveOverdue,
  leaveQueue,
  settleLock,
  waitDeadline,
} from './ownership.js';
import { answerKnown, refuseField, sessionOf, storeResult } from './requests.js';
import { SessionState } from './tables/session-table.js';
import { NONE } from './tables/table.js';

/** Finds and settles the session a command names, and makes it state.currentSession. */
export function enterSession(state: MachineState, command: Command): void {
  state.currentSession = NONE;
  if (!command.hasSession) return;
  const session = sessionOf(state, command);
  if (session === NONE) return;
  const { retentions } = state.sessions;
  if (retentions.has(session) && retentions.deadlineOf(session) <= state.now) {
    forgetSession(state, session);
    return;
  }
  settleSession(state, session);
  state.currentSession = session;
}

/** True when the command's session is known and live, after enterSession. */
export function isSessionLive(state: MachineState): boolean {
  const session = state.currentSession;
  return session !== NONE && state.sessions.state[session] === SessionState.Live;
}

/** Ends a session that is past its deadline: its waits, then its leases, then itself. */
export function settleSession(state: MachineState, session: number): void {
  const { sessions, waits, leases } = state;
  if (state.isDrained || sessions.state[session] !== SessionState.Live) return;
  if ((sessions.deadline[session] as number) > state.now) return;
  let wait = sessions.firstWait[session] as number;
  while (wait !== NONE) {
    const next = waits.nextInSession[wait] as number;
    leaveOverdue(state, wait);
    wait = next;
  }
  let lease = sessions.firstLease[session] as number;
  while (lease !== NONE) {
    const next = leases.nextInSession[lease] as number;
    endOverdueLease(state, lease);
    lease = next;
  }
  endSession(state, session, SessionState.Expired);
}

/** Marks a session that has neither leases nor waits as ended; its results stay for a while. */
export function endSession(state: MachineState, session: number, end: SessionState): void {
  const { sessions, settings, now } = state;
  sessions.digest.touch(session);
  sessions.state[session] = end;
  sessions.endedAt[session] = now;
  sessions.deadlines.remove(session);
  const keepUntil = now + settings.resultRetentionMs;
  sessions.retentions.push(session, keepUntil, sessions.number[session] as number);
  state.countsOf(sessions.principal[session] as number).sessions -= 1;
}

/** Forgets an ended session and the results that were kept for it. Returns how many those were. */
export function forgetSession(state: MachineState, session: number): number {
  let count = 0;
  const { sessions, results } = state;
  let result = sessions.firstResult[session] as number;
  while (result !== NONE) {
    const next = results.nextInSession[result] as number;
    results.remove(result);
    count += 1;
    result = next;
  }
  sessions.remove(session);
  return count;
}

/** The TTL a session command asks for; -1 when it is out of range. */
function sessionTtl(state: MachineState, ttlMs: number, absent: number): number {
  if (ttlMs === -1) return absent;
  const { sessionTtlMsLeast, sessionTtlMsGreatest } = state.settings;
  return ttlMs < sessionTtlMsLeast || ttlMs > sessionTtlMsGreatest ? -1 : ttlMs;
}

export function applySessionOpen(state: MachineState, command: Command, outcome: Outcome): void {
  if (command.requestKind !== RequestKind.Free) {
    refuseField(outcome, OutcomeCode.BadRequest, 'request');
    return;
  }
  state.currentSession = NONE;
  if (answerKnown(state, command, outcome, settleLock)) return;
  const { settings, sessions, now } = state;
  const ttlMs = sessionTtl(state, command.ttlMs, settings.sessionTtlMsDefault);
  const counts = state.countsOf(command.principal);
  if (ttlMs === -1) {
    refuseField(outcome, OutcomeCode.BadRequest, 'ttl_ms');
  } else if (counts.sessions >= settings.sessionsPerPrincipalMax) {
    refuseField(outcome, OutcomeCode.Limit, 'sessions');
  } else {
    const session = createSession(state, command, ttlMs);
    counts.sessions += 1;
    outcome.id0 = sessions.id0[session] as number;
    outcome.id1 = sessions.id1[session] as number;
    outcome.id2 = sessions.id2[session] as number;
    outcome.id3 = sessions.id3[session] as number;
    outcome.secret0 = sessions.secret0[session] as number;
    outcome.secret1 = sessions.secret1[session] as number;
    outcome.secret2 = sessions.secret2[session] as number;
    outcome.secret3 = sessions.secret3[session] as number;
    outcome.deadline = now + ttlMs;
    outcome.ttlMs = ttlMs;
  }
  storeResult(state, command, outcome);
}

function createSession(state: MachineState, command: Command, ttlMs: number): number {
  const { sessions, now } = state;
  state.nextDraw();
  const id = state.draw(DrawPurpose.Session);
  const session = sessions.create(
    id[0] as number,
    id[1] as number,
    id[2] as number,
    id[3] as number,
  );
  const secret = state.draw(DrawPurpose.SessionSecret);
  sessions.secret0[session] = secret[0] as number;
  sessions.secret1[session] = secret[1] as number;
  sessions.secret2[session] = secret[2] as number;
  sessions.secret3[session] = secret[3] as number;
  state.sessionNumber += 1;
  sessions.number[session] = state.sessionNumber;
  sessions.principal[session] = command.principal;
  sessions.ttlMs[session] = ttlMs;
  sessions.renewedAt[session] = now;
  sessions.deadline[session] = now + ttlMs;
  sessions.metadata[session] = state.keep(
    command.bytes,
    command.metadataOffset,
    command.metadataBytes,
  );
  sessions.deadlines.push(session, now + ttlMs, state.sessionNumber);
  return session;
}

export function applySessionRenew(state: MachineState, command: Command, outcome: Outcome): void {
  enterSession(state, command);
  if (!isSessionLive(state)) {
    outcome.code = OutcomeCode.SessionExpired;
    return;
  }
  const session = state.currentSession;
  const { sessions, now } = state;
  const ttlMs = sessionTtl(state, command.ttlMs, sessions.ttlMs[session] as number);
  if (ttlMs === -1) {
    refuseField(outcome, OutcomeCode.BadRequest, 'ttl_ms');
    return;
  }
  if (!state.isDrained) endOverdueLeases(state, session);
  sessions.digest.touch(session);
  sessions.ttlMs[session] = ttlMs;
  sessions.renewedAt[session] = now;
  const deadline = Math.max(sessions.deadline[session] as number, now + ttlMs);
  sessions.deadline[session] = deadline;
  sessions.deadlines.update(session, deadline);
  outcome.deadline = deadline;
  outcome.ttlMs = ttlMs;
}

/** A renewal revives nothing: what is overdue by its own TTL ends first. */
function endOverdueLeases(state: MachineState, session: number): void {
  const { sessions, leases, now } = state;
  let lease = sessions.firstLease[session] as number;
  while (lease !== NONE) {
    const next = leases.nextInSession[lease] as number;
    if (leaseDeadline(state, lease) <= now) endOverdueLease(state, lease);
    lease = next;
  }
}

export function applySessionClose(state: MachineState, command: Command, outcome: Outcome): void {
  enterSession(state, command);
  if (answerKnown(state, command, outcome, settleLock)) return;
  const session = state.currentSession;
  const { sessions } = state;
  if (isSessionLive(state)) closeSession(state, session);
  else if (session !== NONE && sessions.state[session] === SessionState.Closed) {
    outcome.replay = true;
  } else {
    outcome.code = OutcomeCode.SessionExpired;
  }
  storeResult(state, command, outcome);
}

function closeSession(state: MachineState, session: number): void {
  endAll(state, session, OutcomeCode.Cancelled, LeaseEnd.SessionClosed);
  endSession(state, session, SessionState.Closed);
}

/** An operator ends a live session: its waits, then its leases, then itself. */
export function expelSession(state: MachineState, session: number): void {
  endAll(state, session, OutcomeCode.SessionExpired, LeaseEnd.Forced);
  endSession(state, session, SessionState.Expired);
}

/** Ends the waits of a session with `waitCode` and its leases by `cause`; what is overdue, so. */
function endAll(state: MachineState, session: number, waitCode: number, cause: number): void {
  const { sessions, waits, leases } = state;
  let wait = sessions.firstWait[session] as number;
  while (wait !== NONE) {
    const next = waits.nextInSession[wait] as number;
    if (waitDeadline(state, wait) <= state.now) leaveOverdue(state, wait);
    else leaveQueue(state, wait, waitCode);
    wait = next;
  }
  let lease = sessions.firstLease[session] as number;
  while (lease !== NONE) {
    const next = leases.nextInSession[lease] as number;
    if (leaseDeadline(state, lease) <= state.now) endOverdueLease(state, lease);
    else endLease(state, lease, cause);
    lease = next;
  }
}
