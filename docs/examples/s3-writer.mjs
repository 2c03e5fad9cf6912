/**
 * A writer of one object in an S3-compatible store, replaced whole each time.
 *
 * The object is read under a claim, changed, and written back: whoever held the lock before can
 * replace neither what was read nor what is written.
 *
 *     HOLDFAST_ENDPOINTS=… S3_URL=… S3_BUCKET=… AWS_ACCESS_KEY_ID=… AWS_SECRET_ACCESS_KEY=… \
 *       node docs/examples/s3-writer.mjs
 */
import { connect } from 'holdfast';
import { fenceOf, ObjectGuard, S3Store } from 'holdfast/guards';

const endpoints = (process.env.HOLDFAST_ENDPOINTS ?? '127.0.0.1:7401').split(',');
const store = new S3Store({
  endpoint: process.env.S3_URL,
  bucket: process.env.S3_BUCKET,
  accessKeyId: process.env.AWS_ACCESS_KEY_ID,
  secretAccessKey: process.env.AWS_SECRET_ACCESS_KEY,
  quotesEtags: process.env.HOLDFAST_S3_UNQUOTED_ETAGS !== '1', // see docs/GUARDS.md
});
const guard = new ObjectGuard(store, 'reports/summary.json');
const client = await connect({ endpoints });
try {
  await client.withLock('reports/summary', { ttlMs: 10_000 }, async (lease) => {
    const fence = fenceOf(lease);
    const found = await guard.claim(fence);
    const summary = found === null ? { runs: 0 } : JSON.parse(new TextDecoder().decode(found.body));
    summary.runs += 1;
    const body = new TextEncoder().encode(JSON.stringify(summary));
    await guard.write(fence, body, 'application/json');
    console.log(`run ${summary.runs}`);
  });
} finally {
  await client.close();
}
