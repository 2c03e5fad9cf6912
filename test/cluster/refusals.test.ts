/**
 * A stale write that a guard refused is known to the cluster: in the audit stream, in metrics.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import t from 'tap';
import { connect } from '../../src/client/index.js';
import { ClusterReporter } from '../../src/guards/cluster-reporter.js';
import { openDatabase } from '../../src/guards/open-guard.js';
import { RefusalBatches } from '../../src/guards/refusals.js';
import { SqliteGuard } from '../../src/guards/sqlite/sqlite-guard.js';
import { Cluster } from './harness.js';
import { HttpClient } from './http-client.js';
import { waitFor } from './wait-for.js';

const LOCK = 'jobs/refused';

t.test('what a guard refuses shows in the audit stream and in metrics', async (t) => {
  const cluster = await Cluster.start({ test: t });
  const client = await connect({ endpoints: cluster.endpoints });
  t.teardown(() => client.close());
  const folder = mkdtempSync(path.join(tmpdir(), 'holdfast-refusals-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  const database = await openDatabase(path.join(folder, 'guarded.sqlite'));
  t.teardown(() => database.close());

  const refusals = new RefusalBatches(new ClusterReporter(client.admin));
  const guard = new SqliteGuard(database, { observer: refusals });
  const first = await client.acquire(LOCK);
  await first.release();
  const second = await client.acquire(LOCK);
  const write = (token: number): string =>
    guard.transaction({ lock: LOCK, token }, () => 'written');
  t.equal(write(second.token), 'written');
  for (let attempt = 0; attempt < 3; attempt += 1) {
    t.throws(() => write(first.token), { code: 'STALE_TOKEN' }, 'a stale write is refused');
  }

  const http = new HttpClient();
  t.teardown(() => http.close());
  const told = await waitFor('three refusals in the audit stream', async () => {
    const page = await http.get(
      `${cluster.httpUrl(1)}/v1/audit?prefix=${encodeURIComponent(LOCK)}&revision=1`,
    );
    const events = page.json.events as { type: string; refusals: number }[];
    const fenced = events.filter(({ type }) => type === 'fenced');
    const sum = fenced.reduce((total, { refusals: count }) => total + count, 0);
    return sum === 3 ? fenced : null;
  });
  t.match(told[0], {
    name: LOCK,
    fencing_token: first.token,
    place: second.token,
    cause: 'STALE_TOKEN',
    command: 'report_refusal',
    asked_by: 'sqlite',
  });
  t.equal(refusals.reporterErrors, 0);
  const metrics = await fetch(`${cluster.httpUrl(1)}/metrics`);
  t.match(await metrics.text(), /^holdfast_fencing_refusals_total 3$/m);
});
