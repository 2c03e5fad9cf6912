/**
 * Turns drafts into commands, by the state of the model at that moment.
 *
 * Owns: that leases, sessions and sequences that exist are hit often, and stale, future and foreign
 * ones sometimes. Never: what a command answers. Used by: the comparison.
 */

import { CommandKind, Mode, PRINCIPAL_CLUSTER } from '../../src/core/locks/command.js';
import { OutcomeCode } from '../../src/core/locks/outcome.js';
import { SettingNumber } from '../../src/core/locks/settings.js';
import { type Draft, HUGE, NAMES, OTHER_PRINCIPAL } from './drafts.js';
import type { ModelCommand, ModelOutcome, ModelRequest, ModelTarget } from './model-types.js';
import type { NaiveMachine } from './naive-machine.js';
import { leaseDeadline, waitDeadline } from './naive-records.js';
import {
  alterAdmin,
  disableOf,
  enableOf,
  expireSessionOf,
  forceReleaseOf,
  reportRefusalOf,
} from './resolve-admin.js';

/** What a log has done so far, as far as later drafts refer to it. */
export class LogHistory {
  /** Every command, oldest first. */
  readonly commands: ModelCommand[] = [];
  /** Tokens of all grants, oldest first. */
  readonly tokens: number[] = [];
  /** The command that queued the wait of each place. */
  readonly waits = new Map<number, ModelCommand>();
  /** Highest sequence used in each session. */
  private readonly sequences = new Map<number, number>();
  private freshIds = 0;

  /** @param gridMs durations are rounded up to a multiple of this many ms */
  constructor(readonly gridMs: number) {}

  /** A free-form id that no command of this log had. */
  freshId(): string {
    this.freshIds += 1;
    return `fresh${this.freshIds}`;
  }

  lastSequence(session: number): number {
    return this.sequences.get(session) ?? 0;
  }

  record(command: ModelCommand, outcome: ModelOutcome): void {
    this.commands.push(command);
    if (outcome.code === OutcomeCode.Queued) this.waits.set(outcome.revision, command);
    const { request, session } = command;
    if (request.kind !== 'sequence' || session === undefined) return;
    const highest = Math.max(this.lastSequence(session), request.sequence);
    // A leap past the window is refused, so the next sequence does not count from there.
    if (request.sequence <= this.lastSequence(session) + 1) this.sequences.set(session, highest);
  }
}

/** A session and a lease that were never issued. */
const UNKNOWN_SESSION = 900_001;
const UNKNOWN_LEASE = 900_000_001;

function pickSession(machine: NaiveMachine, draft: Draft): number {
  const back = draft.sessionBack ?? 0;
  const live = machine.sessions.filter(({ state, deadline }) => {
    return state === 'live' && machine.now < deadline + 100;
  });
  const picked = live[live.length - 1 - (back % Math.max(1, live.length))];
  if (back < 3 && picked !== undefined) return picked.number;
  const number = machine.sessionsOpened - back;
  return number >= 1 ? number : UNKNOWN_SESSION;
}

function pickRequest(
  machine: NaiveMachine,
  history: LogHistory,
  draft: Draft,
): { request: ModelRequest; session?: number } {
  if (draft.style === 'none') return { request: { kind: 'none' } };
  if (draft.style === 'free') return { request: { kind: 'free', id: `r${draft.freeId}` } };
  const session = pickSession(machine, draft);
  const last = history.lastSequence(session);
  const sequence = Math.min(HUGE, Math.max(1, last + draft.sequenceAhead));
  const floor = machine.sessions.find(({ number }) => number === session)?.floor ?? 0;
  const singles = draft.singles?.map((offset) => Math.min(HUGE, Math.max(1, floor + offset)));
  const { markBack } = draft;
  const mark = markBack === undefined ? undefined : Math.min(HUGE, Math.max(0, last - markBack));
  return { session, request: { kind: 'sequence', sequence, mark, singles } };
}

function oddFields(draft: Draft): Partial<ModelCommand> {
  switch (draft.oddField) {
    case 1:
      return { mode: Mode.Shared };
    case 2:
      return { mode: Mode.Exclusive };
    case 3:
      return { permits: 1 };
    case 4:
      return { capacity: 3 };
    case 5:
      return { owner: 'worker' };
    case 6:
      return { lockDelayMs: 5 };
    case 7:
      return { holdMsMax: 500 };
    default:
      return {};
  }
}

