/**
 * A cluster of fake nodes that share one small lock machine and can be told to misbehave.
 *
 * It follows docs/SEMANTICS.md where the client can see it: sessions, sequences with a floor,
 * stored results, queues, leases by cluster time. `interfere` sees every request first and may lose
 * it, lose its reply, delay or replace it. It is deliberately plain; the real machine has its own
 * tests.
 */
import { CommandKind } from '../../../src/core/locks/command.js';
import { ErrorCode } from '../../../src/wire/errors.js';
import { beginFrame, endFrame } from '../../../src/wire/frame.js';
import { type PackValue, writeValue } from '../../../src/wire/msgpack-writer.js';
import { OutBuffer } from '../../../src/wire/out-buffer.js';
import type { FakeClock } from './fake-clock.js';
import { FakeNetwork, type FakeRequest, type FakeServer, type FakeWire } from './fake-network.js';

export interface FakeReply {
  readonly code: number;
  /** -1: none. */
  readonly time: number;
  readonly replay: boolean;
  /** For refusals message and retry time come first. */
  readonly fields: readonly PackValue[];
}

/** What is done with a request instead of what it asks. */
export type Interference =
  | 'lose-request'
  | 'lose-reply'
  | 'reset-after'
  | { readonly reply: FakeReply }
  | { readonly delayMs: number };

interface FakeSession {
  readonly id: Uint8Array;
  readonly secret: Uint8Array;
  ttlMs: number;
  deadline: number;
  floor: number;
  /** null: pending. */
  readonly results: Map<number, FakeReply | null>;
  isEnded: boolean;
}

export interface FakeLease {
  readonly id: Uint8Array;
  readonly name: string;
  readonly token: number;
  readonly session: FakeSession | null;
  ttlMs: number;
  /** Own last renewal or grant. */
  renewedAt: number;
  floor: number;
  /** null while it lives; else the cause and the revision of its end. */
  end: { readonly cause: number; readonly revision: number } | null;
}

interface FakeWait {
  readonly key: string;
  readonly name: string;
  readonly session: FakeSession | null;
  readonly sequence: number;
  readonly ttlMs: number;
  readonly until: number;
  listener: FakeRequest;
}

const LEASE_TTL_DEFAULT = 30_000;
const GONE = { expired: 2, sessionExpired: 3, sessionClosed: 4, released: 1 };

function hex(bytes: unknown): string {
  if (!(bytes instanceof Uint8Array)) throw new Error(`not bytes: ${String(bytes)}`);
  return Buffer.from(bytes).toString('hex');
}

export function refusal(code: number, details: readonly PackValue[] = [], retryMs = -1): FakeReply {
  const retry = retryMs < 0 ? null : retryMs;
  return { code, time: -1, replay: false, fields: [null, retry, ...details] };
}

export class FakeCluster {
  readonly network: FakeNetwork;
  readonly requests: FakeRequest[] = [];
  readonly leases = new Map<string, FakeLease>();
  readonly sessions = new Map<string, FakeSession>();
  readonly waits: FakeWait[] = [];
  readonly free = new Map<string, FakeReply | null>();
  /** Node that leads, 0 for none. */
  leaderId = 1;
  /** What nodes say in hello; absent: the truth. */
  claimedLeaderId: number | undefined;
  isServing = true;
  clusterId: Uint8Array = new Uint8Array(16).fill(7);
  revision = 100;
  /** Cluster ms per real ms. */
  rate = 1;
  /** Cluster time is ahead of where it would be, against all assumptions. */
  leapMs = 0;
  /** Commits take this long. */
  commitMs = 0;
  windowMax = 1_024;
  interfere: (request: FakeRequest, nodeId: number) => Interference | undefined = () => undefined;
  private ids = 0;
  private readonly epochMs: number;

