/**
 * A simulated user: opens sessions, takes, keeps and gives locks, reads, asks again by the same id
 * anywhere, sends things twice, cancels, vanishes.
 *
 * Owns: its request ids, its connection, and what it believes. Follows docs/PROTOCOL.md as a
 * careful client would: a safe deadline counts from the moment of first sending, and a grant after
 * a wait is renewed before it is believed. Used by: chaos.ts.
 */
import { CommandKind } from '../../src/core/locks/command.js';
import { OutcomeCode } from '../../src/core/locks/outcome.js';
import { ErrorCode } from '../../src/wire/errors.js';
import { idWith } from './checkers/logged-operation.js';
import type { History, Operation } from './history.js';
import type { NotAfterPlan } from './plan.js';
import { answerOf, type Call, isDecided, KIND_NAMES, type SessionKey } from './sim-call.js';
import { type Reply, SimClient } from './sim-client.js';
import type { SimCluster, SimNode } from './sim-cluster.js';
import { WorkerBeliefs } from './worker-beliefs.js';
import { WorkerSession } from './worker-session.js';

const RETRY_US = 25_000;
const PATIENCE_US = 400_000;
const QUEUED_PATIENCE_US = 1_500_000;
const DEADLINE_MS = 2_000;
const HELD_MAX = 3;
/** Refusals by which a node says that nothing has happened and nothing will. */
const PROMISES: ReadonlySet<number> = new Set([ErrorCode.NotLeader, ErrorCode.NoQuorum]);

/** Names that are prefixes of one another are unrelated locks. */
export const LOCK_NAMES = ['a', 'a/', 'a/b', 'b/c', 'b', 'c'] as const;

export interface WorkerOptions {
  readonly locks: number;
  readonly ttlMs: number;
  /** Least and greatest TTL of renewals that change it. */
  readonly renewedTtlMs: readonly [number, number];
  readonly waitMsMax: number;
  /** µs between two steps, least and most. */
  readonly paceUs: readonly [number, number];
  /** Uses sessions and sequences; else free-form ids. */
  readonly usesSessions: boolean;
  readonly clockRate: number;
  readonly delayUs: readonly [number, number];
  readonly notAfter: NotAfterPlan;
  readonly principal: number;
  /** What its free-form ids begin with: users of several principals have the same. */
  readonly idPrefix: string;
}

interface Held {
  readonly lock: string;
  readonly lease: Uint8Array;
  readonly token: number;
}

/** What histories keep of an operation beside its request id. */
interface About {
  readonly lock?: string;
  readonly ttlMs?: number;
  readonly waitMs?: number;
  readonly aboutToken?: number;
  readonly target?: string;
  readonly notAfter?: number;
}

export class SimWorker {
  readonly session = new WorkerSession();
  private readonly client: SimClient;
  private readonly calls: Call[] = [];
  private readonly byCorrelation = new Map<number, Call>();
  private held: Held[] = [];
  private readonly beliefs: WorkerBeliefs;
  private lastRequest = 0;
  /** Rises when it vanishes: a new user by the same number. */
  private incarnation = 1;
  private isStopping = false;
  private clusterTime = 0;

  constructor(
    private readonly cluster: SimCluster,
    private readonly history: History,
    private readonly id: number,
    private readonly options: WorkerOptions,
  ) {
    this.client = new SimClient(cluster, id, options.principal);
    this.beliefs = new WorkerBeliefs(history, options.clockRate, () => cluster.world.nowUs);
    this.client.delayUs = options.delayUs;
    this.client.onReply = (reply) => this.onReply(reply);
  }

  start(): void {
    this.step();
  }

  /** Finishes what is under way and begins nothing new. */
  stop(): void {
    this.isStopping = true;
  }

  get isIdle(): boolean {
    return this.isStopping && this.calls.length === 0;
  }

  private get name(): string {
    return `${this.id}.${this.incarnation}`;
  }

  private step(): void {
    const { world } = this.cluster;
    world.after(world.between(...this.options.paceUs), () => {
      for (const call of [...this.calls]) this.poll(call);
      if (!this.isStopping) this.act();
      if (!this.isIdle) this.step();
    });
  }

