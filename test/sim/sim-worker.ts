/**
 * A simulated user: opens a session, takes and gives locks, asks again by the same id, vanishes.
 *
 * Owns: its request ids and what it believes. Follows docs/PROTOCOL.md as a careful client would:
 * the safe deadline counts from the moment of sending. Used by: chaos.ts.
 */
import { marginMs } from '../../src/client/deadline.js';
import { CommandKind } from '../../src/core/locks/command.js';
import { OutcomeCode } from '../../src/core/locks/outcome.js';
import type { Belief, History } from './history.js';
import { type Reply, SimClient } from './sim-client.js';
import type { SimCluster, SimNode } from './sim-cluster.js';

const US_PER_MS = 1_000;
const RETRY_US = 30_000;
const UNKNOWN_OUTCOME = 44;
const FRONT_REFUSAL_MIN = 40;

interface Attempt {
  readonly requestId: string;
  readonly operation: readonly unknown[];
  readonly command: number;
  readonly lock: string;
  readonly firstSentUs: number;
  readonly done: (reply: Reply) => void;
  correlation: number;
  sentUs: number;
  tries: number;
}

export interface WorkerOptions {
  readonly locks: number;
  readonly ttlMs: number;
  readonly waitMsMax: number;
}

export class SimWorker {
  private readonly client: SimClient;
  private current: Attempt | null = null;
  private belief: Belief | null = null;
  private lastRequest = 0;
  private isStopping = false;
  /** Rate of this client's clock. */
  clockRate = 1;

  constructor(
    private readonly cluster: SimCluster,
    private readonly history: History,
    private readonly id: number,
    private readonly options: WorkerOptions,
  ) {
    this.client = new SimClient(cluster, id);
  }

  start(): void {
    this.step();
  }

  /** Finishes what is under way and begins nothing new. */
  stop(): void {
    this.isStopping = true;
  }

  get isIdle(): boolean {
    return this.isStopping && this.current === null;
  }

  private step(): void {
    const { world } = this.cluster;
    world.after(world.between(200, 3_000), () => {
      if (this.current !== null) this.poll(this.current);
      else if (this.isStopping) this.endBelief();
      else this.acquire();
      if (!this.isIdle) this.step();
    });
  }

  private acquire(): void {
    const { world } = this.cluster;
    const lock = `lock-${world.prng.below(this.options.locks)}`;
    const waitMs = world.chance(0.5) ? world.prng.below(this.options.waitMsMax) : 0;
    const operation = [lock, this.options.ttlMs, waitMs];
    this.begin(CommandKind.Acquire, operation, lock, (reply) => {
      if (reply[1] !== OutcomeCode.Ok) return;
      this.onGranted(lock, reply);
    });
  }

  private onGranted(lock: string, reply: Reply): void {
    const { world } = this.cluster;
    const attempt = this.current as Attempt;
    const [, , entryTime, , leaseId, token, , deadline] = reply as unknown as [
      number,
      number,
      number,
      boolean,
      Uint8Array,
      number,
      number,
      number,
    ];
    const leaseMs = deadline - entryTime;
    // A client measures with its own clock: its ms is clockRate of a true one.
    const trueUs = ((leaseMs - marginMs(leaseMs)) * US_PER_MS) / this.clockRate;
    const safeUs = attempt.firstSentUs + trueUs;
    const belief: Belief = {
      client: this.id,
      lock,
      token,
      fromUs: world.nowUs,
      untilUs: Math.max(world.nowUs, safeUs),
    };
    if (safeUs > world.nowUs) {
      this.history.beliefs.push(belief);
      this.belief = belief;
    }
    if (world.chance(0.1)) return; // vanishes: the lease has to expire
    world.after(world.between(0, this.options.ttlMs * US_PER_MS), () => {
      if (this.current === null && !this.isStopping) this.release(lock, leaseId, belief);
    });
  }

  private release(lock: string, leaseId: Uint8Array, belief: Belief): void {
    belief.untilUs = Math.min(belief.untilUs, this.cluster.world.nowUs);
    this.begin(CommandKind.Release, [leaseId], lock, () => undefined);
  }

  private endBelief(): void {
    if (this.belief === null) return;
    this.belief.untilUs = Math.min(this.belief.untilUs, this.cluster.world.nowUs);
    this.belief = null;
  }

  private begin(
    command: number,
    fields: readonly unknown[],
    lock: string,
    done: (reply: Reply) => void,
  ): void {
    this.lastRequest += 1;
    const requestId = `c${this.id}-${this.lastRequest}`;
    this.history.operations += 1;
    this.current = {
      requestId,
      operation: [command, requestId, null, null, null, ...fields],
      command,
      lock,
      firstSentUs: this.cluster.world.nowUs,
      done,
      correlation: 0,
      sentUs: 0,
      tries: 0,
    };
    this.send(this.current);
  }

  private send(attempt: Attempt): void {
    const { world } = this.cluster;
    attempt.sentUs = world.nowUs;
    attempt.tries += 1;
    if (!this.client.isConnected || world.chance(0.05)) this.reconnect();
    attempt.correlation = this.client.send(attempt.operation, 2_000);
  }

  private reconnect(): void {
    const { world, nodes } = this.cluster;
    const serving = this.cluster.serving();
    const anywhere = nodes[world.prng.below(nodes.length)] as SimNode;
    const node = serving !== undefined && world.chance(0.8) ? serving : anywhere;
    this.client.connect(node);
  }

  private poll(attempt: Attempt): void {
    const { world } = this.cluster;
    const reply = this.client.replyTo(attempt.correlation);
    if (reply !== undefined && reply[1] < FRONT_REFUSAL_MIN && reply[1] !== OutcomeCode.Queued) {
      this.finish(attempt, reply);
      return;
    }
    const isRefused = reply !== undefined && reply[1] >= FRONT_REFUSAL_MIN;
    const waitedUs = world.nowUs - attempt.sentUs;
    const patienceUs = reply === undefined ? 20 * RETRY_US : 60 * RETRY_US;
    if ((isRefused && waitedUs > RETRY_US) || waitedUs > patienceUs) {
      if (reply?.[1] !== UNKNOWN_OUTCOME) this.client.disconnect();
      this.send(attempt);
    } else if (!this.client.isConnected && waitedUs > RETRY_US) {
      this.send(attempt);
    }
  }

  private finish(attempt: Attempt, reply: Reply): void {
    const isGrant = attempt.command === CommandKind.Acquire && reply[1] === OutcomeCode.Ok;
    this.history.answers.push({
      client: this.id,
      requestId: attempt.requestId,
      command: attempt.command,
      code: reply[1],
      token: isGrant ? (reply[5] as number) : 0,
      leaseId: isGrant ? Buffer.from(reply[4] as Uint8Array).toString('hex') : '',
      lock: attempt.lock,
      atUs: this.cluster.world.nowUs,
    });
    attempt.done(reply);
    // Now and then the answer counts as lost: the same id is asked again and must say the same.
    if (attempt.tries < 3 && this.cluster.world.chance(0.1)) this.send(attempt);
    else this.current = null;
  }
}
