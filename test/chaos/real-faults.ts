/**
 * What is done to real nodes: kill -9, SIGSTOP, cut links, held and failing disks, a full disk.
 *
 * Owns: the draw, the counts, and taking everything back. A fault that the machine does not permit
 * is left out, and the report says so. Never: judges. Used by: chaos-run.ts.
 */
import { Prng } from '../../src/collections/prng.js';
import type { Cluster } from '../cluster/harness.js';
import type { Shim } from '../shim/fsync-shim.js';
import { type ChaosClient, cutMidFrame } from './chaos-client.js';
import type { Namespaces } from './namespaces.js';
import type { SmallDisk } from './small-disk.js';

export interface RealDevices {
  readonly cluster: Cluster;
  readonly clients: readonly ChaosClient[];
  readonly namespaces: Namespaces | null;
  readonly shims: ReadonlyMap<number, Shim>;
  /** The node that has the small disk, and the disk; null where mounts are not permitted. */
  readonly smallDisk: { readonly nodeId: number; readonly disk: SmallDisk } | null;
}

type Undo = () => Promise<void>;

const nothing = (): Promise<void> => Promise.resolve();

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

export class RealFaults {
  readonly counts = new Map<string, number>();
  private readonly prng: Prng;
  private isOver = false;
  private loop: Promise<void> | null = null;

  constructor(
    private readonly devices: RealDevices,
    seed: number,
    private readonly say: (line: string) => void,
  ) {
    this.prng = new Prng(seed);
  }

  start(): void {
    this.loop = this.run();
  }

  /** Takes everything back; resolves when every node runs. */
  async stop(): Promise<void> {
    this.isOver = true;
    await this.loop;
    await this.repair();
  }

  private async run(): Promise<void> {
    const strikes = this.strikes();
    while (!this.isOver) {
      await pause(200 + this.prng.below(2_500));
      if (this.isOver) return;
      const [name, strike] = strikes[this.prng.below(strikes.length)] as (typeof strikes)[number];
      const victim = await this.victim();
      this.say(name === 'full disk' ? name : `${name}, node ${victim}`);
      this.counts.set(name, (this.counts.get(name) ?? 0) + 1);
      const undo = await strike(victim);
      await pause(100 + this.prng.below(3_000));
      await undo();
      await this.revive();
    }
  }

  /** Every other time the leader, if there is one. */
  private async victim(): Promise<number> {
    const { cluster } = this.devices;
    const { nodeIds } = cluster;
    const anybody = nodeIds[this.prng.below(nodeIds.length)] as number;
    if (this.prng.below(2) === 0) return anybody;
    return cluster.leader(500).catch(() => anybody);
  }

  private strikes(): [string, (victim: number) => Promise<Undo>][] {
    const { cluster, namespaces, shims, smallDisk } = this.devices;
    const strikes: [string, (victim: number) => Promise<Undo>][] = [
      ['kill -9', (victim) => this.kill([victim])],
      ['kill -9 of two', (victim) => this.kill([victim, 1 + (victim % 5)])],
      ['kill -9 of all', () => this.kill(cluster.nodeIds)],
      ['SIGSTOP', (victim) => this.suspend(victim)],
      ['frames cut in the middle', (victim) => this.cutFrames(victim)],
    ];
    if (namespaces !== null) {
      strikes.push(['isolation', (victim) => this.isolate(namespaces, victim)]);
      strikes.push(['one-way cut', (victim) => this.cutOneWay(namespaces, victim)]);
      strikes.push(['bridge', (victim) => this.bridge(namespaces, victim)]);
    }
    if (shims.size > 0) {
      strikes.push(['fsync delayed', (victim) => this.slow(victim)]);
      strikes.push(['fsync held', (victim) => this.hold(victim)]);
      strikes.push(['EIO', (victim) => this.fail(victim)]);
    }
    if (smallDisk !== null) strikes.push(['full disk', () => this.fillDisk(smallDisk)]);
    return strikes;
  }

  private async kill(victims: readonly number[]): Promise<Undo> {
    const running = this.devices.cluster.runningIds;
    const both = victims.filter((nodeId) => running.includes(nodeId));
    await Promise.all(both.map((nodeId) => this.devices.cluster.kill(nodeId)));
    return nothing; // revive() starts them
  }

  private async suspend(victim: number): Promise<Undo> {
    const { cluster } = this.devices;
    if (!cluster.runningIds.includes(victim)) return nothing;
    await cluster.stop(victim);
    return async () => {
      if (cluster.runningIds.includes(victim)) await cluster.cont(victim);
    };
  }

  private cutFrames(victim: number): Promise<Undo> {
    const { cluster, clients } = this.devices;
    for (const client of clients) client.breakConnection();
    for (let i = 0; i < 20; i += 1) cutMidFrame(cluster.endpoint(victim));
    return Promise.resolve(nothing);
  }

  private isolate(namespaces: Namespaces, victim: number): Promise<Undo> {
    for (const other of this.others(victim)) {
      namespaces.cut(victim, other);
      namespaces.cut(other, victim);
    }
    return this.healLater(namespaces);
  }

  private cutOneWay(namespaces: Namespaces, victim: number): Promise<Undo> {
    const isOutward = this.prng.below(2) === 0;
    for (const other of this.others(victim)) {
      if (this.prng.below(3) === 0) continue;
      if (isOutward) namespaces.cut(victim, other);
      else namespaces.cut(other, victim);
    }
    return this.healLater(namespaces);
  }

  /** Two halves that hear each other only through the victim. */
  private bridge(namespaces: Namespaces, victim: number): Promise<Undo> {
    const others = this.others(victim);
    for (const a of others.slice(0, 2)) {
      for (const b of others.slice(2)) {
        namespaces.cut(a, b);
        namespaces.cut(b, a);
      }
    }
    return this.healLater(namespaces);
  }

  private healLater(namespaces: Namespaces): Promise<Undo> {
    return Promise.resolve(() => {
      namespaces.heal();
      return Promise.resolve();
    });
  }

  private slow(victim: number): Promise<Undo> {
    this.devices.shims.get(victim)?.delay(5 + this.prng.below(150));
    return this.passLater(victim);
  }

  private hold(victim: number): Promise<Undo> {
    this.devices.shims.get(victim)?.hold();
    return this.passLater(victim);
  }

  private fail(victim: number): Promise<Undo> {
    this.devices.shims.get(victim)?.fail('EIO');
    return this.passLater(victim);
  }

  private passLater(victim: number): Promise<Undo> {
    return Promise.resolve(() => {
      this.devices.shims.get(victim)?.pass();
      return Promise.resolve();
    });
  }

  private fillDisk({ disk }: NonNullable<RealDevices['smallDisk']>): Promise<Undo> {
    disk.fill();
    return Promise.resolve(() => {
      disk.empty();
      return Promise.resolve();
    });
  }

  private others(victim: number): number[] {
    return this.devices.cluster.nodeIds.filter((nodeId) => nodeId !== victim);
  }

  /** Starts every node that does not run: killed, or ended by its disk. */
  private async revive(): Promise<void> {
    const { cluster } = this.devices;
    const down = cluster.nodeIds.filter((nodeId) => !cluster.runningIds.includes(nodeId));
    await Promise.all(down.map((nodeId) => cluster.restart(nodeId)));
  }

  private async repair(): Promise<void> {
    const { namespaces, shims, smallDisk } = this.devices;
    namespaces?.heal();
    for (const shim of shims.values()) shim.pass();
    smallDisk?.disk.empty();
    await this.revive();
  }
}
