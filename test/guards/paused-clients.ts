/**
 * Clients that are stopped for longer than their lease, over one guarded counter a resource.
 *
 * Owns: the processes and the stops. No update may be lost, and some stale tokens must have been
 * refused, or the run has shown nothing. Used by: main.ts.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { Prng } from '../../src/collections/prng.js';
import { waitFor } from '../cluster/wait-for.js';
import { compiledFile } from '../gate/paths.js';
import type { CounterMessage } from './counter-process.js';
import type { HolderPlan } from './holder-process.js';
import type { Resource } from './resource.js';
import { openDoor } from './resources/open.js';

const CLIENTS = 3;
const TTL_MS = 2_000;
const STOP_MS = 5_000;
const LAST_WORDS_MS = 90_000;

export interface PausedPlan {
  readonly endpoints: readonly string[];
  readonly minutes: number;
  readonly seed: number;
}

/** What came of one resource. */
export interface PausedRecord {
  readonly server: string;
  readonly stops: number;
  readonly accepted: number;
  readonly refused: number;
  readonly unknown: number;
  readonly count: number;
  readonly faults: readonly string[];
}

class CountingProcess {
  isReady = false;
  isInside = false;
  isStopped = false;
  sum: Extract<CounterMessage, { type: 'sum' }> | null = null;
  private readonly child: ChildProcess;

  constructor(plan: HolderPlan) {
    this.child = fork(compiledFile('test/guards/counter-process.ts'), [JSON.stringify(plan)]);
    this.child.on('message', (message: CounterMessage) => {
      if (message.type === 'sum') this.sum = message;
      else if (message.type === 'ready') this.isReady = true;
      else this.isInside = message.type === 'inside';
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
  { endpoints, minutes, seed }: PausedPlan,
): Promise<PausedRecord> {
  const { place, server } = resource;
  const name = `paused/${place.kind}`;
  const plan: HolderPlan = { endpoints, lock: name, ttlMs: TTL_MS, place, cell: name };
  const door = await openDoor(place, name);
  const clients = Array.from({ length: CLIENTS }, () => new CountingProcess(plan));
  try {
    await waitFor('every client to be ready', () => clients.every((each) => each.isReady));
    const stops = await stopAndGo(clients, minutes, new Prng(seed));
    for (const client of clients) client.finish();
    const all = () => clients.every((each) => each.sum !== null);
    await waitFor('every client to give its sum', all, LAST_WORDS_MS);
    const total = (field: 'accepted' | 'refused' | 'unknown'): number =>
      clients.reduce((sum, each) => sum + (each.sum?.[field] ?? 0), 0);
    const accepted = total('accepted');
    const refused = total('refused');
    const unknown = total('unknown');
    const count = Number(await door.read());
    const faults: string[] = [];
    if (count < accepted) faults.push(`${accepted - count} updates were lost`);
    if (count > accepted + unknown) faults.push(`${count - accepted} more than were accepted`);
    if (accepted === 0) faults.push('nothing was written');
    if (refused === 0) faults.push('no stale token was refused: the run has shown nothing');
    return { server, stops, accepted, refused, unknown, count, faults };
  } finally {
    for (const client of clients) client.kill();
    await door.close();
  }
}

/** Stops one client after the other, between their reading and their writing. */
async function stopAndGo(
  clients: readonly CountingProcess[],
  minutes: number,
  prng: Prng,
): Promise<number> {
  const endMs = performance.now() + minutes * 60_000;
  let stops = 0;
  while (performance.now() < endMs) {
    const victim = clients.find((client) => client.isInside && !client.isStopped);
    if (victim === undefined) {
      await new Promise((resolve) => setTimeout(resolve, 5));
      continue;
    }
    victim.stop();
    stops += 1;
    await new Promise((resolve) => setTimeout(resolve, 1_000 + prng.below(2_000)));
  }
  await new Promise((resolve) => setTimeout(resolve, STOP_MS + 500));
  return stops;
}
