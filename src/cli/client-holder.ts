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

export class ClientHolder {
  private client: Client | null = null;

  constructor(private readonly options: ClusterOptions) {}

  /** Resolves with the client. Rejects with a HoldfastError when no node is found in time. */
  async connect(): Promise<Client> {
    this.client ??= await connect({
      endpoints: this.options.endpoints.map(formatEndpoint),
      deadlineMs: this.options.timeoutMs,
    });
    return this.client;
  }

  async close(): Promise<void> {
    await this.client?.close();
  }
}

/** Runs `work` with a client; resolves with its result when the client is closed. */
export async function withClient<T>(
  options: ClusterOptions,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  const holder = new ClientHolder(options);
  try {
    return await work(await holder.connect());
  } finally {
    await holder.close();
  }
}