function acquireOf(machine: NaiveMachine, history: LogHistory, draft: Draft): ModelCommand {
  const named = pickRequest(machine, history, draft.style === 'none' ? asFree(draft) : draft);
  const name = NAMES[draft.name] ?? '';
  const isInSession = draft.style === 'free' && draft.sessionBack !== undefined;
  const { expectedAhead, notAfterAhead } = draft;
  return {
    kind: CommandKind.Acquire,
    principal: draft.principal,
    ...(isInSession ? { session: pickSession(machine, draft) } : {}),
    ...named,
    name,
    ttlMs: draft.ttlMs,
    waitMs: expectedAhead === undefined || draft.historyBack > 3 ? draft.waitMs : undefined,
    metadata: draft.metadata,
    expectedRevision:
      expectedAhead === undefined
        ? undefined
        : Math.max(0, machine.lastRevisionOf(name) + expectedAhead),
    notAfter: notAfterAhead === undefined ? undefined : Math.max(0, machine.now + notAfterAhead),
    ...oddFields(draft),
  };
}

function asFree(draft: Draft): Draft {
  return { ...draft, style: 'free' };
}

/** An acquire whose id was never used: more of them reach the lock. */
function freshAcquireOf(machine: NaiveMachine, history: LogHistory, draft: Draft): ModelCommand {
  const command = acquireOf(machine, history, asFree(draft));
  return { ...command, request: { kind: 'free', id: history.freshId() } };
}

function cancelOf(machine: NaiveMachine, history: LogHistory, draft: Draft): ModelCommand {
  const earlier = history.commands.filter(({ kind }) => kind === CommandKind.Acquire);
  const aimed = earlier[earlier.length - 1 - draft.historyBack];
  const own = pickRequest(machine, history, draft);
  const base = { kind: CommandKind.Cancel, principal: aimed?.principal ?? draft.principal };
  if (aimed?.request.kind === 'sequence' && draft.oddField === 0) {
    const target: ModelTarget = { kind: 'sequence', sequence: aimed.request.sequence };
    const session = aimed.session ?? UNKNOWN_SESSION;
    const request = pickRequest(machine, history, {
      ...draft,
      sessionBack: machine.sessionsOpened - session,
    }).request;
    return { ...base, session, request, target };
  }
  if (aimed?.request.kind === 'free' && draft.freeId > 3) {
    return { ...base, ...own, target: { kind: 'free', id: aimed.request.id } };
  }
  const session = pickSession(machine, draft);
  const last = history.lastSequence(session);
  const sequence = Math.min(HUGE, Math.max(1, last + 3 - draft.freeId));
  if (draft.leaseBack < 3) {
    return { ...base, ...own, session, target: { kind: 'sequence', sequence } };
  }
  return { ...base, ...own, target: { kind: 'free', id: `r${draft.historyBack % 16}` } };
}

function keepWaitsOf(machine: NaiveMachine, draft: Draft): ModelCommand {
  const places = machine.waits.map(({ place }) => place);
  const numbers = [...places.slice(draft.freeId % 3), machine.revision - draft.leaseBack];
  return {
    kind: CommandKind.KeepWaits,
    principal: draft.leaseBack < 7 ? PRINCIPAL_CLUSTER : draft.principal,
    request: { kind: 'none' },
    numbers: numbers.map((place) => Math.max(0, place)),
  };
}

