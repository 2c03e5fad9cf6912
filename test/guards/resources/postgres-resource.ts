/**
 * PostgreSQL as the guard suite sees it: a table of cells, written in guarded transactions.
 *
 * Owns: its server. Used by: open.ts.
 */
import pg from 'pg';
import type { Fence } from '../../../src/guards/fence.js';
import { PostgresGuard } from '../../../src/guards/postgres/postgres-guard.js';
import type { Door, Place, Resource } from '../resource.js';
import { addressOf, PostgresServer } from '../servers/postgres-server.js';

const CELLS = 'CREATE TABLE cells (name text PRIMARY KEY, value text NOT NULL)';
const WRITE = `INSERT INTO cells VALUES ($1, $2)
  ON CONFLICT (name) DO UPDATE SET value = excluded.value`;
const READ = 'SELECT value FROM cells WHERE name = $1';

/** A holder that is stopped within its transaction holds up the next for so long. */
export const STALL_MS = 1_000;

export class PostgresDoor implements Door {
  readonly guard: PostgresGuard<pg.PoolClient>;
  private readonly pool: pg.Pool;

  constructor(
    { port }: Place,
    private readonly cell: string,
  ) {
    this.pool = new pg.Pool({ ...addressOf(port), max: 4 });
    this.pool.on('error', () => undefined); // an idle connection was cut: the pool makes another
    this.guard = new PostgresGuard<pg.PoolClient>(this.pool, { stallMsMax: STALL_MS });
  }

  async write(fence: Fence, value: string): Promise<void> {
    await this.guard.transaction(fence, (client) => client.query(WRITE, [this.cell, value]));
  }

  async claim(fence: Fence): Promise<string> {
    const { rows } = await this.guard.transaction(fence, (client) =>
      client.query(READ, [this.cell]),
    );
    return rows[0]?.value ?? '';
  }

  async read(): Promise<string> {
    const { rows } = await this.pool.query(READ, [this.cell]);
    return rows[0]?.value ?? '';
  }

  close(): Promise<void> {
    return this.pool.end();
  }
}

export async function startPostgres(folder: string): Promise<Resource> {
  const server = await PostgresServer.start(folder);
  const place: Place = { kind: 'postgres', port: server.port, folder };
  const door = new PostgresDoor(place, '');
  await door.guard.migrate();
  await door.close();
  const client = new pg.Client(addressOf(server.port));
  await client.connect();
  await client.query(CELLS);
  await client.end();
  return {
    place,
    server: `${server.name} ${server.version}`,
    decidingBytes: 'BEGIN',
    counts: true,
    hasMarkForEachLock: true,
    race: (writers) => race(server.port, writers),
    close: () => server.close(),
  };
}

async function race(port: number, writers: number): Promise<number[]> {
  const make = async () => {
    const client = new pg.Client(addressOf(port));
    await client.connect();
    return client;
  };
  const clients = await Promise.all(Array.from({ length: writers }, make));
  await clients[0]?.query('CREATE TABLE races (round int, winner int)');
  const winners: number[] = [];
  for (let round = 0; round < 3; round += 1) {
    await clients[0]?.query('INSERT INTO races VALUES ($1, NULL)', [round]);
    const text = 'UPDATE races SET winner = $1 WHERE round = $2 AND winner IS NULL';
    const results = await Promise.all(clients.map((each, at) => each.query(text, [at, round])));
    winners.push(results.filter((result) => result.rowCount === 1).length);
  }
  await Promise.all(clients.map((client) => client.end()));
  return winners;
}
