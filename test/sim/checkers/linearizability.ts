/**
 * Linearizability of each lock: some order of its operations, each between its sending and its
 * answer, in which one lock alone would have answered the same (Herlihy and Wing 1990).
 *
 * The search is that of Wing and Gong with Lowe's memo of (done, state), bounded: a search that is
 * not finished within its bound is a failure, since "unknown" proves nothing. Judges histories
 * alone. Used by: check-run.ts, the chaos command, its own tests.
 */
import { finalAnswer, type History, isStored, type Operation } from '../history.js';
import { Verdict } from './verdict.js';

const OK = 0;
const LOCK_BUSY = 10;
const DISABLED = 14;
const CONFLICT = 20;
const NEVER = Number.POSITIVE_INFINITY;
const STEPS_MAX = 400_000;

/** What the run that is judged kept to. */
export interface RunBounds {
  /** The id may stand for two requests: it was forgotten, and asked again. */
  readonly mayBeTwo: (operation: Operation) => boolean;
  /** Cluster time runs at most so much faster than true time. */
  readonly rateMax: number;
}

/** Nothing was forgotten; clocks kept to the assumed rates, with room to spare. */
const SOUND: RunBounds = { mayBeTwo: () => false, rateMax: 1.03 };

/**
 * What one step does to the lock: holder's token (0 for none), the last token given, and the rules
 * that disable it. A `take` is the grant of an acquire that did not wait: no rule may stand then.
 */
type StepKind = 'grant' | 'take' | 'end' | 'sees' | 'is not' | 'busy' | 'refused' | RuleStep;
type RuleStep = 'disable' | 'enable' | 'enable nothing' | 'maybe enable';

interface Step {
  readonly kind: StepKind;
  readonly token: number;
  readonly fromUs: number;
  /** NEVER for what may still happen, or never does. */
  readonly untilUs: number;
  readonly isOptional: boolean;
  readonly about: string;
  /** Disable, enable: `name x` or `prefix x`. */
  readonly rule?: string;
}

interface LockState {
  readonly holder: number;
  readonly last: number;
  /** Rules that cover it, each behind a comma: few, in the order in which they were made. */
  readonly rules: string;
}

/** The state after a rule was made or taken away. */
function applyRule(state: LockState, { kind, rule = '' }: Step): LockState | null {
  const text = `,${rule};`;
  const isThere = state.rules.includes(text);
  if (kind === 'disable') return isThere ? state : { ...state, rules: state.rules + text };
  if (kind === 'enable nothing') return isThere ? null : state;
  if (!isThere) return kind === 'enable' ? null : state;
  return { ...state, rules: state.rules.replace(text, '') };
}

/** The state after `step`, or null when the lock would not have answered so. */
function apply(state: LockState, step: Step): LockState | null {
  const { holder, last, rules } = state;
  const { kind, token } = step;
  switch (kind) {
    case 'take':
      if (rules !== '') return null;
      return holder === 0 && token > last ? { holder: token, last: token, rules } : null;
    case 'grant':
      return holder === 0 && token > last ? { holder: token, last: token, rules } : null;
    case 'end':
      return holder === token ? { holder: 0, last, rules } : null;
    case 'sees':
      return holder === token ? state : null;
    case 'busy':
      if (rules !== '') return null;
      // Refused with no holder: only waiters stood there, which the queue's own checker judges.
      return token === 0 || holder === token ? state : null;
    case 'refused':
      return rules === '' ? null : state;
    case 'is not':
      return holder === token ? null : state;
    default:
      return applyRule(state, step);
  }
}

/** Who was granted a token, and when somebody was told so first, µs. */
interface Granted {
  readonly operation: Operation;
  readonly toldUs: number;
}

function noteGrant(
  granted: Map<number, Granted>,
  token: number,
  operation: Operation,
  atUs: number,
): void {
  const toldUs = Math.min(granted.get(token)?.toldUs ?? NEVER, atUs);
  granted.set(token, { operation, toldUs });
}

