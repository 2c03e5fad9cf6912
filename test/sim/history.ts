/**
 * What clients of one run asked and were told, in true time: the input of the checkers.
 *
 * Owns: the records and their form as JSON lines, which is the same for simulated runs and for
 * recorded ones of real processes. Never: judges. Filled by: sim workers, chaos clients.
 */

/** One reply to an operation. Numbers that its code does not have are 0, ids are empty. */
export interface Answer {
  readonly atUs: number;
  readonly code: number;
  /** Cluster time of the entry, -1 when none was involved: then nothing was decided. */
  readonly clusterTime: number;
  readonly isReplay: boolean;
  readonly token: number;
  /** Lease or session id, hexadecimal. */
  readonly subject: string;
  readonly revision: number;
  readonly deadline: number;
  readonly ttlMs: number;
  /** Queued: the place. */
  readonly place: number;
  /** StaleLease: how the lease ended. Cancel: code of the target's result. */
  readonly cause: number;
  /** Every other field, as text, so that two answers can be compared. */
  readonly rest: string;
}

/** One operation: one request id, however often it was sent. */
export interface Operation {
  readonly client: string;
  /** Request id, unique over the run; empty for what has none (renewals, reads). */
  readonly id: string;
  /**
   * acquire, release, renew, cancel, open, close, session-renew, get, check, lookup, list; of an
   * operator force-release, disable, enable, expire-session; of a guard report
   */
  readonly kind: string;
  /** Lock concerned, '' for sessions and for what is disabled or enabled. */
  readonly lock: string;
  /** Session that it names, hexadecimal, or ''. */
  readonly session: string;
  readonly ttlMs: number;
  readonly waitMs: number;
  /** Release, renew, check, force-release, report: token meant; 0: whoever holds. Cancel: 0. */
  readonly aboutToken: number;
  /**
   * Cancel: request id of the wait meant. Disable, enable: `name x` or `prefix x`. Expire-session:
   * the session, hexadecimal.
   */
  readonly target: string;
  /** Acquire: cluster time from which a first arrival has no effect; absent without one. */
  readonly notAfter?: number;
  /** Who asked, where there are several. */
  readonly principal?: number;
  /** When it was first sent, µs. */
  readonly sentUs: number;
  /** Queued replies, then final ones; each was decided by the cluster. */
  readonly answers: Answer[];
  /** Sent by a client that then vanished, or never answered: it may have had its effect. */
  isAbandoned: boolean;
  /** Sent once, refused with the promise that it has no effect, and never sent again. */
  isRefused?: boolean;
}

/** A span of true time in which a client took itself for the holder. */
export interface Belief {
  readonly client: string;
  readonly lock: string;
  readonly token: number;
  readonly fromUs: number;
  untilUs: number;
}

export class History {
  readonly operations: Operation[] = [];
  readonly beliefs: Belief[] = [];

  /** One JSON object a line: operations, then beliefs. */
  toLines(): string {
    const lines = this.operations.map((operation) => JSON.stringify({ operation }));
    lines.push(...this.beliefs.map((belief) => JSON.stringify({ belief })));
    return `${lines.join('\n')}\n`;
  }

  static fromLines(text: string): History {
    const history = new History();
    for (const line of text.split('\n')) {
      if (line === '') continue;
      const item = JSON.parse(line) as { operation?: Operation; belief?: Belief };
      if (item.operation !== undefined) history.operations.push(item.operation);
      if (item.belief !== undefined) history.beliefs.push(item.belief);
    }
    return history;
  }
}

const QUEUED = 1;
const LIMIT = 21;
const BAD_REQUEST = 23;
/** Refusals that an entry decides and does not store: SEMANTICS, Request ids. */
const NOT_STORED = new Set([16, 18, 19, 22]);

/** True for an answer that becomes the result of its request id. */
export function isStored({ code, rest }: Answer): boolean {
  if (code === QUEUED || NOT_STORED.has(code)) return false;
  const isBound = code === LIMIT || code === BAD_REQUEST;
  return !(isBound && /sequence|request|acknowledged|not_after/.test(rest));
}

/** The result of an operation; without one its first refusal; undefined without either. */
export function finalAnswer({ answers }: Operation): Answer | undefined {
  return answers.find(isStored) ?? answers.find(({ code }) => code !== QUEUED);
}

/** Describes an operation in one line, for reports. */
export function describeOperation(operation: Operation): string {
  const { client, id, kind, lock, sentUs, answers, aboutToken } = operation;
  const about = aboutToken === 0 ? '' : ` of ${aboutToken}`;
  const told = answers.map(({ atUs, code, token, revision, place }) => {
    const number = token || place || revision;
    return `${(atUs / 1000).toFixed(1)}: ${code}${number === 0 ? '' : ` (${number})`}`;
  });
  const at = (sentUs / 1000).toFixed(1);
  return `${at} ms ${client} ${kind}${about} ${lock} ${id} → ${told.join(', ') || 'no answer'}`;
}
