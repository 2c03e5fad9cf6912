/**
 * Clients that are stopped for longer than their lease, over one guarded counter a resource.
 *
 * Owns: the processes and the stops, and what is counted. What may not be: report.ts.
 * Used by: main.ts.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { Prng } from '../../src/collections/prng.js';
import { waitFor } from '../cluster/wait-for.js';
import { compiledFile } from '../gate/paths.js';
import type { CounterMessage } from './counter-process.js';
import type { HolderPlan } from './holder-process.js';
import type { GuardRow } from './report.js';
import type { Resource } from './resource.js';
import { openDoor } from './resources/open.js';

/** A guard's clients wait most of the time, so that ten of them and five nodes fit two cores. */
const CLIENTS = 2;
const TTL_MS = 2_000;
const STOP_MS = 5_000;
/** From one stop to the next: the other client writes meanwhile, and is at times stopped too. */
const REST_MS_LEAST = 2_500;
const REST_MS_SPREAD = 4_000;
/** Until all are connected; and, at the end, until all have counted for the last time. */
const READY_MS_MAX = 90_000;
const LAST_WORDS_MS = 90_000;

/** What is done, for the head of a report. */
export const PAUSE_WORDS = `${CLIENTS} clients a guard, TTL ${TTL_MS / 1_000} s, each stopped for \
${STOP_MS / 1_000} s between its reading and its writing`;

export interface PausedPlan {
  readonly endpoints: readonly string[];
  readonly minutes: number;
  readonly seed: number;
  /** Ends the clients' processes. */
  readonly signal: AbortSignal;
}

class CountingProcess {
  isReady = false;
  isStopped = false;
  /** Called when it has read and not yet written. */
  onInside: () => void = () => undefined;
  sum: Extract<CounterMessage, { type: 'sum' }> | null = null;
  private readonly child: ChildProcess;

  constructor(plan: HolderPlan, signal: AbortSignal) {
    const file = compiledFile('test/guards/counter-process.ts');
    this.child = fork(file, [JSON.stringify(plan)], { signal, killSignal: 'SIGKILL' });
    this.child.on('error', () => undefined); // the signal, on the way out
    this.child.on('message', (message: CounterMessage) => {
      if (message.type === 'sum') this.sum = message;
      else if (message.type === 'ready') this.isReady = true;
      else if (message.type === 'inside' && !this.isStopped) this.onInside();
    });
  }

  stop(): void {
    this.isStopped = true;
    this.child.kill('SIGSTOP');
    setTimeout(() => this.cont(), STOP_MS);
  }

  cont(): void {
    this.isStopped = false;
    this.child.kill('SIGCONT');
  }

  finish(): void {
    this.cont();
    this.child.send('finish');
  }

  kill(): void {
    this.child.kill('SIGKILL');
  }
}

export async function runPausedClients(
  resource: Resource,
  { endpoints, minutes, seed, signal }: PausedPlan,
): Promise<GuardRow> {
  const { place, server } = resource;
  const { kind } = place;
  const name = `paused/${kind}`;
  const plan: HolderPlan = { endpoints, lock: name, ttlMs: TTL_MS, place, cell: name };
  const door = await openDoor(place, name);
  const clients = Array.from({ length: CLIENTS }, () => new CountingProcess(plan, signal));
  try {
    const isReady = () => clients.every((each) => each.isReady);
    await waitFor('every client to be ready', isReady, READY_MS_MAX);
    const pauses = await stopAndGo(clients, minutes, new Prng(seed));
    for (const client of clients) client.finish();
    const all = () => clients.every((each) => each.sum !== null);
    await waitFor('every client to give its sum', all, LAST_WORDS_MS);
    const total = (field: 'accepted' | 'refused' | 'unknown'): number =>
      clients.reduce((sum, each) => sum + (each.sum?.[field] ?? 0), 0);
    const writes = total('accepted');
    const unknown = total('unknown');
    const count = Number(await door.read());
    const faults: string[] = [];
    const extra = count - writes - unknown;
    if (extra > 0) faults.push(`the counter has ${extra} more than were written`);
    const lost = Math.max(0, writes - count);
    return { kind, server, pauses, writes, refused: total('refused'), unknown, lost, faults };
  } finally {
    for (const client of clients) client.kill();
    await door.close();
  }
}

/** Stops one client after the other, between their reading and their writing. Gives how often. */
async function stopAndGo(
  clients: readonly CountingProcess[],
  minutes: number,
  prng: Prng,
): Promise<number> {
  const endMs = performance.now() + minutes * 60_000;
  let pauses = 0;
  for (;;) {
    const victim = await nextInside(clients, endMs - performance.now());
    if (victim === null) break;
    victim.stop();
    pauses += 1;
    const restMs = REST_MS_LEAST + prng.below(REST_MS_SPREAD);
    await new Promise((resolve) => setTimeout(resolve, restMs));
  }
  await new Promise((resolve) => setTimeout(resolve, STOP_MS + 500));
  return pauses;
}

/** The next client that has read and not yet written, or null when there is none for so long. */
function nextInside(
  clients: readonly CountingProcess[],
  waitMs: number,
): Promise<CountingProcess | null> {
  return new Promise((resolve) => {
    const settle = (victim: CountingProcess | null): void => {
      clearTimeout(late);
      for (const client of clients) client.onInside = () => undefined;
      resolve(victim);
    };
    const late = setTimeout(() => settle(null), Math.max(0, waitMs));
    for (const client of clients) client.onInside = () => settle(client);
  });
}
