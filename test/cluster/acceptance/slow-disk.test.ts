import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import t, { type Test } from 'tap';
import { connect } from '../../../src/client/index.js';
import { ErrorCode } from '../../../src/wire/errors.js';
import { hasShim, Shim } from '../../shim/fsync-shim.js';
import { Cluster } from '../harness.js';
import { waitFor } from '../wait-for.js';
import { figure } from './figures.js';
import { HeldLocks } from './held-locks.js';
import { acquireOperation, grantIn } from './operations.js';
import { Probe } from './probe.js';
import { RawConnection } from './raw-connection.js';
import { pass, sized } from './size.js';

if (!hasShim()) {
  t.test('slow disks', { skip: 'needs a C compiler to build what holds a disk' }, () => undefined);
  t.end();
  process.exit(0);
}

const TTL_MS = 3_600_000;
const HOLD_MS = 2_000;
const ASKED = sized(20, 200);

const folder = mkdtempSync(path.join(tmpdir(), 'holdfast-disks-'));
const shims = new Map<number, Shim>();
for (let nodeId = 1; nodeId <= 5; nodeId += 1) {
  const own = path.join(folder, String(nodeId));
  mkdirSync(own);
  shims.set(nodeId, new Shim(own));
}
const cluster = await Cluster.start({
  test: t,
  nodeEnvironment: (nodeId) => shim(nodeId).environment,
});
t.teardown(() => rmSync(folder, { recursive: true, force: true }));
const client = await connect({ endpoints: cluster.endpoints, deadlineMs: 60_000 });
t.teardown(() => client.close());

function shim(nodeId: number): Shim {
  return shims.get(nodeId) as Shim;
}

/** Three nodes, with the leader or without it. */
async function threeNodes(withLeader: boolean): Promise<number[]> {
  const leader = await cluster.leader(60_000);
  const followers = cluster.nodeIds.filter((nodeId) => nodeId !== leader);
  return withLeader ? [leader, ...followers.slice(0, 2)] : followers.slice(0, 3);
}

async function connectionTo(t: Test, nodeId: number): Promise<RawConnection> {
  const connection = await RawConnection.open(cluster.endpoint(nodeId));
  t.teardown(() => connection.close());
  return connection;
}

for (const withLeader of [true, false]) {
  const who = withLeader ? 'leader among them' : 'leader not among them';
  t.test(`fsync held on three of five, ${who}: nothing is acknowledged meanwhile`, async (t) => {
    await cluster.settled(60_000);
    const slow = await threeNodes(withLeader);
    const connection = await connectionTo(t, await cluster.leader(60_000));
    const [before] = await cluster.settled(60_000);
    for (const nodeId of slow) shim(nodeId).hold();
    // Whatever was on its way to a disk when the hold began is over when this is.
    const revision = before?.revision ?? -1;
    const answered: number[] = [];
    const requests = Array.from({ length: ASKED }, (_, at) => {
      const name = `disk/${who}/${at}`;
      const request = connection.request(acquireOperation(name, name, TTL_MS), 60_000);
      request.final.then(
        (reply) => answered.push(reply.code),
        () => undefined,
      );
      return request;
    });
    await pass(HOLD_MS);
    const granted = answered.filter((code) => code === ErrorCode.Ok);
    t.strictSame(granted, [], `none of ${ASKED} acquires was granted within 2 s`);
    const during = await Promise.all(cluster.nodeIds.map((nodeId) => cluster.status(nodeId)));
    for (const status of during) t.equal(status.revision, revision, 'no node applied anything');

    for (const nodeId of slow) shim(nodeId).pass();
    const replies = await Promise.all(requests.map(({ final }) => final));
    const codes = new Set(replies.map(({ code }) => code));
    figure(t, `answers after the hold, ${who}`, [...codes].join(', '));
    const held = new HeldLocks();
    replies.forEach((reply, at) => {
      if (reply.code === ErrorCode.Ok) held.note(`disk/${who}/${at}`, grantIn(reply));
    });
    t.strictSame(await held.missing(client), [], `${held.count} grants afterwards are there`);
    const lease = await client.acquire(`disk/${who}/after`);
    t.ok(lease.token > revision, 'service goes on');
    await lease.release();
    t.equal(new Set((await cluster.settled(60_000)).map(({ digest }) => digest)).size, 1);
  });
}

for (const isLeader of [false, true]) {
  const who = isLeader ? 'the leader' : 'a follower';
  t.test(`EIO from the disk of ${who} ends that node, and the others go on`, async (t) => {
    const leader = await cluster.leader(60_000);
    const follower = cluster.nodeIds.find((nodeId) => nodeId !== leader) ?? 0;
    const victim = isLeader ? leader : follower;
    const held = new HeldLocks();
    const connection = await connectionTo(t, leader);
    await held.acquire(connection, `eio/${who}`, ASKED, TTL_MS);
    const probe = await Probe.start(cluster.endpoints);
    t.teardown(() => probe.stop());
    const failedAt = performance.now();
    shim(victim).fail('EIO');
    const end = await cluster.ended(victim);
    t.not(end, 'status 0', `node ${victim} ended: ${end}`);
    await probe.serviceSince(performance.now(), 10);
    const gap = Math.round(probe.longestGap(failedAt, performance.now()));
    figure(t, `longest time without service, EIO at ${who}`, `${gap} ms`);
    t.match(cluster.output(victim), /EIO|Input\/output error/, 'it says why');
    t.strictSame(await held.missing(client), [], 'nothing acknowledged is lost');

    shim(victim).pass();
    await cluster.restart(victim);
    await probe.stop();
    const statuses = await waitFor('the node to catch up', () => cluster.settled(60_000));
    t.equal(statuses.length, 5, 'with a sound disk it comes back');
  });
}
