/**
 * The client: connect to a cluster, acquire locks, hold them safely.
 *
 * Owns: the sessions and leases that are open, and their end at close(). Never: the protocol; it
 * asks the road to the leader (leader.ts). One client serves a whole process: its requests of one
 * turn share a frame. Made by: connect.ts. Used by: programs.
 */
import { REQUEST_DEADLINE_DEFAULT_MS } from '../limits.js';
import { acquire } from './acquire.js';
import { Admin } from './admin.js';
import { attended } from './attended.js';
import { type AuditOptions, type AuditPage, AuditStreams, checkAudit } from './audit.js';
import { CLOSE_DEADLINE_DEFAULT_MS } from './bounds.js';
import type { Counters } from './counters.js';
import { Leadership, type LeaderView, observe } from './election.js';
import { badRequest, clientClosed, ErrorCode, HoldfastError, suppress } from './errors.js';
import { type ExplainQuestion, type Explanation, explain } from './explain.js';
import { Lease } from './lease.js';
import { inByteOrder, LeaseSet } from './lease-set.js';
import type { LockSummary, LockView, LookupView } from './lock-view.js';
import {
  ACQUIRE_OPTIONS,
  type AcquireOptions,
  type AcquirePlan,
  type CallOptions,
  checkMs,
  checkName,
  checkOptions,
  checkWork,
  planAcquire,
} from './options.js';
import type { Ownership } from './ownership.js';
import type { Parts } from './parts.js';
import type { Presence } from './presence.js';
import {
  type GetOptions,
  type ListOptions,
  Reads,
  type RequestName,
  type TokenCheck,
} from './reads.js';
import { Reentrancy } from './reentrancy.js';
import type { Member } from './reply.js';
import { Session, type SessionOptions } from './session.js';
import { Sessions } from './sessions.js';
import { TimeLeft } from './time-left.js';
import { type WatchItem, type WatchOptions, WatchStreams } from './watch.js';

/** What work under a lock is given. */
export type Work<Result> = (lease: Lease) => Result | Promise<Result>;

/** How to acquire several locks one after the other. */
export type InOrderOptions = Omit<
  AcquireOptions,
  'waitMs' | 'requestId' | 'expectedRevision' | 'notAfterMs' | 'reentrant'
>;

const NOT_IN_ORDER = ['waitMs', 'requestId', 'expectedRevision', 'notAfterMs', 'reentrant'];
const IN_ORDER_OPTIONS = ACQUIRE_OPTIONS.filter((name) => !NOT_IN_ORDER.includes(name));

/** How to release what a client holds when it is closed. */
export interface CloseOptions {
  /** Milliseconds to wait for the cluster, 1 … 60,000; default 2,000. */
  readonly deadlineMs?: number;
}

/**
 * A connected client. Every promise it gives settles by its deadline, and every failure is a
 * HoldfastError with a stable `code`. Close it, or the process stays alive.
 *
 * @example
 * const client = await connect({ endpoints: ['127.0.0.1:7401', '127.0.0.1:7402'] });
 * await client.withLock('reports/daily', { ttlMs: 30_000 }, async (lease) => {
 *   await writeReport({ fencingToken: lease.token, signal: lease.signal });
 * });
 * await client.close();
 */
export class Client implements AsyncDisposable {
  /** What an operator may do: release by force, disable and enable, end a session. */
  readonly admin: Admin;
  readonly #parts: Parts;
  readonly #sessions: Sessions;
  readonly #reads: Reads;
  readonly #watches: WatchStreams;
  readonly #audits: AuditStreams;
  readonly #reentrancy = new Reentrancy();
  readonly #alone = new Set<Ownership>();
  #close: Promise<void> | undefined;