const CHANGES: readonly (readonly [number, number])[] = [
  [SettingNumber.waitersPerLockMax, 2],
  [SettingNumber.waitersPerLockMax, 4],
  [SettingNumber.sessionWindow, 3],
  [SettingNumber.sessionWindow, 5],
  [SettingNumber.idleLocksMax, 0],
  [SettingNumber.idleLocksMax, 3],
  [SettingNumber.expiriesPerEntryMax, 1],
  [SettingNumber.expiriesPerEntryMax, 3],
  [SettingNumber.endedLeasesMax, 20],
  [SettingNumber.endedLeasesMax, 16],
  [SettingNumber.resultRetentionMs, 1_500],
  [SettingNumber.resultRetentionMs, 1_000],
  [SettingNumber.implicitLapseMs, 1_200],
  [SettingNumber.freeResultsMax, 9],
  [SettingNumber.freeResultsMax, 14],
  [SettingNumber.leaseTtlMsDefault, 400],
  [SettingNumber.leaseTtlMsLeast, 350],
  [SettingNumber.leaseTtlMsLeast, 100],
  [SettingNumber.sessionTtlMsGreatest, 999],
  [SettingNumber.sessionTtlMsDefault, 900],
  [SettingNumber.sessionsPerPrincipalMax, 3],
  [SettingNumber.leasesPerPrincipalMax, 6],
  [SettingNumber.sessionWindow, 0],
  [99, 1],
];

function settingsOf(draft: Draft): ModelCommand {
  const first = CHANGES[(draft.freeId + draft.leaseBack * 16) % CHANGES.length] ?? [99, 1];
  const second = CHANGES[(draft.freeId + draft.historyBack + 3) % CHANGES.length] ?? [99, 1];
  return {
    kind: CommandKind.Settings,
    principal: draft.leaseBack < 4 ? PRINCIPAL_CLUSTER : draft.principal,
    request: { kind: 'none' },
    numbers: draft.name === 0 ? [...first] : [...first, ...second],
  };
}

function alter(command: ModelCommand, draft: Draft): ModelCommand {
  if (command.kind >= CommandKind.ForceRelease) return alterAdmin(command, draft);
  switch (draft.freeId % 6) {
    case 0:
      return { ...command, ttlMs: (command.ttlMs ?? 200) + 1 };
    case 1:
      return { ...command, metadata: command.metadata === '' ? undefined : '' };
    case 2:
      return { ...command, waitMs: command.waitMs === 0 ? undefined : 0 };
    case 3:
      return { ...command, principal: command.principal === 1 ? OTHER_PRINCIPAL : 1 };
    case 4:
      return { ...command, name: command.name === 'a' ? 'a/' : 'a' };
    default:
      return { ...command, mode: Mode.Exclusive };
  }
}

function repeatOf(machine: NaiveMachine, history: LogHistory, draft: Draft): ModelCommand {
  const earlier = history.commands[history.commands.length - 1 - draft.historyBack];
  const isNamed = earlier !== undefined && earlier.request.kind !== 'none';
  if (!isNamed) return acquireOf(machine, history, draft);
  return draft.op === 'repeat' ? earlier : alter(earlier, draft);
}

/** Rounds `ms` up to a multiple of `gridMs`. */
export function roundUp(ms: number, gridMs: number): number {
  return Math.ceil(ms / gridMs) * gridMs;
}

/** Durations on the grid, apart from those that are out of range or at its edge on purpose. */
function onGrid(draft: Draft, gridMs: number): Draft {
  const round = (ms: number | undefined): number | undefined =>
    ms === undefined || ms < 100 || ms > 2_000 ? ms : roundUp(ms, gridMs);
  const { ttlMs, waitMs, notAfterAhead } = draft;
  return {
    ...draft,
    ttlMs: round(ttlMs),
    waitMs: round(waitMs),
    notAfterAhead: round(notAfterAhead),
  };
}

/** A lease that is held, one held before, or one never issued. */
function pickLease(machine: NaiveMachine, history: LogHistory, draft: Draft): number {
  const { leases } = machine;
  const held = leases[leases.length - 1 - (draft.leaseBack % Math.max(1, leases.length))];
  if (draft.leaseBack < 3 && held !== undefined) return held.token;
  return history.tokens[history.tokens.length - 1 - draft.leaseBack] ?? UNKNOWN_LEASE;
}

/** True when the draft wants a session that lives and there is none: it opens one instead. */
function needsSession(machine: NaiveMachine, draft: Draft): boolean {
  if (draft.style !== 'sequence' || (draft.sessionBack ?? 0) > 2) return false;
  return !machine.sessions.some(({ state }) => state === 'live');
}

