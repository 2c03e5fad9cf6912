/**
 * Every command was answered as docs/SEMANTICS.md says, by the independent machine of test/model.
 *
 * Owns: the reading of a committed log with MessagePack's own library, and the comparison of every
 * outcome, completion and event. So a fault of the decoder, of the lock machine or of the order of
 * an entry is seen even where no client was there to see it. Used by: check-run.ts.
 */
import type { Settings } from '../../../src/core/locks/settings.js';
import {
  type ModelCommand,
  type ModelOutcome,
  type ModelRequest,
  outcomeOf,
} from '../../model/model-types.js';
import { NaiveMachine } from '../../model/naive-machine.js';
import type { LedgerEntry, SeenEvent, SeenOutcome } from '../ledger.js';
import { hexOf, type LoggedOperation, operationsOf, stampIn, textOf } from './logged-operation.js';
import { Verdict } from './verdict.js';

const text = new TextDecoder();
/** Stands for a session or lease that was never issued. */
const UNKNOWN = 2 ** 40;
const KIND = { open: 32, close: 34, acquire: 36, renew: 37, release: 38, cancel: 39 } as const;
const KEEP_WAITS = 40;
const ADMIN = { forceRelease: 42, disable: 43, enable: 44, expireSession: 45, report: 46 } as const;
const OK = 0;

function numberOf(value: unknown): number | undefined {
  return typeof value === 'number' ? value : undefined;
}

/** Which session or lease an id stands for, as the answers have told. */
class Names {
  private readonly numbers = new Map<string, number>();

  learn(id: string, number: number): void {
    if (id !== '') this.numbers.set(id, number);
  }

  numberOf(id: string): number {
    return this.numbers.get(id) ?? UNKNOWN;
  }
}

function requestOf(request: unknown, acknowledged: unknown): ModelRequest {
  if (typeof request !== 'number') {
    const id = textOf(request);
    return id === undefined ? { kind: 'none' } : { kind: 'free', id };
  }
  const list = Array.isArray(acknowledged) ? (acknowledged as number[]) : null;
  const mark = list === null ? numberOf(acknowledged) : list[0];
  return { kind: 'sequence', sequence: request, mark, singles: list?.slice(1) };
}

class Reader {
  readonly sessions = new Names();
  readonly leases = new Names();

  commandOf({ principal, fields }: LoggedOperation): ModelCommand {
    const [kind, request, session, acknowledged, , first, second, third] = fields;
    const head = {
      kind: kind as number,
      principal,
      request: requestOf(request, acknowledged),
      session: session == null ? undefined : this.sessions.numberOf(hexOf(session)),
    };
    switch (kind) {
      case KIND.acquire:
        return { ...head, ...acquireFields(fields) };
      case KIND.renew:
        return {
          ...head,
          lease: this.leases.numberOf(hexOf(first)),
          ttlMs: numberOf(second),
          metadata: textOf(third),
        };
      case KIND.release:
        return { ...head, lease: this.leases.numberOf(hexOf(first)) };
      case KIND.cancel:
        return { ...head, target: targetOf(first) };
      case KIND.open:
        return { ...head, ttlMs: numberOf(first), metadata: textOf(second) };
      case KEEP_WAITS:
        return { ...head, numbers: first as number[] };
      case KIND.close:
        return head;
      case ADMIN.forceRelease:
        return {
          ...head,
          ...saidBy(fields[8], fields[9]),
          name: textOf(first),
          lease: second == null ? undefined : this.leases.numberOf(hexOf(second)),
          token: numberOf(third),
        };
      case ADMIN.disable:
      case ADMIN.enable: {
        const isPrefix = first == null;
        const name = textOf(isPrefix ? second : first);
        return { ...head, ...saidBy(third, fields[8]), name, isPrefix };
      }
      case ADMIN.expireSession: {
        const targetSession = this.sessions.numberOf(hexOf(first));
        return { ...head, ...saidBy(second, third), targetSession };
      }
      case ADMIN.report:
        return { ...head, ...reportFields(fields) };
      default:
        return { ...head, ttlMs: numberOf(first) };
    }
  }
}

/** Who asks, and why. */
function saidBy(actor: unknown, reason: unknown): Partial<ModelCommand> {
  return { owner: textOf(actor), metadata: textOf(reason) };
}

function reportFields(fields: readonly unknown[]): Partial<ModelCommand> {
  const [token, mark, refusals] = fields.slice(6, 9).map(numberOf);
  return { name: textOf(fields[5]), token, mark, refusals, metadata: textOf(fields[9]) };
}

