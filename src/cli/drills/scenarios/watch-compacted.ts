/**
 * A watch comes back after the events that it missed are no longer kept.
 *
 * Owns: its steps. (1) A watcher follows some locks and goes away. (2) Locks change hands, nodes
 * make snapshots and are started again: their memory begins behind what the watcher saw. (3) It
 * comes back: it is told COMPACTED, takes a snapshot and the tail. What it believes then must be
 * what the cluster says. Used by: table.ts.
 */
import { attended } from '../../../client/attended.js';
import { connect, HoldfastError, type Lease } from '../../../client/index.js';
import type { Drill, Scenery, Stage } from '../drill.js';
import type { DrillCluster } from '../drill-cluster.js';
import { until } from '../until.js';
import { Onlooker } from './onlooker.js';

/** Nodes make a snapshot after so many entries, and keep so many before it. */
const SNAPSHOT_ENTRIES = 60;
const TAIL_ENTRIES = 0;
const TTL_MS = 60_000;

function build(): Scenery {
  const words = [
    '--snapshot-entries',
    String(SNAPSHOT_ENTRIES),
    '--log-tail-entries',
    String(TAIL_ENTRIES),
  ];
  return { cluster: { words: () => words }, disk: null };
}

class Hands {
  constructor(private readonly stage: Stage) {}

  async take(name: string, requestId?: string): Promise<Lease> {
    const { client, ledger } = this.stage;
    const named = requestId === undefined ? {} : { requestId };
    const lease = await client.acquire(name, { ttlMs: TTL_MS, session: null, ...named });
    ledger.granted(lease, requestId ?? null);
    return lease;
  }

  async give(lease: Lease): Promise<number> {
    const { revision } = await lease.release();
    this.stage.ledger.released(lease, revision);
    return revision;
  }
}

/** Everything that nodes remember for watches begins after `revision`. */
async function forget(stage: Stage, cluster: DrillCluster, revision: number): Promise<void> {
  const { story } = stage;
  const index = (await cluster.status(await cluster.leader())).appliedIndex;
  const has = async (name: string, least: number): Promise<boolean> => {
    const all = await Promise.all(cluster.nodeIds.map((nodeId) => cluster.status(nodeId)));
    return all.every(({ counters }) => (counters[name] ?? 0) >= least);
  };
  // A snapshot counts in memory before its name is on the disk. Once the log before it is dropped,
  // no start goes back any further.
  await until('a snapshot on every node', () => has('log_base_index', index));
  await cluster.kill(cluster.nodeIds);
  story.tell('every node has made a snapshot; all are killed (SIGKILL) and started again');
  await cluster.restart(cluster.nodeIds);
  await cluster.leader();
  await until('nodes without the old events', () => has('oldest_revision', revision + 1));
}

/** Without a wish to begin anew the watch must say that events are missing. */
async function demandCompacted(stage: Stage, onlooker: Onlooker): Promise<void> {
  const { story } = stage;
  const from = onlooker.revision + 1;
  try {
    await onlooker.follow({ fromRevision: from }, () => true);
    story.demand('a watch past its window is told COMPACTED', false, `it was told of ${from}`);
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error;
    const isRight = error.code === 'COMPACTED';
    story.demand('a watch past its window is told COMPACTED', isRight, error.code);
    story.tell(`the watch is back and asks for revision ${from}: ${error.code}`);
  }
}

async function play(stage: Stage, cluster: DrillCluster): Promise<void> {
  const { story, lock, prefix, operationId } = stage;
  const hands = new Hands(stage);
  const addresses = cluster.nodeIds.map((nodeId) => cluster.address(nodeId));
  await using client = await connect({ endpoints: addresses, clientName: 'drill-watch' });
  const onlooker = new Onlooker(client, prefix);
  const lease = await hands.take(lock, operationId);
  const knowsSecond = (): boolean => onlooker.knows(`${prefix}second`);
  const first = attended(onlooker.follow({ snapshot: true }, knowsSecond));
  await until('the watch to be open', () => onlooker.isOpen);
  const second = await hands.take(`${prefix}second`);
  await first;
  const { revision } = onlooker;
  story.tell('a watch has seen that two locks are held, and goes away', { revision });

  const ended = await hands.give(lease);
  story.tell('meanwhile the lock is given back', { revision: ended, token: lease.token });
  const third = await hands.take(`${prefix}third`);
  story.tell('another one is taken', { revision: third.revision, token: third.token });
  await forget(stage, cluster, third.revision);

  if (stage.isProtected) await demandCompacted(stage, onlooker);
  const options = stage.isProtected ? { fromRevision: revision + 1, recovers: true } : {};
  const knowsLast = (): boolean => onlooker.knows(`${prefix}last`);
  const followed = attended(onlooker.follow(options, knowsLast));
  await until('the watch to be open', () => onlooker.isOpen);
  const last = await hands.take(`${prefix}last`);
  await followed;
  story.tell('the watch has begun anew and follows again', { revision: last.revision });
  const begun = `${onlooker.snapshots} snapshots`;
  story.demand('it begins anew with a snapshot', onlooker.snapshots === 2, begun);
  const disorder = `${onlooker.faults} out of order`;
  story.demand('it is told no revision twice or late', onlooker.faults === 0, disorder);
  await onlooker.demandAgrees(stage);
  await hands.give(second);
  await hands.give(third);
  await hands.give(last);
}

export const watchCompacted: Drill = {
  name: 'watch-compacted',
  title: 'a watch misses the compaction window',
  protection: 'COMPACTED, then a snapshot and the tail',
  build,
  play,
};
