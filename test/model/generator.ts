/**
 * Random logs for the lock machine: drafts that fast-check makes and shrinks, and their meaning.
 *
 * Owns: how often what is tried. A draft holds picks, not ids; `resolveDraft` turns it into a
 * command by the state of the model at that moment, so that leases, sessions and sequences that
 * exist are hit often and stale, future and foreign ones sometimes. Never: what a command answers.
 * Used by: the property test.
 */

import fc from 'fast-check';
import { CommandKind, Mode, PRINCIPAL_CLUSTER } from '../../src/core/locks/command.js';
import { defaultSettings, SettingNumber, type Settings } from '../../src/core/locks/settings.js';
import type { ModelCommand, ModelRequest, ModelTarget } from './model-types.js';
import type { NaiveMachine } from './naive-machine.js';

/** Names that are prefixes of one another, not ASCII, and long: all unrelated. */
export const NAMES: readonly string[] = ['a', 'a/', 'a/b', 'a//b', 'ä€😀', 'x'.repeat(80)];

/** Settings so small that every limit is met within a few entries. */
export function smallSettings(): Settings {
  return {
    ...defaultSettings(),
    leaseTtlMsDefault: 300,
    leaseTtlMsLeast: 100,
    leaseTtlMsGreatest: 1_000,
    sessionTtlMsDefault: 500,
    sessionTtlMsLeast: 100,
    sessionTtlMsGreatest: 1_500,
    waitMsGreatest: 2_000,
    waitersPerLockMax: 3,
    leasesPerPrincipalMax: 9,
    sessionsPerPrincipalMax: 4,
    sessionWindow: 4,
    resultRetentionMs: 1_000,
    freeResultsMax: 24,
    notAfterMsAhead: 1_000,
    endedLeasesMax: 16,
    idleLocksMax: 2,
    expiriesPerEntryMax: 1,
    implicitLapseMs: 1_000,
  };
}

const OPERATIONS = [
  { op: 'acquire', weight: 30 },
  { op: 'acquireFresh', weight: 12 },
  { op: 'open', weight: 8 },
  { op: 'renewSession', weight: 6 },
  { op: 'closeSession', weight: 2 },
  { op: 'renew', weight: 7 },
  { op: 'release', weight: 10 },
  { op: 'cancel', weight: 8 },
  { op: 'keepWaits', weight: 4 },
  { op: 'settings', weight: 1 },
  { op: 'repeat', weight: 10 },
  { op: 'repeatAltered', weight: 3 },
] as const;
type Operation = (typeof OPERATIONS)[number]['op'];

/** One command as picks. Numbers named `back` count from the newest. */
export interface Draft {
  readonly op: Operation;
  readonly principal: number;
  readonly name: number;
  readonly style: 'none' | 'free' | 'sequence';
  readonly freeId: number;
  readonly sessionBack: number | undefined;
  readonly leaseBack: number;
  readonly sequenceAhead: number;
  readonly markBack: number | undefined;
  readonly singles: readonly number[] | undefined;
  readonly ttlMs: number | undefined;
  readonly waitMs: number | undefined;
  readonly metadata: string | undefined;
  readonly expectedAhead: number | undefined;
  readonly notAfterAhead: number | undefined;
  readonly oddField: number;
  readonly historyBack: number;
}

/** One entry: how far the stamp advances, and its commands. */
export interface DraftEntry {
  readonly advanceMs: number;
  readonly drafts: readonly Draft[];
}

function weighted<T>(...choices: [weight: number, arbitrary: fc.Arbitrary<T>][]): fc.Arbitrary<T> {
  return fc.oneof(...choices.map(([weight, arbitrary]) => ({ weight, arbitrary })));
}

function integer(min: number, max: number): fc.Arbitrary<number> {
  return fc.integer({ min, max });
}

const absent = fc.constant(undefined);

const draftArbitrary: fc.Arbitrary<Draft> = fc.record({
  op: weighted<Operation>(
    ...OPERATIONS.map(({ op, weight }): [number, fc.Arbitrary<Operation>] => [
      weight,
      fc.constant(op),
    ]),
  ),
  principal: weighted([9, fc.constant(1)], [1, fc.constant(2)]),
  name: weighted([6, fc.constant(0)], [6, integer(0, NAMES.length - 1)]),
  style: fc.constantFrom('none', 'free', 'free', 'sequence', 'sequence', 'sequence'),
  freeId: integer(0, 15),
  sessionBack: weighted<number | undefined>([2, absent], [7, integer(0, 2)], [1, integer(3, 9)]),
  leaseBack: weighted([8, integer(0, 4)], [3, integer(0, 30)]),
  sequenceAhead: weighted([10, fc.constant(1)], [3, integer(-6, 0)], [2, integer(2, 7)]),
  markBack: weighted<number | undefined>([7, absent], [3, integer(-1, 4)], [1, integer(-9, -2)]),
  singles: weighted<readonly number[] | undefined>(
    [7, absent],
    [3, fc.array(integer(-4, 7), { minLength: 1, maxLength: 3 })],
  ),
  ttlMs: weighted<number | undefined>(
    [2, absent],
    [9, integer(100, 1_000)],
    [1, fc.constantFrom(0, 1, 99, 1_001, 1_500, 1_501, 2 ** 31, Number.MAX_SAFE_INTEGER)],
  ),
  waitMs: weighted<number | undefined>(
    [2, absent],
    [1, fc.constant(0)],
    [7, integer(1, 2_000)],
    [1, fc.constantFrom(2_001, Number.MAX_SAFE_INTEGER)],
  ),
  metadata: weighted<string | undefined>([4, absent], [1, fc.constantFrom('', 'm', 'µ')]),
  expectedAhead: weighted<number | undefined>([9, absent], [1, integer(-3, 3)]),
  notAfterAhead: weighted<number | undefined>([9, absent], [1, integer(-200, 1_300)]),
  oddField: weighted([24, fc.constant(0)], [1, integer(1, 7)]),
  historyBack: weighted([5, integer(0, 4)], [2, integer(0, 40)]),
});

