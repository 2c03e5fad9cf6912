/**
 * What operators and guards say does what it answers, and nothing else does it (SEMANTICS, What
 * operators and guards say).
 *
 * Judges committed operations with their outcomes and events. A lease ends by force only where a
 * force-release names its lock and answers its token, or where its session was expelled in the same
 * entry; what was forced is handed over at once, the barrier token one below the next grant; nobody
 * is taken for a disabled name; a refused attempt leaves its event and nothing more.
 * Used by: check-run.ts.
 */
import type { LedgerEntry, SeenEvent, SeenOutcome } from '../ledger.js';
import { hexOf, operationsOf, textOf } from './logged-operation.js';
import { Verdict } from './verdict.js';

const OK = 0;
const QUEUED = 1;
const LOCK_BUSY = 10;
const DISABLED = 14;
const ACQUIRE = 36;
const FORCE = 42;
const DISABLE = 43;
const ENABLE = 44;
const EXPEL = 45;
const REPORT = 46;
const FORCED = 5;
const GRANTED = 1;
const ENDED = 2;
const EVENT = { queued: 3, left: 4, disabled: 5, enabled: 6, refused: 7, fenced: 8, expelled: 9 };
/** REQUEST_MISMATCH, REQUEST_FORGOTTEN, DEADLINE_PASSED: the id alone decided. */
const BY_ID = new Set([18, 19, 22]);
const ERROR_MIN = 10;

/** One of the five commands, carried out. */
interface Said {
  readonly kind: number;
  readonly name: string;
  readonly isPrefix: boolean;
  /** ExpireSession: the session, hexadecimal. */
  readonly session: string;
  readonly outcome: SeenOutcome;
}

interface Rule {
  readonly name: string;
  readonly isPrefix: boolean;
  readonly revision: number;
}

/** A lease that a committed force-release or expire_session ended. */
export interface ForcedEnd {
  readonly token: number;
  readonly stampMs: number;
}

/** Every lease that ended by force, by its token. */
export function forcedEnds(events: readonly SeenEvent[]): Map<number, ForcedEnd> {
  const ends = new Map<number, ForcedEnd>();
  for (const { kind, cause, token, stampMs } of events) {
    if (kind === ENDED && cause === FORCED) ends.set(token, { token, stampMs });
  }
  return ends;
}

function saidOf(fields: readonly unknown[], outcome: SeenOutcome): Said {
  const kind = fields[0] as number;
  const isRule = kind === DISABLE || kind === ENABLE;
  const isPrefix = isRule && fields[5] == null;
  const session = kind === EXPEL ? hexOf(fields[5]) : '';
  const name = kind === EXPEL ? '' : (textOf(fields[isPrefix ? 6 : 5]) ?? '');
  return { kind, name, isPrefix, session, outcome };
}

function isDecidedById({ code, blob }: SeenOutcome): boolean {
  return BY_ID.has(code) || textOf(blob) === 'request' || textOf(blob) === 'not_after';
}

function remove(queue: number[], place: number): void {
  const at = queue.indexOf(place);
  if (at >= 0) queue.splice(at, 1);
}

/** Follows one log. */
class Follower {
  readonly verdict = new Verdict('operators');
  private readonly queues = new Map<string, number[]>();
  private readonly holders = new Map<string, number>();
  /** Session, hexadecimal or '', of each lease by token and each wait by place. */
  private readonly leaseSessions = new Map<number, string>();
  private readonly waitSessions = new Map<number, string>();
  private rules: Rule[] = [];

  follow(entry: LedgerEntry): void {
    const said: Said[] = [];
    for (const [at, { fields }] of operationsOf(entry.data).entries()) {
      const outcome = entry.outcomes[at];
      if (outcome === undefined || outcome.replay) continue;
      const kind = fields[0] as number;
      if (kind === ACQUIRE) this.onAcquire(fields, outcome);
      if (kind < FORCE || kind > REPORT || isDecidedById(outcome)) continue;
      const one = saidOf(fields, outcome);
      said.push(one);
      this.onRule(one);
    }
    for (const { place, outcome } of entry.completions) {
      if (outcome.code !== OK) continue;
      this.leaseSessions.set(outcome.token, this.waitSessions.get(place) ?? '');
    }
    for (const [at, event] of entry.events.entries()) this.onEvent(event, at, entry.events, said);
    this.demandEvents(entry, said);
  }

  /** Who is taken is not covered by a rule; who is DISABLED is, by the oldest. */
  private onAcquire(fields: readonly unknown[], outcome: SeenOutcome): void {
    const name = textOf(fields[5]) ?? '';
    const { code, revision, token } = outcome;
    const session = hexOf(fields[2]);
    if (code === OK) this.leaseSessions.set(token, session);
    if (code === QUEUED) this.waitSessions.set(revision, session);
    const rule = this.rules.find((each) => {
      return each.isPrefix ? name.startsWith(each.name) : each.name === name;
    });
    if (code === OK || code === QUEUED || code === LOCK_BUSY) {
      this.verdict.demand(rule === undefined, () => {
        return `${name} is disabled since ${rule?.revision}, an acquire of it gave ${code}`;
      });
    }
    if (code !== DISABLED) return;
    this.verdict.demand(rule?.revision === revision, () => {
      return `${name} was disabled since ${revision}, by the log since ${rule?.revision}`;
    });
  }