  /** Begins something new, if it has not too much under way. */
  private act(): void {
    const { world } = this.cluster;
    const { options, session, held } = this;
    if (options.usesSessions && !session.isOpen) {
      if (!session.isOpening) this.open();
      return;
    }
    if (this.calls.filter(({ restsUntilUs }) => restsUntilUs === 0).length >= 4) return;
    const roll = world.prng.below(100);
    if (roll < 40 && held.length > 0) this.release(held.shift() as Held);
    else if (roll < 52 && held.length > 0) this.renew(held[world.prng.below(held.length)] as Held);
    else if (roll < 60) this.read();
    else if (roll < 64 && session.isOpen) this.renewSession();
    else if (roll < 68) this.cancel();
    else if (roll < 69) this.vanish();
    else if (roll < 70) this.misuse();
    else if (roll < 71) this.trespass();
    else if (roll < 72 && session.isOpen) this.close();
    else if (roll < 73 && world.chance(0.08)) this.transfer();
    else if (held.length < HELD_MAX) this.acquire();
  }

  private acquire(): void {
    const { world } = this.cluster;
    const { options } = this;
    const lock = LOCK_NAMES[world.prng.below(options.locks)] as string;
    const waitMs = world.chance(0.5) ? 1 + world.prng.below(options.waitMsMax) : 0;
    const fields: unknown[] = [lock, options.ttlMs, waitMs];
    const { share, aheadMs, lateShare } = options.notAfter;
    let notAfter: number | null = null;
    if (world.chance(share)) notAfter = this.clusterTime + world.between(...aheadMs);
    if (notAfter !== null || world.chance(0.1)) {
      const expected = waitMs === 0 && world.chance(0.5) ? world.prng.below(400) : null;
      const metadata = new Uint8Array(world.prng.below(24)).fill(this.id);
      fields.push(null, null, null, expected, null, metadata, notAfter);
    }
    const about = { lock, waitMs, ttlMs: options.ttlMs, ...(notAfter !== null && { notAfter }) };
    const call = this.begin(CommandKind.Acquire, fields, about, (reply) => {
      if (reply[1] === OutcomeCode.Ok) this.onGranted(call, reply);
    });
    if (call.session === null && world.chance(lateShare)) call.repeats = world.between(1, 3);
  }

  private onGranted(call: Call, reply: Reply): void {
    const { lock } = call.record;
    const answer = answerOf(CommandKind.Acquire, reply, this.cluster.world.nowUs);
    const lease = reply[4] as Uint8Array;
    const { token } = answer;
    if (call.session !== this.session.key) return; // of a session that it has given up
    const isSample = !answer.isReplay && !call.isQueued;
    if (isSample) this.beliefs.add(call.record, token, answer);
    if (this.cluster.world.chance(0.08)) return; // forgets it: the lease has to expire
    const held = { lock, lease, token };
    this.held.push(held);
    if (!isSample) this.renew(held);
  }

  private renew(held: Held): void {
    const about = { lock: held.lock, aboutToken: held.token };
    const fields = [held.lease, ...this.drawRenewedTtl(1)];
    const call = this.begin(CommandKind.Renew, fields, about, (reply) => {
      if (reply[1] !== OutcomeCode.Ok) {
        // Somebody else may have ended it: it is told so here, and nowhere else.
        if (reply[1] === OutcomeCode.StaleLease) this.beliefs.stop(held.token);
        this.held = this.held.filter((other) => other !== held);
        return;
      }
      if (!this.held.includes(held)) return;
      const answer = answerOf(CommandKind.Renew, reply, this.cluster.world.nowUs);
      this.beliefs.add(call.record, held.token, answer);
    });
  }

  /** A renewal now and then changes the TTL; one that is shorter brings no deadline forward. */
  private drawRenewedTtl(times: number): number[] {
    const { world } = this.cluster;
    if (!world.chance(0.3)) return [];
    return [times * world.between(...this.options.renewedTtlMs)];
  }