  constructor(
    readonly clock: FakeClock,
    readonly nodes = 3,
  ) {
    this.network = new FakeNetwork(clock);
    this.epochMs = clock.uptimeMs;
    for (let nodeId = 1; nodeId <= nodes; nodeId += 1) {
      this.network.servers.set(this.address(nodeId), new FakeNode(this, nodeId));
    }
  }

  address(nodeId: number): string {
    return `10.0.0.${nodeId}:7400`;
  }

  get endpoints(): string[] {
    return Array.from({ length: this.nodes }, (_, index) => this.address(index + 1));
  }

  get time(): number {
    const elapsedMs = (this.clock.uptimeMs - this.epochMs) * this.rate;
    return Math.floor(elapsedMs) + 50_000 + this.leapMs;
  }

  /** Requests of one command that reached a node. */
  seen(command: number): FakeRequest[] {
    return this.requests.filter((request) => request.command === command);
  }

  /** Leases that live now. */
  get live(): FakeLease[] {
    this.expire();
    return [...this.leases.values()].filter((lease) => lease.end === null);
  }

  deadlineOf(lease: FakeLease): number {
    const own = Math.max(lease.floor, lease.renewedAt + lease.ttlMs);
    return lease.session === null ? own : Math.min(own, lease.session.deadline);
  }

  /** Moves leadership; connections stay open unless `isKilled`. */
  elect(nodeId: number, isKilled: boolean): void {
    const former = this.leaderId;
    this.leaderId = nodeId;
    if (!isKilled || former === 0) return;
    this.network.down.add(this.address(former));
    this.network.reset(this.address(former));
  }

  newId(): Uint8Array {
    this.ids += 1;
    const id = new Uint8Array(16).fill(0xab);
    new DataView(id.buffer).setUint32(0, this.ids);
    return id;
  }

  send(request: FakeRequest, reply: FakeReply): void {
    const out = new OutBuffer();
    const position = beginFrame(out);
    const time = reply.time < 0 ? null : reply.time;
    writeValue(out, [request.correlation, reply.code, time, reply.replay, ...reply.fields]);
    endFrame(out, position, 1);
    request.wire.send(out.take());
  }

  /** Ends what is overdue, as the sweep would. */
  expire(): void {
    const { time } = this;
    for (const session of this.sessions.values()) {
      if (!session.isEnded && time >= session.deadline)
        this.endSession(session, GONE.sessionExpired);
    }
    for (const lease of this.leases.values()) {
      if (lease.end === null && time >= this.deadlineOf(lease)) this.endLease(lease, GONE.expired);
    }
    for (const wait of [...this.waits]) {
      if (time >= wait.until) this.leave(wait, ErrorCode.WaitTimeout);
    }
  }

  endSession(session: FakeSession, cause: number): void {
    session.isEnded = true;
    const code = cause === GONE.sessionClosed ? ErrorCode.Cancelled : ErrorCode.SessionExpired;
    for (const wait of [...this.waits]) if (wait.session === session) this.leave(wait, code);
    for (const lease of this.leases.values()) {
      if (lease.end === null && lease.session === session) this.endLease(lease, cause);
    }
  }

  endLease(lease: FakeLease, cause: number): number {
    this.revision += 1;
    lease.end = { cause, revision: this.revision };
    const next = this.waits.find((wait) => wait.name === lease.name);
    const { revision } = this;
    if (next !== undefined) this.grantWait(next);
    return revision;
  }

  holderOf(name: string): FakeLease | undefined {
    return [...this.leases.values()].find((lease) => lease.end === null && lease.name === name);
  }

  grant(name: string, session: FakeSession | null, ttlMs: number): FakeReply {
    this.revision += 1;
    const lease: FakeLease = {
      id: this.newId(),
      name,
      token: this.revision,
      session,
      ttlMs,
      renewedAt: this.time,
      floor: 0,
      end: null,
    };
    this.leases.set(hex(lease.id), lease);
    return this.ok([lease.id, lease.token, lease.token, this.deadlineOf(lease), ttlMs]);
  }

