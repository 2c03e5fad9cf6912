/**
 * A disk is full: that of the leader.
 *
 * Owns: its steps. (1) The leader has a small disk of its own, which is filled up. (2) It ends by
 * itself, with a line that says why, before it could write half a record. (3) The others go on, and
 * every lease is as it was. (4) There is room again, the node is started, and catches up. Under
 * test three nodes share that disk. Wants root, for the mount. Used by: table.ts.
 */
import { mkdirSync } from 'node:fs';
import path from 'node:path';
import type { Drill, Scenery, Stage } from '../drill.js';
import type { DrillCluster } from '../drill-cluster.js';
import { SmallDisk } from '../small-disk.js';
import { bringToLead, demandService, releaseAll, takeLocks } from './outage.js';

const DISK_MIB = 400;
/** The leader, whose disk it is. */
const OWNER = 1;
const TTL_MS = 30_000;

/** Nodes whose data is on the small disk. */
const sharers = (isProtected: boolean): readonly number[] => (isProtected ? [OWNER] : [1, 2, 3]);

function build(folder: string, isProtected: boolean): Scenery {
  const place = path.join(folder, 'small-disk');
  mkdirSync(place, { recursive: true });
  const disk = SmallDisk.mount(place, DISK_MIB);
  const dataFolder = (nodeId: number): string | null =>
    sharers(isProtected).includes(nodeId) ? path.join(place, `node-${nodeId}`) : null;
  return { cluster: { dataFolder }, disk };
}

/** Why a node says that it ends, '' when it does not say. */
function reasonIn(log: string): string {
  const line = log.split('\n').findLast((each) => each.includes('"level":"fatal"'));
  if (line === undefined) return '';
  const { reason, message } = JSON.parse(line) as { reason?: string; message: string };
  return reason ?? message;
}

async function play(stage: Stage, cluster: DrillCluster, disk: SmallDisk | null): Promise<void> {
  const { story, client, lock } = stage;
  if (disk === null) throw new Error('this drill has a disk');
  await bringToLead(stage, cluster, OWNER);
  const lease = await client.acquire(lock, {
    ttlMs: TTL_MS,
    session: null,
    requestId: stage.operationId,
  });
  stage.ledger.granted(lease, stage.operationId);
  const { revision, token } = lease;
  story.tell('the lock is held', { revision, token });
  const leases = await takeLocks(stage);
  const filledMs = performance.now();
  disk.fill();
  story.tell(`the disk of node ${OWNER}, which leads, is filled up`);
  await cluster.ended(OWNER);
  const words = reasonIn(cluster.log(OWNER));
  story.tell(`node ${OWNER} has ended: ${words}`);
  story.demand('the node says that its disk is full', /free space/.test(words), words);
  await demandService(stage, filledMs, 'the other nodes serve');
  story.tell(`node ${await cluster.leader()} leads`);
  await releaseAll(stage, [lease, ...leases]);
  story.tell('all locks are given back');
  disk.empty();
  await cluster.restart(sharers(stage.isProtected));
  story.tell(`there is room again; node ${OWNER} is started and catches up`);
}

export const fullDisk: Drill = {
  name: 'full-disk',
  title: 'the disk of the leader is full',
  protection: 'a disk for each node',
  build,
  play,
};
