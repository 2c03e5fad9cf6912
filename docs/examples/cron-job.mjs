/**
 * A cron job that must not overlap: cron starts it on every machine, it runs on one.
 *
 * Whoever comes second finds the lock held and ends at once, as cron wants it. What the job writes
 * is in PostgreSQL and goes there under the token, so a run that was paused past its lease writes
 * nothing.
 *
 *     HOLDFAST_ENDPOINTS=… DATABASE_URL=… node docs/examples/cron-job.mjs
 */
import { connect } from 'holdfast';
import { fenceOf, PostgresGuard } from 'holdfast/guards';
import pg from 'pg';

const endpoints = (process.env.HOLDFAST_ENDPOINTS ?? '127.0.0.1:7401').split(',');
const pool = new pg.Pool({ connectionString: process.env.DATABASE_URL });
const client = await connect({ endpoints });
try {
  const lease = await client.tryAcquire('cron/daily-report', { ttlMs: 10_000 });
  if (lease === null) {
    console.log('another machine runs it');
  } else {
    const guard = new PostgresGuard(pool);
    await guard.migrate();
    await pool.query('CREATE TABLE IF NOT EXISTS reports (day date PRIMARY KEY, token bigint)');
    const rows = await guard.transaction(fenceOf(lease), async (database) => {
      // One row a day: a second run of the same day finds it done (docs/IDEMPOTENCY.md).
      const insert = 'INSERT INTO reports VALUES (current_date, $1) ON CONFLICT DO NOTHING';
      return (await database.query(insert, [lease.token])).rowCount;
    });
    console.log(rows === 1 ? 'made the report' : 'the report of today is there');
    await lease.release();
  }
} finally {
  await client.close();
  await pool.end();
}
