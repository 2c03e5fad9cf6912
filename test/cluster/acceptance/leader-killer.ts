/**
 * Kills the leader with SIGKILL again and again, and starts it anew each time.
 *
 * Owns: the order: kill, service again, restart, a pause, the next one; so one node at a time is
 * down. Never: the probe, which says how long there was no service. Used by:
 * contended-file.test.ts.
 */
import type { Cluster } from '../harness.js';
import type { Probe } from './probe.js';
import { pass } from './size.js';

export class LeaderKiller {
  /** Time in ms without an acknowledgement at the probe, one for each kill. */
  readonly gapsMs: number[] = [];
  private isStopped = false;
  private loop: Promise<void> = Promise.resolve();

  /** @param pauseMs between the restart of one leader and the death of the next */
  constructor(
    private readonly cluster: Cluster,
    private readonly probe: Probe,
    private readonly pauseMs: number,
  ) {}

  start(): void {
    this.loop = this.run();
    this.loop.catch(() => undefined); // stop() tells
  }

  /** Resolves when the last killed node is up again; rejects when something did not come back. */
  async stop(): Promise<void> {
    this.isStopped = true;
    await this.loop;
  }

  private async run(): Promise<void> {
    while (!this.isStopped) {
      await pass(this.pauseMs);
      await this.killOne();
    }
  }

  private async killOne(): Promise<void> {
    const leader = await this.cluster.leader(60_000);
    const killedAt = performance.now();
    await this.cluster.kill(leader);
    await this.probe.serviceSince(performance.now(), 10);
    this.gapsMs.push(this.probe.longestGap(killedAt, performance.now()));
    await this.cluster.restart(leader);
  }
}
