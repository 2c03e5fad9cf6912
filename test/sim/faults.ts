/**
 * The faults of a run: each strikes at a drawn moment and is taken back after a drawn while.
 *
 * Owns: which faults there are and what each does to nodes, disks and links. At most two disks of
 * five are lost for good, and a node whose disk is damaged must refuse to start. Never: judges what
 * clients saw. Used by: chaos.ts.
 */
import type { Stall } from './checkers/lease-bounds.js';
import type { StoredEnvironment } from './devices/media.js';
import type { LedgerEntry } from './ledger.js';
import type { Plan } from './plan.js';
import type { SimCluster, SimNode } from './sim-cluster.js';
import type { World } from './world.js';

/** Nodes that fail together: 2-2-1. */
const ZONES: readonly (readonly number[])[] = [[1, 2], [3, 4], [5]];
const RUINED_MAX = 2;
/** How often a step of a snapshot's job is struck in a seed that hunts for them. */
const SNAPSHOT_STRIKES: Readonly<Record<string, number>> = {
  compact: 0.02,
  folder: 0.15,
  drop: 0.1,
  fetch: 0.3,
  installed: 0.7,
};

/** Share of a snapshot's steps of which a sync fails, and of its syncs that may succeed before. */
const FAILED_SYNC_SHARE = 0.02;
const FILE_SYNCS_MAX = 6;
/** Share of starts that are killed before they are done, in a seed that hunts for snapshots. */
const KILLED_START_SHARE = 0.1;
const START_STEPS_MAX = 8;

type Undo = () => void;

interface Fault {
  readonly name: string;
  readonly weight: number;
  /** Strikes at `victim`. Returns what takes it back, null when it did not fit. */
  readonly strike: (faults: Faults, victim: SimNode) => Undo | null;
}

const FAULTS: readonly Fault[] = [
  { name: 'crash', weight: 14, strike: (faults, victim) => faults.crash([victim]) },
  { name: 'long outage', weight: 8, strike: (faults, victim) => faults.longOutage(victim) },
  { name: 'crash of several', weight: 8, strike: (faults) => faults.crash(faults.some(0.6)) },
  { name: 'pause', weight: 12, strike: (faults, victim) => faults.pause(victim) },
  { name: 'isolation', weight: 10, strike: (faults, victim) => faults.isolate([victim]) },
  { name: 'bridge', weight: 6, strike: (faults, victim) => faults.bridge(victim) },
  { name: 'one-way cuts', weight: 8, strike: (faults, victim) => faults.cutOneWay(victim) },
  {
    name: 'zone cut off',
    weight: 5,
    strike: (faults, victim) => faults.isolate(zoneOf(faults, victim)),
  },
  {
    name: 'zone lost',
    weight: 5,
    strike: (faults, victim) => faults.crash(zoneOf(faults, victim)),
  },
  { name: 'silent disk', weight: 8, strike: (faults, victim) => faults.hold(victim) },
  { name: 'slow disk', weight: 5, strike: (faults, victim) => faults.slow(victim) },
  {
    name: 'write rejected',
    weight: 6,
    strike: (faults, victim) => faults.reject(victim, 'rejects'),
  },
  {
    name: 'snapshot sync rejected',
    weight: 8,
    strike: (faults, victim) => faults.rejectFile(victim),
  },
  {
    name: 'write rejected, and there',
    weight: 6,
    strike: (faults, victim) => faults.reject(victim, 'rejects but stays'),
  },
  { name: 'damaged disk', weight: 4, strike: (faults, victim) => faults.damage(victim) },
  {
    name: 'damaged snapshot',
    weight: 4,
    strike: (faults, victim) => faults.damageSnapshot(victim),
  },
  { name: 'rotten snapshot lent', weight: 4, strike: (faults) => faults.rot() },
  { name: 'wiped disk', weight: 1, strike: (faults, victim) => faults.wipe(victim) },
  { name: 'hunt for leaders', weight: 9, strike: (faults) => faults.hunt() },
  { name: 'orderly stop', weight: 3, strike: (faults, victim) => faults.shutDown(victim) },
];

