/**
 * What the client's tests stand on: a fake cluster, a clock moved by hand, a connected client.
 *
 * Every test that uses it also proves that no rejection went unhandled: the process listens.
 */
import type { Client } from '../../../src/client/client.js';
import { type ConnectOptions, connectWith } from '../../../src/client/connect.js';
import { HoldfastError } from '../../../src/client/errors.js';
import { FakeClock, settle } from './fake-clock.js';
import { FakeCluster } from './fake-cluster.js';

export interface TestGround {
  readonly clock: FakeClock;
  readonly cluster: FakeCluster;
  readonly client: Client;
}

/** A cluster whose node 1 leads, and a client that found it. */
export async function connected(nodes = 3): Promise<TestGround> {
  const clock = new FakeClock();
  const cluster = new FakeCluster(clock, nodes);
  const client = await connectedTo(clock, cluster);
  return { clock, cluster, client };
}

export async function connectedTo(
  clock: FakeClock,
  cluster: FakeCluster,
  options: Partial<ConnectOptions> = {},
): Promise<Client> {
  const ground = { clock, dial: cluster.network.dial };
  const connecting = connectWith({ endpoints: cluster.endpoints, ...options }, ground);
  return advanced(clock, connecting, 20_000);
}

/** Moves time on, from timer to timer, until the promise settles; throws after `maxMs`. */
export async function advanced<Value>(
  clock: FakeClock,
  promise: Promise<Value>,
  maxMs = 30_000,
): Promise<Value> {
  let isSettled = false;
  const mark = (): void => {
    isSettled = true;
  };
  promise.then(mark, mark);
  await settle();
  const untilMs = clock.nowMs() + maxMs;
  while (!isSettled) {
    if (clock.nowMs() > untilMs) throw new Error(`not settled after ${maxMs} ms`);
    await clock.step(20);
  }
  return promise;
}

/** The error of a promise that must reject with a HoldfastError of `code`. */
export async function rejected(promise: Promise<unknown>, code: string): Promise<HoldfastError> {
  try {
    await promise;
  } catch (error) {
    if (error instanceof HoldfastError && error.code === code) return error;
    throw error;
  }
  throw new Error(`resolved, wanted ${code}`);
}

/** Rejections that nobody handled since this was called. */
export function watchRejections(): unknown[] {
  const unhandled: unknown[] = [];
  process.on('unhandledRejection', (reason) => unhandled.push(reason));
  return unhandled;
}
