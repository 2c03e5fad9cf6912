import t, { type Test } from 'tap';
import { connect } from '../../../src/client/index.js';
import { ErrorCode } from '../../../src/wire/errors.js';
import type { PackValue } from '../../../src/wire/msgpack-writer.js';
import { CommandKind } from '../../../src/wire/request.js';
import type { Reply } from '../../../src/wire/response.js';
import { Cluster } from '../harness.js';
import { figure, figureOfTimes } from './figures.js';
import { HeldLocks } from './held-locks.js';
import { acquireOperation, renewOperation } from './operations.js';
import { Probe } from './probe.js';
import { RawConnection } from './raw-connection.js';
import { pass, sized } from './size.js';

const TTL_MS = 3_600_000;
const LOCKS = sized(50, 500);
/** The gate runs beside other work; the promise itself is held in full size. */
const SERVICE_MS_MAX = sized(4_500, 1_500);
const OUTAGE_MS = 3_000;
const REQUEST_MS = 500;

const cluster = await Cluster.start({ test: t });
const client = await connect({ endpoints: cluster.endpoints, deadlineMs: 60_000 });
t.teardown(() => client.close());
let prefixes = 0;

/** Locks held by leases that no connection gives back. */
async function holdSome(t: Test): Promise<HeldLocks> {
  prefixes += 1;
  const connection = await connectionTo(t, await cluster.leader(60_000));
  const held = new HeldLocks();
  await held.acquire(connection, `majority/${prefixes}`, LOCKS, TTL_MS);
  return held;
}

async function connectionTo(t: Test, nodeId: number): Promise<RawConnection> {
  const connection = await RawConnection.open(cluster.endpoint(nodeId));
  t.teardown(() => connection.close());
  return connection;
}

/** The leader and as many followers as make `count` nodes; or followers alone. */
async function victims(count: number, withLeader: boolean): Promise<number[]> {
  const leader = await cluster.leader(60_000);
  const followers = cluster.nodeIds.filter((nodeId) => nodeId !== leader);
  return withLeader ? [leader, ...followers.slice(0, count - 1)] : followers.slice(0, count);
}

t.test('two of five killed at once, the leader among them: service within 1.5 s', async (t) => {
  const probe = await Probe.start(cluster.endpoints);
  t.teardown(() => probe.stop());
  const gapsMs: number[] = [];
  for (let round = 0; round < sized(1, 5); round += 1) {
    const held = await holdSome(t);
    const killed = await victims(2, true);
    const killedAt = performance.now();
    await Promise.all(killed.map((nodeId) => cluster.kill(nodeId)));
    await probe.serviceSince(performance.now(), 10);
    gapsMs.push(probe.longestGap(killedAt, performance.now()));
    t.strictSame(await held.missing(client), [], `${held.count} acknowledged acquires are there`);
    await Promise.all(killed.map((nodeId) => cluster.restart(nodeId)));
    await cluster.settled(60_000);
  }
  figureOfTimes(t, 'time without service after kill -9 of two, leader included', gapsMs);
  const longest = Math.max(...gapsMs);
  t.ok(
    longest <= SERVICE_MS_MAX,
    `the longest was ${Math.round(longest)} ms, at most ${SERVICE_MS_MAX}`,
  );
});

/** What may be said without a majority. NOT_LEADER comes before anything was proposed. */
const REFUSALS: readonly number[] = [
  ErrorCode.NoQuorum,
  ErrorCode.UnknownOutcome,
  ErrorCode.NotLeader,
];

interface Asked {
  readonly requestId: string;
  readonly reply: Reply;
}

/** Asks the node over and over until the outage is over; every request gets an answer. */
async function askMinority(t: Test, nodeId: number, held: HeldLocks): Promise<Asked[]> {
  const connection = await connectionTo(t, nodeId);
  const untilMs = performance.now() + OUTAGE_MS;
  const asked: Promise<Asked>[] = [];
  const [hold] = held.kept;
  const ask = (requestId: string, operation: PackValue[]): void => {
    const { first } = connection.request(operation, REQUEST_MS);
    asked.push(first.then((reply) => ({ requestId, reply })));
  };
  for (let number = 0; performance.now() < untilMs; number += 1) {
    const requestId = `minority ${prefixes} ${nodeId} ${number}`;
    ask(requestId, acquireOperation(requestId, requestId, TTL_MS));
    ask('', renewOperation(hold?.leaseId ?? ''));
    await pass(20);
  }
  return Promise.all(asked);
}

/** What a lookup says of a request id: done, queued, unknown. */
async function lookup(connection: RawConnection, requestId: string): Promise<unknown> {
  const reply = await connection.call([CommandKind.Lookup, null, requestId]);
  return reply.fields[0];
}

function tally(asked: readonly Asked[]): string {
  const counts = new Map<number, number>();
  for (const { reply } of asked) counts.set(reply.code, (counts.get(reply.code) ?? 0) + 1);
  const named = Object.entries(ErrorCode).filter(([, number]) => counts.has(number));
  return named.map(([name, number]) => `${name} ${counts.get(number)}`).join(', ');
}

for (const withLeader of [true, false]) {
  const who = withLeader ? 'the leader among them' : 'the leader alive';
  t.test(`three of five killed, ${who}: nothing is granted or renewed`, async (t) => {
    const held = await holdSome(t);
    const killed = await victims(3, withLeader);
    const left = cluster.nodeIds.filter((nodeId) => !killed.includes(nodeId));
    await Promise.all(killed.map((nodeId) => cluster.kill(nodeId)));
    // An entry that the majority had already acknowledged may commit here still: that is no news.
    const before = await Promise.all(left.map((nodeId) => cluster.status(nodeId)));
    const asked = (await Promise.all(left.map((nodeId) => askMinority(t, nodeId, held)))).flat();
    const after = await Promise.all(left.map((nodeId) => cluster.status(nodeId)));
    figure(t, `answers of the minority, ${who}`, tally(asked));
    const granted = asked.filter(({ reply }) => !REFUSALS.includes(reply.code));
    t.strictSame(granted, [], `all ${asked.length} requests were refused`);
    t.strictSame(
      after.map(({ revision }) => revision),
      before.map(({ revision }) => revision),
      'no revision came to be',
    );

    await Promise.all(killed.map((nodeId) => cluster.restart(nodeId)));
    const leader = await cluster.leader(60_000);
    t.strictSame(await held.missing(client), [], 'every lease is held by its token again');
    const connection = await connectionTo(t, leader);
    const [hold] = held.kept;
    const renewed = await connection.call(renewOperation(hold?.leaseId ?? ''));
    t.equal(renewed.code, ErrorCode.Ok, 'and can be renewed');
    const lies: string[] = [];
    for (const { requestId, reply } of asked) {
      if (requestId === '' || reply.code === ErrorCode.UnknownOutcome) continue;
      const found = await lookup(connection, requestId);
      if (found !== 'unknown') lies.push(`${requestId}: ${reply.code}, but ${String(found)}`);
    }
    t.strictSame(lies, [], 'what was refused without an effect has had none');
    const fresh = await client.acquire(`majority/fresh/${prefixes}`);
    t.ok(fresh.token > Math.max(...held.kept.map(({ token }) => token)), 'tokens go on rising');
    await fresh.release();
    const statuses = await cluster.settled(60_000);
    t.equal(statuses.length, 5);
  });
}
