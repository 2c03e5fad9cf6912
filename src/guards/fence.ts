/**
 * The guard rule: which tokens a resource lets through, as plain functions.
 *
 * Owns: what a fence is, what is no fence (a semaphore's permit, a best-effort lock), and I3: once
 * a resource has accepted exclusive token N for a lock, it refuses every token below N and accepts
 * N again. Never: where the mark is kept; every guard repeats `judge` inside its store, in one
 * atomic step with the write, and test/guards compares them. Used by: every guard.
 */
import { badRequest } from '../client/errors.js';
import { checkName } from '../client/options.js';

/** Kinds of lease whose token protects something. A semaphore's token is identity only. */
export type FenceKind = 'exclusive' | 'shared';

/** What a write shows at its resource: in the name of which lock, with which token. */
export interface Fence {
  /** Name of the lock. Marks of different locks have nothing to do with each other. */
  readonly lock: string;
  /** Fencing token of the lease, 1 … 2^53 − 1. */
  readonly token: number;
  /** Absent: exclusive. */
  readonly kind?: FenceKind;
}

/** What a guard keeps for one lock. */
export interface Mark {
  readonly lock: string;
  /** Highest exclusive or barrier token that was seen, 0 when none was. */
  readonly token: number;
  /** Writes that were refused, or null where the resource cannot count. */
  readonly refused: number | null;
}

/** What the rule says of one token. */
export interface Verdict {
  readonly isAccepted: boolean;
  /** The mark afterwards. */
  readonly mark: number;
}

/** A lease as the client gives it, or as another program tells of it. */
export interface FencedLease {
  readonly name: string;
  readonly token: number;
  /** Absent: exclusive. */
  readonly mode?: string;
  /** Policy of the lock; absent: required. */
  readonly fencing?: string;
}

/**
 * I3. A token below the mark is stale. An exclusive token raises the mark to itself, a shared one
 * does not: several readers hold at a time, and the one that comes last is not the newest.
 *
 * @param mark 0 when nothing was seen yet.
 */
export function judge(mark: number, token: number, kind: FenceKind): Verdict {
  if (token < mark) return { isAccepted: false, mark };
  return { isAccepted: true, mark: kind === 'exclusive' ? token : mark };
}

/** Throws BAD_REQUEST `token` unless it is a whole number from 1 to 2^53 − 1. */
export function checkToken(token: number): number {
  if (Number.isSafeInteger(token) && token >= 1) return token;
  const wanted = 'a whole number from 1 to 2^53 - 1';
  throw badRequest('token', `token is ${String(token)}, wanted ${wanted}`);
}

/**
 * A fence with every field present. Throws BAD_REQUEST for what the types refuse too: programs in
 * JavaScript, and tokens that came over a wire, meet only this.
 */
export function checkFence(fence: Fence): Required<Fence> {
  const kind: unknown = fence.kind ?? 'exclusive';
  if (kind !== 'exclusive' && kind !== 'shared') {
    const reason = 'a semaphore lets several in, so its token orders nothing';
    const why = kind === 'semaphore' ? reason : 'wanted exclusive or shared';
    throw badRequest('kind', `guards take no ${String(kind)} token: ${why}`);
  }
  return { lock: checkName(fence.lock), token: checkToken(fence.token), kind };
}

/**
 * The fence of a lease. Throws BAD_REQUEST for a semaphore's lease and for a lock whose policy says
 * `best-effort`: whoever declared it so has given up the order that a guard depends on.
 *
 * @example
 * await guard.transaction(fenceOf(lease), (database) => database.query('UPDATE …'));
 */
export function fenceOf(lease: FencedLease): Required<Fence> {
  const { name, token, mode = 'exclusive', fencing = 'required' } = lease;
  if (fencing !== 'required') {
    throw badRequest('fencing', `lock ${name} is ${fencing}: guards take only fenced locks`);
  }
  return checkFence({ lock: name, token, kind: mode as FenceKind });
}
