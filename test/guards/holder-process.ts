/**
 * A process that holds a lock and writes when it is told to, without another look at its lease:
 * holder-process.js PLAN, with a channel to the test.
 *
 * Owns: one client of the library and one door. Not to look is the point: a process that is stopped
 * right after looking is no better off. Started by: holder.ts.
 */
import { connect } from '../../src/client/index.js';
import { fenceOf } from '../../src/guards/fence.js';
import { isStaleToken } from '../../src/guards/stale-token.js';
import { PATIENCE, type Place } from './resource.js';
import { openDoor } from './resources/open.js';

/** What the process is to hold and write; given as JSON. */
export interface HolderPlan {
  readonly endpoints: readonly string[];
  readonly lock: string;
  readonly ttlMs: number;
  readonly place: Place;
  readonly cell: string;
}

/** What it tells. */
export type HolderMessage =
  | { readonly type: 'holds'; readonly token: number }
  | { readonly type: 'wrote' }
  | { readonly type: 'refused'; readonly seen: number; readonly offered: number }
  | { readonly type: 'failed'; readonly code: string; readonly message: string };

const tell = (message: HolderMessage): void => {
  process.send?.(message);
};

const plan = JSON.parse(process.argv[2] ?? '') as HolderPlan;
const client = await connect({ endpoints: plan.endpoints, ...PATIENCE });
const door = await openDoor(plan.place, plan.cell);
// A first look opens the connection, so that what is held later is the write alone.
await door.read();
const { ttlMs } = plan;
const options = { ttlMs, waitMs: 60_000, session: null, ...PATIENCE } as const;
const lease = await client.acquire(plan.lock, options);
tell({ type: 'holds', token: lease.token });

process.on('message', async (value: string) => {
  try {
    await door.write(fenceOf(lease), value);
    tell({ type: 'wrote' });
  } catch (error) {
    const { code, message } = error as { code?: unknown; message: string };
    if (isStaleToken(error)) tell({ type: 'refused', seen: error.seen, offered: error.offered });
    else tell({ type: 'failed', code: String(code), message });
  }
});
process.on('disconnect', () => process.exit(0));
