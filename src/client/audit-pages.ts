/**
 * Pages of the audit stream from any node, one node after the other when one is lost.
 *
 * Owns: one connection, and which node is asked: rather one that does not lead, since reading old
 * events costs it something. A page that no node gave is asked for again from the same revision, so
 * nothing is lost or told twice. Never: a place in the stream; the caller says from where.
 * Used by: audit.ts, and by the command line.
 */
import { auditPageOf } from '../wire/audit.js';
import type { Json } from '../wire/event-json.js';
import { FRAME_VERSION } from '../wire/frame.js';
import type { PackValue } from '../wire/msgpack-writer.js';
import { CommandKind } from '../wire/request.js';
import type { Reply } from '../wire/response.js';
import type { Ambient } from './ambient.js';
import { HELLO_TIMEOUT_MS, SEEK_BACKOFF_MS, SEEK_BACKOFF_MS_MAX } from './bounds.js';
import { Call } from './call.js';
import { Connection, type ConnectionListener } from './connection.js';
import { asHoldfastError, ErrorCode, HoldfastError } from './errors.js';
import { errorOf, greetingOf } from './reply.js';
import { fullJitterMs } from './retry-budget.js';
import type { Dial, Endpoint } from './transport.js';

/** One page as the wire has it. */
export interface WirePage {
  readonly events: readonly Json[];
  /** The first revision that the page does not cover. */
  readonly next: number;
  readonly oldest: number;
  readonly revision: number;
  readonly clusterId: string;
}

/** Which page is wanted. */
export interface PageWish {
  readonly prefix: string;
  /** First revision wanted; null: the next one. */
  readonly from: number | null;
  readonly limit: number;
  /** How long the node waits for a first event, ms. */
  readonly waitMs: number;
}

/** Where nodes are, how to reach one, and how long to try. */
export interface AuditPlan {
  readonly dial: Dial;
  readonly endpoints: () => readonly Endpoint[];
  /** Milliseconds without a page after which one is given up; absent: never. */
  readonly deadlineMs?: number | undefined;
}

const CLIENT_NAME = 'holdfast-audit';
/** A page that is not waited for comes sooner than this: a node reads history in short slices. */
const SILENCE_MS = 8_000;
/** For so long a node that is away may still have what the others have dropped. */
const COMPACTED_PATIENCE_MS = 10_000;

export class AuditPages implements ConnectionListener {
  readonly #ambient: Ambient;
  readonly #plan: AuditPlan;
  #connection: Connection | undefined;
  #node: number;
  #isOver = false;
  #wake: (() => void) | undefined;

  constructor(ambient: Ambient, plan: AuditPlan) {
    this.#ambient = ambient;
    this.#plan = plan;
    this.#node = Math.floor(ambient.clock.random() * 1_000);
  }

