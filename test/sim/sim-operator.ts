/**
 * A simulated operator, and a guard that reports: they end leases of others by force, disable and
 * enable names and prefixes, expire sessions, tell of refused tokens; all through the door.
 *
 * Owns: its request ids, its connection, what it has disabled. Asks again by the same id until it
 * is answered. Never: holds a lock, or knows more than reads and clients have told.
 * Used by: chaos.ts.
 */
import { CommandKind } from '../../src/core/locks/command.js';
import { OutcomeCode } from '../../src/core/locks/outcome.js';
import { ErrorCode } from '../../src/wire/errors.js';
import type { History } from './history.js';
import type { Plan } from './plan.js';
import { answerOf, type Call, isDecided, KIND_NAMES } from './sim-call.js';
import { type Reply, SimClient } from './sim-client.js';
import type { SimCluster, SimNode } from './sim-cluster.js';
import { LOCK_NAMES } from './sim-worker.js';

const RETRY_US = 25_000;
const PATIENCE_US = 400_000;
const DEADLINE_MS = 2_000;
const CALLS_MAX = 2;
const PACE_US = [10_000, 90_000] as const;
/** Grants and sessions so far back in the history are still of interest. */
const NEAR = 60;
/** The empty one is every lock. */
const PREFIXES = ['a/', 'b/', '', 'a', 'c'] as const;
const SAID = ['ops', 'it hangs'] as const;

interface Rule {
  readonly name: string;
  readonly isPrefix: boolean;
}

interface About {
  readonly lock?: string;
  readonly aboutToken?: number;
  readonly target?: string;
}

/** `name x` or `prefix x`, as histories have it. */
function targetOf({ name, isPrefix }: Rule): string {
  return `${isPrefix ? 'prefix' : 'name'} ${name}`;
}

export class SimOperator {
  private readonly client: SimClient;
  private readonly calls: Call[] = [];
  private readonly byCorrelation = new Map<number, Call>();
  private rules: Rule[] = [];
  private lastRequest = 0;
  private isStopping = false;

  constructor(
    private readonly cluster: SimCluster,
    private readonly history: History,
    private readonly id: number,
    plan: Plan,
  ) {
    this.client = new SimClient(cluster, id);
    this.client.delayUs = plan.clientDelayUs;
    this.client.onReply = (reply) => this.onReply(reply);
  }

  start(): void {
    const { world } = this.cluster;
    world.after(world.between(...PACE_US), () => {
      for (const call of [...this.calls]) this.poll(call);
      if (!this.isStopping && this.calls.length < CALLS_MAX) this.act();
      if (!this.isIdle) this.start();
    });
  }

  /** Finishes what is under way and begins nothing new. */
  stop(): void {
    this.isStopping = true;
  }

  get isIdle(): boolean {
    return this.isStopping && this.calls.length === 0;
  }

  private act(): void {
    const { world } = this.cluster;
    const roll = world.prng.below(100);
    if (roll < 15) this.forceWhoever();
    else if (roll < 45) this.forceAfterRead();
    else if (roll < 52) this.forceTold();
    // What is disabled does not stay so for long, or the run would have no contention.
    else if (roll < 80 && this.rules.length > 0) this.enable();
    else if (roll < 70) this.disable();
    else if (roll < 90) this.expireSession();
    else this.report();
  }

  private anyLock(): string {
    return LOCK_NAMES[this.cluster.world.prng.below(LOCK_NAMES.length)] as string;
  }

  private forceWhoever(): void {
    this.force(this.anyLock(), null, 0);
  }

  private force(lock: string, lease: Uint8Array | null, token: number): void {
    const fields = [lock, lease, lease === null && token > 0 ? token : null, ...SAID];
    this.begin(CommandKind.ForceRelease, fields, { lock, aboutToken: token });
  }

  /** Looks who holds, and ends that one, unless somebody else holds by then. */
  private forceAfterRead(): void {
    const lock = this.anyLock();
    const about = { lock };
    const call = this.begin(CommandKind.Get, [lock], about, (reply) => {
      if (reply[1] !== OutcomeCode.Ok) return;
      const { token } = answerOf(call.command, reply, this.cluster.world.nowUs);
      if (token > 0) this.force(lock, null, token);
    });
  }

  /** By the lease id that a client was told some time ago: it may have ended since. */
  private forceTold(): void {
    const { operations } = this.history;
    const grants = operations.slice(-NEAR).filter(({ kind, answers }) => {
      return kind === 'acquire' && answers.some(({ code }) => code === OutcomeCode.Ok);
    });
    const grant = grants[this.cluster.world.prng.below(Math.max(1, grants.length))];
    const told = grant?.answers.find(({ code }) => code === OutcomeCode.Ok);
    if (grant === undefined || told === undefined) return;
    this.force(grant.lock, Uint8Array.from(Buffer.from(told.subject, 'hex')), told.token);
  }

  private disable(): void {
    const { world } = this.cluster;
    const isPrefix = world.chance(0.5);
    const prefix = PREFIXES[world.prng.below(PREFIXES.length)] as string;
    const rule = { name: isPrefix ? prefix : this.anyLock(), isPrefix };
    this.rules.push(rule);
    this.begin(CommandKind.Disable, this.ruleFields(rule), { target: targetOf(rule) });
  }