/** Steps that the history of one lock implies. Problems in themselves go to `verdict`. */
function stepsOf(
  lock: string,
  operations: readonly Operation[],
  bounds: RunBounds,
  verdict: Verdict,
): Step[] {
  const steps: Step[] = [];
  const granted = new Map<number, Granted>();
  const ghosts: Operation[] = [];
  const forced = forcedBy(operations, bounds);
  for (const operation of operations) {
    const answer = finalAnswer(operation);
    const { kind, id } = operation;
    if (kind === 'acquire' && answer?.code === OK) {
      // A free-form id that was forgotten is a new request: it may have been granted again.
      for (const { code, token, atUs } of operation.answers) {
        if (code === OK) noteGrant(granted, token, operation, atUs);
      }
      // And the first of them may have been granted with nobody told.
      if (bounds.mayBeTwo(operation)) ghosts.push(operation);
    } else if (kind === 'acquire' && isOpen(operation, bounds)) {
      ghosts.push(operation);
      steps.push(...readSteps(operation));
    } else if (kind === 'cancel' && answer?.code === OK && answer.token > 0) {
      const target = operations.find((other) => other.id === operation.target);
      // Of a life of the target whose own answer may never have come.
      if (target !== undefined) noteGrant(granted, answer.token, target, answer.atUs);
    } else if (answer !== undefined) steps.push(...readSteps(operation));
    verdict.demand(id === '' || kind !== '', () => `${id} has no kind`);
  }
  for (const [token, { operation, toldUs }] of granted) {
    const isTaken = operation.waitMs === 0 && !bounds.mayBeTwo(operation);
    steps.push(stepOf(isTaken ? 'take' : 'grant', token, operation, toldUs));
    const end = endOf(token, operation, operations, bounds.rateMax);
    const isForced = forced.ends.some((step) => step.token === token);
    // Released and forced, both for certain: no order has room for two ends.
    if (!isForced || !end.isOptional) steps.push(earlier(end, forced.maybes));
  }
  steps.push(...forced.ends);
  addGhosts(lock, steps, granted, ghosts, verdict);
  return steps;
}

/** Ends of leases by force: those that were told, and requests that may have ended one untold. */
interface Forced {
  readonly ends: readonly Step[];
  readonly maybes: readonly Operation[];
}

function forcedBy(operations: readonly Operation[], bounds: RunBounds): Forced {
  const ends: Step[] = [];
  const maybes: Operation[] = [];
  for (const operation of operations) {
    if (operation.kind !== 'force-release') continue;
    const tokens = new Set<number>();
    for (const { code, token, atUs } of operation.answers) {
      if (code !== OK || tokens.has(token)) continue;
      tokens.add(token);
      ends.push(stepOf('end', token, operation, atUs));
    }
    if (isOpen(operation, bounds)) maybes.push(operation);
  }
  return { ends, maybes };
}

/** An end that may have come sooner, by a force-release of which nobody heard. */
function earlier(end: Step, maybes: readonly Operation[]): Step {
  if (!end.isOptional) return end;
  let { fromUs } = end;
  for (const { aboutToken, sentUs } of maybes) {
    if (aboutToken === 0 || aboutToken === end.token) fromUs = Math.min(fromUs, sentUs);
  }
  return { ...end, fromUs };
}

/** What was disabled and enabled around a lock. A rule that nobody was told of may be there. */
function ruleSteps(lock: string, operations: readonly Operation[], bounds: RunBounds): Step[] {
  const steps: Step[] = [];
  for (const operation of operations) {
    const { kind, target: rule } = operation;
    if ((kind !== 'disable' && kind !== 'enable') || !covers(rule, lock)) continue;
    const answer = finalAnswer(operation);
    if (answer?.code === OK) {
      const isNothing = kind === 'enable' && answer.revision === 0;
      const told = isNothing ? 'enable nothing' : kind;
      steps.push({ ...stepOf(told, 0, operation, answer.atUs), rule });
    }
    if (!isOpen(operation, bounds)) continue;
    const maybe = kind === 'enable' ? 'maybe enable' : kind;
    steps.push({ ...stepOf(maybe, 0, operation, NEVER), rule, isOptional: true });
  }
  return steps;
}

/** True when the rule `name x` or `prefix x` is about this lock. */
function covers(rule: string, lock: string): boolean {
  const name = rule.slice(rule.indexOf(' ') + 1);
  return rule.startsWith('prefix ') ? lock.startsWith(name) : lock === name;
}

/** It may have had an effect though nobody was told. */
function isOpen(operation: Operation, bounds: RunBounds): boolean {
  if (bounds.mayBeTwo(operation)) return true;
  const answer = finalAnswer(operation);
  return answer === undefined || !isStored(answer) || operation.isAbandoned;
}

function stepOf(kind: StepKind, token: number, operation: Operation, untilUs: number): Step {
  const about = operation.id === '' ? operation.kind : operation.id;
  return { kind, token, fromUs: operation.sentUs, untilUs, isOptional: false, about };
}

