/**
 * One request id, one effect, one stable result (invariant I6).
 *
 * Owns: the answer to "has this been asked before", the acknowledgements, the floor of forgotten
 * sequences, and the storing of results. Never: what a command does. Called by: every command.
 */
import { type Command, RequestKind } from './command.js';
import { fieldName } from './field-names.js';
import type { MachineState } from './machine-state.js';
import { type Outcome, OutcomeCode } from './outcome.js';
import { digestParameters } from './parameters.js';
import { ResultState } from './tables/result-table.js';
import { SessionState } from './tables/session-table.js';
import { NONE } from './tables/table.js';

/** Refuses with BAD_REQUEST or LIMIT, naming the field. */
export function refuseField(outcome: Outcome, code: number, field: string): void {
  outcome.code = code;
  outcome.blob = fieldName(field);
}

/** Slot of the session that the command names, live or ended, if its principal owns it. */
export function sessionOf(state: MachineState, command: Command): number {
  const slot = state.sessions.find(
    command.session0,
    command.session1,
    command.session2,
    command.session3,
  );
  if (slot === NONE) return NONE;
  return state.sessions.principal[slot] === command.principal ? slot : NONE;
}

/**
 * Answers a request that was heard before, is forgotten, or may not be new. True when `outcome` is
 * the answer; false when the command is to be carried out and its result stored. The command's
 * session, if it names one, has been settled by the caller and is state.currentSession.
 * `settle` is called with a pending wait's lock before that wait is judged.
 */
export function answerKnown(
  state: MachineState,
  command: Command,
  outcome: Outcome,
  settle: (state: MachineState, lock: number) => void,
): boolean {
  if (command.requestKind === RequestKind.None) return false;
  digestParameters(state, command);
  const slot =
    command.requestKind === RequestKind.Sequence
      ? findSequence(state, command, outcome)
      : findFree(state, command, outcome);
  if (outcome.code !== OutcomeCode.Ok) return true;
  if (slot === NONE) return false;
  const results = state.results;
  const isPending = results.state[slot] === ResultState.Pending;
  if (isPending) settle(state, state.waits.lock[results.wait[slot] as number] as number);
  answerStored(state, slot, outcome);
  // A request that was cancelled before it was heard has the kind of the one that comes now.
  outcome.kind = command.kind;
  return true;
}

function findSequence(state: MachineState, command: Command, outcome: Outcome): number {
  const session = state.currentSession;
  if (session === NONE) {
    outcome.code = OutcomeCode.SessionExpired;
    return NONE;
  }
  const { sessions, results, settings } = state;
  const isLive = sessions.state[session] === SessionState.Live;
  if (isLive && !applyAcknowledgements(state, session, command)) {
    refuseField(outcome, OutcomeCode.BadRequest, 'acknowledged');
    return NONE;
  }
  const slot = results.findSequence(session, command.sequence);
  if (slot !== NONE) {
    if (results.state[slot] === ResultState.Acknowledged) {
      outcome.code = OutcomeCode.RequestForgotten;
    }
    return slot;
  }
  const floor = sessions.floor[session] as number;
  if (!isLive) outcome.code = OutcomeCode.SessionExpired;
  else if (command.sequence <= floor) outcome.code = OutcomeCode.RequestForgotten;
  else if (isBeyondWindow(state, session, command.sequence, settings.sessionWindow)) {
    refuseField(outcome, OutcomeCode.Limit, 'sequence');
  }
  return NONE;
}

/** True when a new sequence may not enter the session's table yet. */
export function isBeyondWindow(
  state: MachineState,
  session: number,
  sequence: number,
  window: number,
): boolean {
  const { sessions } = state;
  const isFar = sequence > (sessions.floor[session] as number) + window;
  return isFar || (sessions.finals[session] as number) >= window;
}

function findFree(state: MachineState, command: Command, outcome: Outcome): number {
  const slot = findFreeResult(
    state,
    command.principal,
    command.bytes,
    command.requestOffset,
    command.requestBytes,
  );
  if (slot !== NONE) return slot;
  const { settings, now } = state;
  if (command.notAfter > now + settings.notAfterMsAhead) {
    refuseField(outcome, OutcomeCode.BadRequest, 'not_after');
  } else if (command.notAfter >= 0 && now >= command.notAfter) {
    outcome.code = OutcomeCode.DeadlinePassed;
  } else if (state.results.freeCount >= settings.freeResultsMax) {
    refuseField(outcome, OutcomeCode.Limit, 'request');
  }
  return NONE;
}

