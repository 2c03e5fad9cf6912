/** explain by request and by lease, over the client, the command line and HTTP. */

import t from 'tap';
import { connect } from '../../src/client/index.js';
import { acquireOperation, grantIn, releaseOperation } from './acceptance/operations.js';
import { RawConnection } from './acceptance/raw-connection.js';
import { runCli } from './cli.js';
import { Cluster } from './harness.js';

const TTL_MS = 600_000;

t.test('a request and a lease are explained without the lock’s name', async (t) => {
  const cluster = await Cluster.start({ test: t, nodes: 3 });
  const client = await connect({ endpoints: cluster.endpoints });
  t.teardown(() => client.close());
  const leader = await cluster.leader();
  const raw = await RawConnection.open(cluster.endpoint(leader));
  t.teardown(() => raw.close());
  const { leaseId } = grantIn(await raw.call(acquireOperation('first', 'jobs/é', TTL_MS)));
  await raw.call(acquireOperation('busy', 'jobs/é', TTL_MS));
  const environment = { HOLDFAST_ENDPOINTS: cluster.endpointList };

  /** The same by every way in. */
  const explained = async (kind: 'request' | 'lease', id: string) => {
    const mine = await client.explain(kind === 'request' ? { request: id } : { lease: id });
    const shell = await runCli(t, ['explain', `--${kind}`, id, '--json'], environment);
    t.equal(shell.status, 0, shell.err);
    const told = JSON.parse(shell.out);
    for (const nodeId of cluster.nodeIds) {
      const answer = await fetch(`${cluster.httpUrl(nodeId)}/v1/${kind}s/${id}/explain`);
      t.equal(answer.status, 200);
      const body = (await answer.json()) as Record<string, unknown>;
      t.equal(body['cause'], told.cause);
      t.equal(body['name'], told.name);
    }
    t.equal(told.cause, mine.cause);
    t.equal(told.name, mine.name);
    return mine;
  };

  t.match(await explained('request', 'first'), { name: 'jobs/é', cause: 'yours' });
  t.match(await explained('lease', leaseId), { name: 'jobs/é', cause: 'yours' });
  t.match(await explained('request', 'busy'), { name: 'jobs/é', cause: 'refused_busy' });
  t.match(await explained('request', 'never'), { name: null, cause: 'request_unknown' });
  t.match(await explained('lease', 'ab'.repeat(16)), { name: null, cause: 'lease_unknown' });
  await raw.call(releaseOperation('over', leaseId));
  t.match(await explained('lease', leaseId), { name: 'jobs/é', cause: 'lost_released' });
  t.match(await explained('request', 'first'), { name: 'jobs/é', cause: 'lost_released' });
  t.match(await client.explain({ name: 'jobs/é' }), { cause: 'free_released' });

  const shell = await runCli(t, ['explain', '--request', 'never'], environment);
  t.match(shell.out, /^a lock that nothing names any more: request_unknown\n/);
  const none = await runCli(t, ['explain'], environment);
  t.match(none.err, /give a lock, --request or --lease/);
  const bad = await fetch(`${cluster.httpUrl(leader)}/v1/leases/xyz/explain`);
  t.equal(bad.status, 400);
  const long = await fetch(`${cluster.httpUrl(leader)}/v1/requests/${'x'.repeat(65)}/explain`);
  t.equal(long.status, 400);
  for (const question of [{}, { lease: 'ab' }, { request: { session: 'ab', sequence: 1 } }]) {
    await t.rejects(client.explain(question), { code: 'BAD_REQUEST' });
  }
});
