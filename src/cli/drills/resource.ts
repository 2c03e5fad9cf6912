/**
 * The guarded resource of a drill: a table in an SQLite file that several processes write.
 *
 * Owns: the table, in which each write and each barrier leaves a row with its token, in the order
 * in which they were done. Both pass the guard unless the drill's protection is off. Never: judges
 * the rows.
 * Used by: actor-process.ts, the scenarios, verify.ts.
 */

import { type Fence, SqliteGuard } from '../../guards/index.js';
import { openDatabase } from '../../guards/open-guard.js';

/** One write that was done. */
export interface WrittenRow {
  readonly writer: string;
  readonly token: number;
}

type Database = Awaited<ReturnType<typeof openDatabase>>;

const TABLE = `CREATE TABLE IF NOT EXISTS writes (
  place INTEGER PRIMARY KEY AUTOINCREMENT,
  lock_name TEXT NOT NULL,
  token INTEGER NOT NULL,
  writer TEXT NOT NULL
)`;
const INSERT = 'INSERT INTO writes (lock_name, token, writer) VALUES (?, ?, ?)';
/** Stands for the writer in the row of a barrier. */
const BARRIER = 'the barrier';
const ROWS = 'SELECT writer, token FROM writes WHERE lock_name = ? ORDER BY place';

export class Resource {
  readonly guard: SqliteGuard<Database>;

  private constructor(
    readonly file: string,
    private readonly database: Database,
    private readonly isGuarded: boolean,
  ) {
    this.guard = new SqliteGuard(database);
    database.exec(TABLE);
  }

  /** @param isGuarded false: writes go round the guard, to show that a drill would see it. */
  static async open(file: string, isGuarded: boolean): Promise<Resource> {
    return new Resource(file, await openDatabase(file), isGuarded);
  }

  /** Throws StaleTokenError when the guard refuses; nothing was written then. */
  write(fence: Fence, writer: string): void {
    const insert = (database: Database): void => {
      database.prepare(INSERT).run(fence.lock, fence.token, writer);
    };
    if (this.isGuarded) this.guard.transaction(fence, insert);
    else insert(this.database);
  }

  /** Raises the mark without a write: from this row on no smaller token may write. */
  async raise(lock: string, token: number): Promise<void> {
    if (this.isGuarded) await this.guard.raise(lock, token);
    this.database.prepare(INSERT).run(lock, token, BARRIER);
  }

  /** Writes and barriers of a lock, the first one first. */
  rows(lock: string): WrittenRow[] {
    const rows = this.database.prepare(ROWS).all(lock) as unknown as WrittenRow[];
    return rows.map(({ writer, token }) => ({ writer, token: Number(token) }));
  }

  close(): void {
    this.database.close();
  }
}
