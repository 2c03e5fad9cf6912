/**
 * One operation of a simulated client, from its first sending to the last reply that it cares for.
 *
 * Owns: the reading of replies into history (docs/PROTOCOL.md has the fields). Never: decides what
 * to ask next. Used by: sim-worker.ts.
 */
import { CommandKind } from '../../src/core/locks/command.js';
import { LeaseEnd, OutcomeCode } from '../../src/core/locks/outcome.js';
import type { Answer, Operation } from './history.js';
import type { Reply } from './sim-client.js';

/** Names of operations as histories have them. */
export const KIND_NAMES: Readonly<Record<number, string>> = {
  [CommandKind.SessionAttach]: 'attach',
  [CommandKind.Get]: 'get',
  [CommandKind.List]: 'list',
  [CommandKind.Lookup]: 'lookup',
  [CommandKind.Check]: 'check',
  [CommandKind.SessionOpen]: 'open',
  [CommandKind.SessionRenew]: 'session-renew',
  [CommandKind.SessionClose]: 'close',
  [CommandKind.Acquire]: 'acquire',
  [CommandKind.Renew]: 'renew',
  [CommandKind.Release]: 'release',
  [CommandKind.Cancel]: 'cancel',
  [CommandKind.ForceRelease]: 'force-release',
  [CommandKind.Disable]: 'disable',
  [CommandKind.Enable]: 'enable',
  [CommandKind.ExpireSession]: 'expire-session',
  [CommandKind.ReportRefusal]: 'report',
};

/** What it takes to speak for a session. */
export interface SessionKey {
  readonly id: Uint8Array;
  readonly secret: Uint8Array;
}

/** An operation under way. */
export interface Call {
  readonly command: number;
  /** The operation as it goes over the wire, but for its acknowledgements. */
  readonly operation: readonly unknown[];
  readonly record: Operation;
  /** The session that it names, to attach it wherever the operation is sent. */
  readonly session: SessionKey | null;
  readonly done: (reply: Reply) => void;
  /** When it was sent last, and how often it was. */
  sentUs: number;
  tries: number;
  /** Frames that carry its request id. */
  copies: number;
  isQueued: boolean;
  /** It has its answer, and is asked once more by the same id. */
  isFinal: boolean;
  /** A refusal without a decision came: ask again from here on. */
  retryUs: number;
  /** It has its answer, and nobody asks before this moment, µs; 0 while it is under way. */
  restsUntilUs: number;
  /** How often it is still asked again after its answer. */
  repeats: number;
}

function hexOf(value: unknown): string {
  return value instanceof Uint8Array ? Buffer.from(value).toString('hex') : '';
}

function numberAt(reply: Reply, at: number): number {
  const value: unknown = reply[at];
  return typeof value === 'number' ? value : 0;
}

function textOf(value: unknown): string {
  if (value instanceof Uint8Array) return `h'${hexOf(value)}'`;
  if (Array.isArray(value)) return `[${value.map(textOf).join(', ')}]`;
  return String(value);
}

const NOTHING = {
  token: 0,
  subject: '',
  revision: 0,
  deadline: 0,
  ttlMs: 0,
  place: 0,
  cause: 0,
};

type Fields = Partial<typeof NOTHING>;

function grantAt(reply: Reply, at: number): Fields {
  return {
    subject: hexOf(reply[at]),
    token: numberAt(reply, at + 1),
    revision: numberAt(reply, at + 2),
    deadline: numberAt(reply, at + 3),
    ttlMs: numberAt(reply, at + 4),
  };
}

/** The holder in a lock row: [name, revision, holder | nil, …], the holder's token first. */
function holderIn(row: unknown): number {
  if (!Array.isArray(row)) return 0;
  const holder: unknown = row[2];
  if (!Array.isArray(holder)) return 0;
  return typeof holder[0] === 'number' ? holder[0] : 0;
}

function fieldsOf(command: number, reply: Reply): Fields {
  const [, code] = reply;
  if (code === OutcomeCode.Queued) return { place: numberAt(reply, 4) };
  if (code === OutcomeCode.LockBusy) {
    return { token: numberAt(reply, 6), deadline: numberAt(reply, 8) };
  }
  if (code === OutcomeCode.StaleLease) {
    return { cause: numberAt(reply, 6), revision: numberAt(reply, 7) };
  }
  if (code === OutcomeCode.Conflict && command === CommandKind.ForceRelease) {
    return { token: numberAt(reply, 6), deadline: numberAt(reply, 8) };
  }
  if (code === OutcomeCode.Disabled) return { revision: numberAt(reply, 6) };
  if (code !== OutcomeCode.Ok) return {};
  switch (command) {
    case CommandKind.Acquire:
      return grantAt(reply, 4);
    case CommandKind.Renew:
      return {
        deadline: numberAt(reply, 4),
        ttlMs: numberAt(reply, 5),
        token: numberAt(reply, 6),
      };
    case CommandKind.Release:
      return { revision: numberAt(reply, 4), cause: LeaseEnd.Released };
    case CommandKind.Cancel:
      return { cause: numberAt(reply, 4), ...grantAt(reply, 5) };
    case CommandKind.SessionOpen:
      return {
        subject: hexOf(reply[4]),
        deadline: numberAt(reply, 6),
        ttlMs: numberAt(reply, 7),
      };
    case CommandKind.SessionRenew:
      return { deadline: numberAt(reply, 4), ttlMs: numberAt(reply, 5) };
    case CommandKind.Get:
      return { token: holderIn(reply[4]), revision: numberAt(reply, 5) };
    case CommandKind.ForceRelease:
      return {
        revision: numberAt(reply, 4),
        token: numberAt(reply, 5),
        deadline: numberAt(reply, 7),
      };
    case CommandKind.Disable:
    case CommandKind.Enable:
    case CommandKind.ExpireSession:
    case CommandKind.ReportRefusal:
      return { revision: numberAt(reply, 4) };
    case CommandKind.Check:
      return { token: numberAt(reply, 5), cause: reply[4] === 'current' ? 1 : 0 };
    default:
      return {};
  }
}

/** Reads a reply that the cluster decided. */
export function answerOf(command: number, reply: Reply, atUs: number): Answer {
  return {
    atUs,
    code: reply[1],
    clusterTime: reply[2] ?? -1,
    isReplay: reply[3],
    ...NOTHING,
    ...fieldsOf(command, reply),
    rest: textOf(reply.slice(4)),
  };
}

/** True when an entry or a read point decided: anything else is a refusal of the node asked. */
export function isDecided(reply: Reply): boolean {
  return reply[2] !== null;
}
