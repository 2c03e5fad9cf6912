/**
 * A process that says whether it believes in its leases: believer-process.js ENDPOINTS, with a
 * channel to the test. Times are CLOCK_MONOTONIC, which all processes of a machine share.
 *
 * Owns: one client of the library, and its leases by name. Started by: fail-closed.ts.
 */
import { connect, type Lease } from '../../src/client/index.js';

/** What it is told. */
export type BelieverOrder =
  | { readonly type: 'acquire'; readonly lock: string; readonly ttlMs: number }
  /** Look at once. */
  | { readonly type: 'look'; readonly lock: string }
  /** Do nothing else for so long, then look before anything else runs. */
  | { readonly type: 'block'; readonly lock: string; readonly forMs: number }
  /** The wall clock steps by so much. */
  | { readonly type: 'step'; readonly lock: string; readonly byMs: number };

/** What it says: after each order, and when a lease is lost. */
export interface Belief {
  readonly type: 'looked' | 'lost';
  readonly lock: string;
  readonly state: string;
  readonly token: number;
  readonly atMs: number;
  readonly remainingMs: number;
}

/** CLOCK_MONOTONIC in ms. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

const endpoints = process.argv[2];
if (endpoints !== undefined && process.send !== undefined) await believe(endpoints.split(','));

async function believe(addresses: string[]): Promise<void> {
  const client = await connect({ endpoints: addresses });
  const leases = new Map<string, Lease>();
  const say = (type: Belief['type'], lock: string): void => {
    const lease = leases.get(lock);
    if (lease === undefined) return;
    // The clock is read after the question: an answer is never younger than it says.
    const { state, token } = lease;
    const remainingMs = lease.remainingMs();
    process.send?.({ type, lock, state, token, remainingMs, atMs: monotonicMs() } satisfies Belief);
  };
  process.on('message', async (order: BelieverOrder) => {
    const { lock } = order;
    if (order.type === 'acquire') {
      const lease = await client.acquire(lock, { ttlMs: order.ttlMs, session: null });
      leases.set(lock, lease);
      lease.signal.addEventListener('abort', () => say('lost', lock));
    } else if (order.type === 'block') {
      const until = performance.now() + order.forMs;
      while (performance.now() < until);
    } else if (order.type === 'step') {
      const present = Date.now;
      Date.now = () => present() + order.byMs;
    }
    say('looked', lock);
  });
  process.on('disconnect', () => process.exit(0));
}
