/**
 * Fencing tokens checked by PostgreSQL, in the transaction of the write.
 *
 * Owns: the order of the steps: begin, check, work, commit. The check locks the mark's row until
 * the transaction ends, so a newer token waits for it, or it for the newer one. Never: the driver;
 * it takes a pool of `pg`, or anything alike. Used by: programs, `holdfast guard`.
 */
import { readFileSync } from 'node:fs';
import { badRequest, suppress } from '../../client/errors.js';
import { checkName } from '../../client/options.js';
import { checkFence, checkToken, type Fence, type Mark } from '../fence.js';
import type { Guard } from '../guard.js';
import { StaleTokenError, unknownWrite } from '../stale-token.js';
import { type GuardObserver, Tally } from '../tally.js';

/** What a query gives; a part of what `pg` gives. */
export interface PostgresResult {
  readonly rows: readonly unknown[];
  /** Command tag, such as COMMIT. */
  readonly command: string;
}

/** One connection: that of `pg.Client`. */
export interface PostgresClient {
  query(text: string, values?: unknown[]): Promise<PostgresResult>;
  on(event: 'error', onError: (error: Error) => void): unknown;
  off(event: 'error', onError: (error: Error) => void): unknown;
}

/** Connections to take and give back: that of `pg.Pool`. */
export interface PostgresPool<C extends PostgresClient = PostgresClient> {
  connect(): Promise<C & { release(destroy?: boolean): void }>;
}

export interface PostgresGuardOptions {
  readonly observer?: GuardObserver;
  /**
   * How long a process that was stopped inside its transaction may hold up the next holder, ms:
   * PostgreSQL then ends its connection, which undoes what it did. Default 10,000.
   */
  readonly stallMsMax?: number;
}

const RESOURCE = 'postgres';
const STALL_MS_DEFAULT = 10_000;
/** SQLSTATE of holdfast.guard. */
const STALE_STATE = 'HF001';

interface Admission {
  readonly is_accepted: boolean;
  /** bigint comes as text. */
  readonly seen: string;
}

/** The migration: run it once for each database, with psql or `migrate`. */
export function marksSql(): string {
  return readFileSync(new URL('./marks.sql', import.meta.url), 'utf8');
}

export class PostgresGuard<C extends PostgresClient = PostgresClient> implements Guard {
  readonly tally: Tally;
  readonly #pool: PostgresPool<C>;
  readonly #stallMsMax: number;

  /** @param pool of one database that has the tables of marks.sql. */
  constructor(pool: PostgresPool<C>, options: PostgresGuardOptions = {}) {
    const { stallMsMax = STALL_MS_DEFAULT } = options;
    if (!(stallMsMax >= 1)) throw badRequest('stall_ms_max', `stallMsMax is ${stallMsMax}`);
    this.#pool = pool;
    this.#stallMsMax = Math.ceil(stallMsMax);
    this.tally = new Tally(RESOURCE, options.observer);
  }

  /** Creates what is missing of the schema `holdfast`. Repeating it changes nothing. */
  async migrate(): Promise<void> {
    await this.#with(({ client }) => client.query(marksSql()));
  }

