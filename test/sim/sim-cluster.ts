/**
 * The production replica, once for each node, over simulated devices.
 *
 * Owns: nodes that can crash, restart, pause. Never: rules of the product; this is wiring.
 * Used by: the scenarios of the simulator and its tests.
 */
import { defaultSettings, type Settings } from '../../src/core/locks/settings.js';
import type { Message } from '../../src/core/raft/message.js';
import { TICK_MS } from '../../src/limits.js';
import { Replica } from '../../src/replica/replica.js';
import { SimDisk, SimLog } from './sim-disk.js';
import { SimNetwork } from './sim-network.js';
import type { World } from './world.js';

const US_PER_MS = 1_000;
const TURN_COST_US = 5;

/** One node: a disk that stays, and a replica that lives until it crashes. */
export class SimNode {
  readonly disk = new SimDisk();
  replica: Replica | null = null;
  log: SimLog | null = null;
  /** Rises with each start: what was asked by an earlier life is not done. */
  life = 0;
  isPaused = false;
  /** Rate of this node's clock: 1 is true time. */
  clockRate = 1;

  constructor(readonly nodeId: number) {}
}

export interface SimClusterOptions {
  readonly nodes?: number;
  readonly settings?: Partial<Settings>;
}

export class SimCluster {
  readonly nodes: SimNode[] = [];
  readonly network: SimNetwork;
  private readonly settings: Settings;

  constructor(
    readonly world: World,
    options: SimClusterOptions = {},
  ) {
    this.settings = { ...defaultSettings(), ...options.settings };
    this.network = new SimNetwork(world);
    this.network.deliver = (message) => this.deliver(message);
    for (let id = 1; id <= (options.nodes ?? 5); id += 1) this.nodes.push(new SimNode(id));
    for (const node of this.nodes) this.start(node);
  }

  node(nodeId: number): SimNode {
    return this.nodes[nodeId - 1] as SimNode;
  }

  /** The node that serves now, or undefined. */
  serving(): SimNode | undefined {
    return this.nodes.find((node) => node.replica?.isServing === true && !node.isPaused);
  }

  start(node: SimNode): void {
    if (node.replica !== null) return;
    node.life += 1;
    const { life } = node;
    const { world } = this;
    const log = new SimLog(world, node.disk);
    const isAlive = (): boolean => node.life === life && node.replica !== null;
    let isTurnWished = false;
    const runTurn = (): void => {
      isTurnWished = false;
      if (!isAlive()) return;
      if (node.isPaused) soon();
      else node.replica?.turn();
    };
    const soon = (): void => {
      if (isTurnWished) return;
      isTurnWished = true;
      world.after(node.isPaused ? US_PER_MS : TURN_COST_US, runTurn);
    };
    node.replica = new Replica({
      shard: 0,
      nodeId: node.nodeId,
      clusterId: new Uint8Array(16).fill(7),
      members: this.nodes.map((each) => ({ nodeId: each.nodeId, client: `sim:${each.nodeId}` })),
      settings: this.settings,
      featureLevel: 1,
      seed: world.prng.nextU32(),
      log,
      logState: node.disk.state(),
      peers: { send: (message) => this.network.send(message), flush: () => undefined },
      clock: { nowUs: () => world.nowUs * node.clockRate },
      entropy: { fill16: (target, offset) => this.fillRandom(target, offset) },
      turn: { soon, after: (us) => world.after(us, () => isAlive() && soon()) },
    });
    log.events = node.replica;
    node.log = log;
    const tick = (): void => {
      if (!isAlive()) return;
      if (!node.isPaused) node.replica?.onTick();
      world.after(TICK_MS * US_PER_MS, tick);
    };
    tick();
  }

  crash(node: SimNode): void {
    node.log?.crash();
    node.log = null;
    node.replica = null;
    node.isPaused = false;
  }

  private deliver(message: Message): void {
    const node = this.node(message.to);
    if (node.isPaused) {
      this.world.after(US_PER_MS, () => this.deliver(message));
      return;
    }
    node.replica?.onMessage(message);
  }

  private fillRandom(target: Uint8Array, offset: number): void {
    for (let i = 0; i < 16; i += 1) target[offset + i] = this.world.prng.below(256);
  }
}