  ok(fields: readonly PackValue[], replay = false): FakeReply {
    return { code: ErrorCode.Ok, time: this.time, replay, fields };
  }

  refused(code: number, details: readonly PackValue[] = []): FakeReply {
    return { code, time: this.time, replay: false, fields: [null, null, ...details] };
  }

  private grantWait(wait: FakeWait): void {
    this.waits.splice(this.waits.indexOf(wait), 1);
    this.finish(wait, this.grant(wait.name, wait.session, wait.ttlMs));
  }

  leave(wait: FakeWait, code: number): void {
    this.waits.splice(this.waits.indexOf(wait), 1);
    this.finish(wait, this.refused(code));
  }

  private finish(wait: FakeWait, reply: FakeReply): void {
    if (wait.session === null) this.free.set(wait.key, reply);
    else wait.session.results.set(wait.sequence, reply);
    if (wait.listener.wire.isOpen) this.send(wait.listener, reply);
  }
}

export class FakeNode implements FakeServer {
  constructor(
    private readonly cluster: FakeCluster,
    private readonly nodeId: number,
  ) {}

  onHangUp(): void {
    // A real node would detach sessions; the wire that held them is gone with them.
  }

  onRequest(request: FakeRequest): void {
    const { cluster } = this;
    cluster.requests.push(request);
    const interference = cluster.interfere(request, this.nodeId);
    if (interference === 'lose-request') return;
    if (typeof interference === 'object' && 'reply' in interference) {
      cluster.send(request, interference.reply);
      return;
    }
    if (typeof interference === 'object') {
      cluster.clock.later(interference.delayMs, () => this.carryOut(request, undefined));
      return;
    }
    if (cluster.commitMs === 0) this.carryOut(request, interference);
    else cluster.clock.later(cluster.commitMs, () => this.carryOut(request, interference));
  }

  private carryOut(request: FakeRequest, interference: Interference | undefined): void {
    const { cluster } = this;
    cluster.expire();
    const reply = this.answer(request);
    if (interference === 'lose-reply') return;
    if (interference === 'reset-after') request.wire.reset();
    else if (reply !== null) cluster.send(request, reply);
  }

  private get isLeader(): boolean {
    return this.cluster.leaderId === this.nodeId;
  }

  private answer(request: FakeRequest): FakeReply | null {
    const { command } = request;
    if (command < CommandKind.SessionOpen) return this.answerQuery(request);
    if (!this.isLeader) return this.notLeader();
    if (!this.cluster.isServing) return refusal(ErrorCode.NoQuorum, [], 20);
    return this.apply(request);
  }

  private notLeader(): FakeReply {
    const { cluster } = this;
    const { leaderId } = cluster;
    if (leaderId === 0) return refusal(ErrorCode.NoQuorum, [], 20);
    return refusal(ErrorCode.NotLeader, [leaderId, cluster.address(leaderId)]);
  }

  private get members(): PackValue[] {
    const { cluster } = this;
    return cluster.endpoints.map((address, index) => [index + 1, address, 'voter']);
  }

  private answerQuery(request: FakeRequest): FakeReply {
    const { cluster } = this;
    const leaderId = cluster.claimedLeaderId ?? cluster.leaderId;
    switch (request.command) {
      case CommandKind.Hello:
        return cluster.ok([
          1,
          1,
          this.nodeId,
          leaderId,
          1,
          cluster.clusterId,
          1 << 20,
          this.members,
        ]);
      case CommandKind.Members:
        return cluster.ok([leaderId, this.members]);
      case CommandKind.Status:
        return cluster.ok([
          {
            node_id: this.nodeId,
            counters: { serving: cluster.isServing && this.isLeader ? 1 : 0 },
          },
        ]);
      case CommandKind.SessionAttach:
        return this.attach(request);
      case CommandKind.Get:
        return this.get(String(request.elements[1]));
      case CommandKind.List:
        return this.list(request.elements);
      case CommandKind.Check: {
        const token = cluster.holderOf(String(request.elements[1]))?.token ?? 0;
        return cluster.ok([token === request.elements[2] ? 'current' : 'stale', token]);
      }
      case CommandKind.Lookup:
        return this.lookup(request.elements);
      default:
        return cluster.ok([]);
    }
  }