  /**
   * One page; undefined after close(). Rejects COMPACTED when no node has what is wanted, NO_QUORUM
   * (or the last refusal) when none gave a page within the plan's deadline, and at once with a
   * refusal that no other node would lift.
   */
  async page(wish: PageWish): Promise<WirePage | undefined> {
    const { clock } = this.#ambient;
    const startedAtMs = clock.nowMs();
    const { deadlineMs = Number.POSITIVE_INFINITY } = this.#plan;
    const compacted = new Set<number>();
    let gone: HoldfastError | undefined;
    for (let setbacks = 0; !this.#isOver; setbacks += 1) {
      try {
        return await this.#ask(wish, setbacks);
      } catch (thrown) {
        if (this.#isOver) break;
        const error = asHoldfastError(thrown);
        const endpoints = this.#plan.endpoints().length;
        if (error.number === ErrorCode.Compacted) {
          gone = error;
          compacted.add(this.#node % endpoints);
        } else if (!error.retryable) {
          throw error;
        }
        const triedMs = clock.nowMs() - startedAtMs;
        const isHopeless = compacted.size >= endpoints || triedMs >= COMPACTED_PATIENCE_MS;
        if (gone !== undefined && isHopeless) throw gone;
        if (triedMs >= deadlineMs) throw gone ?? unanswered(error, deadlineMs);
        this.#turnAway();
        await this.#pause(fullJitterMs(clock, setbacks, SEEK_BACKOFF_MS, SEEK_BACKOFF_MS_MAX));
      }
    }
    return undefined;
  }

  /** Ends what is under way; page() gives undefined from now on. */
  close(): void {
    this.#isOver = true;
    this.#drop();
    this.#wake?.();
  }

  onReply(_connection: Connection, call: Call, reply: Reply): void {
    call.attemptAnswered(false);
    if (reply.code === ErrorCode.Ok) call.settle(reply);
    else call.fail(errorOf(reply, false));
  }

  /** It is stopping, or leads no more: it answers reads as long as it is there. */
  onNotice(): void {
    // Nothing was asked of the node that only a leader gives.
  }

  onClosed(connection: Connection, calls: Call[], error: HoldfastError): void {
    if (connection === this.#connection) this.#connection = undefined;
    for (const call of calls) call.fail(error);
  }

  async #ask(wish: PageWish, setbacks: number): Promise<WirePage> {
    const { prefix, from, limit, waitMs } = wish;
    const connection = this.#connection ?? (await this.#open(setbacks === 0));
    const operation = [CommandKind.Audit, prefix, from, limit, waitMs];
    return this.#pageOf(await this.#request(connection, operation, waitMs + SILENCE_MS));
  }

  /** A greeted connection; to a node that leads only when no other answers. */
  async #open(isChoosing: boolean): Promise<Connection> {
    const endpoints = this.#plan.endpoints();
    const endpoint = endpoints[this.#node % Math.max(1, endpoints.length)];
    if (endpoint === undefined || this.#isOver) throw new HoldfastError(ErrorCode.NoQuorum);
    const connection = new Connection(this.#ambient, this.#plan.dial, endpoint, this);
    this.#connection = connection;
    const hello = [CommandKind.Hello, FRAME_VERSION, CLIENT_NAME, null];
    const greeting = greetingOf(await this.#request(connection, hello, HELLO_TIMEOUT_MS));
    if (greeting === null) throw malformed('a greeting');
    if (!isChoosing || greeting.leaderId !== greeting.nodeId || endpoints.length < 2) {
      return connection;
    }
    this.#turnAway();
    return this.#open(false);
  }

  /** Resolves with the answer; a node that gives none in time is given up by the caller. */
  #request(connection: Connection, operation: PackValue[], deadlineMs: number): Promise<Reply> {
    const call = new Call(this.#ambient, { operation, deadlineMs, isLogged: false });
    connection.send(call);
    return call.result;
  }

  #pageOf(reply: Reply): WirePage {
    const page = auditPageOf(reply);
    const [next, oldest, revision] = [
      Number(page['next_revision']),
      Number(page['oldest_revision']),
      Number(page['revision']),
    ];
    if (![next, oldest, revision].every(Number.isSafeInteger)) throw malformed('a page');
    const events = page['events'] as readonly Json[];
    return { events, next, oldest, revision, clusterId: String(page['cluster_id']) };
  }

  #turnAway(): void {
    this.#drop();
    this.#node += 1;
  }

  #drop(): void {
    const connection = this.#connection;
    this.#connection = undefined;
    connection?.close('another node is asked');
  }

  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = this.#ambient.clock.startTimer(ms, resolve);
      this.#wake = () => {
        timer.cancel();
        resolve();
      };
    });
  }
}

/** Codes of a request that nobody answered. */
const SILENCE: ReadonlySet<number> = new Set([
  ErrorCode.UnknownOutcome,
  ErrorCode.DeadlinePassed,
  ErrorCode.NoQuorum,
]);

function unanswered(error: HoldfastError, deadlineMs: number): HoldfastError {
  if (!SILENCE.has(error.number)) return error;
  const message = `no node gave a page within ${deadlineMs} ms; last: ${error.message}`;
  return new HoldfastError(ErrorCode.NoQuorum, { message, outcome: 'none', cause: error });
}

/** A node that answers so is left for another one. */
function malformed(what: string): HoldfastError {
  const message = `read the audit stream: ${what} that cannot be read`;
  return new HoldfastError(ErrorCode.BadRequest, { message, retryable: true });
}
