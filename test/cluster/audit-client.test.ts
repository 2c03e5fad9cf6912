/** client.audit() over real nodes that are killed: each event at least once, from a checkpoint. */

import t from 'tap';
import { type AuditCheckpoint, type AuditEvent, connect } from '../../src/client/index.js';
import { Cluster } from './harness.js';
import { waitFor } from './wait-for.js';

const WORDS = ['--snapshot-entries', '40', '--log-tail-entries', '5', '--history-mib', '0'];

t.test('a consumer that ends and begins again has every event once, over kills', async (t) => {
  const cluster = await Cluster.start({ test: t, nodes: 3 });
  const client = await connect({ endpoints: cluster.endpoints });
  t.teardown(() => client.close());
  const told: AuditEvent[] = [];
  let checkpoint: AuditCheckpoint | undefined;
  /** Reads until it is stopped; what it has stored is all that the next one knows. */
  const consume = async (signal: AbortSignal): Promise<void> => {
    const place = checkpoint === undefined ? { from: 'oldest' as const } : { checkpoint };
    for await (const page of client.audit({ ...place, pageSize: 7, signal })) {
      told.push(...page.events);
      checkpoint = JSON.parse(JSON.stringify(page.checkpoint));
    }
  };
  let granted = 0;
  for (const victim of cluster.nodeIds) {
    const stop = new AbortController();
    const consuming = consume(stop.signal);
    for (let at = 0; at < 5; at += 1) {
      await (await client.acquire(`a/${victim}/${at}`, { session: null })).release();
    }
    await cluster.kill(victim);
    await cluster.leader();
    await (await client.acquire(`while/${victim}`, { session: null })).release();
    granted += 6;
    await waitFor('what happened', () => told.length >= 2 * granted);
    stop.abort();
    await consuming;
    await cluster.restart(victim);
    await cluster.settled();
  }
  t.same(
    told.map((event) => event.revision),
    told.map((_, at) => at + 1),
  );
  t.equal(told.length, 2 * granted);
  t.equal(new Set(told.map((event) => event.id)).size, told.length);
  t.same(
    told.map((event) => event.command),
    told.map(({ type }) => (type === 'granted' ? 'acquire' : 'release')),
  );
});

t.test('COMPACTED says from where the nodes still have it', async (t) => {
  const cluster = await Cluster.start({ test: t, nodes: 3, nodeWords: () => WORDS });
  const client = await connect({ endpoints: cluster.endpoints });
  t.teardown(() => client.close());
  for (let at = 0; at < 100; at += 1) {
    await (await client.acquire(`a/${at}`, { session: null })).release();
  }
  await waitFor('a snapshot of every node', async () => {
    const all = await Promise.all(cluster.nodeIds.map((nodeId) => cluster.status(nodeId)));
    return all.every(({ counters }) => (counters['log_base_index'] ?? 0) > 40);
  });
  // What is in memory is told from there: a node that starts anew has only what is on its disk.
  for (const nodeId of cluster.nodeIds) {
    await cluster.restart(nodeId);
    await cluster.leader();
  }
  const oldest = await waitFor('the cut', async () => {
    try {
      for await (const _ of client.audit({ from: 1, follows: false, deadlineMs: 20_000 })) return 0;
    } catch (error) {
      const { code, details } = error as { code: string; details: { oldestRevision: number } };
      if (code === 'COMPACTED') return details.oldestRevision;
      throw error;
    }
    return 0;
  });
  t.ok(oldest > 1);
  // Terms that began since may have moved every event so far out of the log.
  await (await client.acquire('b', { session: null })).release();
  // A node that does not lead may be asked before it has applied that.
  const revisions = await waitFor('what is left, to its end', async () => {
    const found: number[] = [];
    for await (const page of client.audit({ from: 'oldest', follows: false })) {
      found.push(...page.events.map(({ revision }) => revision));
    }
    return found.at(-1) === 202 ? found : null;
  });
  t.same(
    revisions,
    revisions.map((_, at) => (revisions[0] ?? 0) + at),
  );
});