const WEIGHT = FAULTS.reduce((sum, { weight }) => sum + weight, 0);

function zoneOf({ cluster }: Faults, victim: SimNode): SimNode[] {
  const zone = ZONES.find((ids) => ids.includes(victim.nodeId)) ?? [victim.nodeId];
  return zone.map((nodeId) => cluster.node(nodeId));
}

export class Faults {
  count = 0;
  readonly counts = new Map<string, number>();
  readonly stalls: Stall[] = [];
  readonly problems: string[] = [];
  private isOn = false;
  private huntsOn = 0;

  constructor(
    readonly world: World,
    readonly cluster: SimCluster,
    private readonly plan: Plan,
  ) {}

  start(): void {
    this.isOn = true;
    const { network, nodes, ledger } = this.cluster;
    network.onVote = (nodeId) => this.onVote(nodeId);
    this.cluster.onSnapshotStep = (node, kind) => this.onSnapshotStep(node, kind);
    ledger.onFirst = (nodeId, entry) => this.onFirst(nodeId, entry);
    network.loss = this.plan.loss;
    network.duplication = this.plan.duplication;
    network.damage = this.plan.damage;
    network.delayUs = this.plan.delayUs;
    for (const { disk } of nodes) {
      disk.fsyncUs = this.plan.fsyncUs;
      disk.silenceUsMax = 1_500_000;
    }
    if (this.plan.huntsLeaders) this.hunt();
    this.next();
  }

  /** Takes everything back that can be: every node with a sound disk runs and hears all others. */
  stop(): void {
    this.isOn = false;
    const { network, nodes } = this.cluster;
    network.heal();
    network.delayUs = [50, 200];
    for (const node of nodes) {
      this.resume(node);
      node.disk.isHeld = false;
      node.isRotten = false;
      node.disk.fsyncUs = [100, 500];
      node.disk.media.clearFaults();
      this.restart(node);
    }
  }

  /** A node that one of the others says is up again, unless its disk is damaged. */
  restart(node: SimNode): void {
    if (node.isDamaged && node.replica === null) return;
    const { world, cluster } = this;
    const isKilled = this.isOn && this.plan.huntsSnapshots && world.chance(KILLED_START_SHARE);
    const { media } = node.disk;
    if (isKilled) media.stepsLeft = world.between(0, START_STEPS_MAX);
    cluster.start(node);
    media.stepsLeft = Number.POSITIVE_INFINITY;
    if (!isKilled || node.replica !== null) return;
    // In the middle of tidying up what the life before has left.
    if (world.chance(0.5)) media.losePower(world.prng);
    world.after(world.between(100, 30_000), () => {
      if (this.isOn) this.restart(node);
    });
  }

  crash(victims: readonly SimNode[]): Undo {
    for (const node of victims) this.cluster.crash(node);
    return () => {
      for (const node of victims) this.restart(node);
    };
  }

  /** So long that the log of the others has gone on without it: it needs a snapshot. */
  longOutage(victim: SimNode): Undo {
    const { world, cluster } = this;
    cluster.crash(victim);
    world.after(world.between(1_500_000, 3_000_000), () => {
      if (this.isOn) this.restart(victim);
    });
    return () => undefined;
  }

  some(share: number): SimNode[] {
    return this.cluster.nodes.filter(() => this.world.chance(share));
  }

  pause(victim: SimNode): Undo {
    const fromUs = this.world.nowUs;
    this.cluster.pause(victim);
    // Known from the start, so that a run that ends meanwhile knows it too.
    this.stalls.push({ nodeId: victim.nodeId, fromUs, untilUs: Number.POSITIVE_INFINITY });
    return () => this.resume(victim);
  }

  private resume(node: SimNode): void {
    this.cluster.resume(node);
    for (const stall of this.stalls) {
      const isOpen = stall.nodeId === node.nodeId && !Number.isFinite(stall.untilUs);
      if (isOpen) stall.untilUs = this.world.nowUs;
    }
  }