function readSteps(operation: Operation): Step[] {
  const answer = finalAnswer(operation);
  if (answer === undefined) return [];
  const { atUs, code, token, cause } = answer;
  switch (operation.kind) {
    case 'acquire':
      if (code === DISABLED) return [stepOf('refused', 0, operation, atUs)];
      return code === LOCK_BUSY ? [stepOf('busy', token, operation, atUs)] : [];
    case 'force-release':
      return code === CONFLICT ? [stepOf('sees', token, operation, atUs)] : [];
    case 'get':
      return code === OK ? [stepOf('sees', token, operation, atUs)] : [];
    case 'check': {
      if (code !== OK) return [];
      const steps = [stepOf('sees', token, operation, atUs)];
      if (cause === 0) steps.push(stepOf('is not', operation.aboutToken, operation, atUs));
      return steps;
    }
    case 'renew':
      return code === OK ? [stepOf('sees', operation.aboutToken, operation, atUs)] : [];
    default:
      return [];
  }
}

/**
 * How the lease of `token` ended: by its release, if one was told so, else at some time after its
 * grant was asked for, or never.
 */
function endOf(
  token: number,
  grant: Operation,
  operations: readonly Operation[],
  rateMax: number,
): Step {
  let fromUs = grant.sentUs;
  let untilUs = NEVER;
  let isOptional = true;
  for (const operation of operations) {
    if (operation.kind !== 'release' || operation.aboutToken !== token) continue;
    const answer = finalAnswer(operation);
    if (answer?.code !== OK) continue;
    isOptional = false;
    untilUs = Math.min(untilUs, answer.atUs);
    fromUs = Math.max(grant.sentUs, Math.min(operation.sentUs, untilUs));
  }
  if (isOptional && grant.session === '') {
    fromUs = earliestExpiry(token, grant, operations, rateMax);
  }
  const about = `end of ${token}`;
  return { kind: 'end', token, fromUs, untilUs, isOptional, about };
}

/** A lease without a session that nobody released lasts its TTL from when it was asked for. */
function earliestExpiry(
  token: number,
  grant: Operation,
  all: readonly Operation[],
  rateMax: number,
): number {
  const isReleaseTried = all.some(
    (o) => o.kind === 'release' && o.aboutToken === token && o.principal === grant.principal,
  );
  if (isReleaseTried) return grant.sentUs;
  return grant.sentUs + (grant.ttlMs * 1000) / rateMax;
}

/** Tokens that somebody saw and no told acquire got: an untold acquire must have got them. */
function addGhosts(
  lock: string,
  steps: Step[],
  granted: ReadonlyMap<number, Granted>,
  ghosts: readonly Operation[],
  verdict: Verdict,
): void {
  const unknown = new Set<number>();
  for (const { token, kind } of steps) {
    if (kind !== 'is not' && token > 0 && !granted.has(token)) unknown.add(token);
  }
  verdict.demand(unknown.size <= ghosts.length, () => {
    return `${lock}: nobody can have got the tokens ${[...unknown].join(', ')}`;
  });
  const fromUs = ghosts.reduce((least, { sentUs }) => Math.min(least, sentUs), NEVER);
  for (const token of unknown) {
    const shape = { token, fromUs, untilUs: NEVER, isOptional: true, about: `untold ${token}` };
    steps.push({ kind: 'grant', ...shape }, { kind: 'end', ...shape });
  }
}

const LOOKS: ReadonlySet<StepKind> = new Set(['sees', 'is not', 'busy', 'refused']);

/** Steps that leave the lock as it is. */
function isLook({ kind }: Step): boolean {
  return LOOKS.has(kind);
}

function isGrant({ kind }: Step): boolean {
  return kind === 'grant' || kind === 'take';
}

const NOTHING_YET: LockState = { holder: 0, last: 0, rules: '' };

/**
 * Wing, Gong and Lowe: takes the steps one by one that may come first, and goes back if it fails.
 * A look that fits is taken at once, since it changes nothing and so can never be in the way. A
 * lease is not ended while somebody must still see it, and tokens are given in their order.
 */
class Search {
  private readonly done: Uint8Array;
  private readonly memo = new Set<string>();
  private left: number;
  /** Looks at each token that are still to come, and tokens that must still be given. */
  private readonly looksLeft = new Map<number, number>();
  private readonly grantsLeft = new Set<number>();
  steps = 0;
  /** How far the longest attempt came, for the report. */
  deepest = 0;
  stuck: LockState = NOTHING_YET;

  constructor(private readonly all: readonly Step[]) {
    this.done = new Uint8Array(all.length);
    this.left = all.filter(({ isOptional }) => !isOptional).length;
    for (const step of all) this.count(step, 1);
  }

  /** True when the steps can be ordered; throws when the bound is reached first. */
  run(): boolean {
    return this.search(NOTHING_YET, 0);
  }

