/**
 * A worker that adds to the counter file under the lock, a given number of times.
 *
 * Owns: the rule for what counts: a round whose write was done is done, however its lease ended; a
 * round that failed before its write is begun anew. Never: a write without a lease that is held.
 * Used by: the counter tests, as tasks and in worker-process.ts.
 */
import { type Client, isHoldfastError, type Lease } from '../../../src/client/index.js';
import type { CounterFile } from './counter-file.js';

const LOCK = 'acceptance/counter';
/** Far longer than any stall of a test machine, so that no lease is lost on the way. */
const TTL_MS = 60_000;
const WAIT_MS = 600_000;
const DEADLINE_MS = 60_000;

export interface CounterWork {
  readonly client: Client;
  readonly file: CounterFile;
  /** Writes to make. */
  readonly rounds: number;
  /** How long one holder works between its reading and its writing. */
  readonly workMs: number;
}

/** Failed attempts by error code. */
export type Failures = Map<string, number>;

/** Makes `rounds` writes, each under a lease of its own. */
export async function addRounds(work: CounterWork): Promise<Failures> {
  const failures: Failures = new Map();
  for (let done = 0; done < work.rounds; ) {
    if (await addOnce(work, failures)) done += 1;
  }
  return failures;
}

/** True when the write was done. */
async function addOnce(work: CounterWork, failures: Failures): Promise<boolean> {
  let isWritten = false;
  const options = { ttlMs: TTL_MS, waitMs: WAIT_MS, deadlineMs: DEADLINE_MS };
  try {
    await work.client.withLock(LOCK, options, async (lease) => {
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
