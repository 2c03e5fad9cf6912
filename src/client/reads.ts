/**
 * Reads: get, list, check, lookup, status, members. Answered by any node, linearizably unless
 * stale.
 *
 * Owns: the operations of reads and the paging of lists. Never: the log; a read has no effect and
 * is asked again freely within its deadline. Used by: client.ts.
 */
import type { PackValue } from '../wire/msgpack-writer.js';
import { CommandKind } from '../wire/request.js';
import type { Reply } from '../wire/response.js';
import { badRequest } from './errors.js';
import type { Leader } from './leader.js';
import {
  type LockSummary,
  type LockView,
  type LookupView,
  lockViewOf,
  lookupViewOf,
  nameAt,
  summaryOf,
} from './lock-view.js';
import {
  CALL_OPTIONS,
  type CallOptions,
  checkDeadline,
  checkName,
  checkOptions,
  checkRequestId,
} from './options.js';
import { listAt, type Member, membersAt, numberAt, textAt } from './reply.js';

/** How to read one lock. */
export interface GetOptions extends CallOptions {
  /** True: from what the asked node has applied, possibly old; `ageMs` says how old. */
  readonly stale?: boolean;
  /** Wait, within the deadline, until the state has this revision. */
  readonly atLeastRevision?: number;
}

/** How to list locks. */
export interface ListOptions extends CallOptions {
  readonly stale?: boolean;
  /** Start after this name. */
  readonly after?: string;
  /** Locks a page, 1 … 1,000; default: the node's. The iterator gets page after page. */
  readonly pageSize?: number;
}

/** A request id to look up: a free-form one, or a sequence in a session (32 hexadecimal digits). */
export type RequestName = string | { readonly session: string; readonly sequence: number };

/** What a check of a fencing token found. */
export interface TokenCheck {
  /** `current`: the token is the holder's. */
  readonly verdict: 'current' | 'stale';
  /** The holder's token, 0 when nobody holds. */
  readonly currentToken: number;
}

const PAGE_MAX = 1_000;
const ID_DIGITS = /^[0-9a-f]{32}$/;

export class Reads {
  readonly #leader: Leader;

  constructor(leader: Leader) {
    this.#leader = leader;
  }

  async get(name: string, options: GetOptions): Promise<LockView> {
    checkOptions('get', options, ['deadlineMs', 'stale', 'atLeastRevision']);
    const { stale = false, atLeastRevision } = options;
    if (atLeastRevision !== undefined && !isCount(atLeastRevision)) {
      throw badRequest('at_least_revision', `atLeastRevision is ${atLeastRevision}`);
    }
    const operation = [CommandKind.Get, checkName(name), stale, atLeastRevision ?? null];
    return lockViewOf(name, await this.#read(operation, options));
  }

  /** Each page is linearizable by itself. */
  async *list(prefix: string, options: ListOptions): AsyncGenerator<LockSummary, void, undefined> {
    checkOptions('list', options, ['deadlineMs', 'stale', 'after', 'pageSize']);
    const { stale = false, pageSize } = options;
    if (pageSize !== undefined && !(isCount(pageSize) && pageSize >= 1 && pageSize <= PAGE_MAX)) {
      throw badRequest('limit', `pageSize is ${pageSize}, wanted 1 to ${PAGE_MAX}`);
    }
    let cursor: string | null = options.after === undefined ? null : checkName(options.after);
    do {
      const operation = [CommandKind.List, prefix, cursor, pageSize ?? null, stale];
      const { fields, clusterTimeMs } = await this.#read(operation, options);
      const rows = listAt(fields, 0);
      for (let index = 0; index < rows.length; index += 1) {
        yield summaryOf(listAt(rows, index), clusterTimeMs);
      }
      cursor = fields[1] === null ? null : nameAt(fields, 1);
    } while (cursor !== null);
  }

  async lookup(request: RequestName, options: CallOptions): Promise<LookupView> {
    checkOptions('lookup', options, CALL_OPTIONS);
    const operation: PackValue[] = [CommandKind.Lookup, ...lookupNames(request)];
    return lookupViewOf((await this.#read(operation, options)).fields);
  }

  async check(name: string, token: number, options: CallOptions): Promise<TokenCheck> {
    checkOptions('check', options, CALL_OPTIONS);
    if (!isCount(token)) throw badRequest('token', `token is ${token}, wanted a whole number`);
    const operation = [CommandKind.Check, checkName(name), token];
    const { fields } = await this.#read(operation, options);
    const verdict = textAt(fields, 0) === 'current' ? 'current' : 'stale';
    return { verdict, currentToken: numberAt(fields, 1) };
  }

  async status(options: CallOptions): Promise<Readonly<Record<string, unknown>>> {
    checkOptions('status', options, CALL_OPTIONS);
    const { fields } = await this.#read([CommandKind.Status], options);
    const [status] = fields;
    if (isRecord(status)) return status;
    throw badRequest('reply', 'status is no map');
  }

  async members(options: CallOptions): Promise<Member[]> {
    checkOptions('members', options, CALL_OPTIONS);
    return membersAt((await this.#read([CommandKind.Members], options)).fields, 1);
  }

  async ping(options: CallOptions): Promise<void> {
    checkOptions('ping', options, CALL_OPTIONS);
    await this.#read([CommandKind.Ping], options);
  }

  async transfer(nodeId: number, options: CallOptions): Promise<void> {
    checkOptions('transferLeadership', options, CALL_OPTIONS);
    await this.#send([CommandKind.Transfer, nodeId], options, false);
  }

  /** Asks what has no effect; rejects with a refusal. */
  ask(operation: PackValue[], options: CallOptions): Promise<Reply> {
    return this.#read(operation, options);
  }

  #read(operation: PackValue[], options: CallOptions): Promise<Reply> {
    return this.#send(operation, options, true);
  }

  #send(operation: PackValue[], options: CallOptions, isRead: boolean): Promise<Reply> {
    const deadlineMs = checkDeadline(options.deadlineMs);
    return this.#leader.call({ operation, deadlineMs, isLogged: false, isRead }).result;
  }
}

/** A whole number from 0 up. */
export function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}

function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function lookupNames(request: RequestName): PackValue[] {
  if (typeof request === 'string') return [null, checkRequestId(request)];
  const session = bytesOfId('session', request.session);
  if (!isCount(request.sequence) || request.sequence === 0) {
    throw badRequest('request', `sequence is ${request.sequence}, wanted 1 or more`);
  }
  return [session, request.sequence];
}

/** An id of 32 hexadecimal digits as bytes. Throws BAD_REQUEST `field`. */
export function bytesOfId(field: string, text: string): Uint8Array {
  if (!ID_DIGITS.test(text)) throw badRequest(field, `${field} is not 32 hexadecimal digits`);
  return new Uint8Array(Buffer.from(text, 'hex'));
}
