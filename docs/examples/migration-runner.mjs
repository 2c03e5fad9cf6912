/**
 * A migration runner: every instance of a service starts it before it serves, one migrates.
 *
 * The others wait for it in line, and then find nothing left to do. Each step is one guarded
 * transaction with a row that says that it is done: a runner that was paused in between, and
 * overtaken, cannot apply a step again or out of order.
 *
 *     HOLDFAST_ENDPOINTS=… DATABASE_URL=… node docs/examples/migration-runner.mjs
 */
import { connect } from 'holdfast';
import { fenceOf, PostgresGuard } from 'holdfast/guards';
import pg from 'pg';

const STEPS = [
  'CREATE TABLE customers (id int PRIMARY KEY, name text NOT NULL)',
  'ALTER TABLE customers ADD COLUMN email text',
  'CREATE INDEX customers_by_email ON customers (email)',
];

const endpoints = (process.env.HOLDFAST_ENDPOINTS ?? '127.0.0.1:7401').split(',');
const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL });
const client = await connect({ endpoints });
let applied = 0;
try {
  await client.withLock('migrations/app', { ttlMs: 30_000, waitMs: 60_000 }, async (lease) => {
    const guard = new PostgresGuard(pool);
    await guard.migrate();
    await pool.query('CREATE TABLE IF NOT EXISTS steps (number int PRIMARY KEY)');
    for (const [number, step] of STEPS.entries()) {
      // A step may take longer than a lease is believed in: look before each.
      await lease.ready();
      applied += await guard.transaction(fenceOf(lease), async (database) => {
        const insert = 'INSERT INTO steps VALUES ($1) ON CONFLICT DO NOTHING';
        if ((await database.query(insert, [number])).rowCount === 0) return 0;
        await database.query(step);
        return 1;
      });
    }
  });
  console.log(`applied ${applied} of ${STEPS.length} steps`);
} finally {
  await client.close();
  await pool.end();
}
