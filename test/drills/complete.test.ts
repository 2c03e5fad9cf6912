/**
 * Every drill on real processes: each is complete on a fresh cluster, and leaves nothing behind.
 * That each can fail is shown in faults.test.ts and gap.test.ts.
 */

import { readdirSync } from 'node:fs';
import t from 'tap';
import { DRILL_NAMES } from '../../src/cli/drills/names.js';
import { ExitCode } from '../../src/cli/exit-codes.js';
import { runCli } from '../cluster/cli.js';
import { recordsIn, scratch } from '../cluster/drill-run.js';

for (const name of DRILL_NAMES) {
  t.test(`drill ${name} is complete on a fresh cluster`, async (t) => {
    const { folder, environment } = scratch(t);
    const end = await runCli(t, ['drill', name, '--json'], environment);
    t.equal(end.status, ExitCode.Ok, end.err);
    const [record] = recordsIn(end.out);
    t.match(record, {
      drill: name,
      complete: true,
      test: null,
      last_durable_revision: Number,
      state: { log_index: Number, digest: /^[0-9a-f]{32}$/ },
      projection_checkpoint: { cluster_id: /^[0-9a-f]{32}$/, next_revision: Number },
      retry_policy: { words: /same request id/, retries: Number, resends: Number },
      reconciliation: { status: 'reconciled', faults: [] },
      owner: null,
      service: { before: { success: Number, p99_ms: Number, lag_ms: Number }, not_back: [] },
    });
    t.ok((record?.checks.length ?? 0) >= 9, `${record?.checks.length} checks`);
    t.ok((record?.story.length ?? 0) >= 5, `${record?.story.length} steps`);
    const named = record?.events.filter((event) => event.request_id === record.operation_id);
    t.equal(named?.length, 1, 'the operation of the record is in the audit stream');
    t.same(readdirSync(folder), [], 'nothing is left behind');
  });
}
