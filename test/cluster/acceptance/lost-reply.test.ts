import t, { type Test } from 'tap';
import { connect } from '../../../src/client/index.js';
import { ErrorCode } from '../../../src/wire/errors.js';
import type { PackValue } from '../../../src/wire/msgpack-writer.js';
import type { Reply } from '../../../src/wire/response.js';
import { Cluster } from '../harness.js';
import { waitFor } from '../wait-for.js';
import {
  acquireOperation,
  type Grant,
  grantIn,
  placeIn,
  releaseOperation,
  revisionIn,
} from './operations.js';
import { endpointOf, RawConnection } from './raw-connection.js';
import { Relay } from './relay.js';

const TTL_MS = 600_000;
const WAIT_MS = 600_000;

// The place of a waiter whose connection was cut must outlast an election on a busy machine.
const cluster = await Cluster.start({ test: t, settings: { implicitLapseMs: 60_000 } });
const client = await connect({ endpoints: cluster.endpoints, deadlineMs: 60_000 });
t.teardown(() => client.close());

/** The revision that all nodes agree on. */
async function revision(): Promise<number> {
  const [status] = await cluster.settled(60_000);
  return status?.revision ?? -1;
}

async function connectionTo(t: Test, endpoint: string): Promise<RawConnection> {
  const connection = await RawConnection.open(endpoint);
  t.teardown(() => connection.close());
  return connection;
}

/** Sends one operation and loses the node's first answer to it; the connection is then cut. */
async function loseReply(t: Test, operation: readonly PackValue[]): Promise<number> {
  const leader = await cluster.leader(60_000);
  const relay = await Relay.start(endpointOf(cluster.endpoint(leader)));
  t.teardown(() => relay.close());
  const connection = await connectionTo(t, relay.endpoint);
  relay.swallow();
  const request = connection.request(operation);
  await relay.swallowed();
  relay.close();
  await t.rejects(request.first, 'the caller heard nothing');
  return leader;
}

/** Kills the leader and sends the operation to the next one; resolves with the first reply. */
async function retryAfterKill(
  t: Test,
  leader: number,
  operation: readonly PackValue[],
): Promise<{ first: Reply; final: Promise<Reply> }> {
  await cluster.kill(leader);
  const next = await cluster.leader(60_000);
  t.not(next, leader);
  const connection = await connectionTo(t, cluster.endpoint(next));
  return waitFor('the new leader to take the retry', async () => {
    const request = connection.request(operation);
    const first = await request.first;
    const isEarly = first.code === ErrorCode.NoQuorum || first.code === ErrorCode.NotLeader;
    return isEarly ? null : { first, final: request.final };
  });
}

async function acquireNow(t: Test, requestId: string, name: string): Promise<Grant> {
  const leader = await cluster.leader(60_000);
  const connection = await connectionTo(t, cluster.endpoint(leader));
  return grantIn(await connection.call(acquireOperation(requestId, name, TTL_MS)));
}

t.test('an acquire whose reply was lost gives the same lease on the next leader', async (t) => {
  const name = 'lost/acquire';
  const before = await revision();
  const operation = acquireOperation('acquire-1', name, TTL_MS);
  const leader = await loseReply(t, operation);
  const token = (await client.get(name)).holder?.token;
  t.equal(token, before + 1, 'it was granted, although nobody heard of it');

  const { first } = await retryAfterKill(t, leader, operation);
  t.equal(first.code, ErrorCode.Ok);
  t.ok(first.isReplay, 'the effect is the first one');
  const grant = grantIn(first);
  t.equal(grant.token, token, 'the same token');
  await cluster.restart(leader);
  t.equal(await revision(), before + 1, 'one grant in the log');
  const again = await acquireNow(t, 'acquire-1', name);
  t.strictSame(again, grant, 'and the same lease id, as often as it is asked for');
});

t.test('an acquire that was queued finds its place on the next leader', async (t) => {
  const name = 'lost/queued';
  const held = await acquireNow(t, 'queued-holder', name);
  const before = await revision();
  const operation = acquireOperation('queued-1', name, TTL_MS, WAIT_MS);
  const leader = await loseReply(t, operation);
  const [waiter] = (await client.get(name)).queue;
  t.equal(waiter?.place, before + 1, 'it stands in the queue');

  const { first, final } = await retryAfterKill(t, leader, operation);
  t.equal(first.code, ErrorCode.Queued);
  t.equal(placeIn(first), waiter?.place, 'at the same place');
  t.equal((await client.get(name)).queue.length, 1, 'once');

  const other = await connectionTo(t, cluster.endpoint(await cluster.leader(60_000)));
  const released = await other.call(releaseOperation('queued-release', held.leaseId));
  t.equal(released.code, ErrorCode.Ok);
  const grant = grantIn(await final);
  t.equal(grant.token, revisionIn(released) + 1, 'granted in the entry of the release');
  t.equal((await client.get(name)).holder?.token, grant.token);
  await cluster.restart(leader);
  t.equal(await revision(), before + 3, 'queued, released, granted: once each');
});

t.test('a grant after a wait whose reply was lost is found by its request id', async (t) => {
  const name = 'lost/granted';
  const held = await acquireNow(t, 'granted-holder', name);
  const leader = await cluster.leader(60_000);
  const relay = await Relay.start(endpointOf(cluster.endpoint(leader)));
  t.teardown(() => relay.close());
  const connection = await connectionTo(t, relay.endpoint);
  const operation = acquireOperation('granted-1', name, TTL_MS, WAIT_MS);
  const request = connection.request(operation);
  t.equal((await request.first).code, ErrorCode.Queued);
  const before = await revision();
  relay.swallow();
  const direct = await connectionTo(t, cluster.endpoint(leader));
  t.equal((await direct.call(releaseOperation('granted-r', held.leaseId))).code, ErrorCode.Ok);
  await relay.swallowed();
  relay.close();
  const token = (await client.get(name)).holder?.token;

  const { first } = await retryAfterKill(t, leader, operation);
  t.equal(first.code, ErrorCode.Ok);
  t.equal(grantIn(first).token, token);
  t.equal(token, before + 2);
  await cluster.restart(leader);
  t.equal(await revision(), before + 2, 'released, granted: nothing else');
});

t.test('a release whose reply was lost answers released, and spares the next hold', async (t) => {
  const name = 'lost/release';
  const held = await acquireNow(t, 'release-holder', name);
  const before = await revision();
  const operation = releaseOperation('release-1', held.leaseId);
  const leader = await loseReply(t, operation);
  t.equal((await client.get(name)).holder, null, 'it was released, although nobody heard of it');
  const next = await acquireNow(t, 'release-next', name);

  const { first } = await retryAfterKill(t, leader, operation);
  t.equal(first.code, ErrorCode.Ok);
  t.ok(first.isReplay);
  t.equal(revisionIn(first), before + 1, 'the revision of the one release');
  t.equal((await client.get(name)).holder?.token, next.token, 'the newer hold stays');
  await cluster.restart(leader);
  t.equal(await revision(), before + 2, 'one release and one grant in the log');

  const connection = await connectionTo(t, cluster.endpoint(await cluster.leader(60_000)));
  const other = await connection.call(releaseOperation('release-2', held.leaseId));
  t.equal(other.code, ErrorCode.Ok, 'released by its own release, under any request id');
  t.equal((await client.get(name)).holder?.token, next.token);
});
