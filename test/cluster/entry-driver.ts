/**
 * Entries of the log at will: a lease that is renewed again and again, which changes nothing else.
 *
 * Owns: one lease, and its way to the leader. Never: another command. Used by: tests that need log
 * to come, snapshots to be made.
 */
import { ErrorCode } from '../../src/wire/errors.js';
import { acquireOperation, grantIn, renewOperation } from './acceptance/operations.js';
import type { Cluster } from './harness.js';
import { LeaderCaller } from './leader-caller.js';

const TTL_MS = 3_600_000;
/** Renewals that are out at once in `reach`. */
const OUT_MAX = 64;
/** Renewals between two looks at the index in `reach`. */
const RENEWALS_PER_LOOK = 256;

export class EntryDriver {
  private out = 0;
  private failure: Error | null = null;

  private constructor(
    private readonly cluster: Cluster,
    private readonly caller: LeaderCaller,
    private readonly leaseId: string,
  ) {}

  /** Acquires `name`, under a request id of the same name. */
  static async open(cluster: Cluster, name: string): Promise<EntryDriver> {
    const caller = new LeaderCaller(cluster);
    const { leaseId } = grantIn(await caller.call(acquireOperation(name, name, TTL_MS)));
    return new EntryDriver(cluster, caller, leaseId);
  }

  /** The node that answered last. */
  get leader(): number {
    return this.caller.leader;
  }

  /** `count` entries, one after the other. */
  async give(count: number): Promise<void> {
    for (let at = 0; at < count; at += 1) await this.renew();
  }

  /** Gives entries until `isReached`, at most `most`. Returns how many it took. */
  async giveUntil(
    what: string,
    isReached: () => boolean | Promise<boolean>,
    most = 10_000,
  ): Promise<number> {
    for (let given = 0; given < most; given += 1) {
      if (await isReached()) return given;
      await this.renew();
    }
    throw new Error(`${most} entries have not led to ${what}`);
  }

  /**
   * Gives entries until the log has come to `index`: one renewal a ms, which is about as fast as a
   * leader still gives each an entry of its own.
   */
  async reach(index: number): Promise<void> {
    for (let sent = 1; ; sent += 1) {
      while (this.out >= OUT_MAX) await new Promise((resolve) => setTimeout(resolve, 1));
      if (this.failure !== null) throw this.failure;
      this.out += 1;
      this.renew().then(
        () => {
          this.out -= 1;
        },
        (error: Error) => {
          this.failure = error;
        },
      );
      if (sent % RENEWALS_PER_LOOK === 0) {
        const { appliedIndex } = await this.cluster.status(this.leader);
        if (appliedIndex >= index) return;
      }
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
  }

  close(): void {
    this.caller.close();
  }

  private async renew(): Promise<void> {
    const { code } = await this.caller.call(renewOperation(this.leaseId));
    if (code !== ErrorCode.Ok) throw new Error(`a renewal was answered ${code}`);
  }
}