  private count(step: Step, by: 1 | -1): void {
    if (step.isOptional) return;
    const { kind, token } = step;
    if (kind === 'sees' || kind === 'busy') {
      this.looksLeft.set(token, (this.looksLeft.get(token) ?? 0) + by);
    } else if (isGrant(step) && by === 1) this.grantsLeft.add(token);
    else if (isGrant(step)) this.grantsLeft.delete(token);
  }

  private search(state: LockState, first: number): boolean {
    const taken = this.takeLooks(state, first);
    if (this.left === 0) return true;
    let from = first;
    while (this.done[from] === 1) from += 1;
    const depth = this.all.length - this.left;
    if (depth > this.deepest) {
      this.deepest = depth;
      this.stuck = state;
    }
    const key = `${state.holder}/${state.last}/${state.rules}/${from}/${this.doneAfter(from)}`;
    if (!this.memo.has(key)) {
      this.memo.add(key);
      for (const at of this.enabled(from)) {
        const step = this.all[at] as Step;
        this.steps += 1;
        if (this.steps > STEPS_MAX) throw new Error('unknown');
        const next = isLook(step) || !this.isTimely(step) ? null : apply(state, step);
        if (next === null) continue;
        this.mark(at, 1);
        if (this.search(next, from)) return true;
        this.mark(at, 0);
      }
    }
    for (const at of taken) this.mark(at, 0);
    return false;
  }

  /** Takes every look that fits now. Returns which, to be given back. */
  private takeLooks(state: LockState, first: number): number[] {
    const taken: number[] = [];
    for (;;) {
      const before = taken.length;
      for (const at of this.enabled(first)) {
        const step = this.all[at] as Step;
        this.steps += 1;
        if (!isLook(step) || apply(state, step) === null) continue;
        this.mark(at, 1);
        taken.push(at);
      }
      if (taken.length === before) return taken;
    }
  }

  /** Undone steps that may come next: whatever begins after the earliest open answer may not. */
  private enabled(first: number): number[] {
    const open: number[] = [];
    let horizonUs = NEVER;
    for (let at = first; at < this.all.length; at += 1) {
      const step = this.all[at] as Step;
      if (step.fromUs > horizonUs) break;
      if (this.done[at] === 1) continue;
      if (!step.isOptional) horizonUs = Math.min(horizonUs, step.untilUs);
      open.push(at);
    }
    return open.filter((at) => (this.all[at] as Step).fromUs <= horizonUs);
  }

  private isTimely(step: Step): boolean {
    const { kind, token } = step;
    if (kind === 'end') return (this.looksLeft.get(token) ?? 0) === 0;
    if (!isGrant(step)) return true;
    for (const other of this.grantsLeft) if (other < token) return false;
    return true;
  }

  private mark(at: number, value: 0 | 1): void {
    const step = this.all[at] as Step;
    this.done[at] = value;
    this.count(step, value === 1 ? -1 : 1);
    if (!step.isOptional) this.left += value === 1 ? -1 : 1;
  }

  /** The steps after `from` that are done, as text: few, since they overlap. */
  private doneAfter(from: number): string {
    let text = '';
    for (let at = from; at < this.all.length; at += 1) if (this.done[at] === 1) text += `${at},`;
    return text;
  }
}

function judge(lock: string, steps: readonly Step[], verdict: Verdict): void {
  const search = new Search(steps);
  let isLinear = false;
  let isKnown = true;
  try {
    isLinear = search.run();
  } catch {
    isKnown = false;
  }
  verdict.demand(isKnown, () => `${lock}: unknown after ${STEPS_MAX} steps of ${steps.length}`);
  verdict.demand(!isKnown || isLinear, () => {
    const { holder, last } = search.stuck;
    const at = `${search.deepest} of ${steps.length} steps`;
    return `${lock}: no order of what clients saw; stuck after ${at}, held as ${holder}, ${last}`;
  });
}

export function checkLinearizability(history: History, bounds = SOUND): Verdict {
  const verdict = new Verdict('linearizability');
  const byLock = new Map<string, Operation[]>();
  for (const operation of history.operations) {
    if (operation.lock === '') continue;
    const list = byLock.get(operation.lock) ?? [];
    list.push(operation);
    byLock.set(operation.lock, list);
  }
  for (const [lock, operations] of byLock) {
    const steps = stepsOf(lock, operations, bounds, verdict);
    steps.push(...ruleSteps(lock, history.operations, bounds));
    steps.sort((a, b) => a.fromUs - b.fromUs);
    judge(lock, steps, verdict);
  }
  return verdict;
}