  private lookup(elements: readonly unknown[]): FakeReply {
    const { cluster } = this;
    const key = elements[1] === null ? keyOf(elements[2]) : '';
    const session = elements[1] === null ? undefined : cluster.sessions.get(hex(elements[1]));
    const found =
      session === undefined ? cluster.free.get(key) : session.results.get(Number(elements[2]));
    if (found === undefined) return cluster.ok(['unknown', null]);
    if (found === null) return cluster.ok(['queued', [1, cluster.time, true, 77, 0]]);
    return cluster.ok(['done', [found.code, found.time, true, ...found.fields]]);
  }

  private row(name: string): PackValue[] {
    const { cluster } = this;
    const holder = cluster.holderOf(name);
    const waiters = cluster.waits.filter((wait) => wait.name === name);
    const deadline = holder === undefined ? 0 : cluster.deadlineOf(holder);
    const holderRow: PackValue =
      holder === undefined
        ? null
        : [holder.token, 1, deadline, holder.renewedAt, 1, holder.session !== null, null];
    return [name, holder?.token ?? 0, holderRow, waiters.length, 'required'];
  }

  private get(name: string): FakeReply {
    const { cluster } = this;
    if (cluster.holderOf(name) === undefined) return cluster.ok([null, cluster.revision, 9, null]);
    const waits = cluster.waits.filter((wait) => wait.name === name);
    const queue = waits.map((wait, index): PackValue => [index + 1, 1, wait.until, 1, null]);
    return cluster.ok([[...this.row(name), queue], cluster.revision, 9, null]);
  }

  private list(elements: readonly unknown[]): FakeReply {
    const { cluster } = this;
    const prefix = String(elements[1] ?? '');
    const limit = Number(elements[3] ?? 100);
    const names = [...new Set(cluster.live.map((lease) => lease.name))].sort();
    const after = elements[2] === null ? '' : String(elements[2]);
    const rest = names.filter((name) => name.startsWith(prefix) && name > after);
    const page = rest.slice(0, limit);
    const cursor = rest.length > limit ? (page.at(-1) ?? null) : null;
    const rows = page.map((name) => this.row(name));
    return cluster.ok([rows, cursor, cluster.revision, 9, null]);
  }

  private attach(request: FakeRequest): FakeReply {
    const session = this.cluster.sessions.get(hex(request.elements[1]));
    const isKnown = session !== undefined && hex(session.secret) === hex(request.elements[2]);
    if (!isKnown) return refusal(ErrorCode.SessionExpired);
    request.wire.attached.add(hex(session.id));
    return this.cluster.ok([session.deadline, session.ttlMs, session.isEnded]);
  }

  private apply(request: FakeRequest): FakeReply | null {
    const { cluster } = this;
    const { elements } = request;
    let session: FakeSession | null = null;
    if (elements[2] instanceof Uint8Array) {
      session = cluster.sessions.get(hex(elements[2])) ?? null;
      if (session === null) return cluster.refused(ErrorCode.SessionExpired);
      if (!request.wire.attached.has(hex(session.id))) return refusal(ErrorCode.Forbidden);
    }
    switch (request.command) {
      case CommandKind.SessionOpen:
        return this.openSession(request);
      case CommandKind.Acquire:
        return this.acquire(request, session);
      case CommandKind.Renew:
        return this.renew(elements);
      case CommandKind.Release:
        return this.release(elements);
      case CommandKind.Cancel:
        return this.cancel(elements, session);
      default:
        return this.endOrRenew(request.command, elements, session);
    }
  }