  isolate(victims: readonly SimNode[]): Undo {
    for (const inside of victims) {
      for (const outside of this.cluster.nodes) {
        if (!victims.includes(outside)) this.cutBoth(inside, outside);
      }
    }
    return () => this.healLinks();
  }

  /** Two halves that hear each other only through the victim. */
  bridge(victim: SimNode): Undo {
    const others = this.cluster.nodes.filter((node) => node !== victim);
    for (const a of others.slice(0, 2)) for (const b of others.slice(2)) this.cutBoth(a, b);
    return () => this.healLinks();
  }

  cutOneWay(victim: SimNode): Undo {
    const { network, nodes } = this.cluster;
    for (const { nodeId } of nodes) {
      if (this.world.chance(0.4)) network.cutLink(victim.nodeId, nodeId);
      if (this.world.chance(0.2)) network.cutLink(nodeId, victim.nodeId);
    }
    return () => this.healLinks();
  }

  hold(victim: SimNode): Undo {
    victim.disk.isHeld = true;
    return () => {
      victim.disk.isHeld = false;
      this.restart(victim); // if it ended meanwhile
    };
  }

  slow(victim: SimNode): Undo {
    victim.disk.fsyncUs = [5_000, 60_000];
    return () => {
      victim.disk.fsyncUs = this.plan.fsyncUs;
    };
  }

  reject(victim: SimNode, how: 'rejects' | 'rejects but stays'): Undo {
    victim.disk.media.nextFault = how;
    return () => {
      victim.disk.media.clearFaults();
      this.restart(victim);
    };
  }

  /** One of the next syncs of a snapshot's files and folders fails: whoever asked for it ends. */
  rejectFile(victim: SimNode): Undo {
    const { world } = this;
    const { media } = victim.disk;
    media.fileFault = world.chance(0.5) ? 'rejects' : 'rejects but stays';
    media.fileSyncsLeft = world.between(0, FILE_SYNCS_MAX);
    return () => {
      media.clearFaults();
      this.restart(victim);
    };
  }

  /** Damage on a disk is found at the start; the node stays out until its disk is as it was. */
  damage(victim: SimNode): Undo | null {
    const { cluster, world } = this;
    if (this.ruined >= RUINED_MAX || victim.isRuined) return null;
    cluster.crash(victim);
    const { disk } = victim;
    const backup = copyOf(disk.media.environments);
    const files = disk.media.files.backup();
    const what = world.chance(0.5) ? disk.flipBit(world) : disk.damage(world);
    if (what === '') return () => this.restart(victim);
    cluster.onNote(`node ${victim.nodeId}: ${what}`);
    victim.isDamaged = true;
    disk.media.clearFaults();
    cluster.start(victim);
    if (disk.isCovered && victim.replica !== null) {
      victim.isDamaged = false;
      return () => undefined;
    }
    if (victim.refusal === '') {
      this.problems.push(`storage: node ${victim.nodeId} started with ${what}`);
    }
    const isForGood = world.chance(0.3);
    return () => {
      if (isForGood) return;
      cluster.crash(victim);
      disk.media.environments.clear();
      for (const [place, stored] of backup) disk.media.environments.set(place, stored);
      disk.media.files.restore(files);
      victim.isDamaged = false;
      cluster.start(victim);
    };
  }