  private onRule({ kind, name, isPrefix, outcome: { code, revision } }: Said): void {
    if (code !== OK || (kind !== DISABLE && kind !== ENABLE)) return;
    const known = this.rules.find((each) => each.name === name && each.isPrefix === isPrefix);
    if (kind === DISABLE && known === undefined) this.rules.push({ name, isPrefix, revision });
    if (kind === ENABLE) this.rules = this.rules.filter((each) => each !== known);
    const isNamed = kind === ENABLE || known === undefined || known.revision === revision;
    this.verdict.demand(isNamed, () => `${name} has a rule of ${known?.revision}, not ${revision}`);
    const wasThere = revision > 0;
    const isSo = kind === DISABLE || wasThere === (known !== undefined);
    this.verdict.demand(
      isSo,
      () => `enabling ${name} gave ${revision}, its rule: ${known?.revision}`,
    );
  }

  private onEvent(
    event: SeenEvent,
    at: number,
    events: readonly SeenEvent[],
    said: readonly Said[],
  ): void {
    const { kind, lock, token, place, cause } = event;
    const queue = this.queues.get(lock) ?? [];
    this.queues.set(lock, queue);
    if (kind === GRANTED) {
      this.holders.set(lock, token);
      if (place > 0) remove(queue, place);
    } else if (kind === ENDED) {
      this.holders.delete(lock);
      if (cause === FORCED) this.onForced(event, events[at + 1], queue, said);
    } else if (kind === EVENT.queued) queue.push(place);
    else if (kind === EVENT.left) remove(queue, place);
    else this.demandCommand(event, said);
  }

  /** A lease ended by force: somebody asked for exactly that, and the first waiter has the lock. */
  private onForced(
    { revision, lock, token }: SeenEvent,
    next: SeenEvent | undefined,
    queue: readonly number[],
    said: readonly Said[],
  ): void {
    const force = said.find(({ kind, outcome }) => {
      return kind === FORCE && outcome.code === OK && outcome.revision === revision;
    });
    const isMeant = force?.name === lock && force.outcome.token === token;
    const session = this.leaseSessions.get(token) ?? '';
    const isExpelled = said.some((one) => {
      return one.kind === EXPEL && one.outcome.code === OK && one.session === session;
    });
    this.verdict.demand(isMeant || isExpelled, () => `nobody asked to end ${token} of ${lock}`);
    if (!isMeant || queue[0] === undefined) return;
    const isHandedOver = next?.kind === GRANTED && next.lock === lock && next.place === queue[0];
    this.verdict.demand(isHandedOver && next.token === revision + 1, () => {
      return `${lock} is forced with barrier ${revision}, place ${queue[0]} is not granted next`;
    });
  }

  /** Each event of an operator or a guard is that of a command of its entry. */
  private demandCommand(event: SeenEvent, said: readonly Said[]): void {
    const { kind, revision, lock, token, place, cause } = event;
    const one = said.find(({ outcome, name }) => {
      if (kind === EVENT.refused) return outcome.code === cause && name === lock;
      return outcome.code === OK && outcome.revision === revision && name === lock;
    });
    this.verdict.demand(
      one !== undefined,
      () => `event ${kind} of revision ${revision}: by nobody`,
    );
    if (one === undefined) return;
    const isRule = kind === EVENT.disabled || kind === EVENT.enabled;
    const isPlace = !isRule || place === (one.isPrefix ? 1 : 0);
    this.verdict.demand(isPlace, () => `event ${kind} of revision ${revision} has place ${place}`);
    const isFenced = kind !== EVENT.fenced || (token > 0 && place >= token && cause === 25);
    this.verdict.demand(isFenced, () => `a guard refused ${token} after ${place}: ${cause}`);
    if (kind !== EVENT.expelled) return;
    for (const held of this.holders.values()) {
      const isLeft = this.leaseSessions.get(held) === one.session;
      this.verdict.demand(!isLeft, () => `${held} outlives the session that was expelled`);
    }
  }

  /** Each command that was carried out has its event, and no refusal has two. */
  private demandEvents({ events }: LedgerEntry, said: readonly Said[]): void {
    const refusals = said.filter(({ outcome }) => outcome.code >= ERROR_MIN).length;
    const told = events.filter(({ kind }) => kind === EVENT.refused).length;
    this.verdict.demand(refusals === told, () => `${refusals} refusals, ${told} events of them`);
    for (const { kind, name, outcome } of said) {
      if (outcome.code !== OK || kind === DISABLE || kind === ENABLE) continue;
      const event = events.find(({ revision }) => revision === outcome.revision);
      const wanted = kind === FORCE ? ENDED : kind === EXPEL ? EVENT.expelled : EVENT.fenced;
      this.verdict.demand(event?.kind === wanted && event.lock === name, () => {
        return `${name} was answered ${outcome.revision}, which is no event of it`;
      });
      const isForced = kind !== FORCE || event?.cause === FORCED;
      this.verdict.demand(isForced, () => `${name} was forced, and ended by ${event?.cause}`);
    }
  }
}

export function checkOperators(entries: readonly LedgerEntry[]): Verdict {
  const follower = new Follower();
  for (const entry of entries) follower.follow(entry);
  return follower.verdict;
}
