/**
 * The road to the leader: every call of a client goes through here.
 *
 * Owns: which connection leads to the leader, the calls that wait for one, reconnecting, attaching
 * sessions, and what is tried again: by the same request id, with back-off, within the retry
 * budget, never past the deadline. Never: knows what an operation means. A call that was sent on a
 * lost connection is sent once more on each new leader, which the search's own back-off paces. Used
 * by: client.ts, session.ts, acquire.ts, debts.ts.
 */
import { REQUEST_DEADLINE_DEFAULT_MS } from '../limits.js';
import { ERROR_CODE_MIN } from '../wire/errors.js';
import { CommandKind } from '../wire/request.js';
import type { Reply } from '../wire/response.js';
import type { Ambient } from './ambient.js';
import { ignore } from './attended.js';
import {
  IN_FLIGHT_MAX,
  LIVENESS_PING_MS,
  LIVENESS_SILENCE_MS,
  RETRY_BACKOFF_MS,
  RETRY_BACKOFF_MS_MAX,
  SEEK_BACKOFF_MS,
  SEEK_BACKOFF_MS_MAX,
  WAITING_REQUESTS_MAX,
} from './bounds.js';
import { type Binding, Call, type CallSpec, type Carrier } from './call.js';
import type { Timer } from './clock.js';
import type { Connection, ConnectionListener } from './connection.js';
import { asHoldfastError, clientClosed, ErrorCode, HoldfastError } from './errors.js';
import { LeaderSearch } from './leader-search.js';
import { errorOf, type Greeting } from './reply.js';
import { fullJitterMs, RetryBudget } from './retry-budget.js';
import type { Tracing } from './tracing.js';
import { type Dial, type Endpoint, formatEndpoint, parseEndpoint } from './transport.js';
import { WaitingCalls } from './waiting-calls.js';

/** How often one call may find its session detached before it is refused. */
const ATTACHES_MAX = 3;
/** A ping of a silent connection is asked for no longer than this. */
const PING_MS = LIVENESS_SILENCE_MS;
/** Jittered pause before an attach that was refused is tried again. */
const ATTACH_BACKOFF_MS_MAX = 200;

/** Told when the road breaks and when it stands again. */
export interface LeaderWatcher {
  onLeaderLost(): void;
  onLeaderFound(): void;
}

export interface LeaderPlan {
  readonly dial: Dial;
  readonly endpoints: readonly Endpoint[];
  readonly clientName: string;
  /** Undefined when nobody asked for spans. */
  readonly tracing: Tracing | undefined;
}

export class Leader implements ConnectionListener {
  readonly #ambient: Ambient;
  readonly #plan: LeaderPlan;
  readonly #budget: RetryBudget;
  readonly #bindings = new Map<string, Binding>();
  readonly #watchers = new Set<LeaderWatcher>();
  /** Every call that is not settled, to be ended by close(). */
  readonly #calls = new Set<Call>();
  readonly #waiting = new WaitingCalls();
  /** By session: calls that wait for its attach to the current connection. */
  readonly #parked = new Map<string, Call[]>();
  #current: Connection | undefined;
  #follower: Connection | undefined;
  #search: LeaderSearch | undefined;
  /** Searches and demotions since a leader answered well. */
  #setbacks = 0;
  /** The last leader refused for want of a majority: the next one is asked whether it serves. */
  #mustServe = false;
  #seekTimer: Timer | undefined;
  #livenessTimer: Timer | undefined;
  #hint: Endpoint | undefined;
  #members: readonly Endpoint[] = [];
  #greeting: Greeting | undefined;
  /** A connection that is being pinged because a renewal is unanswered. */
  #suspected: Connection | undefined;
  #isClosed = false;
  /** Why calls wait when nothing worse is known; one for all, since they may be many. */
  readonly #leaderless = new HoldfastError(ErrorCode.NoQuorum, { message: 'no leader was found' });

  constructor(ambient: Ambient, plan: LeaderPlan) {
    this.#ambient = ambient;
    this.#plan = plan;
    this.#budget = new RetryBudget(ambient.clock);
  }

  /** What the last greeted leader said of itself and its cluster; undefined before the first. */
  get greeting(): Greeting | undefined {
    return this.#greeting;
  }