  /**
   * A bit of a snapshot is flipped while the node is down: it goes on from an older one or from its
   * log, or it refuses to start; then it stays out until its disk is as it was.
   */
  damageSnapshot(victim: SimNode): Undo | null {
    const { cluster, world } = this;
    if (this.ruined >= RUINED_MAX || victim.isRuined) return null;
    const { disk } = victim;
    cluster.crash(victim);
    const files = disk.media.files.backup();
    const environments = copyOf(disk.media.environments);
    const index = disk.flipSnapshotBit(world);
    if (index === 0) return () => this.restart(victim);
    cluster.onNote(`node ${victim.nodeId}: a bit of its snapshot ${index} is flipped`);
    disk.media.clearFaults();
    victim.isDamaged = true;
    cluster.start(victim);
    const hasStarted = victim.replica !== null;
    if (hasStarted) victim.isDamaged = false;
    if (hasStarted && victim.startedFrom === index) {
      this.problems.push(`storage: node ${victim.nodeId} took a damaged snapshot ${index}`);
    }
    return () => {
      if (hasStarted) return;
      disk.media.environments.clear();
      for (const [place, stored] of environments) disk.media.environments.set(place, stored);
      disk.media.files.restore(files);
      victim.isDamaged = false;
      cluster.start(victim);
    };
  }

  /** Whoever lends a snapshot lends a changed one: its digest is all that speaks against it. */
  rot(): Undo {
    const { nodes } = this.cluster;
    for (const node of nodes) node.isRotten = true;
    return () => {
      for (const node of nodes) node.isRotten = false;
    };
  }

  /** Whoever makes or fetches a snapshot is struck in the middle of it, and soon once more. */
  private onSnapshotStep(node: SimNode, kind: string): void {
    const { world, cluster } = this;
    if (!this.isOn || !this.plan.huntsSnapshots) return;
    if (kind !== 'installed' && world.chance(FAILED_SYNC_SHARE)) {
      const restart = this.rejectFile(node);
      world.after(world.between(20_000, 300_000), () => this.isOn && restart());
    }
    if (!world.chance(SNAPSHOT_STRIKES[kind] ?? 0)) return;
    const { life } = node;
    // A chunk that was fetched is on disk soon: whoever wants to strike before must be quick.
    world.after(world.between(0, kind === 'fetch' ? 100 : 3_000), () => {
      if (!this.isOn || node.life !== life || node.isRuined) return;
      cluster.onNote(`node ${node.nodeId} is struck while it handles a snapshot`);
      // What is needed from now on and was never synced goes with the power, and with it alone.
      if (kind === 'installed') cluster.crash(node, true);
      else cluster.crash(node);
      const restart = (): void => {
        if (this.isOn) this.restart(node);
      };
      world.after(world.between(100, 30_000), () => {
        restart();
        if (!this.isOn || !world.chance(0.5)) return;
        const again = node.life;
        world.after(world.between(0, 5_000), () => {
          if (!this.isOn || node.life !== again || node.isRuined) return;
          cluster.crash(node);
          world.after(world.between(100, 30_000), restart);
        });
      });
    });
  }

  /** The node comes back with an empty disk and its old id. */
  wipe(victim: SimNode): Undo | null {
    if (this.ruined >= RUINED_MAX || victim.isRuined) return null;
    this.cluster.crash(victim);
    victim.disk.media.wipe();
    victim.isWiped = true;
    return () => this.restart(victim);
  }

  /**
   * Whoever wins an election is struck soon after: its entries get as far as a few disks, and stay
   * there when another leads (Raft, figure 8).
   */
  hunt(): Undo {
    const { world, cluster } = this;
    let isOver = false;
    const struck = new Set<number>();
    const look = (): void => {
      if (isOver || !this.isOn) return;
      for (const node of cluster.nodes) {
        const term = node.ledTerm;
        if (term === 0 || struck.has(term)) continue;
        struck.add(term);
        world.after(world.between(0, world.chance(0.5) ? 3_000 : 30_000), () => {
          if (!isOver && this.isOn) this.strikeLeader(node, term);
        });
      }
      world.after(500, look);
    };
    look();
    this.huntsOn += 1;
    return () => {
      isOver = true;
      this.huntsOn -= 1;
      this.healLinks();
      for (const node of cluster.nodes) this.restart(node);
    };
  }

