/**
 * What each command does in the naive machine (docs/SEMANTICS.md, Commands).
 *
 * Owns: the checks of a command in their order, and its effect. Never: request ids as such; a
 * Cancel only looks its target up. Used by: naive machine.
 */

import { CommandKind, Mode, PRINCIPAL_CLUSTER } from '../../src/core/locks/command.js';
import { LeaseEnd, OutcomeCode } from '../../src/core/locks/outcome.js';
import {
  areSettingsValid,
  type SettingName,
  SettingNumber,
} from '../../src/core/locks/settings.js';
import {
  type ModelCommand,
  type ModelOutcome,
  type ModelTarget,
  outcomeOf,
} from './model-types.js';
import { answerAdmin } from './naive-admin.js';
import type { NaiveMachine } from './naive-machine.js';
import {
  type DisabledRule,
  type LeaseRecord,
  leaseDeadline,
  type RequestRecord,
  type SessionRecord,
} from './naive-records.js';
import {
  findFree,
  findSession,
  freeResultDeadAt,
  isBeyondWindow,
  keyOfFree,
  settleRequest,
  storeSequence,
} from './naive-requests.js';

/** Carries out `command`, which is new; a wait that it queues finishes `request`. */
export function executeCommand(
  machine: NaiveMachine,
  command: ModelCommand,
  request: RequestRecord,
): ModelOutcome {
  const fields = answer(machine, command, request);
  return outcomeOf({ kind: command.kind, entryTime: machine.now, ...fields });
}

type Fields = Partial<ModelOutcome>;

function answer(machine: NaiveMachine, command: ModelCommand, request: RequestRecord): Fields {
  switch (command.kind) {
    case CommandKind.SessionOpen:
      return openSession(machine, command);
    case CommandKind.SessionRenew:
      return renewSession(machine, command);
    case CommandKind.SessionClose:
      return closeSession(machine, command);
    case CommandKind.Acquire:
      return acquire(machine, command, request);
    case CommandKind.Renew:
      return renew(machine, command);
    case CommandKind.Release:
      return release(machine, command);
    case CommandKind.Cancel:
      return cancel(machine, command);
    case CommandKind.KeepWaits:
      return keepWaits(machine, command);
    case CommandKind.Settings:
      return changeSettings(machine, command);
    default:
      return answerAdmin(machine, command);
  }
}

function badRequest(field: string): Fields {
  return { code: OutcomeCode.BadRequest, blob: field };
}

function openSession(machine: NaiveMachine, command: ModelCommand): Fields {
  const { settings, now } = machine;
  const ttlMs = command.ttlMs ?? settings.sessionTtlMsDefault;
  if (ttlMs < settings.sessionTtlMsLeast || ttlMs > settings.sessionTtlMsGreatest) {
    return badRequest('ttl_ms');
  }
  const live = machine.sessions.filter(
    (session) => session.state === 'live' && session.principal === command.principal,
  );
  if (live.length >= settings.sessionsPerPrincipalMax) {
    return { code: OutcomeCode.Limit, blob: 'sessions' };
  }
  machine.sessionsOpened += 1;
  const session: SessionRecord = {
    number: machine.sessionsOpened,
    principal: command.principal,
    ttlMs,
    lastRenewal: now,
    deadline: now + ttlMs,
    state: 'live',
    deadAt: 0,
    floor: 0,
    table: new Map(),
  };
  machine.sessions.push(session);
  return { subject: `session ${session.number}`, deadline: session.deadline, ttlMs };
}

function renewSession(machine: NaiveMachine, command: ModelCommand): Fields {
  const { settings, now } = machine;
  const session = findSession(machine, command);
  if (session?.state !== 'live') return { code: OutcomeCode.SessionExpired };
  const ttlMs = command.ttlMs ?? session.ttlMs;
  const { ttlMs: asked } = command;
  const { sessionTtlMsLeast: least, sessionTtlMsGreatest: greatest } = settings;
  if (asked !== undefined && (asked < least || asked > greatest)) return badRequest('ttl_ms');
  if (session.deadline > now + ttlMs) machine.note('a shorter session TTL kept the deadline');
  machine.endOverdueLeases(session);
  session.ttlMs = ttlMs;
  session.lastRenewal = now;
  session.deadline = Math.max(session.deadline, now + ttlMs);
  return { deadline: session.deadline, ttlMs };
}

function closeSession(machine: NaiveMachine, command: ModelCommand): Fields {
  const session = findSession(machine, command);
  if (session?.state === 'closed') return { replay: true };
  if (session?.state !== 'live') return { code: OutcomeCode.SessionExpired };
  machine.closeSession(session);
  return {};
}

/** The first field of an acquire that a later feature level is for. */
function unsupportedField(command: ModelCommand): string | undefined {
  if (command.mode !== undefined && command.mode !== Mode.Exclusive) return 'mode';
  if (command.permits !== undefined) return 'permits';
  if (command.capacity !== undefined) return 'capacity';
  if (command.owner !== undefined) return 'owner';
  if (command.lockDelayMs !== undefined) return 'lock_delay_ms';
  if (command.holdMsMax !== undefined) return 'hold_ms_max';
  return undefined;
}

