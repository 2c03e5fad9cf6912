/**
 * Workers that add to the counter file under the lock, each a given number of times.
 *
 * Owns: the rule for what counts: a round whose write was done is done, however its lease ended; a
 * round that failed before its write is begun anew. Never: a write without a lease that is held.
 * Used by: contended-file.test.ts, as tasks, and worker-process.ts.
 */
import { type Client, isHoldfastError, type Lease } from '../../../src/client/index.js';
import type { CounterFile } from './counter-file.js';

const LOCK = 'acceptance/counter';
/** Far longer than any stall of a test machine, so that no lease is lost on the way. */
const TTL_MS = 60_000;
const WAIT_MS = 600_000;
const DEADLINE_MS = 60_000;

export interface CounterWork {
  /** The workers take turns in using them. */
  readonly clients: readonly Client[];
  readonly file: CounterFile;
  /** Writes that each worker makes. */
  readonly rounds: number;
  /** How long one holder works between its reading and its writing. */
  readonly workMs: number;
}

/** Failed attempts by error code. */
export type Failures = Map<string, number>;

/** Runs that many workers side by side; each makes `rounds` writes, under a lease for each. */
export async function addAll(work: CounterWork, workers: number): Promise<Failures> {
  const failures: Failures = new Map();
  const all = Array.from({ length: workers }, (_, at) => {
    const client = work.clients[at % work.clients.length] as Client;
    return addRounds(work, client, failures);
  });
  await Promise.all(all);
  return failures;
}

/** Adds what went wrong in one place to what went wrong in others. */
export function addFailures(total: Failures, failures: Failures): void {
  for (const [code, count] of failures) total.set(code, (total.get(code) ?? 0) + count);
}

async function addRounds(work: CounterWork, client: Client, failures: Failures): Promise<void> {
  for (let done = 0; done < work.rounds; ) {
    if (await addOnce(work, client, failures)) done += 1;
  }
}

/** True when the write was done. */
async function addOnce(work: CounterWork, client: Client, failures: Failures): Promise<boolean> {
  let isWritten = false;
  const options = { ttlMs: TTL_MS, waitMs: WAIT_MS, deadlineMs: DEADLINE_MS };
  try {
    await client.withLock(LOCK, options, async (lease) => {
      await writeUnder(lease, work);
      isWritten = true;
    });
  } catch (error) {
    if (!isHoldfastError(error)) throw error;
    failures.set(error.code, (failures.get(error.code) ?? 0) + 1);
  }
  return isWritten;
}

async function writeUnder(lease: Lease, work: CounterWork): Promise<void> {
  await lease.ready();
  const { count } = await work.file.read();
  await new Promise((resolve) => setTimeout(resolve, work.workMs));
  // In jeopardy nothing new is started; a lease that is lost rejects here.
  await lease.ready();
  await work.file.write({ count: count + 1, token: lease.token });
}