  /** Nodes that may be asked: the members that were learnt, and what the program named. */
  get nodes(): readonly Endpoint[] {
    return this.#members.length > 0 ? this.#members : this.#plan.endpoints;
  }

  get dial(): Dial {
    return this.#plan.dial;
  }

  get hasLeader(): boolean {
    return this.#current !== undefined;
  }

  watch(watcher: LeaderWatcher): void {
    this.#watchers.add(watcher);
  }

  unwatch(watcher: LeaderWatcher): void {
    this.#watchers.delete(watcher);
  }

  /** From now on the session is attached to each new leader; it was opened on `openedOn`. */
  bind(binding: Binding, openedOn: Carrier | undefined): void {
    this.#bindings.set(binding.key, binding);
    const current = this.#current;
    if (current === undefined) return;
    if (current === openedOn) current.attached.add(binding.key);
    else this.#attach(binding, current);
  }

  unbind(binding: Binding): void {
    this.#bindings.delete(binding.key);
    this.#current?.attached.delete(binding.key);
  }

  /** Sends a call to the leader. Its result settles by its deadline, whatever happens. */
  call(spec: CallSpec): Call {
    const span = this.#plan.tracing?.begin(spec);
    const call = new Call(this.#ambient, span?.spec ?? spec);
    span?.follow(call);
    if (this.#isClosed) {
      call.fail(clientClosed('none'));
      return call;
    }
    this.#calls.add(call);
    const settled = (): void => void this.#calls.delete(call);
    call.result.then(settled, settled);
    this.#ambient.counters.requests += 1;
    this.#budget.deposit();
    this.#dispatch(call);
    return call;
  }

  /** Resolves when a leader has answered, or any node if that is enough; rejects as calls do. */
  async reach(deadlineMs: number, isAnyNode: boolean): Promise<void> {
    const operation = [CommandKind.Ping];
    await this.call({ operation, deadlineMs, isLogged: false, isRead: isAnyNode }).result;
  }

  /** Begins to look for a leader if there is none and nobody looks. */
  seek(): void {
    if (this.#isClosed || this.#current !== undefined || this.#search !== undefined) return;
    if (this.#seekTimer !== undefined) return;
    this.#startSearch();
  }

  /**
   * A renewal is unanswered. A node that is merely slow to commit still answers a ping: one that
   * stays silent for `silentMs` more is given up.
   */
  suspect(silentMs: number): void {
    const connection = this.#current;
    if (connection === undefined || this.#suspected === connection) return;
    this.#suspected = connection;
    const settled = (): void => {
      if (this.#suspected === connection) this.#suspected = undefined;
      if (connection.silentMs() >= silentMs) this.#giveUp(connection);
    };
    this.#ping(connection, silentMs).then(settled, settled);
  }

  /** Fails every call and closes every connection. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.failAll();
    this.#search?.abandon();
    this.#follower?.close('the client was closed');
    this.#current?.close('the client was closed');
  }

  /** Fails every call that is under way now. */
  failAll(): void {
    for (const call of [...this.#calls]) {
      call.fail(clientClosed(call.mayHaveEffect ? 'unknown' : 'none'));
    }
    this.#waiting.takeAll();
    this.#parked.clear();
  }

  onReply(connection: Connection, call: Call, reply: Reply): void {
    const isGood = reply.code < ERROR_CODE_MIN;
    if (isGood) this.#onGood(connection, call, reply);
    if (reply.code === ErrorCode.Queued) {
      call.queued(reply);
      return;
    }
    call.attemptAnswered(reply.clusterTimeMs >= 0);
    call.answeredBy = connection;
    if (isGood) call.settle(reply);
    else this.#onRefusal(connection, call, reply);
    this.#dispatchWaiting();
  }

  onNotice(connection: Connection, reply: Reply): void {
    if (reply.code === ErrorCode.ShuttingDown || reply.code === ErrorCode.NotLeader) {
      this.#demote(connection, undefined);
    }
  }

  onClosed(connection: Connection, calls: Call[], error: HoldfastError): void {
    if (connection === this.#follower) this.#follower = undefined;
    if (!this.#isClosed) this.#ambient.counters.connectionsLost += 1;
    this.#demote(connection, undefined);
    for (const call of calls) {
      call.lastError = error;
      this.#redirect(call);
    }
  }

  /**
   * The leader works. An own committed request is a sample of cluster time too (docs/CLIENT.md):
   * not a read, nor a refusal, which a node may give from what it applied before the request was
   * sent.
   */
  #onGood(connection: Connection, call: Call, reply: Reply): void {
    const { firstSentAt, spec } = call;
    if (connection === this.#current && spec.isPinned !== true) this.#setbacks = 0;
    if (!spec.isLogged || firstSentAt === undefined || reply.clusterTimeMs < 0) return;
    if (reply.isReplay && spec.isOwnRequest !== true) return;
    this.#ambient.observe({ sentAt: firstSentAt, clusterTimeMs: reply.clusterTimeMs });
  }

  #onRefusal(connection: Connection, call: Call, reply: Reply): void {
    const error = refusalOf(call, reply);
    call.lastError = error;
    switch (reply.code) {
      case ErrorCode.NotLeader:
      case ErrorCode.ShuttingDown:
        this.#demote(connection, parseEndpoint(error.details.leader ?? '') ?? undefined);
        this.#redirect(call);
        return;
      case ErrorCode.NoQuorum:
        // A node that leads nobody yet, or nobody any more: look again, for one that serves.
        this.#mustServe = true;
        this.#demote(connection, undefined);
        this.#redirect(call);
        return;
      case ErrorCode.UnknownOutcome:
        call.attemptUnknown();
        this.#retry(call, error);
        return;
      case ErrorCode.Overloaded:
        this.#retry(call, error);
        return;
      default:
        this.#onFinalRefusal(connection, call, error);
    }
  }

  #onFinalRefusal(connection: Connection, call: Call, error: HoldfastError): void {
    const { binding } = call.spec;
    const isDetached = error.number === ErrorCode.Forbidden && call.refusals < ATTACHES_MAX;
    if (isWindowFull(error)) {
      this.#retry(call, error);
    } else if (isDetached && binding !== undefined && connection.attached.delete(binding.key)) {
      call.refusals += 1;
      this.#attach(binding, connection);
      this.#dispatch(call);
    } else if (isDetached && binding !== undefined && this.#parked.has(binding.key)) {
      call.refusals += 1;
      this.#dispatch(call);
    } else {
      call.fail(error);
    }
  }

  /** The call goes to the next leader; one that was for this connection only is failed. */
  #redirect(call: Call): void {
    if (call.isSettled) return;
    if (call.spec.isPinned === true) {
      call.fail(call.lastError ?? new HoldfastError(ErrorCode.NotLeader));
      return;
    }
    this.#ambient.counters.resends += 1;
    this.#dispatch(call);
  }

  /** The call goes again after a back-off, if the budget and its deadline allow. */
  #retry(call: Call, error: HoldfastError): void {
    const { clock, counters } = this.#ambient;
    // A full window is bounded by itself, and what keeps a lease must not wait for a budget.
    const isFree = call.spec.isEssential === true || isWindowFull(error);
    const jitter = fullJitterMs(clock, call.refusals, RETRY_BACKOFF_MS, RETRY_BACKOFF_MS_MAX);
    const delayMs = Math.max(0, error.retryAfterMs) + jitter;
    call.refusals += 1;
    if (delayMs >= call.remainingMs()) {
      call.fail(error);
      return;
    }
    if (!isFree && !this.#budget.tryWithdraw()) {
      counters.retriesRefused += 1;
      call.fail(error);
      return;
    }
    counters.retries += 1;
    this.#ambient.after(delayMs, () => this.#dispatch(call));
  }

  #dispatch(call: Call): void {
    if (call.isSettled) return;
    const { binding, isEssential, isRead } = call.spec;
    const current = this.#current;
    if (current === undefined) {
      if (isRead === true && this.#follower !== undefined) {
        this.#follower.send(call);
        return;
      }
      call.lastError ??= this.#leaderless;
      this.#hold(call);
      this.seek();
      return;
    }
    if (binding !== undefined && !current.attached.has(binding.key)) {
      this.#park(call, binding);
      return;
    }
    if (isEssential === true || current.unanswered < IN_FLIGHT_MAX) {
      current.send(call);
      return;
    }
    this.#hold(call);
  }

  #hold(call: Call): void {
    if (this.#waiting.tryAdd(call)) return;
    const message = `${WAITING_REQUESTS_MAX} requests wait in this client already`;
    call.fail(new HoldfastError(ErrorCode.Overloaded, { message }));
  }

  /** No leader is found, but a node that answers reads is. */
  #dispatchReads(): void {
    for (const call of this.#waiting.takeAll()) {
      if (call.spec.isRead === true) this.#dispatch(call);
      else this.#hold(call);
    }
  }

  /** Waits for the attach that is under way; a session that is not bound any more is over. */
  #park(call: Call, binding: Binding): void {
    const parked = this.#parked.get(binding.key);
    if (parked !== undefined) parked.push(call);
    else call.fail(new HoldfastError(ErrorCode.SessionExpired));
  }

  #dispatchWaiting(): void {
    for (;;) {
      const current = this.#current;
      if (current === undefined) return;
      const call = this.#waiting.take(current.unanswered < IN_FLIGHT_MAX);
      if (call === undefined) return;
      this.#dispatch(call);
    }
  }

