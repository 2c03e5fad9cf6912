/**
 * One client process that counts in a guarded cell, and is stopped in the middle of it:
 * counter-process.js PLAN, with a channel to the run.
 *
 * Owns: one client of the library and one door. Reads the counter, works, writes it plus one, each
 * with its token, and does not look at its lease in between. Started by: paused-clients.ts.
 */
import { connect, type Lease } from '../../src/client/index.js';
import { fenceOf } from '../../src/guards/fence.js';
import { isStaleToken } from '../../src/guards/stale-token.js';
import type { HolderPlan } from './holder-process.js';
import { PATIENCE } from './resource.js';
import { openDoor } from './resources/open.js';

const WORK_MS = 60;

/** What the process tells: where it is, and at the end what became of its writes. */
export type CounterMessage =
  | { readonly type: 'ready' | 'inside' | 'outside' }
  | {
      readonly type: 'sum';
      readonly accepted: number;
      readonly refused: number;
      /** Writes that may or may not have been done. */
      readonly unknown: number;
    };

const tell = (message: CounterMessage): void => {
  process.send?.(message);
};

const plan = JSON.parse(process.argv[2] ?? '') as HolderPlan;
const client = await connect({ endpoints: plan.endpoints, ...PATIENCE });
const door = await openDoor(plan.place, plan.cell);
let accepted = 0;
let refused = 0;
let unknown = 0;
let isStopping = false;
process.on('message', () => {
  isStopping = true;
});
process.on('disconnect', () => process.exit(0));

async function addOne(lease: Lease): Promise<void> {
  const count = Number(await door.claim(fenceOf(lease)));
  tell({ type: 'inside' });
  await new Promise((resolve) => setTimeout(resolve, WORK_MS));
  try {
    await door.write(fenceOf(lease), String(count + 1));
    accepted += 1;
  } catch (error) {
    // A connection that the store cut may have cut a write that was done.
    if (!isStaleToken(error)) unknown += 1;
    throw error;
  } finally {
    tell({ type: 'outside' });
  }
}

tell({ type: 'ready' });
const { ttlMs } = plan;
while (!isStopping) {
  try {
    await client.withLock(plan.lock, { ttlMs, waitMs: 60_000, session: null }, addOne);
  } catch (error) {
    // Stale, lost, or a wait that took too long: the next round begins anew.
    if (isStaleToken(error)) refused += 1;
  }
}
tell({ type: 'sum', accepted, refused, unknown });
await client.close().catch(() => undefined); // what is open lapses by itself
await door.close();
process.disconnect();