function targetOf(target: unknown): ModelCommand['target'] {
  if (typeof target === 'number') return { kind: 'sequence', sequence: target };
  return { kind: 'free', id: textOf(target) ?? '' };
}

function acquireFields(fields: readonly unknown[]): Partial<ModelCommand> {
  const at = (place: number): number | undefined => numberOf(fields[place]);
  return {
    name: textOf(fields[5]),
    ttlMs: at(6),
    waitMs: at(7),
    mode: at(8),
    permits: at(9),
    capacity: at(10),
    expectedRevision: at(11),
    owner: textOf(fields[12]),
    metadata: textOf(fields[13]),
    notAfter: at(14),
    lockDelayMs: at(15),
    holdMsMax: at(16),
  };
}

/** The outcome in the model's words; its subject is judged by what the ids were learnt for. */
function plainOf(outcome: SeenOutcome, subject: string): ModelOutcome {
  const { code, kind, replay, entryTime, token, revision, deadline, ttlMs } = outcome;
  const { ahead, cause, holderSince, holderPrincipal } = outcome;
  const blob = text.decode(outcome.blob);
  const numbers = { token, revision, deadline, ttlMs, ahead, cause, holderSince, holderPrincipal };
  return outcomeOf({ code, kind, replay, entryTime, subject, ...numbers, blob });
}

function eventOf(event: SeenEvent): string {
  const { kind, revision, token, place, cause, lock } = event;
  return JSON.stringify([kind, revision, lock, token, place, cause]);
}

/** Replays the log in the naive machine and compares. Stops at the first difference. */
export function checkModel(entries: readonly LedgerEntry[], settings: Settings): Verdict {
  const verdict = new Verdict('model');
  const machine = new NaiveMachine(settings);
  const reader = new Reader();
  for (const entry of entries) {
    if (!compareEntry(entry, machine, reader, verdict)) break;
  }
  return verdict;
}

function compareEntry(
  entry: LedgerEntry,
  machine: NaiveMachine,
  reader: Reader,
  verdict: Verdict,
): boolean {
  const { index } = entry;
  const same = (got: unknown, wanted: unknown, about: string): boolean => {
    const [left, right] = [JSON.stringify(got), JSON.stringify(wanted)];
    verdict.demand(left === right, () => `entry ${index}, ${about}: got ${left}, wanted ${right}`);
    return left === right;
  };
  machine.beginEntry(stampIn(entry.data));
  // A wait that an earlier command of this entry ended may be named by a later one.
  learnCompletions(entry, reader);
  const operations = operationsOf(entry.data);
  if (!same(entry.outcomes.length, operations.length, 'operations')) return false;
  const wanted: ModelOutcome[] = [];
  for (const [at, operation] of operations.entries()) {
    const command = reader.commandOf(operation);
    const model = machine.applyCommand(command);
    wanted.push(model);
    const outcome = entry.outcomes[at] as SeenOutcome;
    learn(outcome, model.subject, reader);
    const about = `operation ${at} ${JSON.stringify(command)}`;
    if (!same(plainOf(outcome, model.subject), model, about)) return false;
    if (!same(isKnown(outcome, model.subject, reader), true, `id of ${model.subject}`))
      return false;
  }
  const step = machine.endEntry(wanted);
  const got = entry.completions.map(({ place, outcome }) => [place, outcome.code, outcome.token]);
  const due = step.completions.map(({ place, outcome }) => [place, outcome.code, outcome.token]);
  if (!same(got, due, 'completions')) return false;
  const events = step.events.map((event) => {
    const { kind, revision, name, token, place, cause } = event;
    return JSON.stringify([kind, revision, name, token, place, cause]);
  });
  return same(entry.events.map(eventOf), events, 'events');
}

function learnCompletions(entry: LedgerEntry, reader: Reader): void {
  for (const { outcome } of entry.completions) {
    if (outcome.code === OK) reader.leases.learn(outcome.id, outcome.token);
  }
}

/** A new id belongs to what the model says was made now. */
function learn(outcome: SeenOutcome, subject: string, reader: Reader): void {
  if (outcome.code !== OK || outcome.replay || outcome.id === '') return;
  const [what, number] = subject.split(' ');
  if (what === 'session') reader.sessions.learn(outcome.id, Number(number));
  else if (outcome.kind === KIND.acquire) reader.leases.learn(outcome.id, outcome.token);
}

/** The id that was answered is the one that its subject got when it was made. */
function isKnown(outcome: SeenOutcome, subject: string, reader: Reader): boolean {
  if (subject === '') return outcome.id === '';
  const [what, number] = subject.split(' ');
  const names = what === 'session' ? reader.sessions : reader.leases;
  return names.numberOf(outcome.id) === Number(number);
}