/** The first refusal of an acquire that its parameters alone decide. */
function refusedParameters(machine: NaiveMachine, command: ModelCommand): Fields | undefined {
  const { settings } = machine;
  const field = unsupportedField(command);
  if (field !== undefined) return badRequest(field);
  const ttlMs = command.ttlMs ?? settings.leaseTtlMsDefault;
  if (ttlMs < settings.leaseTtlMsLeast || ttlMs > settings.leaseTtlMsGreatest) {
    return badRequest('ttl_ms');
  }
  const waitMs = command.waitMs ?? 0;
  if (waitMs > settings.waitMsGreatest) return badRequest('wait_ms');
  if (command.expectedRevision !== undefined && waitMs > 0) return badRequest('expected_revision');
  return undefined;
}

function acquire(machine: NaiveMachine, command: ModelCommand, request: RequestRecord): Fields {
  const { settings } = machine;
  const { principal, name = '', waitMs = 0, metadata, expectedRevision } = command;
  let session: SessionRecord | null = null;
  if (command.session !== undefined) {
    const found = findSession(machine, command);
    if (found?.state !== 'live') return { code: OutcomeCode.SessionExpired };
    session = found;
  }
  const refusal = refusedParameters(machine, command);
  if (refusal !== undefined) return refusal;
  const ttlMs = command.ttlMs ?? settings.leaseTtlMsDefault;
  const owned = [...machine.leases, ...machine.waits].filter((one) => one.principal === principal);
  if (owned.length >= settings.leasesPerPrincipalMax) {
    return { code: OutcomeCode.Limit, blob: 'leases' };
  }
  const rule = machine.ruleFor(name);
  if (rule !== undefined) {
    noteRule(machine, name, rule);
    return { code: OutcomeCode.Disabled, revision: rule.revision };
  }
  machine.settleLock(name);
  const lastRevision = machine.lastRevisionOf(name);
  const isDeleted = !machine.locks.some((lock) => lock.name === name) && lastRevision > 0;
  if (expectedRevision !== undefined && isDeleted) machine.note('expected revision against F');
  if (expectedRevision !== undefined && lastRevision > expectedRevision) {
    return { code: OutcomeCode.Conflict, revision: lastRevision };
  }
  const ahead = machine.waitersOf(name).length;
  if (machine.holderOf(name) === undefined && ahead === 0) {
    return machine.grantedOutcome(machine.grant({ name, principal, session, ttlMs, metadata }));
  }
  if (waitMs === 0) return busy(machine, name);
  if (ahead >= settings.waitersPerLockMax) return { code: OutcomeCode.Limit, blob: 'waiters' };
  const wait = { name, principal, session, waitMs, ttlMs, metadata, request };
  return { code: OutcomeCode.Queued, revision: machine.enqueue(wait).place, ahead };
}

/** Which kind of rule covers a name, and whether one covers it that is not the one told. */
function noteRule(machine: NaiveMachine, name: string, rule: DisabledRule): void {
  const prefix = rule.name === '' ? 'the empty prefix' : 'a prefix';
  machine.note(`covered by ${rule.isPrefix ? prefix : 'its name'}`);
  const covering = machine.rules.filter(
    (other) => other.name === name || (other.isPrefix && name.startsWith(other.name)),
  );
  if (covering.length > 1) machine.note('covered by several rules');
}

function busy(machine: NaiveMachine, name: string): Fields {
  const holder = machine.holderOf(name);
  if (holder === undefined) return { code: OutcomeCode.LockBusy };
  return {
    code: OutcomeCode.LockBusy,
    token: holder.token,
    deadline: leaseDeadline(holder),
    holderSince: holder.granted,
    holderPrincipal: holder.principal,
    blob: holder.metadata ?? '',
  };
}

/** STALE_LEASE with how the lease ended; another principal's lease is unknown. */
function stale(machine: NaiveMachine, command: ModelCommand): Fields {
  const ended = machine.ended.find(
    ({ token, principal }) => token === command.lease && principal === command.principal,
  );
  const code = OutcomeCode.StaleLease;
  if (ended === undefined) return { code };
  return { code, cause: ended.how, revision: ended.revision };
}

/** The live lease that the command names, of its own principal; an overdue one is ended first. */
function findLease(machine: NaiveMachine, command: ModelCommand): LeaseRecord | undefined {
  const find = (): LeaseRecord | undefined =>
    machine.leases.find(
      ({ token, principal }) => token === command.lease && principal === command.principal,
    );
  const found = find();
  if (found !== undefined) machine.settleLease(found.token);
  return find();
}

