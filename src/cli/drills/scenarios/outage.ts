/**
 * What drills have in common in which nodes are lost and a majority is left.
 *
 * Owns: who leads before, the locks that are held over the loss, and the time in which the others
 * must serve. Never: loses a node. Used by: lost-zone.ts, full-disk.ts.
 */
import type { Lease } from '../../../client/index.js';
import { CliError } from '../../exit-codes.js';
import type { Stage } from '../drill.js';
import type { DrillCluster } from '../drill-cluster.js';
import { until } from '../until.js';

/** A majority serves again within 1.5 s on a machine of its own; a drill may run beside others. */
export const SERVICE_MS_MAX = 5_000;
const HELD = 5;

/** Makes a node lead, so that it is the leader that is lost. */
export async function bringToLead(
  { client, story }: Stage,
  cluster: DrillCluster,
  nodeId: number,
): Promise<void> {
  await until(`node ${nodeId} to lead`, async () => {
    const leader = await cluster.leader();
    if (leader === nodeId) return true;
    await client.transferLeadership(nodeId);
    return false;
  });
  story.tell(`node ${nodeId} leads`);
}

/** Takes some locks beside that of the drill. */
export async function takeLocks({ client, ledger, prefix, story }: Stage): Promise<Lease[]> {
  const leases: Lease[] = [];
  for (let number = 1; number <= HELD; number += 1) {
    const lease = await client.acquire(`${prefix}held/${number}`, { session: null });
    ledger.granted(lease);
    leases.push(lease);
  }
  const { revision = 0, token = 0 } = leases.at(-1) ?? {};
  story.tell(`${HELD} more locks are held, the newest with this token`, { revision, token });
  return leases;
}

/** Gives the locks back; a lease that was lost over the outage is a fault of its check. */
export async function releaseAll(
  { client, ledger, story }: Stage,
  leases: readonly Lease[],
): Promise<void> {
  const missing: string[] = [];
  for (const lease of leases) {
    const { holder } = await client.get(lease.name);
    if (holder?.token !== lease.token) missing.push(lease.name);
    else ledger.released(lease, (await lease.release()).revision);
  }
  const found = missing.length === 0 ? `all ${leases.length}` : `not ${missing.join(', ')}`;
  story.demand('the other locks are held by their tokens', missing.length === 0, found);
}

/** The load must be served again in time; how long it was not is told. */
export async function demandService(
  { load, story }: Stage,
  sinceMs: number,
  who: string,
): Promise<void> {
  try {
    await load.servedAfter(performance.now(), SERVICE_MS_MAX);
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
  }
  const gapMs = Math.round(load.longestGap(sinceMs));
  const what = `${who} within ${SERVICE_MS_MAX} ms`;
  const isServed = gapMs <= SERVICE_MS_MAX;
  story.demand(what, isServed, `without service for ${gapMs} ms`);
  story.tell(isServed ? `without service for ${gapMs} ms` : `no service after ${gapMs} ms`);
  // What follows needs service: without it there is nothing more to see.
  if (!isServed) throw new CliError('DRILL_FAILED', `no service for ${gapMs} ms`);
}
