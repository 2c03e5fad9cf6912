import t from 'tap';
import { type Client, connect, isHoldfastError } from '../../../src/client/index.js';
import { Cluster } from '../harness.js';
import { waitFor } from '../wait-for.js';
import { figure } from './figures.js';
import { HeldLocks } from './held-locks.js';
import { sized } from './size.js';

const TTL_MS = 3_600_000;
const CLIENTS = sized(4, 16);
const CYCLES = sized(1, 5);
/** Acquires in flight a client; one in three is given back again. */
const IN_FLIGHT = 16;
const ACKNOWLEDGED_MIN = sized(200, 2_000);

/** Acquires and releases until it is stopped; every acknowledged acquire is noted. */
class Load {
  private isStopped = false;
  private readonly loops: Promise<void>[] = [];
  private last = 0;

  constructor(
    private readonly held: HeldLocks,
    private readonly prefix: string,
  ) {}

  start(client: Client): void {
    for (let number = 0; number < IN_FLIGHT; number += 1) this.loops.push(this.run(client));
  }

  async stop(): Promise<void> {
    this.isStopped = true;
    await Promise.all(this.loops);
  }

  private async run(client: Client): Promise<void> {
    while (!this.isStopped) {
      this.last += 1;
      await this.acquireOne(client, this.last);
    }
  }

  private async acquireOne(client: Client, number: number): Promise<void> {
    const name = `${this.prefix}/${number}`;
    try {
      const options = { ttlMs: TTL_MS, waitMs: 0, deadlineMs: 2_000, session: null };
      const lease = await client.acquire(name, options);
      const { leaseId, token, revision } = lease;
      const hold = this.held.note(name, { leaseId, token, revision });
      if (number % 3 !== 0) return;
      hold.isReleaseBegun = true;
      await lease.release();
    } catch (error) {
      if (!isHoldfastError(error)) throw error;
    }
  }
}

async function connectAll(endpoints: readonly string[], count: number): Promise<Client[]> {
  const clients = Array.from({ length: count }, () => connect({ endpoints, deadlineMs: 60_000 }));
  return Promise.all(clients);
}

t.test('kill -9 of all five under load loses nothing that was acknowledged', async (t) => {
  const cluster = await Cluster.start({ test: t });
  const held = new HeldLocks();
  for (let cycle = 1; cycle <= CYCLES; cycle += 1) {
    const before = held.count;
    const clients = await connectAll(cluster.endpoints, CLIENTS);
    const load = new Load(held, `whole/${cycle}`);
    for (const client of clients) load.start(client);
    await waitFor('enough acknowledgements', () => held.count - before >= ACKNOWLEDGED_MIN, 90_000);

    // Every signal is sent before any of the deaths is waited for.
    await Promise.all(cluster.nodeIds.map((nodeId) => cluster.kill(nodeId)));
    await load.stop();
    const acknowledged = held.count - before;
    // A client that closes would give back what it holds: that belongs to the record too.
    await Promise.all(cluster.nodeIds.map((nodeId) => cluster.restart(nodeId)));
    await cluster.leader(60_000);
    const [reader] = await connectAll(cluster.endpoints, 1);
    t.strictSame(await held.missing(reader as Client), [], `cycle ${cycle}: nothing is missing`);
    figure(t, `cycle ${cycle}: acknowledged acquires`, acknowledged);

    const statuses = await cluster.settled(60_000);
    t.equal(statuses.length, 5);
    t.equal(new Set(statuses.map(({ appliedIndex }) => appliedIndex)).size, 1, 'the same index');
    t.equal(new Set(statuses.map(({ digest }) => digest)).size, 1, 'the same digest');
    const [first] = statuses;
    t.ok((first?.revision ?? 0) >= maxToken(held), 'no revision went back');
    for (const hold of held.kept) hold.isReleaseBegun = true; // by the close of its client
    await Promise.all([...clients, reader as Client].map((client) => client.close()));
  }
});

function maxToken(held: HeldLocks): number {
  return held.kept.reduce((most, { token }) => Math.max(most, token), 0);
}
