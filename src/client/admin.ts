/**
 * What an operator may do to locks and sessions, and what a guard reports.
 *
 * Owns: the checks before anything is sent, and what each command answers with. Each is one request
 * with an id, so a retry has no second effect. Never: whoever holds is removed because nobody was
 * named: that has to be said (`any`). Made by: client.ts.
 */
import { GUARD_KIND_BYTES_MAX, METADATA_BYTES_MAX, OWNER_BYTES_MAX } from '../limits.js';
import type { PackValue } from '../wire/msgpack-writer.js';
import { CommandKind } from '../wire/request.js';
import type { Reply } from '../wire/response.js';
import { attended } from './attended.js';
import { badRequest } from './errors.js';
import {
  type CallOptions,
  checkDeadline,
  checkName,
  checkOptions,
  checkPrefix,
  checkRequestId,
  checkText,
} from './options.js';
import type { Parts } from './parts.js';
import { bytesOfId, isCount } from './reads.js';
import { bytesAt, numberAt } from './reply.js';

/** How an operator's command is sent. */
export interface AdminCallOptions extends CallOptions {
  /** Own name for this command, 1 … 64 bytes: the same name has one effect. Drawn when absent. */
  readonly requestId?: string;
}

/** Who asks, and why: both stand in the audit stream for ever. */
export interface AdminOptions extends AdminCallOptions {
  /** As they name themselves, 1 … 128 bytes. */
  readonly actor: string;
  /** 1 … 1,024 bytes. */
  readonly reason: string;
}

/** Which lease is meant: by its id, its token, or both. `any`: whoever holds now. */
export interface ForceTarget {
  /** 32 hexadecimal digits. */
  readonly lease?: string;
  readonly token?: number;
  readonly any?: boolean;
}

/** One lock, or every lock whose name starts with a prefix; the empty prefix is all of them. */
export interface DisableTarget {
  readonly name?: string;
  readonly prefix?: string;
}

/** The lease that was ended by force. Times are cluster time in ms. */
export interface ForcedRelease {
  /** Above the token of the lease that ended, below that of whoever comes next: for guards. */
  readonly barrierToken: number;
  readonly token: number;
  readonly sinceMs: number;
  /** Until when it would have lived without a renewal. */
  readonly deadlineMs: number;
  readonly principal: number;
  /** null when it gave none. */
  readonly metadata: Uint8Array | null;
}

/** A change that was made. */
export interface AdminChange {
  /** Revision of its event; 0 when there was nothing to change. */
  readonly revision: number;
}

/** What a guard has refused. */
export interface RefusalReport {
  /** The stale token. */
  readonly token: number;
  /** The newest token that the resource had seen. */
  readonly mark: number;
  /** How many, since the last report: 1 or more. */
  readonly refusals: number;
  /** What kind of guard, at most 64 bytes. */
  readonly guard?: string;
}

const CALL_OPTIONS = ['requestId', 'deadlineMs'];
const OPTIONS = ['actor', 'reason', ...CALL_OPTIONS];

export class Admin {
  readonly #parts: Parts;

