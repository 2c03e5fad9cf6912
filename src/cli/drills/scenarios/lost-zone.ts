/**
 * A whole zone is lost, with the leader in it; the nodes stand 2-2-1.
 *
 * Owns: its steps. (1) A program holds a lock, other locks are taken. (2) The zone of the leader is
 * killed at once. (3) The other zones are a majority: they elect and go on, and every lease is as
 * it was. (4) The zone comes back. Under test one zone has three nodes. Used by: table.ts.
 */
import type { Drill, Scenery, Stage } from '../drill.js';
import type { DrillCluster } from '../drill-cluster.js';
import { bringToLead, demandService, releaseAll, takeLocks } from './outage.js';

/** Zone of nodes 1 to 5: no zone has a majority, and so it should be. */
const ZONES = ['a', 'a', 'b', 'b', 'c'];
/** A zone with a majority: its loss is the loss of the cluster. */
const BAD_ZONES = ['a', 'a', 'a', 'b', 'c'];
const TTL_MS = 30_000;

const zonesOf = (isProtected: boolean): readonly string[] => (isProtected ? ZONES : BAD_ZONES);

function build(_folder: string, isProtected: boolean): Scenery {
  const zones = zonesOf(isProtected);
  return { cluster: { words: (nodeId) => ['--zone', zones[nodeId - 1] ?? ''] }, disk: null };
}

async function play(stage: Stage, cluster: DrillCluster): Promise<void> {
  const { story, client, lock, ledger } = stage;
  const zones = zonesOf(stage.isProtected);
  const lost = cluster.nodeIds.filter((nodeId) => zones[nodeId - 1] === 'a');
  await bringToLead(stage, cluster, 1);
  const a = await stage.startActor({ ttlMs: TTL_MS });
  story.tell('A holds the lock', { revision: a.revision, token: a.token });
  const leases = await takeLocks(stage);
  const killedMs = performance.now();
  await cluster.kill(lost);
  story.tell(`zone a is lost (SIGKILL): nodes ${lost.join(', ')}, the leader among them`);
  await demandService(stage, killedMs, 'the other zones serve');
  story.tell(`node ${await cluster.leader()} leads`);
  const { holder } = await client.get(lock);
  const found = `token ${holder?.token ?? 'none'}`;
  story.demand('A holds with the same token', holder?.token === a.token, found);
  await releaseAll(stage, leases);
  a.order({ type: 'release' });
  const released = await a.next();
  story.demand('A gives the lock back', released.type === 'released', JSON.stringify(released));
  if (released.type === 'released') {
    ledger.released({ name: lock, token: a.token }, released.revision);
    story.tell('A gives the lock back', { revision: released.revision, token: a.token });
  }
  await cluster.restart(lost);
  story.tell(`zone a is back: nodes ${lost.join(', ')}`);
}

export const lostZone: Drill = {
  name: 'lost-zone',
  title: 'a whole zone is lost, the leader in it (2-2-1)',
  protection: 'the placement: no zone has a majority',
  build,
  play,
};