  private release(held: Held): void {
    this.beliefs.stop(held.token);
    const about = { lock: held.lock, aboutToken: held.token };
    this.begin(CommandKind.Release, [held.lease], about, () => undefined);
  }

  private open(): void {
    const { session, options } = this;
    session.isOpening = true;
    const ttlMs = options.ttlMs * 2;
    this.begin(CommandKind.SessionOpen, [ttlMs, null], { ttlMs }, (reply) => {
      session.isOpening = false;
      if (reply[1] === OutcomeCode.Ok) {
        session.onOpened(reply[4] as Uint8Array, reply[5] as Uint8Array);
        if (reply[3]) this.attach(session.key);
      }
    });
  }

  private renewSession(): void {
    const [ttlMs = null] = this.drawRenewedTtl(2);
    this.begin(CommandKind.SessionRenew, [ttlMs], {}, () => undefined);
  }

  private close(): void {
    this.begin(CommandKind.SessionClose, [], {}, () => undefined);
    // From here on it believes nothing of this session, whatever is still granted in it.
    this.beliefs.stop(0);
    this.endSession();
  }

  private endSession(): void {
    this.session.end();
    this.held = [];
    this.beliefs.forget();
  }

  private read(): void {
    const { world } = this.cluster;
    const lock = LOCK_NAMES[world.prng.below(this.options.locks)] as string;
    const roll = world.prng.below(10);
    if (roll < 6) this.begin(CommandKind.Get, [lock], { lock }, () => undefined);
    else if (roll < 8) {
      const aboutToken = this.held[0]?.token ?? 1;
      const about = { lock, aboutToken };
      this.begin(CommandKind.Check, [lock, aboutToken], about, () => undefined);
    } else if (roll < 9) this.begin(CommandKind.List, ['a', null, 3], {}, () => undefined);
    else this.lookup();
  }

  private lookup(): void {
    const { operations } = this.history;
    const from = Math.max(0, operations.length - 50);
    const near = operations.slice(from).find(({ client, id }) => client === this.name && id !== '');
    if (near === undefined || this.options.usesSessions) return;
    const [id] = near.id.split('@');
    this.begin(CommandKind.Lookup, [null, id], { target: near.id }, () => undefined);
  }

  private cancel(): void {
    const waiting = this.calls.find(
      ({ command, record, session }) =>
        command === CommandKind.Acquire && record.waitMs > 0 && session === this.session.key,
    );
    if (waiting === undefined) return;
    const target = waiting.operation[1];
    const about = { lock: waiting.record.lock, target: waiting.record.id };
    this.begin(CommandKind.Cancel, [target], about, () => undefined);
  }

  /** The same id with other parameters: it must be refused, and do nothing. */
  private misuse(): void {
    const { world } = this.cluster;
    const call = this.calls.find(({ command }) => command === CommandKind.Acquire);
    if (call === undefined || !this.client.isConnected) return;
    const operation = [...this.wireForm(call)];
    operation[6] = this.options.ttlMs + 1 + world.prng.below(9);
    call.copies += 1;
    this.client.send(operation, DEADLINE_MS);
  }

  /** Knows the lease of another principal, and asks for it as for its own: nobody knows it. */
  private trespass(): void {
    const { world } = this.cluster;
    const isOthers = ({ kind, principal, answers }: Operation): boolean =>
      kind === 'acquire' && principal !== this.options.principal && answers.at(-1)?.code === 0;
    const theirs = this.history.operations.slice(-50).filter(isOthers);
    const found = theirs[world.prng.below(Math.max(1, theirs.length))];
    const { subject = '', token = 0 } = found?.answers.at(-1) ?? {};
    if (found === undefined || subject === '') return;
    const about = { lock: found.lock, aboutToken: token };
    const kind = world.chance(0.5) ? CommandKind.Renew : CommandKind.Release;
    this.begin(kind, [Buffer.from(subject, 'hex')], about, () => undefined);
  }

  /** Asks the leader to hand over to somebody. */
  private transfer(): void {
    const target = 1 + this.cluster.world.prng.below(this.cluster.nodes.length);
    if (this.client.isConnected) this.client.send([CommandKind.Transfer, target], DEADLINE_MS);
  }

