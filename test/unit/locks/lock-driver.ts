/**
 * A short way to write tests of the lock machine: one line for each entry of a log.
 *
 * Owns: the log's stamp, and plain forms of the commands. Never: a rule. Used by: the tests beside
 * it, each about one topic.
 */

import { CommandKind, PRINCIPAL_CLUSTER } from '../../../src/core/locks/command.js';
import { EventKind } from '../../../src/core/locks/event.js';
import { defaultSettings, type Settings } from '../../../src/core/locks/settings.js';
import type {
  ModelCommand,
  ModelEvent,
  ModelLock,
  ModelOutcome,
  ModelRequest,
  ModelStep,
} from '../../model/model-types.js';
import { ProductionMachine } from '../../model/production-machine.js';

type Fields = Partial<ModelCommand>;

/** A free-form request id. */
export function free(id: string): ModelRequest {
  return { kind: 'free', id };
}

/** A sequence in a session, with what it acknowledges. */
export function sequence(number: number, mark?: number, singles?: readonly number[]): ModelRequest {
  return { kind: 'sequence', sequence: number, mark, singles };
}

function command(kind: number, fields: Fields): ModelCommand {
  return { kind, principal: 1, request: { kind: 'none' }, ...fields };
}

export function open(id: string, fields: Fields = {}): ModelCommand {
  return command(CommandKind.SessionOpen, { request: free(id), ...fields });
}

export function renewSession(session: number, fields: Fields = {}): ModelCommand {
  return command(CommandKind.SessionRenew, { session, ...fields });
}

export function closeSession(session: number, fields: Fields = {}): ModelCommand {
  return command(CommandKind.SessionClose, { session, ...fields });
}

/** A try unless `waitMs` is given. */
export function acquire(name: string, id: string, fields: Fields = {}): ModelCommand {
  return command(CommandKind.Acquire, { name, request: free(id), ...fields });
}

export function renew(lease: number, fields: Fields = {}): ModelCommand {
  return command(CommandKind.Renew, { lease, ...fields });
}

export function release(lease: number, fields: Fields = {}): ModelCommand {
  return command(CommandKind.Release, { lease, ...fields });
}

export function cancel(id: string, fields: Fields = {}): ModelCommand {
  return command(CommandKind.Cancel, { target: { kind: 'free', id }, ...fields });
}

export function keepWaits(...places: number[]): ModelCommand {
  return command(CommandKind.KeepWaits, { principal: PRINCIPAL_CLUSTER, numbers: places });
}

/** Pairs of a setting's number and its new value, by the cluster. */
export function changeSettings(...numbers: number[]): ModelCommand {
  return command(CommandKind.Settings, { principal: PRINCIPAL_CLUSTER, numbers });
}

/** Who asks for what operators do, and why. */
const SAID = { owner: 'ops', metadata: 'stuck' };

/** Whoever holds, unless a `lease` (by its token) or a `token` is named. */
export function forceRelease(name: string, id: string, fields: Fields = {}): ModelCommand {
  return command(CommandKind.ForceRelease, { name, request: free(id), ...SAID, ...fields });
}

/** A name unless `isPrefix` is given. */
export function disable(name: string, id: string, fields: Fields = {}): ModelCommand {
  return command(CommandKind.Disable, { name, request: free(id), ...SAID, ...fields });
}

export function enable(name: string, id: string, fields: Fields = {}): ModelCommand {
  return command(CommandKind.Enable, { name, request: free(id), ...SAID, ...fields });
}

export function expireSession(targetSession: number, id: string): ModelCommand {
  return command(CommandKind.ExpireSession, { targetSession, request: free(id), ...SAID });
}

/** A guard that had seen `mark` refused `token`. */
export function reportRefusal(
  name: string,
  token: number,
  mark: number,
  id: string,
  fields: Fields = {},
): ModelCommand {
  const about = { name, token, mark, refusals: 1, request: free(id) };
  return command(CommandKind.ReportRefusal, { ...about, ...fields });
}

/** The production machine, a log's stamp, and readers of what an entry gave. */
export class LockDriver {
  now = 0;
  readonly machine: ProductionMachine;

  constructor(settings: Partial<Settings> = {}) {
    this.machine = new ProductionMachine({ ...defaultSettings(), ...settings });
  }

  /** Applies one entry `ms` after the one before. */
  after(ms: number, ...commands: ModelCommand[]): ModelStep {
    this.now += ms;
    return this.machine.apply(this.now, commands);
  }

  /** Applies one entry that holds one command, `ms` after the one before, and says its answer. */
  answer(ms: number, only: ModelCommand): ModelOutcome {
    return answerAt(this.after(ms, only), 0);
  }

  get(name: string): ModelLock {
    return this.machine.get(name);
  }
}

/** The answer to the command at `index` of an entry. */
export function answerAt(step: ModelStep, index: number): ModelOutcome {
  const outcome = step.outcomes[index];
  if (outcome === undefined) throw new Error(`no answer ${index} in ${JSON.stringify(step)}`);
  return outcome;
}

/** The final result of the wait at `place`, which the entry gave. */
export function completionOf(step: ModelStep, place: number): ModelOutcome {
  const found = step.completions.filter((completion) => completion.place === place);
  const [first] = found;
  if (first === undefined || found.length > 1) {
    throw new Error(`wanted one result for place ${place}: ${JSON.stringify(step.completions)}`);
  }
  return first.outcome;
}

/** The grants among the events of an entry. */
export function grantsIn(step: ModelStep): ModelEvent[] {
  return step.events.filter(({ kind }) => kind === EventKind.Granted);
}