  private enable(): void {
    const at = this.cluster.world.prng.below(this.rules.length);
    const [rule] = this.rules.splice(at, 1);
    if (rule === undefined) return;
    this.begin(CommandKind.Enable, this.ruleFields(rule), { target: targetOf(rule) });
  }

  private ruleFields({ name, isPrefix }: Rule): readonly unknown[] {
    return isPrefix ? [null, name, ...SAID] : [name, null, ...SAID];
  }

  private expireSession(): void {
    const opened = this.history.operations.filter(({ kind }) => kind === 'open').slice(-NEAR);
    const { prng } = this.cluster.world;
    // The newest are most likely to live, and to hold something.
    const back = Math.min(prng.below(9), prng.below(Math.max(1, opened.length)));
    const target = opened.at(-1 - back)?.answers.find(({ subject }) => subject !== '')?.subject;
    if (target === undefined) return;
    const id = Uint8Array.from(Buffer.from(target, 'hex'));
    this.begin(CommandKind.ExpireSession, [id, ...SAID], { target });
  }

  private report(): void {
    const { prng } = this.cluster.world;
    const lock = this.anyLock();
    const token = 1 + prng.below(500);
    const fields = [lock, token, token + prng.below(9), 1 + prng.below(3), 'redis'];
    this.begin(CommandKind.ReportRefusal, fields, { lock, aboutToken: token });
  }

  private begin(
    command: number,
    fields: readonly unknown[],
    { lock = '', aboutToken = 0, target = '' }: About,
    done: (reply: Reply) => void = () => undefined,
  ): Call {
    const isRead = command < CommandKind.SessionOpen;
    this.lastRequest += 1;
    const id = isRead ? '' : `o${this.id}-${this.lastRequest}`;
    const head = isRead ? [command] : [command, id, null, null, null];
    const record = {
      client: `operator ${this.id}`,
      id,
      kind: KIND_NAMES[command] ?? String(command),
      lock,
      session: '',
      ttlMs: 0,
      waitMs: 0,
      aboutToken,
      target,
      sentUs: this.cluster.world.nowUs,
      answers: [],
      isAbandoned: false,
    };
    const times = { sentUs: 0, tries: 0, copies: 0, retryUs: Number.POSITIVE_INFINITY };
    const states = { isQueued: false, isFinal: false, restsUntilUs: 0, repeats: 0 };
    const operation = [...head, ...fields];
    const call: Call = { command, operation, record, session: null, done, ...times, ...states };
    this.history.operations.push(record);
    this.calls.push(call);
    this.send(call);
    return call;
  }

  private send(call: Call): void {
    const { world } = this.cluster;
    call.sentUs = world.nowUs;
    call.tries += 1;
    call.retryUs = Number.POSITIVE_INFINITY;
    if (!this.client.isConnected) this.reconnect();
    const copies = world.chance(0.05) ? 2 : 1;
    for (let copy = 0; copy < copies; copy += 1) {
      this.byCorrelation.set(this.client.send(call.operation, DEADLINE_MS), call);
    }
  }

  private reconnect(): void {
    const { world, nodes } = this.cluster;
    const serving = this.cluster.serving();
    const anywhere = nodes[world.prng.below(nodes.length)] as SimNode;
    this.client.connect(serving !== undefined && world.chance(0.7) ? serving : anywhere);
  }

  /** Sends again what was refused or is not answered. */
  private poll(call: Call): void {
    const { nowUs } = this.cluster.world;
    const isLost = !this.client.isConnected && nowUs - call.sentUs > RETRY_US;
    if (nowUs - call.sentUs > PATIENCE_US) this.client.disconnect();
    else if (!isLost && nowUs < call.retryUs) return;
    this.send(call);
  }

  private onReply(reply: Reply): void {
    const call = this.byCorrelation.get(reply[0]);
    if (call === undefined) return;
    const { world } = this.cluster;
    if (!isDecided(reply)) {
      this.onRefused(call, reply);
      return;
    }
    call.record.answers.push(answerOf(call.command, reply, world.nowUs));
    if (call.isFinal) {
      this.drop(call);
      return;
    }
    call.isFinal = true;
    call.done(reply);
    // Now and then the answer counts as lost: the same id is asked again.
    const isLost = call.record.id !== '' && !this.isStopping && world.chance(0.15);
    if (isLost) call.retryUs = world.nowUs + world.between(100, 60_000);
    else this.drop(call);
  }

  private onRefused(call: Call, reply: Reply): void {
    const { world } = this.cluster;
    call.retryUs = world.nowUs + RETRY_US;
    if (reply[1] === OutcomeCode.Limit) {
      this.drop(call);
      call.record.isAbandoned = true;
    } else if (reply[1] === ErrorCode.NotLeader) {
      const leader = reply[6] as number;
      if (leader > 0 && leader !== this.client.nodeId) {
        this.client.connect(this.cluster.node(leader));
      } else this.reconnect();
      call.retryUs = world.nowUs + 1_000;
    } else if (world.chance(0.3)) this.reconnect();
  }

  private drop(call: Call): void {
    const at = this.calls.indexOf(call);
    if (at >= 0) this.calls.splice(at, 1);
  }
}
