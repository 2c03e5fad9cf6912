/**
 * One client process that is stopped in the middle of its work:
 * paused-client.js ENDPOINTS, with a channel to the process that owns the fenced file.
 *
 * Owns: one client of the library. Reads the counter, works, writes it plus one, each with its
 * token, and does not look at its lease in between: a process that was stopped right after looking
 * is no better off. Started by: paused-clients.ts.
 */
import { connect, isHoldfastError } from '../../src/client/index.js';

const LOCK = 'chaos/paused';
const TTL_MS = 2_000;
const WORK_MS = 60;

/** What the owner of the file is asked, and answers. */
export interface FileRequest {
  readonly number: number;
  readonly token: number;
  /** Null: read. */
  readonly count: number | null;
}

export interface FileAnswer {
  readonly number: number;
  /** Read: the counter. Write: what was written. Null: refused. */
  readonly count: number | null;
}

const waiting = new Map<number, (count: number | null) => void>();
let last = 0;
let isStopping = false;

function ask(token: number, count: number | null): Promise<number | null> {
  last += 1;
  const request: FileRequest = { number: last, token, count };
  return new Promise((resolve) => {
    waiting.set(request.number, resolve);
    process.send?.(request);
  });
}

process.on('message', (message: FileAnswer | 'stop') => {
  if (message === 'stop') {
    isStopping = true;
    return;
  }
  waiting.get(message.number)?.(message.count);
  waiting.delete(message.number);
});

async function addOne(client: Awaited<ReturnType<typeof connect>>): Promise<void> {
  const options = { ttlMs: TTL_MS, waitMs: 30_000, deadlineMs: 35_000 };
  await client.withLock(LOCK, options, async (lease) => {
    const count = await ask(lease.token, null);
    if (count === null) return;
    await new Promise((resolve) => setTimeout(resolve, WORK_MS));
    await ask(lease.token, count + 1);
  });
}

const client = await connect({ endpoints: (process.argv[2] ?? '').split(',') });
process.send?.('ready');
while (!isStopping) {
  try {
    await addOne(client);
  } catch (error) {
    // A lease that was lost, or a wait that took too long: the next round begins anew.
    if (!isHoldfastError(error)) throw error;
  }
}
await client.close().catch(() => undefined); // what is open lapses by itself
process.disconnect();