  /**
   * Runs `work` in a transaction that has passed the check, and commits. Rejects StaleTokenError
   * before `work` is called; with the error of `work` after a rollback; UNKNOWN_OUTCOME when the
   * connection broke during the commit. Write through the client that is passed, nothing else.
   *
   * @example
   * await guard.transaction(fenceOf(lease), async (client) => {
   *   await client.query('UPDATE accounts SET balance = balance - 10 WHERE id = $1', [7]);
   * });
   */
  async transaction<T>(fence: Fence, work: (client: C) => Promise<T>): Promise<T> {
    const checked = checkFence(fence);
    return this.#with(async (loan) => {
      await loan.client.query('BEGIN');
      const seen = await this.#admit(loan, checked);
      let result: T;
      try {
        result = await work(loan.client);
      } catch (error) {
        await loan.rollBack(error);
        throw error;
      }
      await this.#commit(loan, checked);
      this.tally.onAccepted(checked, seen);
      return result;
    });
  }

  /**
   * The check alone, for a transaction that the caller has begun and will commit, before its first
   * write. Rejects StaleTokenError; roll back then, which also undoes the count in the table.
   */
  async admit(client: PostgresClient, fence: Fence): Promise<void> {
    const checked = checkFence(fence);
    const values = [checked.lock, checked.token, checked.kind];
    try {
      const { rows } = await client.query('SELECT holdfast.guard($1, $2, $3) AS seen', values);
      this.tally.onAccepted(checked, Number((rows[0] as { seen: string }).seen));
    } catch (error) {
      if (Reflect.get(Object(error), 'code') !== STALE_STATE) throw error;
      const seen = Number(/(\d+) was seen/.exec((error as Error).message)?.[1]);
      this.tally.onRefused(checked, seen);
      throw new StaleTokenError(RESOURCE, checked, seen);
    }
  }

  async raise(lock: string, token: number): Promise<Mark> {
    const values = [checkName(lock), checkToken(token)];
    await this.#with(({ client }) => client.query('SELECT holdfast.raise_mark($1, $2)', values));
    const mark = await this.mark(lock);
    this.tally.onRaised({ lock, token }, mark.token);
    return mark;
  }

  async mark(lock: string): Promise<Mark> {
    const text = 'SELECT token, refused FROM holdfast.marks WHERE lock_name = $1';
    const { rows } = await this.#with(({ client }) => client.query(text, [checkName(lock)]));
    const row = rows[0] as { token: string; refused: string } | undefined;
    return { lock, token: Number(row?.token ?? 0), refused: Number(row?.refused ?? 0) };
  }

  async #admit(loan: Loan<C>, fence: Required<Fence>): Promise<number> {
    const { client } = loan;
    const stall = String(this.#stallMsMax);
    const bounds = `SELECT set_config('idle_in_transaction_session_timeout', $1, true),
      set_config('lock_timeout', $1, true)`;
    const text = 'SELECT is_accepted, seen FROM holdfast.admit($1, $2, $3)';
    let admission: Admission;
    try {
      await client.query(bounds, [stall]);
      const { rows } = await client.query(text, [fence.lock, fence.token, fence.kind]);
      admission = rows[0] as Admission;
    } catch (error) {
      await loan.rollBack(error);
      throw error;
    }
    const seen = Number(admission.seen);
    if (admission.is_accepted) return seen;
    // Nothing was written but the count of the refusal.
    await client.query('COMMIT');
    this.tally.onRefused(fence, seen);
    throw new StaleTokenError(RESOURCE, fence, seen);
  }

  async #commit(loan: Loan<C>, fence: Required<Fence>): Promise<void> {
    // Broken before the commit was sent: the server has rolled back, or will.
    if (loan.error !== undefined) throw loan.error;
    let tag: string;
    try {
      tag = (await loan.client.query('COMMIT')).command;
    } catch (error) {
      // A constraint that is checked at commit has a SQLSTATE, and nothing was done.
      if (isRefusedByServer(error)) throw error;
      loan.isBroken = true;
      this.tally.onUnknown(fence);
      throw unknownWrite(RESOURCE, fence, error);
    }
    if (tag === 'COMMIT') return;
    // Work that swallowed the error of a query leaves a transaction that can only roll back.
    throw badRequest('work', `postgres answered ${tag} to COMMIT: a query of the work had failed`);
  }

  async #with<T>(use: (loan: Loan<C>) => Promise<T>): Promise<T> {
    const client = await this.#pool.connect();
    const loan = new Loan<C>(client);
    try {
      return await use(loan);
    } finally {
      client.off('error', loan.onError);
      client.release(loan.isBroken);
    }
  }
}

/**
 * A connection while it is lent. The server ends one that a stopped process holds too long; the
 * driver tells that by an event, which would end the process if nobody listened.
 */
class Loan<C extends PostgresClient> {
  isBroken = false;
  error: Error | undefined;

  readonly onError = (error: Error): void => {
    this.isBroken = true;
    this.error ??= error;
  };

  constructor(readonly client: C) {
    client.on('error', this.onError);
  }

  /** Undoes what was written because of `reason`. A failure of it is attached to the reason. */
  async rollBack(reason: unknown): Promise<void> {
    try {
      await this.client.query('ROLLBACK');
    } catch (error) {
      this.isBroken = true; // the server rolls back what it can no longer be told about
      suppress(reason, error);
    }
  }
}

/** An error that the server sent: it has a SQLSTATE, of other classes than 08 and 57. */
function isRefusedByServer(error: unknown): boolean {
  const state: unknown = Reflect.get(Object(error), 'code');
  return typeof state === 'string' && /^[0-9A-Z]{5}$/.test(state) && !/^(08|57)/.test(state);
}
