/**
 * npm run chaos -- --paused-clients --minutes M: clients that are stopped for longer than their
 * lease, over a file that is guarded by fencing tokens.
 *
 * Owns: a real cluster, the client processes, the stops, the fenced file. No update may be lost,
 * and some stale tokens must have been refused, or the run has shown nothing. Called by: main.ts.
 */
import { type ChildProcess, fork } from 'node:child_process';
import path from 'node:path';
import { Prng } from '../../src/collections/prng.js';
import { Cluster } from '../cluster/harness.js';
import { waitFor } from '../cluster/wait-for.js';
import { compiledFile } from '../gate/paths.js';
import type { ChaosPlan } from './chaos-run.js';
import { FencedFile } from './fenced-file.js';
import type { FileAnswer, FileRequest } from './paused-client.js';

const CLIENTS = 5;
const STOP_MS = 5_000;
const MINUTE_MS = 60_000;

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** One client process. */
class PausedClient {
  isReady = false;
  /** It has read the counter and not yet written it. */
  isInside = false;
  isStopped = false;
  private readonly child: ChildProcess;

  constructor(
    endpoints: string,
    private readonly file: FencedFile,
  ) {
    this.child = fork(compiledFile('test/chaos/paused-client.ts'), [endpoints]);
    this.child.on('message', (message: FileRequest | 'ready') => {
      if (message === 'ready') this.isReady = true;
      else this.answer(message);
    });
  }

  stop(): void {
    this.isStopped = true;
    this.child.kill('SIGSTOP');
  }

  cont(): void {
    this.isStopped = false;
    this.child.kill('SIGCONT');
  }

  /** Resolves when it has ended by itself, or was ended after a while. */
  async end(): Promise<void> {
    const gone = new Promise<void>((resolve) => this.child.once('exit', () => resolve()));
    this.cont();
    if (this.child.exitCode !== null || !this.child.connected) return;
    this.child.send('stop');
    const late = setTimeout(() => this.child.kill('SIGKILL'), 60_000);
    await gone;
    clearTimeout(late);
  }

  kill(): void {
    this.child.kill('SIGKILL');
  }

  private answer({ number, token, count }: FileRequest): void {
    const { file } = this;
    if (count === null) {
      const found = file.read(token);
      this.isInside = found !== null;
      this.reply({ number, count: found });
      return;
    }
    this.isInside = false;
    this.reply({ number, count: file.write(token, count) ? count : null });
  }

  private reply(answer: FileAnswer): void {
    if (this.child.connected) this.child.send(answer);
  }
}

/** Runs it. Returns the exit status. */
export async function runPausedClients({ minutes, seed, say }: ChaosPlan): Promise<number> {
  say(`clients stopped for ${STOP_MS} ms, TTL 2 s, for ${minutes} minutes, seed ${seed}`);
  const cluster = await Cluster.start({ logLevel: 'warn' });
  const file = new FencedFile(path.join(cluster.folder, 'counter'));
  const { endpointList } = cluster;
  const clients = Array.from({ length: CLIENTS }, () => new PausedClient(endpointList, file));
  try {
    await waitFor('every client to be connected', () => clients.every((each) => each.isReady));
    const stops = await stopAndGo(clients, minutes, new Prng(seed));
    await Promise.all(clients.map((client) => client.end()));
    const { accepted, refused, lost, count } = file;
    say(`${stops} stops, ${accepted} writes accepted, ${refused} stale tokens refused`);
    say(`the counter is ${count}, ${lost} updates lost`);
    const isKept = lost === 0 && count === accepted && accepted > 0;
    if (!isKept) say('VIOLATION an update was lost');
    if (refused === 0) say('VIOLATION no stale token was refused: the run has shown nothing');
    return isKept && refused > 0 ? 0 : 1;
  } finally {
    for (const client of clients) client.kill();
    await cluster.close();
  }
}

/** Stops one client after the other, most of them between their reading and their writing. */
async function stopAndGo(
  clients: readonly PausedClient[],
  minutes: number,
  prng: Prng,
): Promise<number> {
  const endMs = performance.now() + minutes * MINUTE_MS;
  let stops = 0;
  while (performance.now() < endMs) {
    const inside = clients.find((client) => client.isInside && !client.isStopped);
    const anybody = clients[prng.below(clients.length)] as PausedClient;
    const victim = inside ?? anybody;
    if (victim.isStopped) {
      await pause(5);
      continue;
    }
    victim.stop();
    stops += 1;
    setTimeout(() => victim.cont(), STOP_MS);
    await pause(1_000 + prng.below(2_000));
  }
  await pause(STOP_MS + 500);
  return stops;
}
