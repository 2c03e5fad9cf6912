/**
 * The cluster under load: five nodes of our own in a scratch folder, or one that runs somewhere.
 *
 * Owns: starting it, asking its nodes what they are, and the end of it. The durability setting is
 * the product's only one, the same that `npm start` has; it is printed. Never: a load.
 * Used by: runner.ts.
 */
import { findLeader, type NodeStatus, readStatus } from '../src/cli/node-status.js';
import { type Endpoint, parseEndpoint } from '../src/server/options.js';
import { Cluster } from '../test/cluster/harness.js';

export const DURABILITY = 'fdatasync of every entry on a majority before it is acknowledged';
const STATUS_MS_MAX = 5_000;
const SETTLE_MS_MAX = 120_000;

export interface LeaderPlace extends Endpoint {
  readonly nodeId: number;
}

function endpointOf(text: string): Endpoint {
  return parseEndpoint('--endpoints', text);
}

/** A status, and when it came: others that were asked with it may have come later. */
export interface HeardStatus extends NodeStatus {
  readonly heardAtMs: number;
}

export class Target {
  private constructor(
    /** Null for a cluster that somebody else runs. */
    readonly cluster: Cluster | null,
    readonly endpoints: readonly Endpoint[],
  ) {}

  /** Five nodes of our own. */
  static async start(): Promise<Target> {
    const cluster = await Cluster.start({ logLevel: 'warn' });
    return new Target(cluster, cluster.endpoints.map(endpointOf));
  }

  /** @param list host:port,… of the client ports */
  static at(list: string): Target {
    return new Target(null, list.split(',').map(endpointOf));
  }

  get nodes(): number {
    return this.endpoints.length;
  }

  /** Asks every node; those that do not answer are left out. */
  async statuses(): Promise<HeardStatus[]> {
    const asked = this.endpoints.map(async (endpoint) => {
      const status = await readStatus(endpoint, STATUS_MS_MAX);
      return { ...status, heardAtMs: performance.now() };
    });
    const found: HeardStatus[] = [];
    for (const answer of await Promise.allSettled(asked)) {
      if (answer.status === 'fulfilled') found.push(answer.value);
    }
    return found;
  }

  /** Waits for a leader that serves, and says where it is. */
  async leader(): Promise<LeaderPlace> {
    const untilMs = performance.now() + SETTLE_MS_MAX;
    for (;;) {
      const nodeId = await findLeader(this.endpoints);
      if (nodeId !== null) return { nodeId, ...(await this.endpointOf(nodeId)) };
      if (performance.now() > untilMs) throw new Error('no node leads');
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  /** Statuses of the nodes that answer, once all have applied the same index, or the last ones. */
  async settled(): Promise<NodeStatus[]> {
    const untilMs = performance.now() + SETTLE_MS_MAX;
    for (;;) {
      const found = await this.statuses();
      const first = found[0];
      const isSame = found.every((status) => status.appliedIndex === first?.appliedIndex);
      if ((first !== undefined && isSame) || performance.now() > untilMs) return found;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  async close(): Promise<void> {
    await this.cluster?.close();
  }

  private async endpointOf(nodeId: number): Promise<Endpoint> {
    for (const endpoint of this.endpoints) {
      const status = await readStatus(endpoint, STATUS_MS_MAX).catch(() => null);
      if (status?.nodeId === nodeId) return endpoint;
    }
    throw new Error(`node ${nodeId} led and is not reached`);
  }
}
