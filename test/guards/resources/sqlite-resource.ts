/**
 * A SQLite file as the guard suite sees it: a table of cells, one connection a door.
 *
 * Owns: the file. Used by: open.ts.
 */
import path from 'node:path';
import { DatabaseSync, type DatabaseSyncInstance } from '@photostructure/sqlite';
import type { Fence } from '../../../src/guards/fence.js';
import { SqliteGuard } from '../../../src/guards/sqlite/sqlite-guard.js';
import type { Door, Place, Resource } from '../resource.js';
import { findProgram, runTool } from '../servers/daemon.js';

const CELLS = 'CREATE TABLE IF NOT EXISTS cells (name TEXT PRIMARY KEY, value TEXT NOT NULL)';
const WRITE = `INSERT INTO cells VALUES (?, ?)
  ON CONFLICT (name) DO UPDATE SET value = excluded.value`;
const READ = 'SELECT value FROM cells WHERE name = ?';

function fileOf(place: Place): string {
  return path.join(place.folder, 'guarded.sqlite');
}

export class SqliteDoor implements Door {
  readonly guard: SqliteGuard<DatabaseSyncInstance>;
  private readonly database: DatabaseSyncInstance;

  constructor(
    place: Place,
    private readonly cell: string,
  ) {
    this.database = new DatabaseSync(fileOf(place));
    this.guard = new SqliteGuard(this.database);
  }

  async write(fence: Fence, value: string): Promise<void> {
    this.guard.transaction(fence, (database) => database.prepare(WRITE).run(this.cell, value));
  }

  async claim(fence: Fence): Promise<string> {
    return this.guard.transaction(fence, (database) => cellValue(database, this.cell));
  }

  async read(): Promise<string> {
    return cellValue(this.database, this.cell);
  }

  async close(): Promise<void> {
    this.database.close();
  }
}

function cellValue(database: DatabaseSyncInstance, cell: string): string {
  const row = database.prepare(READ).get(cell) as { value: string } | undefined;
  return row?.value ?? '';
}

export async function startSqlite(folder: string): Promise<Resource> {
  const place: Place = { kind: 'sqlite', port: 0, folder };
  const database = new DatabaseSync(fileOf(place));
  database.exec('PRAGMA journal_mode = WAL');
  database.exec(CELLS);
  const { version } = database.prepare('SELECT sqlite_version() AS version').get() as {
    version: string;
  };
  database.close();
  return {
    place,
    server: `SQLite ${version}`,
    decidingBytes: 'fence',
    counts: true,
    hasMarkForEachLock: true,
    race: (writers) => raceOn(path.join(folder, 'race.sqlite'), writers, 2),
    close: async () => undefined,
  };
}

/** Each writer is a process of SQLite's own shell. */
export async function raceOn(file: string, writers: number, rounds: number): Promise<number[]> {
  const shell = findProgram(['/usr/bin/sqlite3'], 'sqlite3');
  const run = (text: string) => runTool(shell, ['-cmd', '.timeout 20000', file, text]);
  await run('CREATE TABLE races (round INT, winner INT)');
  const winners: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    await run(`INSERT INTO races VALUES (${round}, NULL)`);
    const text = (at: number): string => `BEGIN IMMEDIATE;
      UPDATE races SET winner = ${at} WHERE round = ${round} AND winner IS NULL;
      SELECT changes(); COMMIT;`;
    const all = Array.from({ length: writers }, (_, at) => run(text(at)));
    const outputs = await Promise.all(all);
    winners.push(outputs.filter((output) => output.trim() === '1').length);
  }
  return winners;
}
