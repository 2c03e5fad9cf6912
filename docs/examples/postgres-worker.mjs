/**
 * A worker that moves money in PostgreSQL, and what it looks like when its token is stale.
 *
 * It runs the check twice: once with the token of its lease, and once with a smaller one, as a
 * worker would that was paused while another took over. The second is refused and changes nothing.
 *
 *     HOLDFAST_ENDPOINTS=… DATABASE_URL=… node docs/examples/postgres-worker.mjs
 */
import { connect } from 'holdfast';
import { fenceOf, isStaleToken, PostgresGuard } from 'holdfast/guards';
import pg from 'pg';

const endpoints = (process.env.HOLDFAST_ENDPOINTS ?? '127.0.0.1:7401').split(',');
const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL });
const client = await connect({ endpoints });
const observer = {
  onRefused: ({ lock, offered, seen }) => console.log(`refused ${lock}: ${offered < seen}`),
};
const guard = new PostgresGuard(pool, { observer });

/** Ten from one account to the other, or nothing. */
function transfer(fence) {
  return guard.transaction(fence, async (database) => {
    await database.query('UPDATE purses SET balance = balance - 10 WHERE id = 1');
    await database.query('UPDATE purses SET balance = balance + 10 WHERE id = 2');
  });
}

try {
  await guard.migrate();
  await pool.query('CREATE TABLE IF NOT EXISTS purses (id int PRIMARY KEY, balance int NOT NULL)');
  await pool.query('INSERT INTO purses VALUES (1, 100), (2, 0) ON CONFLICT DO NOTHING');
  await client.withLock('purses', { ttlMs: 10_000 }, async (lease) => {
    await transfer(fenceOf(lease));
    try {
      await transfer({ lock: lease.name, token: lease.token - 1 });
    } catch (error) {
      if (!isStaleToken(error)) throw error;
    }
  });
  const { rows } = await pool.query('SELECT balance FROM purses ORDER BY id');
  console.log(`balances ${rows.map(({ balance }) => balance).join(' and ')}`);
} finally {
  await client.close();
  await pool.end();
}