/** A command that meets something overdue which the sweep has left, if there is such a thing. */
function touchDeadOf(machine: NaiveMachine, history: LogHistory, draft: Draft): ModelCommand {
  const { now } = machine;
  const lease = machine.leases.find((one) => leaseDeadline(one) <= now);
  const waits = machine.waits.filter((one) => waitDeadline(one) <= now);
  // One whose session lives is the rarest to meet.
  const wait = waits.find(({ session }) => session !== null && session.deadline > now) ?? waits[0];
  const dead = draft.historyBack % 2 === 0 ? (wait ?? lease) : (lease ?? wait);
  if (dead === undefined) return acquireOf(machine, history, draft);
  const { principal, name, session } = dead;
  const base = { principal, request: { kind: 'none' } as const };
  const queued = dead === wait ? history.waits.get(wait.place) : undefined;
  if (draft.freeId > 13 && session !== null) {
    const picks = { lease: 0, session: session.number, id: history.freshId() };
    return expireSessionOf(draft, picks);
  }
  switch ((draft.freeId % 13) % 6) {
    case 0:
      if (session === null) break;
      return { ...base, kind: CommandKind.SessionClose, session: session.number };
    case 1: {
      if (session === null) break;
      const kind = dead === wait ? CommandKind.SessionClose : CommandKind.SessionRenew;
      return { ...base, kind, session: session.number };
    }
    case 2:
      if (queued === undefined) break;
      return cancelOfCommand(queued);
    case 3:
      return queued ?? { ...base, kind: CommandKind.Release, lease: lease?.token };
    case 4:
      return { ...base, kind: CommandKind.Renew, lease: lease?.token ?? UNKNOWN_LEASE };
    default:
      break;
  }
  return { ...freshAcquireOf(machine, history, draft), name };
}

/** A Cancel of the wait that `command` asked for. */
function cancelOfCommand({ principal, session, request }: ModelCommand): ModelCommand {
  const target = request.kind === 'none' ? undefined : request;
  const named = { kind: CommandKind.Cancel, principal, request: { kind: 'none' } as const };
  if (target?.kind !== 'sequence') return { ...named, target };
  return { ...named, session, target: { kind: 'sequence', sequence: target.sequence } };
}

/** The command that `draft` stands for now. */
export function resolveDraft(
  machine: NaiveMachine,
  history: LogHistory,
  picked: Draft,
): ModelCommand {
  const draft = onGrid(picked, history.gridMs);
  const { principal, ttlMs, metadata } = draft;
  const lease = pickLease(machine, history, draft);
  const named = pickRequest(machine, history, draft);
  const session = pickSession(machine, draft);
  const id = draft.style === 'none' ? `r${draft.freeId}` : history.freshId();
  // Sessions outlive most of their leases and waits, so that those are met overdue in a live one.
  const isShort = ttlMs === undefined || draft.name === 1;
  const longer = isShort ? ttlMs : ttlMs * 3;
  const open: ModelRequest = { kind: 'free', id };
  switch (needsSession(machine, draft) ? 'open' : draft.op) {
    case 'acquire':
      return acquireOf(machine, history, draft);
    case 'touchDead':
      return touchDeadOf(machine, history, draft);
    case 'acquireFresh':
      return freshAcquireOf(machine, history, draft);
    case 'open':
      return { kind: CommandKind.SessionOpen, principal, request: open, ttlMs: longer, metadata };
    case 'renewSession':
      return { kind: CommandKind.SessionRenew, principal, session, ttlMs: longer, ...named };
    case 'closeSession':
      return { kind: CommandKind.SessionClose, principal, session, ...named };
    case 'renew':
      return { kind: CommandKind.Renew, principal, lease, ttlMs, metadata, ...named };
    case 'release':
      return { kind: CommandKind.Release, principal, lease, ...named };
    case 'cancel':
      return cancelOf(machine, history, draft);
    case 'keepWaits':
      return keepWaitsOf(machine, draft);
    case 'settings':
      return settingsOf(draft);
    case 'forceRelease':
      return forceReleaseOf(machine, draft, { lease, session, id });
    case 'disable':
      return disableOf(draft, { lease, session, id });
    case 'enable':
      return enableOf(machine, draft, { lease, session, id });
    case 'expireSession':
      return expireSessionOf(draft, { lease, session, id });
    case 'reportRefusal':
      return reportRefusalOf(machine, draft, { lease, session, id });
    default:
      return repeatOf(machine, history, draft);
  }
}
