/**
 * The majority is lost: three of five nodes are killed, the leader among them.
 *
 * Owns: its steps. (1) Locks are taken. (2) Three nodes are killed. (3) For a while everything is
 * asked of the two that are left: nothing may be granted or renewed, and no revision may come to
 * be. (4) The three come back: what was acknowledged is there, and tokens go on rising. Under test
 * the disks forget: all are set back to what they were before step 1. Used by: table.ts.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { connect, HoldfastError, type Lease } from '../../../client/index.js';
import type { Drill, Stage } from '../drill.js';
import type { DrillCluster } from '../drill-cluster.js';
import { until } from '../until.js';

/** Locks that are held over the loss. */
const HELD = 20;
const TTL_MS = 60_000;
/** How long nothing may happen. */
const OUTAGE_MS = 2_000;
/** Each request of the outage is given up by its client after this. */
const ATTEMPT_MS = 500;

async function takeSome({ client, ledger, lock, prefix, operationId }: Stage): Promise<Lease[]> {
  const leases: Lease[] = [];
  for (let number = 1; number <= HELD; number += 1) {
    const name = number === 1 ? lock : `${prefix}held/${number}`;
    const requestId = number === 1 ? operationId : `${operationId}/${number}`;
    const lease = await client.acquire(name, { ttlMs: TTL_MS, session: null, requestId });
    ledger.granted(lease, requestId);
    leases.push(lease);
  }
  return leases;
}

/** Asks for locks and renewals while there is no majority. Gives the codes of the answers. */
async function askMinority(
  stage: Stage,
  addresses: readonly string[],
  held: Lease,
): Promise<string[]> {
  const { ledger, prefix, operationId, story } = stage;
  const codes: string[] = [];
  // Nodes that answer are enough to be connected; none of them leads.
  await using client = await connect({ endpoints: addresses, needs: 'node' });
  const untilMs = performance.now() + OUTAGE_MS;
  for (let number = 1; performance.now() < untilMs; number += 1) {
    const requestId = `${operationId}/outage/${number}`;
    const options = { ttlMs: TTL_MS, session: null, requestId, deadlineMs: ATTEMPT_MS, waitMs: 0 };
    const attempts = [
      client.acquire(`${prefix}outage/${number}`, options).then(() => 'GRANTED'),
      held.renew({ deadlineMs: ATTEMPT_MS }).then(() => 'RENEWED'),
    ];
    const [asked, renewed] = await Promise.allSettled(attempts);
    for (const answer of [asked, renewed]) {
      if (answer?.status === 'fulfilled') codes.push(answer.value);
      else if (answer?.reason instanceof HoldfastError) codes.push(answer.reason.code);
      else throw answer?.reason;
    }
    if (asked?.status !== 'rejected') continue;
    const { code, outcome } = asked.reason as HoldfastError;
    if (outcome === 'none') ledger.unborn.push({ requestId, code });
  }
  const view = await client.get(stage.lock, { stale: true, deadlineMs: ATTEMPT_MS });
  story.tell(`a stale read goes on: token ${view.holder?.token ?? 'none'}, ${view.ageMs} ms old`);
  return codes;
}

function tally(codes: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const code of codes) counts.set(code, (counts.get(code) ?? 0) + 1);
  return [...counts].map(([code, count]) => `${count} ${code}`).join(', ');
}

async function revisionsOf(cluster: DrillCluster, nodeIds: readonly number[]): Promise<number[]> {
  const all = await Promise.all(nodeIds.map((nodeId) => cluster.status(nodeId)));
  return all.map((status) => status.revision);
}

async function loseMajority(stage: Stage, cluster: DrillCluster, held: Lease): Promise<number[]> {
  const { story } = stage;
  const leader = await cluster.leader();
  const others = cluster.nodeIds.filter((nodeId) => nodeId !== leader);
  const killed = [leader, ...others.slice(0, 2)];
  const left = others.slice(2);
  await cluster.kill(killed);
  story.tell(`nodes ${killed.join(', ')} are killed (SIGKILL); node ${leader} led`);
  await delay(ATTEMPT_MS); // what the leader had told them to apply, they apply
  const before = await revisionsOf(cluster, left);
  const addresses = left.map((nodeId) => cluster.address(nodeId));
  const codes = await askMinority(stage, addresses, held);
  const after = await revisionsOf(cluster, left);
  story.tell(`answers of nodes ${left.join(', ')}: ${tally(codes)}`, { revision: after[0] ?? 0 });
  const wrong = codes.filter((code) => code === 'GRANTED' || code === 'RENEWED');
  const what = 'without a majority nothing is granted or renewed';
  story.demand(what, codes.length > 0 && wrong.length === 0, tally(codes));
  const isStill = JSON.stringify(after) === JSON.stringify(before);
  const moved = `revisions ${before.join(', ')}, then ${after.join(', ')}`;
  story.demand('without a majority no revision comes to be', isStill, moved);
  return killed;
}

async function play(stage: Stage, cluster: DrillCluster): Promise<void> {
  const { story, client, ledger, prefix } = stage;
  if (!stage.isProtected) await cluster.keepDisks();
  const leases = await takeSome(stage);
  const [held] = leases;
  const newest = leases.at(-1);
  if (held === undefined || newest === undefined) throw new Error('no lock was taken');
  const { revision, token } = newest;
  story.tell(`${HELD} locks are held, the newest with this token`, { revision, token });
  const killed = await loseMajority(stage, cluster, held);

  if (stage.isProtected) await cluster.restart(killed);
  else await cluster.setDisksBack();
  const leader = await cluster.leader();
  story.tell(`all nodes run again, node ${leader} leads`);
  const fresh = await until('a lock to be granted', () => client.acquire(`${prefix}fresh`));
  ledger.granted(fresh);
  const facts = { revision: fresh.revision, token: fresh.token };
  story.tell('a lock is granted again', facts);
  story.demand('tokens go on rising', fresh.token > token, `${fresh.token} after ${token}`);
  const missing: string[] = [];
  for (const lease of leases) {
    const { holder } = await client.get(lease.name);
    if (holder?.token !== lease.token) missing.push(`${lease.name} ${holder?.token ?? 'free'}`);
  }
  const found = missing.length === 0 ? `all ${HELD}` : missing.slice(0, 3).join(', ');
  story.demand('every lock is held by its token again', missing.length === 0, found);
  for (const lease of [...leases, fresh]) {
    ledger.released(lease, (await lease.release()).revision);
  }
  story.tell('all locks are given back');
}

export const lostMajority: Drill = {
  name: 'lost-majority',
  title: 'the majority is lost',
  protection: 'the disks of a majority, which keep what was acknowledged',
  play,
};