function renew(machine: NaiveMachine, command: ModelCommand): Fields {
  const { settings, now } = machine;
  const { ttlMs, metadata } = command;
  const lease = findLease(machine, command);
  if (lease === undefined) return stale(machine, command);
  if (ttlMs !== undefined) {
    if (ttlMs < settings.leaseTtlMsLeast || ttlMs > settings.leaseTtlMsGreatest) {
      return badRequest('ttl_ms');
    }
    lease.floor = leaseDeadline(lease);
    if (lease.floor > now + ttlMs) machine.note('a shorter TTL kept the deadline');
    lease.ttlMs = ttlMs;
  }
  if (metadata !== undefined) lease.metadata = metadata;
  lease.ownRenewal = now;
  return { deadline: leaseDeadline(lease), ttlMs: lease.ttlMs, token: lease.token };
}

function release(machine: NaiveMachine, command: ModelCommand): Fields {
  const lease = findLease(machine, command);
  if (lease !== undefined) {
    return { revision: machine.endLease(lease, LeaseEnd.Released) };
  }
  const refusal = stale(machine, command);
  if (refusal.cause !== LeaseEnd.Released) return refusal;
  const ended = machine.ended.find(({ token }) => token === command.lease);
  return { revision: ended?.revision ?? 0, replay: true };
}

/** What a Cancel says of a target whose result is final. */
function cancelled(result: ModelOutcome): Fields {
  const isGrant = result.kind === CommandKind.Acquire && result.code === OutcomeCode.Ok;
  if (!isGrant) return { cause: result.code };
  const { subject, token, revision, deadline, ttlMs } = result;
  return { cause: result.code, subject, token, revision, deadline, ttlMs };
}

function cancelKnown(machine: NaiveMachine, record: RequestRecord): Fields {
  if (record.state === 'acknowledged') return { code: OutcomeCode.RequestForgotten };
  settleRequest(machine, record);
  const wait = machine.waits.find((other) => other.request === record);
  if (wait !== undefined) machine.leave(wait, OutcomeCode.Cancelled);
  return cancelled(record.outcome);
}

/** The result that waits for an id which was cancelled before it arrived. */
function cancelledAhead(machine: NaiveMachine): RequestRecord {
  const outcome = outcomeOf({
    code: OutcomeCode.Cancelled,
    entryTime: machine.now,
  });
  const record: RequestRecord = {
    parameters: null,
    notAfter: 0,
    state: 'final',
    outcome,
    deadAt: 0,
  };
  record.deadAt = freeResultDeadAt(machine, record);
  return record;
}

/** True when a Cancel names itself. */
function isSameId({ request }: ModelCommand, target: ModelTarget): boolean {
  if (request.kind === 'sequence' && target.kind === 'sequence') {
    return request.sequence === target.sequence;
  }
  return request.kind === 'free' && target.kind === 'free' && request.id === target.id;
}

function cancel(machine: NaiveMachine, command: ModelCommand): Fields {
  const { target, principal } = command;
  if (target === undefined || isSameId(command, target)) return badRequest('target');
  if (target.kind === 'free') {
    const record = findFree(machine, principal, target.id);
    if (record !== undefined) return cancelKnown(machine, record);
    if (machine.free.size >= machine.settings.freeResultsMax) {
      return { code: OutcomeCode.Limit, blob: 'request' };
    }
    machine.free.set(keyOfFree(principal, target.id), cancelledAhead(machine));
    return { cause: OutcomeCode.Cancelled };
  }
  const session = findSession(machine, command);
  const record = session?.table.get(target.sequence);
  if (record !== undefined) return cancelKnown(machine, record);
  if (session?.state !== 'live') return { code: OutcomeCode.SessionExpired };
  if (target.sequence <= session.floor) return { code: OutcomeCode.RequestForgotten };
  if (isBeyondWindow(machine, session, target.sequence)) {
    return { code: OutcomeCode.Limit, blob: 'sequence' };
  }
  storeSequence(session, target.sequence, cancelledAhead(machine));
  return { cause: OutcomeCode.Cancelled };
}

function keepWaits(machine: NaiveMachine, command: ModelCommand): Fields {
  if (command.principal !== PRINCIPAL_CLUSTER) return { code: OutcomeCode.Forbidden };
  for (const place of command.numbers ?? []) machine.keepAlive(place);
  return {};
}

function changeSettings(machine: NaiveMachine, command: ModelCommand): Fields {
  if (command.principal !== PRINCIPAL_CLUSTER) return { code: OutcomeCode.Forbidden };
  const pairs: [SettingName, number][] = [];
  const numbers = command.numbers ?? [];
  for (let i = 0; i + 1 < numbers.length; i += 2) {
    const found = Object.entries(SettingNumber).find(([, number]) => number === numbers[i]);
    const value = numbers[i + 1] ?? 0;
    if (found === undefined) return badRequest('settings');
    const name = found[0] as SettingName;
    pairs.push([name, value]);
  }
  const changed = { ...machine.settings, ...Object.fromEntries(pairs) };
  if (!areSettingsValid(changed)) return badRequest('settings');
  Object.assign(machine.settings, changed);
  machine.forgetEnded();
  return {};
}
