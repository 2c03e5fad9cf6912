/**
 * One run of the simulator: workers under a phase of faults, then a healed cluster that must serve.
 *
 * Owns: which faults happen when, drawn from the seed. Never: judges; checkers.ts does.
 * Used by: the gate's smoke part and long runs (npm run sim).
 */
import { checkRun } from './checkers.js';
import { History } from './history.js';
import { SimCluster, type SimNode } from './sim-cluster.js';
import { SimWorker } from './sim-worker.js';
import { World } from './world.js';

const US_PER_MS = 1_000;
const SECOND_US = 1_000_000;

/** Small bounds, so that limits and expiries are met in a short run. */
const SETTINGS = {
  leaseTtlMsLeast: 50,
  leaseTtlMsDefault: 500,
  idleLocksMax: 3,
  expiriesPerEntryMax: 3,
  endedLeasesMax: 64,
  implicitLapseMs: 3_000,
};

export interface ChaosResult {
  readonly seed: number;
  readonly problems: readonly string[];
  readonly operations: number;
  readonly answers: number;
  readonly entries: number;
  readonly faults: number;
  /** Digest of the state at the end: equal for two runs of one seed. */
  readonly digest: string;
}

/** Runs one seed. The same seed on the same code gives the same result. */
export function runChaos(seed: number, chaosMs = 8_000): ChaosResult {
  const world = new World(seed);
  const cluster = new SimCluster(world, { settings: SETTINGS });
  const history = new History();
  const workers: SimWorker[] = [];
  for (let id = 1; id <= 8; id += 1) {
    const ttlMs = world.between(60, 1_500);
    const worker = new SimWorker(cluster, history, id, { locks: 4, ttlMs, waitMsMax: 2_000 });
    worker.clockRate = 1 + (world.prng.nextDouble() - 0.5) * 0.02;
    workers.push(worker);
    worker.start();
  }
  for (const node of cluster.nodes) node.clockRate = 1 + (world.prng.nextDouble() - 0.5) * 0.02;
  const faults = new Faults(world, cluster);
  faults.start();
  world.run(chaosMs * US_PER_MS);
  faults.stop();
  const problems: string[] = [];
  const isServing = world.run(world.nowUs + 5 * SECOND_US, () => cluster.serving() !== undefined);
  if (!isServing) problems.push('liveness: a healed cluster has no leader after 5 s');
  for (const worker of workers) worker.stop();
  const isQuiet = world.run(world.nowUs + 30 * SECOND_US, () => workers.every((w) => w.isIdle));
  if (!isQuiet) problems.push('liveness: a request is not answered 30 s after healing');
  world.run(world.nowUs + 5 * SECOND_US);
  const checked = checkRun(cluster, history, SETTINGS);
  return {
    seed,
    problems: [...problems, ...checked.problems],
    operations: history.operations,
    answers: history.answers.length,
    entries: checked.entries,
    faults: faults.count,
    digest: String(cluster.node(1).replica?.status().digest),
  };
}

/** Draws a fault every now and then, and takes each back after a while. */
class Faults {
  count = 0;
  private isOn = false;

  constructor(
    private readonly world: World,
    private readonly cluster: SimCluster,
  ) {}

  start(): void {
    this.isOn = true;
    const { network } = this.cluster;
    network.loss = this.world.prng.nextDouble() * 0.05;
    network.duplication = this.world.prng.nextDouble() * 0.05;
    network.delayUs = [50, this.world.between(200, 5_000)];
    this.next();
  }

  stop(): void {
    this.isOn = false;
    this.cluster.network.heal();
    this.cluster.network.delayUs = [50, 200];
    for (const node of this.cluster.nodes) {
      node.isPaused = false;
      node.disk.isHeld = false;
      node.disk.fsyncUs = [100, 500];
      this.cluster.start(node);
    }
  }

  private next(): void {
    this.world.after(this.world.between(50_000, 800_000), () => {
      if (!this.isOn) return;
      this.count += 1;
      this.strike();
      this.next();
    });
  }

  private strike(): void {
    const { world, cluster } = this;
    const { nodes } = cluster;
    const victim =
      world.chance(0.5) && cluster.serving() !== undefined
        ? (cluster.serving() as SimNode)
        : (nodes[world.prng.below(nodes.length)] as SimNode);
    const lastsUs = world.between(50_000, 2_500_000);
    const later = (undo: () => void): void => world.after(lastsUs, () => this.isOn && undo());
    switch (world.prng.below(7)) {
      case 0:
        cluster.crash(victim);
        later(() => cluster.start(victim));
        return;
      case 1:
        victim.isPaused = true;
        later(() => {
          victim.isPaused = false;
        });
        return;
      case 2:
        for (const node of nodes) this.cutBoth(victim, node);
        later(() => cluster.network.heal());
        return;
      case 3:
        this.bridge(victim);
        later(() => cluster.network.heal());
        return;
      case 4:
        for (const node of nodes) {
          if (world.chance(0.5)) cluster.network.cutLink(victim.nodeId, node.nodeId);
        }
        later(() => cluster.network.heal());
        return;
      case 5:
        victim.disk.isHeld = true;
        later(() => {
          victim.disk.isHeld = false;
        });
        return;
      default:
        for (const node of nodes) {
          if (world.chance(0.6)) cluster.crash(node);
        }
        later(() => {
          for (const node of nodes) cluster.start(node);
        });
    }
  }

  private cutBoth(a: SimNode, b: SimNode): void {
    this.cluster.network.cutLink(a.nodeId, b.nodeId);
    this.cluster.network.cutLink(b.nodeId, a.nodeId);
  }

  /** Two halves that hear each other only through the victim. */
  private bridge(victim: SimNode): void {
    const others = this.cluster.nodes.filter((node) => node !== victim);
    for (const a of others.slice(0, 2)) for (const b of others.slice(2)) this.cutBoth(a, b);
  }
}
