/**
 * Which locks have a write under way through the proxy, on disk, beside their marks.
 *
 * Owns: one row for each lock with a write that was sent and not answered. A row that is still
 * there when its time is over, or when the proxy starts, is a quarantine: the write may yet arrive,
 * after anything that a newer holder does, so nobody writes until a person has looked. Used by:
 * write-proxy.ts, `holdfast guard lift`.
 */
import { checkName } from '../../client/options.js';
import type { Fence, Mark } from '../fence.js';
import {
  type SqliteDatabase,
  SqliteGuard,
  type SqliteGuardOptions,
} from '../sqlite/sqlite-guard.js';

/** A write whose end nobody knows. */
export interface Quarantine {
  readonly lock: string;
  readonly token: number;
  /** Method and path, for whoever looks. */
  readonly what: string;
  /** `timeout`, `broken` or `restart`. */
  readonly reason: string;
}

const TABLE = `CREATE TABLE IF NOT EXISTS holdfast_flights (
  lock_name TEXT COLLATE BINARY PRIMARY KEY,
  token INTEGER NOT NULL,
  what TEXT NOT NULL,
  reason TEXT NOT NULL
) WITHOUT ROWID`;
const START = 'INSERT INTO holdfast_flights (lock_name, token, what, reason) VALUES (?, ?, ?, ?)';
const SELECT = 'SELECT lock_name AS lock, token, what, reason FROM holdfast_flights';
/** Reason of a row whose write is still under way. */
const UNDER_WAY = '';

export class FlightLog {
  readonly guard: SqliteGuard;
  readonly #database: SqliteDatabase;

  constructor(database: SqliteDatabase, options: SqliteGuardOptions = {}) {
    this.guard = new SqliteGuard(database, options);
    this.#database = database;
    database.exec(TABLE);
  }

  /** At the start of the proxy: what was under way when the last one ended is a quarantine. */
  recover(): Quarantine[] {
    this.#database
      .prepare('UPDATE holdfast_flights SET reason = ? WHERE reason = ?')
      .run('restart', UNDER_WAY);
    return this.list();
  }

  /**
   * Checks the token and notes the write, in one transaction. Throws StaleTokenError. Gives the
   * quarantine of the lock when it has one, and then nothing was noted.
   */
  start(fence: Fence, what: string): Quarantine | null {
    const quarantine = this.find(fence.lock);
    if (quarantine !== null) return quarantine;
    this.guard.transaction(fence, (database) => {
      database.prepare(START).run(fence.lock, fence.token, what, UNDER_WAY);
    });
    return null;
  }

  /** The write has ended, one way or the other: the upstream said so, or was never reached. */
  end(lock: string): void {
    this.#database.prepare('DELETE FROM holdfast_flights WHERE lock_name = ?').run(lock);
  }

  /** The write may or may not be done, now or later. */
  quarantine(lock: string, reason: string): void {
    this.#database
      .prepare('UPDATE holdfast_flights SET reason = ? WHERE lock_name = ?')
      .run(reason, lock);
  }

  find(lock: string): Quarantine | null {
    const row = this.#database.prepare(`${SELECT} WHERE lock_name = ?`).get(lock);
    return row === undefined ? null : { ...(row as Quarantine) };
  }

  /** Quarantines and writes under way, in order of names; at most a thousand. */
  list(): Quarantine[] {
    const found: Quarantine[] = [];
    for (let after = ''; found.length < 1_000; after = found.at(-1)?.lock ?? '') {
      const row = this.#database
        .prepare(`${SELECT} WHERE lock_name > ? ORDER BY lock_name LIMIT 1`)
        .get(after);
      if (row === undefined) break;
      found.push({ ...(row as Quarantine) });
    }
    return found;
  }

  /**
   * Ends a quarantine, once a person has seen that the write cannot arrive any more. With a barrier
   * token the holder of that time is refused from then on. Gives what was lifted, or null.
   */
  async lift(lock: string, barrierToken?: number): Promise<Quarantine | null> {
    const quarantine = this.find(checkName(lock));
    if (barrierToken !== undefined) await this.guard.raise(lock, barrierToken);
    if (quarantine !== null) this.end(lock);
    return quarantine;
  }

  mark(lock: string): Promise<Mark> {
    return this.guard.mark(lock);
  }
}