/** The free-form result with this id, unless its retention is over: then it is removed. */
export function findFreeResult(
  state: MachineState,
  principal: number,
  bytes: Uint8Array,
  offset: number,
  length: number,
): number {
  const results = state.results;
  const slot = results.findFree(principal, bytes, offset, length);
  if (slot === NONE || !results.retentions.has(slot)) return slot;
  if (results.retentions.deadlineOf(slot) > state.now) return slot;
  results.remove(slot);
  return NONE;
}

function answerStored(state: MachineState, slot: number, outcome: Outcome): void {
  const results = state.results;
  const isSame =
    results.digest0[slot] === state.parameters0 && results.digest1[slot] === state.parameters1;
  if (!isSame && results.anyParameters[slot] === 0) {
    outcome.code = OutcomeCode.RequestMismatch;
    return;
  }
  results.read(slot, outcome);
  outcome.replay = true;
  if (results.state[slot] === ResultState.Pending) outcome.code = OutcomeCode.Queued;
}

/**
 * What is stored for a command that was carried out, or not, in an entry that this node never
 * applied. Changes nothing. False: no result, or that of a request with other parameters; then
 * `outcome` says nothing. A wait that stands is Queued.
 */
export function recallResult(state: MachineState, command: Command, outcome: Outcome): boolean {
  if (command.requestKind === RequestKind.None) return false;
  const slot = findStored(state, command);
  const { results } = state;
  if (slot === NONE || results.state[slot] === ResultState.Acknowledged) return false;
  digestParameters(state, command);
  if (results.digest0[slot] !== state.parameters0) return false;
  if (results.digest1[slot] !== state.parameters1) return false;
  results.read(slot, outcome);
  outcome.kind = command.kind;
  outcome.replay = true;
  if (results.state[slot] === ResultState.Pending) outcome.code = OutcomeCode.Queued;
  return true;
}

function findStored(state: MachineState, command: Command): number {
  const { results } = state;
  if (command.requestKind === RequestKind.Sequence) {
    const session = sessionOf(state, command);
    return session === NONE ? NONE : results.findSequence(session, command.sequence);
  }
  const { principal, bytes, requestOffset, requestBytes } = command;
  return results.findFree(principal, bytes, requestOffset, requestBytes);
}

/** Stores `outcome` as the final result of a request that answerKnown called new. */
export function storeResult(state: MachineState, command: Command, outcome: Outcome): void {
  if (command.requestKind === RequestKind.None) return;
  const slot = createRecord(state, command);
  state.results.write(slot, outcome);
  becomeFinal(state, slot);
}

/** Records that the request's answer is its wait's. Returns the result's slot. */
export function storePending(state: MachineState, command: Command, wait: number): number {
  const slot = createRecord(state, command);
  const results = state.results;
  results.writeBare(slot, OutcomeCode.Ok, command.kind, state.now);
  results.wait[slot] = wait;
  results.revision[slot] = state.waits.place[wait] as number;
  return slot;
}

function createRecord(state: MachineState, command: Command): number {
  const results = state.results;
  let slot: number;
  if (command.requestKind === RequestKind.Sequence) {
    slot = results.createSequence(state.currentSession, command.sequence, command.principal);
    advanceFloor(state, state.currentSession);
  } else {
    slot = results.createFree(
      command.principal,
      command.bytes,
      command.requestOffset,
      command.requestBytes,
    );
    results.notAfter[slot] = command.notAfter;
  }
  results.digest0[slot] = state.parameters0;
  results.digest1[slot] = state.parameters1;
  return slot;
}

/** The wait behind a pending request is over: `outcome`, completed here, is its result. */
export function finishPending(state: MachineState, slot: number, outcome: Outcome): void {
  const results = state.results;
  outcome.kind = results.kind[slot] as number;
  outcome.entryTime = state.now;
  results.write(slot, outcome);
  results.wait[slot] = NONE;
  becomeFinal(state, slot);
}

function becomeFinal(state: MachineState, slot: number): void {
  const { results, sessions, settings, now } = state;
  results.digest.touch(slot);
  results.state[slot] = ResultState.Final;
  const session = results.session[slot] as number;
  if (session !== NONE) {
    sessions.finals[session] = (sessions.finals[session] as number) + 1;
    return;
  }
  const keepUntil = Math.max(now + settings.resultRetentionMs, results.notAfter[slot] as number);
  results.retentions.push(slot, keepUntil, results.ordinal[slot] as number);
}

/** Records CANCELLED for a sequence that was never heard: it can no longer have an effect. */
export function cancelUnheardSequence(
  state: MachineState,
  session: number,
  sequence: number,
  principal: number,
): void {
  const slot = state.results.createSequence(session, sequence, principal);
  advanceFloor(state, session);
  writeCancelled(state, slot);
}

