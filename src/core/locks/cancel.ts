/**
 * Cancel: a wait ends, or the grant that won is named; never both (I7).
 *
 * Owns: the command. A cancel that arrives before the acquire it names is remembered, so that the
 * acquire can no longer have an effect. Called by: lock-machine.ts.
 */
import { type Command, CommandKind, RequestKind } from './command.js';
import type { MachineState } from './machine-state.js';
import { type Outcome, OutcomeCode } from './outcome.js';
import { leaveQueue, settleLock } from './ownership.js';
import {
  answerKnown,
  cancelUnheardFree,
  cancelUnheardSequence,
  findFreeResult,
  isBeyondWindow,
  refuseField,
  storeResult,
} from './requests.js';
import { enterSession, isSessionLive } from './sessions.js';
import { ResultState } from './tables/result-table.js';
import { NONE } from './tables/table.js';

export function applyCancel(state: MachineState, command: Command, outcome: Outcome): void {
  enterSession(state, command);
  if (answerKnown(state, command, outcome, settleLock)) return;
  if (isOwnId(command)) {
    refuseField(outcome, OutcomeCode.BadRequest, 'target');
    storeResult(state, command, outcome);
    return;
  }
  const target =
    command.targetKind === RequestKind.Sequence
      ? findSequenceTarget(state, command, outcome)
      : findFreeTarget(state, command, outcome);
  if (outcome.code === OutcomeCode.Ok) {
    if (target === NONE) outcome.cause = OutcomeCode.Cancelled;
    else cancelTarget(state, target, outcome);
  }
  const isFinal = outcome.code === OutcomeCode.Ok || outcome.code === OutcomeCode.SessionExpired;
  if (isFinal) storeResult(state, command, outcome);
}

function isOwnId(command: Command): boolean {
  if (command.requestKind !== command.targetKind) return false;
  if (command.requestKind === RequestKind.Sequence) {
    return command.sequence === command.targetSequence;
  }
  if (command.requestBytes !== command.targetBytes) return false;
  const { bytes, requestOffset, targetOffset } = command;
  for (let i = 0; i < command.requestBytes; i += 1) {
    if (bytes[requestOffset + i] !== bytes[targetOffset + i]) return false;
  }
  return true;
}

/** The target's record; NONE with code Ok when it was unheard of and is now cancelled. */
function findSequenceTarget(state: MachineState, command: Command, outcome: Outcome): number {
  const { results, sessions, settings } = state;
  const session = state.currentSession;
  if (session === NONE) {
    outcome.code = OutcomeCode.SessionExpired;
    return NONE;
  }
  const sequence = command.targetSequence;
  const slot = results.findSequence(session, sequence);
  if (slot !== NONE) return slot;
  if (!isSessionLive(state)) outcome.code = OutcomeCode.SessionExpired;
  else if (sequence <= (sessions.floor[session] as number)) {
    outcome.code = OutcomeCode.RequestForgotten;
  } else if (isBeyondWindow(state, session, sequence, settings.sessionWindow)) {
    refuseField(outcome, OutcomeCode.Limit, 'sequence');
  } else {
    cancelUnheardSequence(state, session, sequence, command.principal);
  }
  return NONE;
}

function findFreeTarget(state: MachineState, command: Command, outcome: Outcome): number {
  const slot = findFreeResult(
    state,
    command.principal,
    command.bytes,
    command.targetOffset,
    command.targetBytes,
  );
  if (slot !== NONE) return slot;
  if (state.results.freeCount >= state.settings.freeResultsMax) {
    refuseField(outcome, OutcomeCode.Limit, 'request');
  } else {
    cancelUnheardFree(state, command);
  }
  return NONE;
}

function cancelTarget(state: MachineState, target: number, outcome: Outcome): void {
  const { results, waits } = state;
  if (results.state[target] === ResultState.Acknowledged) {
    outcome.code = OutcomeCode.RequestForgotten;
    return;
  }
  if (results.state[target] === ResultState.Pending) {
    settleLock(state, waits.lock[results.wait[target] as number] as number);
  }
  if (results.state[target] === ResultState.Pending) {
    leaveQueue(state, results.wait[target] as number, OutcomeCode.Cancelled);
  }
  const code = results.code[target] as number;
  outcome.cause = code;
  if (code !== OutcomeCode.Ok || results.kind[target] !== CommandKind.Acquire) return;
  const at = target * 8;
  outcome.id0 = results.words[at] as number;
  outcome.id1 = results.words[at + 1] as number;
  outcome.id2 = results.words[at + 2] as number;
  outcome.id3 = results.words[at + 3] as number;
  outcome.token = results.token[target] as number;
  outcome.revision = results.revision[target] as number;
  outcome.deadline = results.deadline[target] as number;
  outcome.ttlMs = results.ttlMs[target] as number;
}