  /** While leaders are hunted: a voter restarts when its vote has left, and may be asked again. */
  private onVote(nodeId: number): void {
    const { world, cluster } = this;
    if (!this.isOn || this.huntsOn === 0 || !world.chance(0.2)) return;
    const voter = cluster.node(nodeId);
    const { life } = voter;
    world.after(world.between(100, 5_000), () => {
      if (!this.isOn || voter.life !== life || voter.isRuined) return;
      cluster.crash(voter);
      world.after(world.between(100, 2_000), () => this.isOn && this.restart(voter));
    });
  }

  /**
   * While leaders are hunted: the first commit of a leader that has entries of earlier terms is its
   * last act, and whoever else was out of the way comes back (Raft, figure 8 (d) and (e)).
   */
  private onFirst(nodeId: number, entry: LedgerEntry): void {
    const { world, cluster } = this;
    if (!this.isOn || this.huntsOn === 0) return;
    const leader = cluster.node(nodeId);
    if (leader.ledTerm <= entry.term || !world.chance(0.5)) return;
    // Not from within: the node is applying.
    world.after(world.between(0, 200), () => {
      if (!this.isOn) return;
      cluster.crash(leader);
      this.healLinks();
      for (const node of cluster.nodes) if (node !== leader) this.restart(node);
      world.after(world.between(600_000, 1_500_000), () => this.isOn && this.restart(leader));
    });
  }

  private strikeLeader(leader: SimNode, term: number): void {
    const { world, cluster } = this;
    if (leader.ledTerm !== term) return;
    const { network, nodes } = cluster;
    if (world.chance(0.5)) {
      cluster.crash(leader);
      world.after(world.between(20_000, 900_000), () => this.isOn && this.restart(leader));
      return;
    }
    const confidant = nodes[world.prng.below(nodes.length)] as SimNode;
    for (const node of nodes) {
      if (node !== confidant) network.cutLink(leader.nodeId, node.nodeId);
    }
    world.after(world.between(100_000, 900_000), () => {
      for (const node of nodes) network.healLink(leader.nodeId, node.nodeId);
    });
  }

  shutDown(victim: SimNode): Undo {
    this.cluster.whenAwake(victim, () => victim.replica?.beginShutdown());
    return () => {
      this.cluster.crash(victim);
      this.restart(victim);
    };
  }

  private get ruined(): number {
    return this.cluster.nodes.filter((node) => node.isRuined).length;
  }

  private next(): void {
    this.world.after(this.world.between(...this.plan.faultGapUs), () => {
      if (!this.isOn) return;
      this.strike();
      this.next();
    });
  }

  private strike(): void {
    const { world, cluster } = this;
    const { nodes } = cluster;
    const serving = cluster.serving();
    const victim =
      world.chance(0.5) && serving !== undefined
        ? serving
        : (nodes[world.prng.below(nodes.length)] as SimNode);
    const lastsUs = world.between(20_000, 1_800_000);
    const fault = this.draw();
    const undo = fault.strike(this, victim);
    if (undo === null) return;
    this.count += 1;
    this.counts.set(fault.name, (this.counts.get(fault.name) ?? 0) + 1);
    const whiles = `${Math.round(lastsUs / 1000)} ms`;
    cluster.onNote(`${fault.name} at node ${victim.nodeId} for ${whiles}`);
    world.after(lastsUs, () => {
      if (this.isOn) undo();
    });
  }

  private draw(): Fault {
    let roll = this.world.prng.below(WEIGHT);
    for (const fault of FAULTS) {
      roll -= fault.weight;
      if (roll < 0) return fault;
    }
    throw new Error('the weights do not add up');
  }

  private cutBoth(a: SimNode, b: SimNode): void {
    this.cluster.network.cutLink(a.nodeId, b.nodeId);
    this.cluster.network.cutLink(b.nodeId, a.nodeId);
  }

  private healLinks(): void {
    this.cluster.network.healLinks();
  }
}

function copyOf(stored: ReadonlyMap<string, StoredEnvironment>): Map<string, StoredEnvironment> {
  const copy = new Map<string, StoredEnvironment>();
  for (const [place, { values, missingBytes }] of stored) {
    copy.set(place, { values: new Map(values), missingBytes });
  }
  return copy;
}
