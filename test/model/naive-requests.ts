/**
 * Request ids in the naive machine (docs/SEMANTICS.md, Request ids).
 *
 * Owns: what makes an answer a replay, a new result, or a refusal before the command is looked at.
 * Never: what a command does. Used by: naive machine, naive commands.
 */

import { CommandKind } from '../../src/core/locks/command.js';
import { OutcomeCode } from '../../src/core/locks/outcome.js';
import { type ModelCommand, type ModelOutcome, outcomeOf } from './model-types.js';
import type { NaiveMachine } from './naive-machine.js';
import type { RequestRecord, SessionRecord } from './naive-records.js';

/** Carries out a command that is new; a wait that it queues finishes `request`. */
export type Execute = (request: RequestRecord) => ModelOutcome;

const NEVER = Number.POSITIVE_INFINITY;

/** The compared parameters as one string. */
function parametersOf(command: ModelCommand): string {
  const { kind, session, name, ttlMs, waitMs, mode, permits, capacity, expectedRevision } = command;
  const { owner, metadata, notAfter, lockDelayMs, holdMsMax, lease, target } = command;
  const first = [kind, session, name, ttlMs, waitMs, mode, permits, capacity, expectedRevision];
  const last = [owner, metadata, notAfter, lockDelayMs, holdMsMax, lease, target];
  const { isPrefix = false, token, mark, refusals, targetSession } = command;
  const admin = [isPrefix, token, mark, refusals, targetSession];
  return JSON.stringify(
    [...first, ...last, ...admin].map((value) => (value === undefined ? null : [value])),
  );
}

/** A record for a command that is new. */
function newRequest(command: ModelCommand): RequestRecord {
  return {
    parameters: parametersOf(command),
    notAfter: command.notAfter ?? 0,
    state: 'pending',
    outcome: outcomeOf({}),
    deadAt: NEVER,
  };
}

/** When a free-form result that became final now is dead. */
export function freeResultDeadAt(machine: NaiveMachine, request: RequestRecord): number {
  return Math.max(machine.now + machine.settings.resultRetentionMs, request.notAfter);
}

/** The session that `command` names, of its own principal and not forgotten. */
export function findSession(
  machine: NaiveMachine,
  command: ModelCommand,
): SessionRecord | undefined {
  const session = machine.sessions.find(({ number }) => number === command.session);
  if (session === undefined || session.principal !== command.principal) return undefined;
  machine.settleSession(session);
  const isForgotten = session.state !== 'live' && machine.now >= session.deadAt;
  if (!isForgotten) return session;
  machine.note('ended session is forgotten before the sweep');
  machine.sessions = machine.sessions.filter((other) => other !== session);
  return undefined;
}

export function keyOfFree(principal: number, id: string): string {
  return `${principal}/${id}`;
}

/** The record of a free-form id; a dead one is absent. */
export function findFree(
  machine: NaiveMachine,
  principal: number,
  id: string,
): RequestRecord | undefined {
  const key = keyOfFree(principal, id);
  const record = machine.free.get(key);
  if (record === undefined || machine.now < record.deadAt) return record;
  machine.note('result is dead before the sweep');
  machine.free.delete(key);
  return undefined;
}

/** The floor passes every sequence that the table knows. */
function moveFloor(session: SessionRecord): void {
  while (session.table.has(session.floor + 1)) session.floor += 1;
  for (const [sequence, record] of session.table) {
    if (record.state === 'acknowledged' && sequence <= session.floor) {
      session.table.delete(sequence);
    }
  }
}

function finalCount(session: SessionRecord): number {
  return [...session.table.values()].filter(({ state }) => state === 'final').length;
}

/** True when `sequence` may not be taken into the table of `session`. */
export function isBeyondWindow(
  machine: NaiveMachine,
  session: SessionRecord,
  sequence: number,
): boolean {
  const { sessionWindow } = machine.settings;
  return sequence > session.floor + sessionWindow || finalCount(session) >= sessionWindow;
}

export function storeSequence(
  session: SessionRecord,
  sequence: number,
  record: RequestRecord,
): void {
  session.table.set(sequence, record);
  moveFloor(session);
}

const ACKNOWLEDGED: RequestRecord = {
  parameters: null,
  notAfter: 0,
  state: 'acknowledged',
  outcome: outcomeOf({}),
  deadAt: NEVER,
};

/** Applies the acknowledgements of a request; false when they are refused as a whole. */
function acknowledge(
  machine: NaiveMachine,
  session: SessionRecord,
  mark: number,
  singles: readonly number[],
): boolean {
  const { table } = session;
  const floor = Math.max(session.floor, mark);
  const isPending = (sequence: number): boolean => table.get(sequence)?.state === 'pending';
  if ([...table.keys()].some((sequence) => sequence <= mark && isPending(sequence))) return false;
  if (singles.some(isPending)) return false;
  if (singles.some((single) => single > floor + machine.settings.sessionWindow)) return false;
  for (const sequence of [...table.keys()]) {
    if (sequence > mark) continue;
    machine.note('acknowledged by a mark');
    table.delete(sequence);
  }
  session.floor = floor;
  for (const single of singles) {
    const isFinal = table.delete(single);
    if (isFinal)
      machine.note(`acknowledged singly ${single > floor ? 'above' : 'below'} the floor`);
    if (single > floor) table.set(single, ACKNOWLEDGED);
  }
  moveFloor(session);
  return true;
}