  /** The process is gone, with all that it knew; another one begins. */
  private vanish(): void {
    this.client.disconnect();
    for (const call of this.calls) {
      if (call.restsUntilUs === 0) call.record.isAbandoned = true;
    }
    this.calls.length = 0;
    this.byCorrelation.clear();
    this.held = [];
    this.beliefs.forget();
    this.session.end();
    this.session.isOpening = false;
    this.incarnation += 1;
  }

  private begin(
    command: number,
    fields: readonly unknown[],
    about: About,
    done: (reply: Reply) => void,
  ): Call {
    const { session, options } = this;
    const isRead = command < CommandKind.SessionOpen;
    const isNamed = !isRead && command !== CommandKind.Renew;
    const isOpen = command === CommandKind.SessionOpen;
    const usesSequence = isNamed && options.usesSessions && session.isOpen && !isOpen;
    this.lastRequest += 1;
    const freeId = `${options.idPrefix}-${this.lastRequest}`;
    const uniqueId = idWith(options.principal, freeId);
    const sequence = usesSequence ? session.nextSequence() : 0;
    const request = usesSequence ? sequence : isNamed ? freeId : null;
    const key = usesSequence ? session.key : null;
    const sessionId = key?.id ?? null;
    const head = isRead ? [command] : [command, request, sessionId, null, null];
    const record = {
      client: this.name,
      id: usesSequence ? `${session.hex}/${sequence}` : isNamed ? uniqueId : '',
      kind: KIND_NAMES[command] ?? String(command),
      lock: about.lock ?? '',
      session: usesSequence ? session.hex : '',
      ttlMs: about.ttlMs ?? 0,
      waitMs: about.waitMs ?? 0,
      aboutToken: about.aboutToken ?? 0,
      target: about.target ?? '',
      principal: options.principal,
      ...(about.notAfter !== undefined && { notAfter: about.notAfter }),
      sentUs: this.cluster.world.nowUs,
      answers: [],
      isAbandoned: false,
    };
    const times = { sentUs: 0, tries: 0, copies: 0, retryUs: Number.POSITIVE_INFINITY };
    const states = { isQueued: false, isFinal: false, restsUntilUs: 0, repeats: 0 };
    const operation = [...head, ...fields];
    const call: Call = { command, operation, record, session: key, done, ...times, ...states };
    this.history.operations.push(record);
    this.calls.push(call);
    this.send(call);
    return call;
  }

  /** The operation with the acknowledgements of this moment. */
  private wireForm(call: Call): readonly unknown[] {
    const { operation } = call;
    if (typeof operation[1] !== 'number' || operation[2] === null) return operation;
    if (call.command < CommandKind.SessionOpen || this.cluster.world.chance(0.5)) return operation;
    const copy = [...operation];
    copy[3] = this.session.acknowledgements(operation[1], this.cluster.world);
    return copy;
  }

  private send(call: Call): void {
    const { world } = this.cluster;
    call.sentUs = world.nowUs;
    call.tries += 1;
    call.retryUs = Number.POSITIVE_INFINITY;
    if (!this.client.isConnected || world.chance(0.02)) this.reconnect();
    const copies = world.chance(0.03) ? 2 : 1;
    call.copies += copies;
    for (let i = 0; i < copies; i += 1) {
      const correlation = this.client.send(this.wireForm(call), DEADLINE_MS);
      this.byCorrelation.set(correlation, call);
    }
  }

  private attach(key: SessionKey | null): void {
    if (key === null) return;
    this.client.send([CommandKind.SessionAttach, key.id, key.secret], DEADLINE_MS);
  }

  private reconnect(): void {
    const { world, nodes } = this.cluster;
    const serving = this.cluster.serving();
    const anywhere = nodes[world.prng.below(nodes.length)] as SimNode;
    this.connect(serving !== undefined && world.chance(0.7) ? serving : anywhere);
  }

  private connect(node: SimNode): void {
    this.client.connect(node);
    this.attach(this.session.key);
  }

