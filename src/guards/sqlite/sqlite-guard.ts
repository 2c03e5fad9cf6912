/**
 * Fencing tokens checked by SQLite, in the transaction of the write; several processes may share
 * the file.
 *
 * Owns: the table of marks, and the order of the steps: begin immediate, check, work, commit.
 * Never: the driver; it takes a database as `node:sqlite` has it, or anything alike. Used by:
 * programs, the write proxy, `holdfast guard`.
 */
import { badRequest, suppress } from '../../client/errors.js';
import { checkName } from '../../client/options.js';
import { checkFence, checkToken, type Fence, judge, type Mark } from '../fence.js';
import type { Guard } from '../guard.js';
import { StaleTokenError } from '../stale-token.js';
import { type GuardObserver, Tally } from '../tally.js';

/** A statement, as node:sqlite and better-sqlite3 have it. */
export interface SqliteStatement {
  get(...values: (string | number)[]): unknown;
  run(...values: (string | number)[]): unknown;
}

/** An open database: `DatabaseSync` of node:sqlite, or alike. */
export interface SqliteDatabase {
  exec(text: string): unknown;
  prepare(text: string): SqliteStatement;
}

export interface SqliteGuardOptions {
  readonly observer?: GuardObserver;
  /** How long to wait for another process's transaction, ms. Default 10,000. */
  readonly busyMsMax?: number;
}

const RESOURCE = 'sqlite';
const BUSY_MS_DEFAULT = 10_000;

const TABLE = `CREATE TABLE IF NOT EXISTS holdfast_marks (
  lock_name TEXT COLLATE BINARY PRIMARY KEY,
  token INTEGER NOT NULL,
  refused INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID`;
const READ = 'SELECT token, refused FROM holdfast_marks WHERE lock_name = ?';
const RAISE = `INSERT INTO holdfast_marks (lock_name, token) VALUES (?, ?)
  ON CONFLICT (lock_name) DO UPDATE SET token = max(token, excluded.token)`;
const REFUSE = 'UPDATE holdfast_marks SET refused = refused + 1 WHERE lock_name = ?';

export class SqliteGuard<D extends SqliteDatabase = SqliteDatabase> implements Guard {
  readonly tally: Tally;
  readonly #database: D;

  /** @param database open, and of this guard's process; the file may be shared by several. */
  constructor(database: D, options: SqliteGuardOptions = {}) {
    const { busyMsMax = BUSY_MS_DEFAULT } = options;
    if (!(busyMsMax >= 0)) throw badRequest('busy_ms_max', `busyMsMax is ${busyMsMax}`);
    this.#database = database;
    this.tally = new Tally(RESOURCE, options.observer);
    // FULL: a mark that was committed is on disk before the write is believed done.
    database.exec(`PRAGMA busy_timeout = ${Math.ceil(busyMsMax)}; PRAGMA synchronous = FULL`);
    database.exec(TABLE);
  }

  /**
   * Runs `work` in a transaction that has passed the check, and commits. Throws StaleTokenError
   * before `work` is called; with the error of `work` after a rollback. `work` is not asynchronous:
   * the whole file is locked meanwhile.
   *
   * @example
   * guard.transaction(fenceOf(lease), (database) => {
   *   database.prepare('UPDATE cursor SET position = ?').run(700);
   * });
   */
  transaction<T>(fence: Fence, work: (database: D) => T): T {
    const checked = checkFence(fence);
    const database = this.#database;
    database.exec('BEGIN IMMEDIATE');
    let result: T;
    let seen: number;
    try {
      seen = this.#admit(checked);
      result = work(database);
      if (isThenable(result))
        throw badRequest('work', 'work gave a promise: it must be synchronous');
      database.exec('COMMIT');
    } catch (error) {
      if (!(error instanceof StaleTokenError)) this.#rollBack(error);
      throw error;
    }
    this.tally.onAccepted(checked, seen);
    return result;
  }

  async raise(lock: string, token: number): Promise<Mark> {
    this.#database.prepare(RAISE).run(checkName(lock), checkToken(token));
    const mark = await this.mark(lock);
    this.tally.onRaised({ lock, token }, mark.token);
    return mark;
  }

  async mark(lock: string): Promise<Mark> {
    return this.#read(checkName(lock));
  }

  #read(lock: string): Mark & { readonly refused: number } {
    const row = this.#database.prepare(READ).get(lock) as Mark | undefined;
    return { lock, token: Number(row?.token ?? 0), refused: Number(row?.refused ?? 0) };
  }

  /** Within the transaction. A refusal commits its count and throws. */
  #admit(fence: Required<Fence>): number {
    const { token: seen } = this.#read(fence.lock);
    const { isAccepted, mark } = judge(seen, fence.token, fence.kind);
    if (!isAccepted) {
      this.#database.prepare(REFUSE).run(fence.lock);
      this.#database.exec('COMMIT');
      this.tally.onRefused(fence, seen);
      throw new StaleTokenError(RESOURCE, fence, seen);
    }
    if (mark > seen) this.#database.prepare(RAISE).run(fence.lock, mark);
    return seen;
  }

  #rollBack(reason: unknown): void {
    try {
      this.#database.exec('ROLLBACK');
    } catch (error) {
      suppress(reason, error); // some errors of SQLite have rolled back already
    }
  }
}

function isThenable(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'then' in value;
}
