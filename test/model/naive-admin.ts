/**
 * What operators and guards say to the naive machine (docs/SEMANTICS.md, the section of that name).
 *
 * Owns: the five commands and the refused event. Never: request ids. Used by: naive commands.
 */

import { CommandKind } from '../../src/core/locks/command.js';
import { EventKind } from '../../src/core/locks/event.js';
import { LeaseEnd, OutcomeCode } from '../../src/core/locks/outcome.js';
import type { ModelCommand, ModelOutcome } from './model-types.js';
import type { NaiveMachine } from './naive-machine.js';
import { type DisabledRule, type LeaseRecord, leaseDeadline } from './naive-records.js';

type Fields = Partial<ModelOutcome>;

/** The most rules that stand at once. */
const RULES_MAX = 256;

/** Carries out one of the five; what is not Ok leaves a refused event. */
export function answerAdmin(machine: NaiveMachine, command: ModelCommand): Fields {
  const { name = '', principal } = command;
  const fields = execute(machine, command);
  const { code = OutcomeCode.Ok } = fields;
  if (code !== OutcomeCode.Ok) {
    machine.emit(EventKind.Refused, { name, principal }, { cause: code });
  }
  return fields;
}

function execute(machine: NaiveMachine, command: ModelCommand): Fields {
  switch (command.kind) {
    case CommandKind.ForceRelease:
      return forceRelease(machine, command);
    case CommandKind.Disable:
      return disable(machine, command);
    case CommandKind.Enable:
      return enable(machine, command);
    case CommandKind.ExpireSession:
      return expireSession(machine, command);
    case CommandKind.ReportRefusal:
      return reportRefusal(machine, command);
    default:
      throw new Error(`the model has no command ${command.kind}`);
  }
}

/** Token, since, deadline, principal and metadata of who holds; nothing when nobody does. */
function shown(holder: LeaseRecord | undefined): Fields {
  if (holder === undefined) return {};
  return {
    token: holder.token,
    holderSince: holder.granted,
    deadline: leaseDeadline(holder),
    holderPrincipal: holder.principal,
    blob: holder.metadata ?? '',
  };
}

function forceRelease(machine: NaiveMachine, command: ModelCommand): Fields {
  const { name = '', lease, token } = command;
  machine.settleLock(name);
  const holder = machine.holderOf(name);
  const isNamed = holder !== undefined && (lease === undefined || lease === holder.token);
  if (!isNamed || (token !== undefined && token !== holder.token)) {
    if (holder === undefined) machine.note('force-release of what nobody holds');
    else if (!isNamed) machine.note('force-release of another lease');
    else machine.note('force-release of another token');
    const revision = machine.lastRevisionOf(name);
    return { code: OutcomeCode.Conflict, revision, ...shown(holder) };
  }
  if (lease !== undefined) machine.note('force-release by lease');
  if (token !== undefined) machine.note('force-release by token');
  if (lease === undefined && token === undefined) machine.note('force-release of whoever holds');
  if (machine.ruleFor(name) !== undefined) machine.note('force-release of a disabled name');
  const removed = shown(holder);
  const revision = machine.endLease(holder, LeaseEnd.Forced);
  if (machine.holderOf(name) !== undefined) machine.note('force-release hands over');
  return { revision, ...removed };
}

function sameRule(machine: NaiveMachine, command: ModelCommand): DisabledRule | undefined {
  const { name = '', isPrefix = false } = command;
  return machine.rules.find((rule) => rule.name === name && rule.isPrefix === isPrefix);
}

function disable(machine: NaiveMachine, command: ModelCommand): Fields {
  const { name = '', isPrefix = false, principal } = command;
  const known = sameRule(machine, command);
  if (known !== undefined) {
    machine.note('disabled already');
    return { revision: known.revision };
  }
  if (machine.rules.length >= RULES_MAX) return { code: OutcomeCode.Limit, blob: 'disabled' };
  const place = isPrefix ? 1 : 0;
  const revision = machine.emit(EventKind.Disabled, { name, principal }, { place });
  machine.rules.push({ name, isPrefix, revision });
  return { revision };
}

function enable(machine: NaiveMachine, command: ModelCommand): Fields {
  const { name = '', isPrefix = false, principal } = command;
  const known = sameRule(machine, command);
  if (known === undefined) {
    machine.note('enabled already');
    return { revision: 0 };
  }
  machine.rules = machine.rules.filter((rule) => rule !== known);
  const place = isPrefix ? 1 : 0;
  return { revision: machine.emit(EventKind.Enabled, { name, principal }, { place }) };
}

function expireSession(machine: NaiveMachine, command: ModelCommand): Fields {
  const session = machine.sessions.find(({ number }) => number === command.targetSession);
  if (session !== undefined) machine.settleSession(session);
  if (session?.state !== 'live') return { code: OutcomeCode.SessionExpired };
  machine.expelSession(session);
  const about = { name: '', principal: session.principal };
  const cause = LeaseEnd.Forced;
  return { revision: machine.emit(EventKind.Expelled, about, { cause }) };
}

function reportRefusal(machine: NaiveMachine, command: ModelCommand): Fields {
  const { name = '', principal, token = 0, mark: place = 0 } = command;
  const cause = OutcomeCode.StaleToken;
  const about = { token, place, cause };
  return { revision: machine.emit(EventKind.Fenced, { name, principal }, about) };
}
