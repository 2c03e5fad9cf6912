/**
 * A client that fails closed, with a real process and real nodes: whatever happens to it, it never
 * believes in a lease that somebody else has been granted.
 *
 * Owns: the believer's process, ended by its id. The same with simulated clocks and networks is in
 * test/unit/client/lease.test.ts and test/sim/time.test.ts. Used by: guards.test.ts.
 */
import { type ChildProcess, fork } from 'node:child_process';
import type { Test } from 'tap';
import { connect } from '../../src/client/index.js';
import type { Cluster } from '../cluster/harness.js';
import { stateOf } from '../cluster/process-state.js';
import { waitFor } from '../cluster/wait-for.js';
import { compiledFile } from '../gate/paths.js';
import { type Belief, type BelieverOrder, monotonicMs } from './believer-process.js';

const TTL_MS = 1_000;
/** Survives a change of leader on a busy machine. */
const LONG_TTL_MS = 10_000;

class Believer {
  private readonly child: ChildProcess;
  private readonly beliefs: Belief[] = [];

  constructor(endpoints: string) {
    this.child = fork(compiledFile('test/guards/believer-process.ts'), [endpoints]);
    this.child.on('message', (belief: Belief) => this.beliefs.push(belief));
  }

  send(order: BelieverOrder): void {
    this.child.send(order);
  }

  /** The next thing of this kind that it says of a lock. */
  async next(type: Belief['type'], lock: string): Promise<Belief> {
    const at = await waitFor(`the believer to have ${type} ${lock}`, () => {
      const found = this.beliefs.findIndex((each) => each.type === type && each.lock === lock);
      return found < 0 ? null : { found };
    });
    return this.beliefs.splice(at.found, 1)[0] as Belief;
  }

  async acquire(lock: string, ttlMs: number): Promise<Belief> {
    this.send({ type: 'acquire', lock, ttlMs });
    return this.next('looked', lock);
  }

  async stop(): Promise<void> {
    this.child.kill('SIGSTOP');
    await waitFor('the believer to stop', () => stateOf(this.child.pid ?? 0) === 'T');
  }

  cont(): void {
    this.child.kill('SIGCONT');
  }

  end(): void {
    this.child.kill('SIGKILL');
  }
}

export async function failClosedCases(t: Test, cluster: Cluster): Promise<void> {
  const believer = new Believer(cluster.endpointList);
  const client = await connect({ endpoints: cluster.endpoints });
  t.teardown(async () => {
    believer.end();
    await client.close();
  });
  /** Moment at which somebody else is granted the lock; the believer may not believe after it. */
  const grantOf = async (lock: string): Promise<number> => {
    const lease = await client.acquire(lock, { waitMs: 60_000 });
    const atMs = monotonicMs();
    await lease.release();
    return atMs;
  };

  await t.test('steps of the wall clock change nothing', async (t) => {
    t.match(await believer.acquire('closed/step', LONG_TTL_MS), { state: 'held' });
    for (const byMs of [3_600_000, -7_200_000]) {
      believer.send({ type: 'step', lock: 'closed/step', byMs });
      const { state, remainingMs } = await believer.next('looked', 'closed/step');
      t.equal(state, 'held', `${byMs}`);
      t.ok(remainingMs > LONG_TTL_MS / 2 && remainingMs <= LONG_TTL_MS, `${remainingMs}`);
    }
  });

  await t.test('a process that was stopped knows at its first look', async (t) => {
    await believer.acquire('closed/stop', TTL_MS);
    await believer.stop();
    const grantedMs = await grantOf('closed/stop');
    believer.send({ type: 'look', lock: 'closed/stop' });
    believer.cont();
    const belief = await believer.next('looked', 'closed/stop');
    t.ok(belief.atMs > grantedMs, 'it looked after somebody else had been granted the lock');
    t.match(belief, { state: 'lost', remainingMs: 0 });
  });

  await t.test('a blocked event loop knows before anything else runs', async (t) => {
    await believer.acquire('closed/block', TTL_MS);
    believer.send({ type: 'block', lock: 'closed/block', forMs: 1.2 * TTL_MS });
    t.match(await believer.next('looked', 'closed/block'), { state: 'lost', remainingMs: 0 });
    const lost = await believer.next('lost', 'closed/block');
    t.equal(lost.state, 'lost');
  });

  await t.test('a change of leader keeps the lease, under the same token', async (t) => {
    const { token } = await believer.acquire('closed/leader', LONG_TTL_MS);
    const leader = await cluster.leader();
    await cluster.kill(leader);
    await cluster.leaderOtherThan(leader);
    const belief = await waitFor('the believer to be sure again', async () => {
      believer.send({ type: 'look', lock: 'closed/leader' });
      const each = await believer.next('looked', 'closed/leader');
      t.not(each.state, 'lost');
      return each.state === 'held' && each.remainingMs > 0.7 * LONG_TTL_MS ? each : null;
    });
    t.equal(belief.token, token);
    await cluster.restart(leader);
  });

  await t.test('when no node answers any more, it is lost within the TTL', async (t) => {
    await believer.acquire('closed/dark', TTL_MS);
    // Stopped nodes keep their connections open and say nothing: a black hole.
    await Promise.all(cluster.runningIds.map((nodeId) => cluster.stop(nodeId)));
    const darkMs = monotonicMs();
    const { atMs, state } = await believer.next('lost', 'closed/dark');
    await Promise.all(cluster.runningIds.map((nodeId) => cluster.cont(nodeId)));
    t.equal(state, 'lost');
    // Its last renewal was sent before the nodes stood still; the timer may be a little late.
    t.ok(atMs - darkMs < 1.5 * TTL_MS, `lost after ${Math.round(atMs - darkMs)} ms`);
    t.ok((await grantOf('closed/dark')) > atMs, 'and somebody else was granted it only then');
  });
}
