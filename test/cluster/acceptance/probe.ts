/**
 * A client that asks for one lock and gives it back, over and over, to see when there is service.
 *
 * Owns: one client and the moments at which an acquire or a release was acknowledged. Never: an
 * opinion; gaps are asked for by the test. Used by: tests that kill nodes.
 */
import { type Client, connect, isHoldfastError } from '../../../src/client/index.js';
import { waitFor } from '../wait-for.js';

const LOCK = 'acceptance/probe';
const TTL_MS = 30_000;
/** One try; the next one starts at once, so service is seen soon after it is back. */
const TRY_MS = 10_000;

export class Probe {
  /** performance.now() of each acknowledgement, rising. */
  readonly acknowledgedAt: number[] = [];
  /** How often each error code was seen. */
  readonly refusals = new Map<string, number>();
  private isStopped = false;
  private readonly loop: Promise<void>;

  private constructor(private readonly client: Client) {
    this.loop = this.run();
  }

  /** Connects, and resolves once there was service. Stop it. */
  static async start(endpoints: readonly string[]): Promise<Probe> {
    const client = await connect({ endpoints, clientName: 'probe', deadlineMs: 30_000 });
    const probe = new Probe(client);
    await probe.serviceSince(performance.now());
    return probe;
  }

  /** Resolves when `count` acknowledgements have come after `moment`. */
  async serviceSince(moment: number, count = 1, timeoutMs = 60_000): Promise<void> {
    const isServed = (): boolean => {
      const at = this.acknowledgedAt.at(-count);
      return at !== undefined && at > moment;
    };
    await waitFor(`${count} acknowledgements at the probe`, isServed, timeoutMs);
  }

  /**
   * The longest time in ms without an acknowledgement among those that began between `from` and
   * `until`, or reach into it from before. Ask after serviceSince(until).
   */
  longestGap(from: number, until: number): number {
    let longest = 0;
    let previous = Number.NEGATIVE_INFINITY;
    for (const at of this.acknowledgedAt) {
      const isInside = at >= from && previous <= until;
      if (isInside && Number.isFinite(previous)) longest = Math.max(longest, at - previous);
      previous = at;
    }
    return longest;
  }

  async stop(): Promise<void> {
    this.isStopped = true;
    await this.loop;
    await this.client.close();
  }

  private async run(): Promise<void> {
    while (!this.isStopped) {
      try {
        const options = { ttlMs: TTL_MS, waitMs: TTL_MS, deadlineMs: TRY_MS };
        const lease = await this.client.acquire(LOCK, options);
        this.acknowledgedAt.push(performance.now());
        await lease.release();
        this.acknowledgedAt.push(performance.now());
      } catch (error) {
        if (!isHoldfastError(error)) throw error;
        this.refusals.set(error.code, (this.refusals.get(error.code) ?? 0) + 1);
      }
    }
  }
}