/** Records CANCELLED for a free-form id that was never heard. */
export function cancelUnheardFree(state: MachineState, command: Command): void {
  const slot = state.results.createFree(
    command.principal,
    command.bytes,
    command.targetOffset,
    command.targetBytes,
  );
  writeCancelled(state, slot);
}

function writeCancelled(state: MachineState, slot: number): void {
  const results = state.results;
  results.anyParameters[slot] = 1;
  results.writeBare(slot, OutcomeCode.Cancelled, 0, state.now);
  becomeFinal(state, slot);
}

/** False, and nothing changed, when a pending wait or a sequence past the window is named. */
function applyAcknowledgements(state: MachineState, session: number, command: Command): boolean {
  const mark = command.acknowledgedMark;
  const singles = command.acknowledgedCount;
  const { sessions } = state;
  const isNews = mark > (sessions.mark[session] as number);
  if (!isNews && singles === 0) return true;
  if (!isAcknowledgeable(state, session, command)) return false;
  sessions.digest.touch(session);
  if (isNews) raiseMark(state, session, mark);
  for (let i = 0; i < singles; i += 1) {
    acknowledgeSingle(state, session, command.acknowledged[i] as number, command.principal);
  }
  advanceFloor(state, session);
  return true;
}

function isAcknowledgeable(state: MachineState, session: number, command: Command): boolean {
  const { sessions, waits, results, settings } = state;
  const floor = Math.max(sessions.floor[session] as number, command.acknowledgedMark);
  const far = floor + settings.sessionWindow;
  for (let i = 0; i < command.acknowledgedCount; i += 1) {
    if ((command.acknowledged[i] as number) > far) return false;
  }
  let wait = sessions.firstWait[session] as number;
  while (wait !== NONE) {
    const result = waits.result[wait] as number;
    if (results.session[result] === session) {
      const sequence = results.sequence[result] as number;
      if (sequence <= command.acknowledgedMark) return false;
      for (let i = 0; i < command.acknowledgedCount; i += 1) {
        if (command.acknowledged[i] === sequence) return false;
      }
    }
    wait = waits.nextInSession[wait] as number;
  }
  return true;
}

function raiseMark(state: MachineState, session: number, mark: number): void {
  const { sessions, results } = state;
  const old = sessions.mark[session] as number;
  if (mark - old <= 2 * (sessions.results[session] as number)) {
    for (let sequence = old + 1; sequence <= mark; sequence += 1) {
      const slot = results.findSequence(session, sequence);
      if (slot !== NONE) dropRecord(state, session, slot);
    }
  } else {
    // The records are fewer than the sequences: the walk is bounded whatever the mark says.
    let slot = sessions.firstResult[session] as number;
    while (slot !== NONE) {
      const next = results.nextInSession[slot] as number;
      if ((results.sequence[slot] as number) <= mark) dropRecord(state, session, slot);
      slot = next;
    }
  }
  sessions.mark[session] = mark;
  if (mark > (sessions.floor[session] as number)) sessions.floor[session] = mark;
}

function dropRecord(state: MachineState, session: number, slot: number): void {
  const { sessions, results } = state;
  if (results.state[slot] === ResultState.Final) {
    sessions.finals[session] = (sessions.finals[session] as number) - 1;
  }
  results.remove(slot);
}

function acknowledgeSingle(
  state: MachineState,
  session: number,
  sequence: number,
  principal: number,
): void {
  const { sessions, results } = state;
  let slot = results.findSequence(session, sequence);
  if (sequence <= (sessions.floor[session] as number)) {
    if (slot !== NONE) dropRecord(state, session, slot);
    return;
  }
  if (slot === NONE) {
    slot = results.createSequence(session, sequence, principal);
  } else if (results.state[slot] === ResultState.Final) {
    sessions.finals[session] = (sessions.finals[session] as number) - 1;
  }
  results.acknowledge(slot);
}

/** Moves the floor past every sequence that the table holds without a gap. */
function advanceFloor(state: MachineState, session: number): void {
  const { sessions, results } = state;
  const old = sessions.floor[session] as number;
  let floor = old;
  let slot = results.findSequence(session, floor + 1);
  while (slot !== NONE) {
    floor += 1;
    if (results.state[slot] === ResultState.Acknowledged) results.remove(slot);
    slot = results.findSequence(session, floor + 1);
  }
  if (floor === old) return;
  sessions.digest.touch(session);
  sessions.floor[session] = floor;
}