  /** Programs call connect. */
  constructor(parts: Parts) {
    this.#parts = parts;
    this.admin = new Admin(parts);
    this.#sessions = new Sessions(parts);
    this.#reads = new Reads(parts.leader);
    const { leader, ambient } = parts;
    const nodes = { dial: leader.dial, endpoints: () => leader.nodes };
    this.#watches = new WatchStreams(ambient, nodes);
    this.#audits = new AuditStreams(ambient, nodes);
  }

  /** Counts of what happened in this client and was nobody's error. Read only. */
  get counters(): Readonly<Counters> {
    return this.#parts.ambient.counters;
  }

  /**
   * Acquires a lock, waiting up to `waitMs` (default 10,000) in the order of the queue.
   * The lease is kept alive until it is released or lost.
   * Rejects LOCK_BUSY (waitMs 0; `details.holder`), WAIT_TIMEOUT, CANCELLED, CONFLICT, DISABLED
   * (`details.revision`), LIMIT, BAD_REQUEST, SESSION_EXPIRED, OVERLOADED, NO_QUORUM,
   * UNKNOWN_OUTCOME or DEADLINE_PASSED.
   *
   * @example
   * await using lease = await client.acquire('shards/7', { ttlMs: 10_000, waitMs: 60_000 });
   */
  acquire(name: string, options: AcquireOptions = {}): Promise<Lease> {
    return attended(this.#acquire(name, options));
  }

  /**
   * Tries once: the lease, or null when somebody holds the lock or waits for it. Everything else
   * that acquire rejects with is rejected here too.
   */
  tryAcquire(name: string, options: AcquireOptions = {}): Promise<Lease | null> {
    return attended(this.#tryAcquire(name, options));
  }

  /**
   * Runs `work` under a lock and gives the lock back, whatever happens. An error of the work is
   * thrown as it is; a failed release is added to its `suppressed` and counted. When the lease was
   * lost before the work ended, rejects LEASE_EXPIRED (or why it was lost) with the work's result
   * in `details.value`. When only the release fails, the result stands: the release is repeated in
   * the background and counted. Rejects before the work as acquire does.
   *
   * @example
   * const rows = await client.withLock('tables/users', {}, (lease) => migrate(lease.token));
   */
  withLock<Result>(
    name: string,
    options: AcquireOptions | undefined,
    work: Work<Result>,
  ): Promise<Result> {
    return attended(this.#withLock(name, options, work));
  }

  /**
   * Acquires several locks one after the other, in the order of the names' bytes, so that no two
   * callers wait for each other in a circle. `deadlineMs` (1 … 3,600,000, default 10,000) bounds it
   * all. When one cannot be had, the others are given back and its error is thrown.
   *
   * @example
   * await using both = await client.acquireInOrder(['accounts/7', 'accounts/3'], {});
   */
  acquireInOrder(names: readonly string[], options: InOrderOptions = {}): Promise<LeaseSet> {
    return attended(this.#acquireInOrder(names, options));
  }

  /**
   * Opens a session of its own: for leases that shall live and end together, or for presence alone.
   * Rejects BAD_REQUEST `ttl_ms`, LIMIT, OVERLOADED, NO_QUORUM, UNKNOWN_OUTCOME, DEADLINE_PASSED.
   *
   * @example
   * const session = await client.openSession({ ttlMs: 15_000 });
   * const lease = await client.acquire('shards/7', { session });
   */
  openSession(options: SessionOptions = {}): Promise<Session> {
    return attended(this.#openSession(options));
  }

  /** Reads one lock: holder, queue, revision. Linearizable unless `stale`. */
  get(name: string, options: GetOptions = {}): Promise<LockView> {
    return attended(this.#reads.get(name, options));
  }

  /**
   * Lists locks that are held or waited for, whose names start with `prefix`, in byte order. Each
   * page is linearizable by itself. `deadlineMs` bounds each page.
   *
   * @example
   * for await (const lock of client.list('shards/')) console.log(lock.name, lock.holder?.token);
   */
  list(prefix = '', options: ListOptions = {}): AsyncIterable<LockSummary> {
    return this.#reads.list(prefix, options);
  }

  /** What became of a request id: done with its result, queued, unknown or forgotten. */
  lookup(request: RequestName, options: CallOptions = {}): Promise<LookupView> {
    return attended(this.#reads.lookup(request, options));
  }

  /** Whether `token` is that of the lock's present holder. Linearizable. */
  check(name: string, token: number, options: CallOptions = {}): Promise<TokenCheck> {
    return attended(this.#reads.check(name, token, options));
  }

  /**
   * Why a lock is held or free, and what became of a request or a lease of one's own, in a word and
   * in sentences. Without `name` the lock is found by the request or the lease.
   *
   * @example
   * console.log((await client.explain({ request: 'nightly-7' })).says.join('\n'));
   */
  explain(question: ExplainQuestion): Promise<Explanation> {
    return attended(explain(question, (operation) => this.#reads.ask(operation, question)));
  }

  /**
   * Follows one lock: every event once, in order, over lost connections and changes of leader.
   * Throws COMPACTED when what comes next is no longer kept, unless `recovers`; BAD_REQUEST.
   *
   * @example
   * for await (const item of client.watch('reports/daily')) console.log(item.type);
   */
  watch(name: string, options: WatchOptions = {}): AsyncIterable<WatchItem> {
    return this.#watches.watch([checkName(name), null], checkWatch(options));
  }

  /**
   * Follows every lock whose name starts with `prefix`; see watch().
   *
   * @example
   * for await (const item of client.watchPrefix('shards/', { snapshot: true, recovers: true })) {
   *   if (item.type === 'granted') console.log(item.name, item.token);
   * }
   */
  watchPrefix(prefix: string, options: WatchOptions = {}): AsyncIterable<WatchItem> {
    return this.#watches.watch([null, prefix], checkWatch(options));
  }

  /**
   * The audit stream: every committed event with what caused it, old ones too, in pages. Each page
   * has a checkpoint from which any process goes on, so that an event is told at least once however
   * the consumer ends. Goes on over lost connections and changes of leader. Throws COMPACTED when
   * no node keeps what comes next (`details.oldestRevision`); NO_QUORUM at `deadlineMs`;
   * BAD_REQUEST.
   *
   * @example
   * for await (const page of client.audit({ checkpoint })) {
   *   await deliver(page.events);
   *   await store(page.checkpoint);
   * }
   */
  audit(options: AuditOptions = {}): AsyncIterable<AuditPage> {
    return this.#audits.audit(checkAudit(options));
  }

  /**
   * Stands for election and resolves when it is won: an acquire of the lock `name`, with a value
   * that observers see. Rejects as acquire does.
   *
   * @example
   * await using leadership = await client.elect('primary', '10.0.0.7:5432', { waitMs: 60_000 });
   */
  async elect(name: string, value: string, options: AcquireOptions = {}): Promise<Leadership> {
    const metadata = new TextEncoder().encode(value);
    return new Leadership(await this.acquire(name, { ...options, metadata }));
  }

  /**
   * Who leads an election, now and at every change, the times without a leader included.
   *
   * @example
   * for await (const view of client.observe('primary')) console.log(view);
   */
  observe(name: string, options: { signal?: AbortSignal } = {}): AsyncIterable<LeaderView> {
    const items = this.watch(name, { ...options, snapshot: true, recovers: true });
    return observe(items, () => this.get(name));
  }

  /** What the asked node says of itself: role, term, leader, indexes, counts (docs/PROTOCOL.md). */
  status(options: CallOptions = {}): Promise<Readonly<Record<string, unknown>>> {
    return attended(this.#reads.status(options));
  }

  /** The nodes of the cluster with their client addresses and roles. */
  members(options: CallOptions = {}): Promise<Member[]> {
    return attended(this.#reads.members(options));
  }

  /** Resolves when a node has answered. */
  ping(options: CallOptions = {}): Promise<void> {
    return attended(this.#reads.ping(options));
  }

  /** Asks the leader to hand leadership to a node. Rejects BAD_REQUEST `node_id`. */
  transferLeadership(nodeId: number, options: CallOptions = {}): Promise<void> {
    return attended(this.#reads.transfer(nodeId, options));
  }

  /**
   * Ends every call with SHUTTING_DOWN, gives back every lease and session, then disconnects.
   * Signals of leases that are still held abort. Idempotent; never rejects. What the cluster did
   * not confirm in time ends by its TTL and is counted in releaseFailures.
   */
  close(options: CloseOptions = {}): Promise<void> {
    this.#close ??= this.#closeOnce(options.deadlineMs ?? CLOSE_DEADLINE_DEFAULT_MS);
    return this.#close;
  }

  /** close() for `await using`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  async #acquire(name: string, options: AcquireOptions): Promise<Lease> {
    checkOptions('acquire', options, ACQUIRE_OPTIONS);
    const plan = planAcquire(name, options);
    const entered = options.reentrant === true ? this.#reentrancy.held(name) : undefined;
    if (entered !== undefined) return this.#enterAgain(entered, plan);
    return this.#lease(await this.#own(plan, options.session), plan);
  }

  async #tryAcquire(name: string, options: AcquireOptions): Promise<Lease | null> {
    checkOptions('tryAcquire', options, ACQUIRE_OPTIONS);
    try {
      return await this.acquire(name, { ...options, waitMs: 0 });
    } catch (error) {
      if (error instanceof HoldfastError && error.number === ErrorCode.LockBusy) return null;
      throw error;
    }
  }

  async #withLock<Result>(
    name: string,
    given: AcquireOptions | undefined,
    work: Work<Result>,
  ): Promise<Result> {
    checkOptions('withLock(name, options, work)', given, ACQUIRE_OPTIONS);
    checkWork('withLock(name, options, work)', work);
    const options = given ?? {};
    const plan = planAcquire(name, options);
    const entered = options.reentrant === true ? this.#reentrancy.held(name) : undefined;
    const ownership = entered ?? (await this.#own(plan, options.session));
    const lease =
      entered === undefined ? this.#lease(ownership, plan) : this.#enterAgain(entered, plan);
    let value: Result;
    try {
      value = await this.#reentrancy.run(ownership, () => work(lease));
    } catch (error) {
      const failure = await lease.dispose();
      if (failure !== undefined) suppress(error, failure);
      throw error;
    }
    const lost = ownership.hold.state === 'lost' ? ownership.hold.error : undefined;
    await lease.dispose();
    if (lost !== undefined) throw lostDuring(name, lost, value);
    return value;
  }

  async #acquireInOrder(names: readonly string[], options: InOrderOptions): Promise<LeaseSet> {
    checkOptions('acquireInOrder', options, IN_ORDER_OPTIONS);
    if (!Array.isArray(names)) {
      throw badRequest('names', `acquireInOrder: names is ${typeof names}, wanted an array`);
    }
    const timeLeft = new TimeLeft(this.#parts.ambient.clock, checkTotal(options.deadlineMs));
    const leases: Lease[] = [];
    try {
      for (const name of inByteOrder(names)) {
        const plan = planWithin(name, options, timeLeft.ms);
        leases.push(this.#lease(await this.#own(plan, options.session), plan));
      }
      return new LeaseSet(leases);
    } catch (error) {
      for (const lease of leases.reverse()) {
        const failure = await lease.dispose();
        if (failure !== undefined) suppress(error, failure);
      }
      throw error;
    }
  }

  async #openSession(options: SessionOptions): Promise<Session> {
    checkOptions('openSession', options, ['ttlMs', 'metadata', 'deadlineMs']);
    this.#checkOpen();
    return new Session(await this.#sessions.open(options), this.#parts.ambient.counters);
  }

  #checkOpen(): void {
    if (this.#close !== undefined) throw clientClosed('none');
  }

  /** The session that a caller named: absent, the shared one; null, none. */
  async #presenceFor(
    plan: AcquirePlan,
    session: Session | null | undefined,
    timeLeft: TimeLeft,
  ): Promise<Presence | null> {
    if (session === null) return null;
    if (session !== undefined) return Session.presenceOf(session);
    return this.#sessions.shared(plan.ttlMs, timeLeft, plan.signal);
  }

  async #own(plan: AcquirePlan, session: Session | null | undefined): Promise<Ownership> {
    this.#checkOpen();
    const timeLeft = new TimeLeft(this.#parts.ambient.clock, plan.deadlineMs);
    const presence = await this.#presenceFor(plan, session, timeLeft);
    this.#checkOpen();
    const ownership = await acquire(this.#parts, plan, presence, timeLeft);
    if (this.#close !== undefined) {
      ownership.abandon(clientClosed('unknown'));
      throw clientClosed('unknown');
    }
    if (presence === null) this.#keepAlone(ownership);
    return ownership;
  }

  #keepAlone(ownership: Ownership): void {
    this.#alone.add(ownership);
    ownership.onEnd(() => this.#alone.delete(ownership));
  }

  #lease(ownership: Ownership, plan: AcquirePlan): Lease {
    return new Lease(ownership, this.#parts.ambient.counters, plan.deadlineMs);
  }

  /** A hold that was lost is not entered again. */
  #enterAgain(ownership: Ownership, plan: AcquirePlan): Lease {
    const { hold } = ownership;
    if (hold.isLive) return this.#lease(ownership, plan);
    throw hold.error ?? new HoldfastError(ErrorCode.LeaseExpired, { outcome: 'none' });
  }

  async #closeOnce(deadlineMs: number): Promise<void> {
    const { leader, debts, ambient } = this.#parts;
    debts.close();
    this.#watches.close();
    this.#audits.close();
    leader.failAll();
    const error = clientClosed('applied');
    const releases = [...this.#alone].map((ownership) => ownership.release(deadlineMs, error));
    const results = await Promise.allSettled([...releases, ...this.#sessions.closeAll(deadlineMs)]);
    for (const result of results) {
      if (result.status === 'rejected') ambient.counters.releaseFailures += 1;
    }
    leader.close();
    ambient.close();
  }
}

function lostDuring(name: string, lost: HoldfastError, value: unknown): HoldfastError {
  return new HoldfastError(lost.number, {
    message: `the lease of ${name} was lost before the work under it ended: ${lost.message}`,
    outcome: 'unknown',
    details: { ...lost.details, value },
    cause: lost,
  });
}

function checkWatch(options: WatchOptions): WatchOptions {
  const { fromRevision: from, snapshot } = options;
  if (from === undefined || (Number.isSafeInteger(from) && from >= 1 && snapshot !== true)) {
    return options;
  }
  const wanted = 'wanted 1 or more, and no snapshot beside it';
  throw badRequest('revision', `fromRevision is ${from}, ${wanted}`);
}

/** The most that acquireInOrder may take altogether: the longest wait that a lock allows. */
const TOTAL_MS_MAX = 3_600_000;

function checkTotal(value: number | undefined): number {
  if (value === undefined) return REQUEST_DEADLINE_DEFAULT_MS;
  return checkMs('deadline_ms', value, TOTAL_MS_MAX);
}

/** The cluster ends a wait this share of the time earlier than the client would. */
const WAIT_SHARE = 0.9;

/** An acquire that waits, and settles, within `ms`. */
function planWithin(name: string, options: InOrderOptions, ms: number): AcquirePlan {
  const deadlineMs = Math.min(ms, REQUEST_DEADLINE_DEFAULT_MS);
  const plan = planAcquire(name, { ...options, deadlineMs, waitMs: Math.floor(ms * WAIT_SHARE) });
  return { ...plan, extensionMs: ms - deadlineMs };
}
