/**
 * The client of one command: connected when it is first needed, closed when the command is done.
 *
 * Owns: its life. Never: hides an error of the work behind one of the close (close never rejects).
 * Used by: commands that read or hold locks.
 */
import type { Client } from '../client/client.js';
import { connect } from '../client/index.js';
import { formatEndpoint } from '../server/options.js';
import type { ClusterOptions } from './cluster-options.js';
import { HOPELESS_MS, isHopeless, withAdvice } from './explain.js';

/** What a command needs before it can start: a leader, or any node, for a stale read. */
export type Need = 'leader' | 'node';

export class ClientHolder {
  private client: Client | null = null;

  constructor(
    private readonly options: ClusterOptions,
    private readonly needs: Need = 'leader',
  ) {}

  /** Resolves with the client. Rejects with a HoldfastError when no node is found in time. */
  async connect(): Promise<Client> {
    this.client ??= await this.find();
    return this.client;
  }

  async close(): Promise<void> {
    await this.client?.close();
  }

  /** Gives up sooner when every node refuses, unless the caller has said how long to try. */
  private async find(): Promise<Client> {
    const { timeoutMs, isTimeoutGiven } = this.options;
    const firstMs = isTimeoutGiven ? timeoutMs : Math.min(timeoutMs, HOPELESS_MS);
    try {
      return await this.tryFor(firstMs);
    } catch (error) {
      if (firstMs === timeoutMs || isHopeless(error)) throw withAdvice(error);
    }
    try {
      return await this.tryFor(timeoutMs - firstMs);
    } catch (error) {
      throw withAdvice(error);
    }
  }

  private tryFor(deadlineMs: number): Promise<Client> {
    const endpoints = this.options.endpoints.map(formatEndpoint);
    return connect({ endpoints, deadlineMs, needs: this.needs });
  }
}

/** Runs `work` with a client; resolves with its result when the client is closed. */
export async function withClient<T>(
  options: ClusterOptions,
  needs: Need,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  const holder = new ClientHolder(options, needs);
  try {
    return await work(await holder.connect());
  } finally {
    await holder.close();
  }
}