  /** Sends again what was refused or is not answered. */
  private poll(call: Call): void {
    const { nowUs } = this.cluster.world;
    if (call.restsUntilUs > 0) {
      if (nowUs < call.restsUntilUs) return;
      call.restsUntilUs = 0;
      this.send(call);
      return;
    }
    const isLost = !this.client.isConnected && nowUs - call.sentUs > RETRY_US;
    const patienceUs = call.isQueued ? QUEUED_PATIENCE_US : PATIENCE_US;
    if (nowUs - call.sentUs > patienceUs) this.client.disconnect();
    else if (!isLost && nowUs < call.retryUs) return;
    this.send(call);
  }

  private onReply(reply: Reply): void {
    const call = this.byCorrelation.get(reply[0]);
    if (call === undefined) return;
    if (!isDecided(reply)) {
      this.onRefused(call, reply);
      return;
    }
    const { nowUs } = this.cluster.world;
    this.clusterTime = Math.max(this.clusterTime, reply[2] ?? 0);
    call.record.answers.push(answerOf(call.command, reply, nowUs));
    if (reply[1] === OutcomeCode.Queued) {
      call.isQueued = true;
      return;
    }
    this.finish(call, reply);
  }

  private onRefused(call: Call, reply: Reply): void {
    const { world } = this.cluster;
    call.retryUs = world.nowUs + RETRY_US;
    if (PROMISES.has(reply[1]) && call.copies === 1 && call.record.id !== '' && world.chance(0.2)) {
      this.believeRefusal(call);
    } else if (reply[1] === OutcomeCode.Limit) {
      this.abandon(call);
    } else if (reply[1] === OutcomeCode.Forbidden) {
      this.attach(call.session);
    } else if (reply[1] === ErrorCode.NotLeader) {
      const leader = reply[6] as number;
      const isElsewhere = leader > 0 && leader !== this.client.nodeId;
      if (isElsewhere && world.chance(0.9)) this.connect(this.cluster.node(leader));
      else if (!isElsewhere) this.reconnect();
      call.retryUs = world.nowUs + 1_000;
    } else if (world.chance(0.3)) this.reconnect();
  }

  /** Takes the node at its word: the only sending has no effect, now or later. */
  private believeRefusal(call: Call): void {
    this.drop(call);
    call.record.isRefused = true;
    this.session.onDone(call.operation[1], call.session);
    this.reconnect();
  }

  /** Gives an operation up: an earlier sending may have had its effect. */
  private abandon(call: Call): void {
    this.drop(call);
    call.record.isAbandoned = true;
  }

  private drop(call: Call): void {
    const at = this.calls.indexOf(call);
    if (at >= 0) this.calls.splice(at, 1);
    if (call.command === CommandKind.SessionOpen) this.session.isOpening = false;
  }

  private finish(call: Call, reply: Reply): void {
    const at = this.calls.indexOf(call);
    // A second copy was answered meanwhile, or nobody asks any more.
    if (at < 0 || call.restsUntilUs > 0) return;
    const { world } = this.cluster;
    if (!call.isFinal) {
      call.isFinal = true;
      call.done(reply);
      if (reply[1] === OutcomeCode.SessionExpired && call.record.session !== '') {
        if (call.record.session === this.session.hex) {
          this.beliefs.stop(0);
          this.endSession();
        }
      } else if (call.record.id !== '' && !this.isStopping && world.chance(0.06)) {
        // Now and then the answer counts as lost: the same id is asked again.
        this.rest(call, [100, 60_000]);
        return;
      }
    }
    if (call.repeats > 0 && !this.isStopping) {
      call.repeats -= 1;
      this.rest(call, this.options.notAfter.lateUs);
      return;
    }
    this.calls.splice(at, 1);
    this.session.onDone(call.operation[1], call.session);
  }

  /** Nobody asks for it for a while. */
  private rest(call: Call, us: readonly [number, number]): void {
    const { world } = this.cluster;
    call.restsUntilUs = world.nowUs + world.between(...us);
  }
}