  private endOrRenew(
    command: number,
    elements: readonly unknown[],
    session: FakeSession | null,
  ): FakeReply {
    const { cluster } = this;
    if (session === null || session.isEnded) return cluster.refused(ErrorCode.SessionExpired);
    if (command === CommandKind.SessionClose) {
      cluster.endSession(session, GONE.sessionClosed);
      return cluster.ok([]);
    }
    if (typeof elements[5] === 'number') session.ttlMs = elements[5];
    session.deadline = Math.max(session.deadline, cluster.time + session.ttlMs);
    for (const lease of cluster.leases.values()) {
      if (lease.session === session && lease.end === null) lease.renewedAt = cluster.time;
    }
    return cluster.ok([session.deadline, session.ttlMs]);
  }

  private openSession(request: FakeRequest): FakeReply {
    const { cluster } = this;
    const key = keyOf(request.elements[1]);
    const stored = cluster.free.get(key);
    if (stored !== undefined && stored !== null) return { ...stored, replay: true };
    const ttlMs = Number(request.elements[5] ?? LEASE_TTL_DEFAULT);
    const session: FakeSession = {
      id: cluster.newId(),
      secret: cluster.newId(),
      ttlMs,
      deadline: cluster.time + ttlMs,
      floor: 0,
      results: new Map(),
      isEnded: false,
    };
    cluster.sessions.set(hex(session.id), session);
    request.wire.attached.add(hex(session.id));
    const reply = cluster.ok([session.id, session.secret, session.deadline, ttlMs]);
    cluster.free.set(key, reply);
    return reply;
  }

  private acquire(request: FakeRequest, session: FakeSession | null): FakeReply | null {
    const { cluster } = this;
    const { elements } = request;
    const sequence = session === null ? -1 : Number(elements[1]);
    if (session !== null) {
      const fault = acknowledge(session, elements[3]);
      if (fault) return cluster.refused(ErrorCode.BadRequest, ['acknowledged']);
      if (session.isEnded) return cluster.refused(ErrorCode.SessionExpired);
    }
    const key = session === null ? keyOf(elements[1]) : `${hex(session.id)}/${sequence}`;
    const results: Map<number | string, FakeReply | null> =
      session === null ? cluster.free : session.results;
    const id = session === null ? key : sequence;
    const stored = results.get(id);
    if (stored === null) return this.queueAgain(request, key);
    if (stored !== undefined) return { ...stored, replay: true };
    if (session !== null && sequence <= session.floor) {
      return cluster.refused(ErrorCode.RequestForgotten);
    }
    if (session !== null && sequence > session.floor + cluster.windowMax) {
      return cluster.refused(ErrorCode.Limit, ['sequence']);
    }
    const reply = this.decide(request, session, key, sequence);
    results.set(id, reply.code === ErrorCode.Queued ? null : reply);
    if (session !== null) raiseFloor(session);
    return reply;
  }

  private decide(
    request: FakeRequest,
    session: FakeSession | null,
    key: string,
    sequence: number,
  ): FakeReply {
    const { cluster } = this;
    const name = String(request.elements[5]);
    const ttlMs = Number(request.elements[6] ?? LEASE_TTL_DEFAULT);
    const waitMs = Number(request.elements[7] ?? 0);
    if (ttlMs > 86_400_000) return cluster.refused(ErrorCode.BadRequest, ['ttl_ms']);
    const holder = cluster.holderOf(name);
    if (holder === undefined) return cluster.grant(name, session, ttlMs);
    if (waitMs === 0) {
      const details = [holder.token, 1, cluster.deadlineOf(holder), 1, new Uint8Array([1, 2])];
      return cluster.refused(ErrorCode.LockBusy, details);
    }
    const until = cluster.time + waitMs;
    cluster.waits.push({ key, name, session, sequence, ttlMs, until, listener: request });
    cluster.clock.later(waitMs + 1, () => cluster.expire());
    return { code: ErrorCode.Queued, time: cluster.time, replay: false, fields: [1, 0] };
  }