/** The answer for an id that is known. */
function known(machine: NaiveMachine, record: RequestRecord, command: ModelCommand): ModelOutcome {
  const entryTime = machine.now;
  const { kind } = command;
  if (record.state === 'acknowledged') {
    machine.note('known as acknowledged');
    return outcomeOf({ code: OutcomeCode.RequestForgotten, kind, entryTime });
  }
  settleRequest(machine, record);
  if (record.parameters === null) machine.note('cancelled before it arrived');
  if (record.parameters !== null && record.parameters !== parametersOf(command)) {
    return outcomeOf({ code: OutcomeCode.RequestMismatch, kind, entryTime });
  }
  return { ...record.outcome, kind, replay: true, ahead: 0 };
}

/** A wait that stands is settled with its lock before anybody is told of it. */
export function settleRequest(machine: NaiveMachine, record: RequestRecord): void {
  const wait = machine.waits.find((other) => other.request === record);
  if (wait === undefined) return;
  machine.settleLock(wait.name);
  if (!machine.waits.includes(wait)) machine.note('a known wait was settled first');
}

const NOT_STORED_FIELDS = new Set(['sequence', 'request', 'acknowledged', 'not_after']);
/** Carried out whatever their request id is. */
const UNNAMED_KINDS = new Set<number>([
  CommandKind.Renew,
  CommandKind.SessionRenew,
  CommandKind.KeepWaits,
]);
const NOT_STORED_CODES = new Set<number>([
  OutcomeCode.RequestForgotten,
  OutcomeCode.RequestMismatch,
  OutcomeCode.DeadlinePassed,
]);

/** True when the answer of a new command becomes its result. */
function isStored(outcome: ModelOutcome): boolean {
  if (NOT_STORED_CODES.has(outcome.code)) return false;
  return !NOT_STORED_FIELDS.has(outcome.blob);
}

/** Carries out a new command and says whether its record goes into the table. */
function executeNew(
  machine: NaiveMachine,
  command: ModelCommand,
  execute: Execute,
): { outcome: ModelOutcome; record: RequestRecord | null } {
  const record = newRequest(command);
  const outcome = execute(record);
  if (!isStored(outcome)) return { outcome, record: null };
  record.outcome = outcome;
  if (outcome.code !== OutcomeCode.Queued) {
    record.state = 'final';
    record.deadAt = freeResultDeadAt(machine, record);
  }
  return { outcome, record };
}

function answerSequence(
  machine: NaiveMachine,
  command: ModelCommand,
  execute: Execute,
): ModelOutcome {
  const { request, kind } = command;
  if (request.kind !== 'sequence') throw new Error('wanted a sequence');
  const refuse = (code: number, blob = ''): ModelOutcome =>
    outcomeOf({ code, kind, blob, entryTime: machine.now });
  const session = findSession(machine, command);
  if (session === undefined) return refuse(OutcomeCode.SessionExpired);
  if (session.state !== 'live') {
    const kept = session.table.get(request.sequence);
    if (kept !== undefined) machine.note('known in an ended session');
    return kept === undefined ? refuse(OutcomeCode.SessionExpired) : known(machine, kept, command);
  }
  if (!acknowledge(machine, session, request.mark ?? 0, request.singles ?? [])) {
    return refuse(OutcomeCode.BadRequest, 'acknowledged');
  }
  const found = session.table.get(request.sequence);
  if (found !== undefined) return known(machine, found, command);
  if (request.sequence <= session.floor) return refuse(OutcomeCode.RequestForgotten);
  if (isBeyondWindow(machine, session, request.sequence)) {
    return refuse(OutcomeCode.Limit, 'sequence');
  }
  const { outcome, record } = executeNew(machine, command, execute);
  if (record !== null) storeSequence(session, request.sequence, record);
  return outcome;
}

function answerFree(machine: NaiveMachine, command: ModelCommand, execute: Execute): ModelOutcome {
  const { request, kind, principal, notAfter } = command;
  if (request.kind !== 'free') throw new Error('wanted a free-form id');
  const refuse = (code: number, blob = ''): ModelOutcome =>
    outcomeOf({ code, kind, blob, entryTime: machine.now });
  const found = findFree(machine, principal, request.id);
  if (found !== undefined) return known(machine, found, command);
  if (notAfter !== undefined) {
    if (notAfter > machine.now + machine.settings.notAfterMsAhead) {
      return refuse(OutcomeCode.BadRequest, 'not_after');
    }
    if (machine.now >= notAfter) return refuse(OutcomeCode.DeadlinePassed);
  }
  if (machine.free.size >= machine.settings.freeResultsMax) {
    return refuse(OutcomeCode.Limit, 'request');
  }
  const { outcome, record } = executeNew(machine, command, execute);
  if (record !== null) machine.free.set(keyOfFree(principal, request.id), record);
  return outcome;
}

/** The answer to a command: a stored one, a refusal by its id, or that of `execute`. */
export function answerRequest(
  machine: NaiveMachine,
  command: ModelCommand,
  execute: Execute,
): ModelOutcome {
  if (UNNAMED_KINDS.has(command.kind)) return execute(newRequest(command));
  // Settles the session that the command names, whatever its request id says.
  findSession(machine, command);
  switch (command.request.kind) {
    case 'sequence':
      return answerSequence(machine, command, execute);
    case 'free':
      return answerFree(machine, command, execute);
    default:
      return execute(newRequest(command));
  }
}
