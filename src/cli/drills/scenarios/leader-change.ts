/**
 * The leader changes while a lease is being renewed: the lease survives, with its token.
 *
 * Owns: its steps. (1) The leader is stopped, and A renews: the request lies in its socket. (2) The
 * leader is killed. (3) Another one is elected; A's client asks it again, and the renewal is done.
 * (4) Leadership is handed over once more, in order. Used by: table.ts.
 */
import type { Actor } from '../actor.js';
import type { Drill, Stage } from '../drill.js';
import type { DrillCluster } from '../drill-cluster.js';

const TTL_MS = 5_000;
const RENEWAL_MS_MAX = 10_000;

async function demandHeld(stage: Stage, a: Actor, when: string): Promise<void> {
  const { story, client, lock } = stage;
  const { holder } = await client.get(lock);
  const found = holder === null ? 'nobody holds it' : `token ${holder.token}`;
  story.demand(`A holds with the same token ${when}`, holder?.token === a.token, found);
}

/** The leader dies with a renewal of A unanswered. */
async function killDuringRenewal(stage: Stage, cluster: DrillCluster, a: Actor): Promise<void> {
  const { story, load } = stage;
  const leader = await cluster.leader();
  await cluster.suspend(leader);
  a.order({ type: 'renew', deadlineMs: RENEWAL_MS_MAX });
  story.tell(`node ${leader}, which leads, stands still; A sends a renewal`, { token: a.token });
  // The request has left A's process by the time that node is gone: its end is told over TCP.
  await new Promise((resolve) => setTimeout(resolve, 100));
  await cluster.kill([leader]);
  const killedMs = performance.now();
  story.tell(`node ${leader} is killed (SIGKILL), the renewal unanswered`);
  const told = await a.next();
  const isRenewed = told.type === 'renewed' && told.token === a.token;
  story.demand('the renewal is done by the next leader', isRenewed, JSON.stringify(told));
  const next = await cluster.leader();
  story.tell(`A was told by node ${next}, which leads now: ${told.type}`, { token: a.token });
  await load.servedAfter(performance.now(), RENEWAL_MS_MAX);
  story.tell(`without service for ${Math.round(load.longestGap(killedMs))} ms`);
  await cluster.restart([leader]);
  story.tell(`node ${leader} is back`);
}

async function play(stage: Stage, cluster: DrillCluster): Promise<void> {
  const { story, ledger, client, lock } = stage;
  const first = await cluster.leader();
  const onlyNode = stage.isProtected ? null : cluster.address(first);
  const a = await stage.startActor({ ttlMs: TTL_MS, onlyNode });
  story.tell(`A holds the lock, TTL ${TTL_MS} ms`, { revision: a.revision, token: a.token });
  await killDuringRenewal(stage, cluster, a);
  await demandHeld(stage, a, 'after the election');
  const [before, target = 1] = [await cluster.leader(), cluster.nodeIds.find((id) => id !== first)];
  const heir = before === target ? first : target;
  await client.transferLeadership(heir);
  story.tell(`leadership is handed over from node ${before} to node ${heir}`);
  a.order({ type: 'renew', deadlineMs: RENEWAL_MS_MAX });
  const told = await a.next();
  story.demand('a renewal is done after the hand-over', told.type === 'renewed', told.type);
  await demandHeld(stage, a, 'after the hand-over');
  const lost = a.loss === null ? 'never' : a.loss.code;
  story.demand('the client of A never says lost', a.loss === null, lost);
  a.order({ type: 'release' });
  const released = await a.next();
  story.demand('A gives the lock back', released.type === 'released', JSON.stringify(released));
  if (released.type !== 'released') return;
  ledger.released({ name: lock, token: a.token }, released.revision);
  story.tell('A gives the lock back', { revision: released.revision, token: a.token });
}

export const leaderChange: Drill = {
  name: 'leader-change',
  title: 'the leader changes during a renewal',
  protection: 'the client that finds the next leader and asks it again',
  play,
};