  private queueAgain(request: FakeRequest, key: string): FakeReply {
    const { cluster } = this;
    const wait = cluster.waits.find((other) => other.key === key);
    if (wait !== undefined) wait.listener = request;
    return { code: ErrorCode.Queued, time: cluster.time, replay: true, fields: [1, 0] };
  }

  private renew(elements: readonly unknown[]): FakeReply {
    const { cluster } = this;
    const lease = cluster.leases.get(hex(elements[5]));
    if (lease === undefined) return cluster.refused(ErrorCode.StaleLease, [0, 0]);
    if (lease.end !== null) {
      return cluster.refused(ErrorCode.StaleLease, [lease.end.cause, lease.end.revision]);
    }
    if (typeof elements[6] === 'number') {
      lease.floor = cluster.deadlineOf(lease);
      lease.ttlMs = elements[6];
    }
    lease.renewedAt = cluster.time;
    return cluster.ok([cluster.deadlineOf(lease), lease.ttlMs, lease.token]);
  }

  private release(elements: readonly unknown[]): FakeReply {
    const { cluster } = this;
    const lease = cluster.leases.get(hex(elements[5]));
    if (lease === undefined) return cluster.refused(ErrorCode.StaleLease, [0, 0]);
    if (lease.end === null) return cluster.ok([cluster.endLease(lease, GONE.released)]);
    const { cause, revision } = lease.end;
    if (cause === GONE.released) return cluster.ok([revision], true);
    return cluster.refused(ErrorCode.StaleLease, [cause, revision]);
  }

  private cancel(elements: readonly unknown[], session: FakeSession | null): FakeReply {
    const { cluster } = this;
    const isSequence = session !== null;
    const key = isSequence ? `${hex(session.id)}/${Number(elements[5])}` : keyOf(elements[5]);
    const results: Map<number | string, FakeReply | null> = isSequence
      ? session.results
      : cluster.free;
    const id = isSequence ? Number(elements[5]) : key;
    const wait = cluster.waits.find((other) => other.key === key);
    if (wait !== undefined) cluster.leave(wait, ErrorCode.Cancelled);
    const found = results.get(id);
    if (found === undefined || found === null) {
      if (isSequence && Number(id) <= session.floor) {
        return cluster.refused(ErrorCode.RequestForgotten);
      }
      results.set(id, cluster.refused(ErrorCode.Cancelled));
      if (isSequence) raiseFloor(session);
      return cluster.ok([ErrorCode.Cancelled]);
    }
    return cluster.ok(found.code === ErrorCode.Ok ? [0, ...found.fields] : [found.code]);
  }
}

function keyOf(id: unknown): string {
  if (id instanceof Uint8Array) return hex(id);
  if (typeof id === 'string') return `text:${id}`;
  throw new Error(`no request id: ${String(id)}`);
}

/** True when the acknowledgement names a pending wait: refused as a whole. */
function acknowledge(session: FakeSession, acknowledged: unknown): boolean {
  const [mark = 0, ...singles] = Array.isArray(acknowledged)
    ? acknowledged.map(Number)
    : [Number(acknowledged ?? 0)];
  for (const [sequence, result] of session.results) {
    if (result === null && (sequence <= mark || singles.includes(sequence))) return true;
  }
  for (const [sequence, result] of [...session.results]) {
    if (result !== null && (sequence <= mark || singles.includes(sequence))) {
      session.results.delete(sequence);
    }
  }
  session.floor = Math.max(session.floor, mark);
  raiseFloor(session);
  return false;
}

function raiseFloor(session: FakeSession): void {
  while (session.results.has(session.floor + 1)) session.floor += 1;
}

/** Connections that are open now, newest last. */
export function openWires(cluster: FakeCluster): FakeWire[] {
  return [...cluster.network.wires].filter((wire) => wire.isOpen);
}