  #startSearch(): void {
    const search = new LeaderSearch(
      this.#ambient,
      {
        dial: this.#plan.dial,
        candidates: this.#candidates(),
        clientName: this.#plan.clientName,
        clusterId: this.#greeting?.clusterId,
        mustServe: this.#mustServe,
      },
      {
        onFound: (connection, greeting) => this.#adopt(connection, greeting),
        onFailed: (error, follower) => this.#onSearchFailed(error, follower),
        onMembers: (greeting) => this.#learn(greeting),
      },
    );
    this.#search = search;
    this.#hint = undefined;
    search.start();
  }

  /** The hint first, then every node that is known, in a random order: no node is favoured. */
  #candidates(): Endpoint[] {
    const known = new Map<string, Endpoint>();
    for (const endpoint of [...this.#plan.endpoints, ...this.#members]) {
      known.set(formatEndpoint(endpoint), endpoint);
    }
    const candidates = [...known.values()];
    for (let last = candidates.length - 1; last > 0; last -= 1) {
      const other = Math.floor(this.#ambient.clock.random() * (last + 1));
      const swapped = candidates[last]!;
      candidates[last] = candidates[other]!;
      candidates[other] = swapped;
    }
    return this.#hint === undefined ? candidates : [this.#hint, ...candidates];
  }

  #learn(greeting: Greeting): void {
    const members = greeting.members.map((member) => parseEndpoint(member.address));
    this.#members = members.filter((endpoint) => endpoint !== null);
  }

  #onSearchFailed(error: HoldfastError, follower: Connection | undefined): void {
    this.#search = undefined;
    if (follower !== undefined) this.#keepFollower(follower);
    this.#waiting.explain(error);
    if (follower !== undefined) this.#dispatchReads();
    const isHopeless = !error.retryable && follower === undefined;
    if (isHopeless) for (const call of this.#waiting.takeAll()) call.fail(error);
    if (this.#calls.size === 0 && this.#bindings.size === 0) return; // the next call seeks
    this.#seekLater();
  }

  /** Full-jitter back-off, growing until a leader answers well. */
  #seekLater(): void {
    if (this.#isClosed || this.#search !== undefined || this.#seekTimer !== undefined) return;
    const { clock } = this.#ambient;
    const delayMs = fullJitterMs(clock, this.#setbacks, SEEK_BACKOFF_MS, SEEK_BACKOFF_MS_MAX);
    this.#setbacks += 1;
    this.#seekTimer = this.#ambient.after(delayMs, () => {
      this.#seekTimer = undefined;
      this.seek();
    });
  }

  #keepFollower(follower: Connection): void {
    const former = this.#follower;
    follower.listener = this;
    this.#follower = follower;
    former?.close('another node answers reads');
  }

  #adopt(connection: Connection, greeting: Greeting): void {
    this.#search = undefined;
    this.#mustServe = false;
    connection.listener = this;
    this.#current = connection;
    this.#greeting = greeting;
    // What the former leader was asked is asked again here, under the same request ids.
    const former = this.#follower?.takeUnanswered() ?? [];
    this.#parked.clear();
    for (const binding of [...this.#bindings.values()]) this.#attach(binding, connection);
    for (const call of former) this.#redirect(call);
    this.#watchLiveness(connection);
    for (const watcher of [...this.#watchers]) watcher.onLeaderFound();
    this.#dispatchWaiting();
  }

  /** `connection` does not lead any more, or is gone. */
  #demote(connection: Connection, hint: Endpoint | undefined): void {
    if (connection !== this.#current) return;
    this.#current = undefined;
    this.#hint = hint;
    this.#livenessTimer?.cancel();
    if (!connection.isClosed) this.#keepFollower(connection);
    for (const calls of this.#parked.values()) for (const call of calls) this.#hold(call);
    this.#parked.clear();
    for (const watcher of [...this.#watchers]) watcher.onLeaderLost();
    // The first hint is followed at once; two nodes that point at each other are not chased.
    if (hint === undefined || this.#setbacks > 0) {
      this.#seekLater();
    } else {
      this.#setbacks += 1;
      this.seek();
    }
  }

  #attach(binding: Binding, connection: Connection): void {
    if (!this.#parked.has(binding.key)) this.#parked.set(binding.key, []);
    const attach = new Call(this.#ambient, {
      operation: binding.attachOperation(),
      deadlineMs: REQUEST_DEADLINE_DEFAULT_MS,
      isLogged: false,
      isPinned: true,
      isEssential: true,
    });
    connection.send(attach);
    attach.result.then(
      (reply) => this.#onAttached(binding, connection, reply),
      (error: unknown) => this.#onAttachFailed(binding, connection, error),
    );
  }

  #onAttached(binding: Binding, connection: Connection, reply: Reply): void {
    if (connection !== this.#current || !this.#bindings.has(binding.key)) return;
    connection.attached.add(binding.key);
    const parked = this.#parked.get(binding.key) ?? [];
    this.#parked.delete(binding.key);
    binding.onAttached(reply);
    for (const call of parked) this.#dispatch(call);
  }

  #onAttachFailed(binding: Binding, connection: Connection, error: unknown): void {
    if (this.#isClosed || connection !== this.#current) return;
    if (!this.#bindings.has(binding.key)) return;
    const why = asHoldfastError(error);
    if (why.number === ErrorCode.SessionExpired || !why.retryable) {
      const parked = this.#parked.get(binding.key) ?? [];
      this.#parked.delete(binding.key);
      this.#bindings.delete(binding.key);
      binding.onGone(why);
      for (const call of parked) call.fail(why);
      return;
    }
    this.#ambient.after(this.#ambient.clock.random() * ATTACH_BACKOFF_MS_MAX, () => {
      if (connection === this.#current) this.#attach(binding, connection);
    });
  }

  /** A connection that owes answers and is silent is pinged, then given up. */
  #watchLiveness(connection: Connection): void {
    this.#livenessTimer?.cancel();
    this.#livenessTimer = this.#ambient.after(LIVENESS_PING_MS, () => {
      if (connection !== this.#current) return;
      if (connection.unanswered > 0) this.#checkLiveness(connection);
      if (connection === this.#current) this.#watchLiveness(connection);
    });
  }

  #checkLiveness(connection: Connection): void {
    if (connection.silentMs() >= LIVENESS_SILENCE_MS) this.#giveUp(connection);
    else if (connection.silentMs() >= LIVENESS_PING_MS) void this.#ping(connection, PING_MS);
  }

  /** Resolves when the node has answered or has not in time; whoever asks looks at the silence. */
  #ping(connection: Connection, deadlineMs: number): Promise<unknown> {
    const operation = [CommandKind.Ping];
    const ping = new Call(this.#ambient, {
      operation,
      deadlineMs,
      isLogged: false,
      isPinned: true,
    });
    connection.send(ping);
    return ping.result.catch(ignore);
  }

  #giveUp(connection: Connection): void {
    if (connection !== this.#current) return;
    this.#ambient.counters.connectionsSilent += 1;
    connection.close(`silent for ${Math.round(connection.silentMs())} ms`);
  }
}

/** The error of a refusal; a refusal whose fields cannot be read is an error of the node. */
function refusalOf(call: Call, reply: Reply): HoldfastError {
  try {
    return errorOf(reply, call.mayHaveEffect);
  } catch (error) {
    if (error instanceof HoldfastError) return error;
    throw error;
  }
}

/** The session's window is full: nothing was stored, the same sequence may come again. */
function isWindowFull(error: HoldfastError): boolean {
  return error.number === ErrorCode.Limit && error.details.field === 'sequence';
}