  /** Programs have client.admin. */
  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /**
   * Ends the lease that holds a lock, whoever owns it; the next in line is granted in the same
   * entry. Its holder is told STALE_LEASE at its next renewal, and may write until then: raise
   * `barrierToken` at every guard of the lock. Rejects CONFLICT when another lease holds than the
   * one that is meant, or none (`details.holder`); BAD_REQUEST, LIMIT, OVERLOADED, NO_QUORUM,
   * UNKNOWN_OUTCOME or DEADLINE_PASSED.
   *
   * @example
   * const { barrierToken } = await client.admin.forceRelease(
   *   'jobs/nightly',
   *   { token: 41 },
   *   { actor: 'ops@bastion', reason: 'worker-7 hangs, ticket 812' },
   * );
   */
  forceRelease(name: string, target: ForceTarget, options: AdminOptions): Promise<ForcedRelease> {
    return attended(this.#forceRelease(name, target, options));
  }

  /**
   * No acquire of the lock, or of any under the prefix, is taken from now on: DISABLED, whose
   * `details.revision` is the one that this resolves with. Who holds and who waits stay. Rejects
   * LIMIT at 256 names and prefixes, and as forceRelease does.
   */
  disable(target: DisableTarget, options: AdminOptions): Promise<AdminChange> {
    return attended(this.#rule('disable', CommandKind.Disable, target, options));
  }

  /** Takes back a disable of exactly this name or prefix; revision 0 when there was none. */
  enable(target: DisableTarget, options: AdminOptions): Promise<AdminChange> {
    return attended(this.#rule('enable', CommandKind.Enable, target, options));
  }

  /**
   * Ends a session, whoever owns it, with its waits and leases. `id`: 32 hexadecimal digits.
   * Rejects SESSION_EXPIRED when it has ended or never was, and as forceRelease does.
   */
  expireSession(id: string, options: AdminOptions): Promise<AdminChange> {
    return attended(this.#expireSession(id, options));
  }

  /** Tells that a guard refused stale tokens: it shows in watches, audit and metrics. */
  reportRefusal(
    name: string,
    report: RefusalReport,
    options: AdminCallOptions = {},
  ): Promise<AdminChange> {
    return attended(this.#reportRefusal(name, report, options));
  }

  async #forceRelease(
    name: string,
    target: ForceTarget,
    options: AdminOptions,
  ): Promise<ForcedRelease> {
    const words = wordsOf('forceRelease', options);
    const meant = meantBy(target);
    const lock = checkName(name);
    const reply = await this.#send(CommandKind.ForceRelease, [lock, ...meant, ...words], options);
    const { fields } = reply;
    const metadata = bytesAt(fields, 5);
    return {
      barrierToken: numberAt(fields, 0),
      token: numberAt(fields, 1),
      sinceMs: numberAt(fields, 2),
      deadlineMs: numberAt(fields, 3),
      principal: numberAt(fields, 4),
      metadata: metadata.length === 0 ? null : metadata,
    };
  }

  async #rule(
    call: string,
    command: number,
    target: DisableTarget,
    options: AdminOptions,
  ): Promise<AdminChange> {
    const words = wordsOf(call, options);
    checkOptions(call, target, ['name', 'prefix']);
    const { name, prefix } = target ?? {};
    if ((name === undefined) === (prefix === undefined)) {
      throw badRequest('name', `${call}: give a name or a prefix, and not both`);
    }
    const ruled = name === undefined ? [null, checkPrefix(prefix)] : [checkName(name), null];
    return changeOf(await this.#send(command, [...ruled, ...words], options));
  }

  async #expireSession(id: string, options: AdminOptions): Promise<AdminChange> {
    const words = wordsOf('expireSession', options);
    const session = bytesOfId('session', id);
    return changeOf(await this.#send(CommandKind.ExpireSession, [session, ...words], options));
  }

  async #reportRefusal(
    name: string,
    report: RefusalReport,
    options: AdminCallOptions,
  ): Promise<AdminChange> {
    checkOptions('reportRefusal', options, CALL_OPTIONS);
    checkOptions('reportRefusal', report, ['token', 'mark', 'refusals', 'guard']);
    const { token, mark, refusals } = Object(report) as RefusalReport;
    for (const [field, value] of Object.entries({ token, mark, refusals })) {
      if (isCount(value)) continue;
      throw badRequest(field, `reportRefusal: ${field} is ${value}, wanted a whole number`);
    }
    const guard = checkText('guard', report.guard, GUARD_KIND_BYTES_MAX);
    const rest = [checkName(name), token, mark, refusals, guard];
    return changeOf(await this.#send(CommandKind.ReportRefusal, rest, options));
  }

  /** [command, request, session, acknowledged, trace, …]. */
  #send(
    command: number,
    rest: readonly PackValue[],
    options: AdminCallOptions | undefined,
  ): Promise<Reply> {
    const { ambient, leader } = this.#parts;
    const request = checkRequestId(options?.requestId) ?? ambient.clock.randomId();
    return leader.call({
      operation: [command, request, null, null, null, ...rest],
      deadlineMs: checkDeadline(options?.deadlineMs),
      isLogged: true,
      isOwnRequest: options?.requestId === undefined,
    }).result;
  }
}

/** Who asks and why. Throws BAD_REQUEST `actor` or `reason`. */
function wordsOf(call: string, options: AdminOptions): readonly [string, string] {
  checkOptions(call, options, OPTIONS);
  const { actor, reason } = Object(options) as AdminOptions;
  const who = checkText('actor', actor, OWNER_BYTES_MAX);
  if (who === null) throw badRequest('actor', `${call}: say who asks: actor is missing`);
  const why = checkText('reason', reason, METADATA_BYTES_MAX);
  if (why === null) throw badRequest('reason', `${call}: say why: reason is missing`);
  return [who, why];
}

/** Lease id and token. Whoever holds is meant only when that is said. */
function meantBy(target: ForceTarget): readonly [PackValue, PackValue] {
  checkOptions('forceRelease', target, ['lease', 'token', 'any']);
  const { lease, token, any = false } = Object(target) as ForceTarget;
  if (any !== (lease === undefined && token === undefined)) {
    const message = 'forceRelease: name the lease by lease or token, or say any: true';
    throw badRequest(any ? 'any' : 'token', message);
  }
  if (token !== undefined && !isCount(token)) {
    throw badRequest('token', `token is ${String(token)}, wanted a whole number`);
  }
  return [lease === undefined ? null : bytesOfId('lease', lease), token ?? null];
}

function changeOf(reply: Reply): AdminChange {
  return { revision: numberAt(reply.fields, 0) };
}