const advanceArbitrary = weighted(
  [8, fc.constant(0)],
  [8, integer(1, 40)],
  [3, integer(40, 250)],
  [1, integer(250, 2_500)],
);

/** A whole random log of up to `entriesMax` entries. */
export function logArbitrary(entriesMax: number): fc.Arbitrary<DraftEntry[]> {
  const entry: fc.Arbitrary<DraftEntry> = fc.record({
    advanceMs: advanceArbitrary,
    drafts: fc.array(draftArbitrary, { maxLength: 6, size: 'max' }),
  });
  return fc.array(entry, { minLength: 1, maxLength: entriesMax, size: 'max' });
}

/** What a log has done so far, as far as later drafts refer to it. */
export class LogHistory {
  /** Every command, oldest first. */
  readonly commands: ModelCommand[] = [];
  /** Tokens of all grants, oldest first. */
  readonly tokens: number[] = [];
  /** Highest sequence used in each session. */
  private readonly sequences = new Map<number, number>();
  private freshIds = 0;

  /** A free-form id that no command of this log had. */
  freshId(): string {
    this.freshIds += 1;
    return `fresh${this.freshIds}`;
  }

  lastSequence(session: number): number {
    return this.sequences.get(session) ?? 0;
  }

  record(command: ModelCommand): void {
    this.commands.push(command);
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
  const sequence = Math.max(1, last + draft.sequenceAhead);
  const floor = machine.sessions.find(({ number }) => number === session)?.floor ?? 0;
  const singles = draft.singles?.map((offset) => Math.max(1, floor + offset));
  const mark = draft.markBack === undefined ? undefined : Math.max(0, last - draft.markBack);
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
  const sequence = Math.max(1, history.lastSequence(session) + 3 - draft.freeId);
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
  [SettingNumber.sessionsPerPrincipalMax, 3],
  [SettingNumber.leasesPerPrincipalMax, 6],
  [SettingNumber.sessionWindow, 0],
  [99, 1],
];

function settingsOf(draft: Draft): ModelCommand {
  const first = CHANGES[draft.freeId % CHANGES.length] ?? [99, 1];
  const second = CHANGES[(draft.freeId + draft.historyBack + 3) % CHANGES.length] ?? [99, 1];
  return {
    kind: CommandKind.Settings,
    principal: draft.leaseBack < 4 ? PRINCIPAL_CLUSTER : draft.principal,
    request: { kind: 'none' },
    numbers: draft.name === 0 ? [...first] : [...first, ...second],
  };
}

function alter(command: ModelCommand, draft: Draft): ModelCommand {
  switch (draft.freeId % 6) {
    case 0:
      return { ...command, ttlMs: (command.ttlMs ?? 200) + 1 };
    case 1:
      return { ...command, metadata: command.metadata === '' ? undefined : '' };
    case 2:
      return { ...command, waitMs: command.waitMs === 0 ? undefined : 0 };
    case 3:
      return { ...command, principal: 3 - command.principal };
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

/** The command that `draft` stands for now. */
export function resolveDraft(
  machine: NaiveMachine,
  history: LogHistory,
  draft: Draft,
): ModelCommand {
  const { principal, ttlMs, metadata } = draft;
  const lease = pickLease(machine, history, draft);
  const named = pickRequest(machine, history, draft);
  const session = pickSession(machine, draft);
  const id = draft.style === 'none' ? `r${draft.freeId}` : history.freshId();
  const open: ModelRequest = { kind: 'free', id };
  switch (needsSession(machine, draft) ? 'open' : draft.op) {
    case 'acquire':
      return acquireOf(machine, history, draft);
    case 'acquireFresh':
      return freshAcquireOf(machine, history, draft);
    case 'open':
      return { kind: CommandKind.SessionOpen, principal, request: open, ttlMs, metadata };
    case 'renewSession':
      return { kind: CommandKind.SessionRenew, principal, session, ttlMs, ...named };
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
    default:
      return repeatOf(machine, history, draft);
  }
}
