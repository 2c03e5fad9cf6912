/**
 * A program that holds a lock, in a process of its own: actor-process.js PLAN, with a channel to
 * the drill. It can be stopped, cut off from the cluster, and told to write.
 *
 * Owns: one client of the library and one lease without a session, kept alive by the client. It
 * writes when it is told to, without another look at its lease: a program that is stopped right
 * after looking is no better off. Ends with its channel. Started by: actor.ts.
 */

import { SystemClock } from '../../client/clock.js';
import { connectWith } from '../../client/connect.js';
import { HoldfastError, type Lease } from '../../client/index.js';
import { fenceOf, isStaleToken } from '../../guards/index.js';
import type { ActorMessage, ActorOrder, ActorPlan } from './actor.js';
import { Leash } from './leash.js';
import { Resource } from './resource.js';
import { monotonicMs } from './story.js';

const WAIT_MS = 60_000;

function tell(message: ActorMessage): void {
  process.send?.(message);
}

function failureOf(error: unknown): ActorMessage {
  const code = error instanceof HoldfastError ? error.code : 'FAULT';
  const message = error instanceof Error ? error.message : String(error);
  return { type: 'failed', code, message };
}

/** Writes, and says what became of it and what the lease says of itself at that moment. */
function write(resource: Resource, lease: Lease, writer: string): ActorMessage {
  try {
    resource.write(fenceOf(lease), writer);
    return { type: 'wrote', state: lease.state };
  } catch (error) {
    if (!isStaleToken(error)) throw error;
    return { type: 'refused', offered: error.offered, seen: error.seen, state: lease.state };
  }
}

async function carryOut(
  order: ActorOrder,
  lease: Lease,
  resource: Resource,
  leash: Leash,
): Promise<void> {
  switch (order.type) {
    case 'write':
      tell(write(resource, lease, order.writer));
      return;
    case 'renew':
      await lease.renew({ deadlineMs: order.deadlineMs });
      tell({ type: 'renewed', token: lease.token });
      return;
    case 'release': {
      const { revision } = await lease.release();
      tell({ type: 'released', revision });
      return;
    }
    case 'cut':
      leash.cut();
      tell({ type: 'cut' });
      return;
  }
}

const plan = JSON.parse(process.argv[2] ?? '') as ActorPlan;
process.on('disconnect', () => process.exit(0));
try {
  const leash = new Leash(plan.onlyNode);
  const ground = { clock: new SystemClock(), dial: leash.dial };
  const client = await connectWith({ endpoints: plan.endpoints, clientName: 'drill' }, ground);
  const resource = await Resource.open(plan.file, plan.isGuarded);
  const { lock, ttlMs, requestId } = plan;
  const lease = await client.acquire(lock, { ttlMs, waitMs: WAIT_MS, session: null, requestId });
  const { token, revision } = lease;
  tell({ type: 'holds', token, revision });
  lease.signal.addEventListener('abort', () => {
    const { reason } = lease.signal;
    const code = reason instanceof HoldfastError ? reason.code : String(reason);
    tell({ type: 'lost', code, atMs: monotonicMs() });
  });
  process.on('message', (order: ActorOrder) => {
    carryOut(order, lease, resource, leash).catch((error: unknown) => tell(failureOf(error)));
  });
} catch (error) {
  tell(failureOf(error));
}
