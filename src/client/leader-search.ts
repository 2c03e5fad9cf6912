/**
 * One search for the leader: says hello to the nodes, one after the other, until one says it leads.
 *
 * Owns: the connections of the search until it is over, and the greeting. A node that does not
 * answer delays the search by a stagger, not by its time-out. Never: waits between two searches;
 * leader.ts does. Ends exactly once, by onFound or onFailed. Used by: leader.ts.
 */
import { CommandKind } from '../wire/request.js';
import type { Reply } from '../wire/response.js';
import type { Ambient } from './ambient.js';
import { HELLO_TIMEOUT_MS, SEEK_STAGGER_MS } from './bounds.js';
import { Call } from './call.js';
import type { Timer } from './clock.js';
import { Connection, type ConnectionListener } from './connection.js';
import { asHoldfastError, ErrorCode, HoldfastError } from './errors.js';
import { errorOf, type Greeting, greetingOf } from './reply.js';
import { type Dial, type Endpoint, formatEndpoint, parseEndpoint } from './transport.js';
import {
  NO_ANSWER,
  SAYS_NOTHING,
  type SilentNode,
  SPEAKS_NOT,
  silentWords,
} from './unreachable.js';

/** Highest protocol version that this client speaks. */
const PROTOCOL_VERSION = 1;

/** What a search needs to know. */
export interface SearchPlan {
  readonly dial: Dial;
  /** Nodes to ask, the most likely leader first. */
  readonly candidates: readonly Endpoint[];
  readonly clientName: string;
  /** The cluster that the client found first; undefined before. */
  readonly clusterId: string | undefined;
  /** True: a node that says it leads is also asked whether it serves. */
  readonly mustServe: boolean;
}

/** How a search ends. A connection handed over belongs to the callee. */
export interface SearchEnd {
  onFound(connection: Connection, greeting: Greeting): void;
  /** `follower` is a greeted node that does not lead, or undefined. */
  onFailed(error: HoldfastError, follower: Connection | undefined): void;
  /** A node told who the members are. */
  onMembers(greeting: Greeting): void;
}

export class LeaderSearch implements ConnectionListener {
  readonly #ambient: Ambient;
  readonly #plan: SearchPlan;
  readonly #end: SearchEnd;
  readonly #candidates: Endpoint[];
  readonly #asked = new Set<string>();
  /** Open or opening; true once greeted. */
  readonly #connections = new Map<Connection, boolean>();
  readonly #greeted = new WeakSet<Connection>();
  #unanswered = 0;
  #stagger: Timer | undefined;
  #isOver = false;
  #lastError: HoldfastError;
  #hasError = false;
  /** Nodes that were asked and did not answer as nodes. */
  readonly #silent: SilentNode[] = [];
  /** A node has answered, whatever it said. */
  #isHeard = false;

  constructor(ambient: Ambient, plan: SearchPlan, end: SearchEnd) {
    this.#ambient = ambient;
    this.#plan = plan;
    this.#end = end;
    this.#candidates = [...plan.candidates];
    this.#lastError = new HoldfastError(ErrorCode.NoQuorum, { message: 'found no node to ask' });
  }

  /** Starts asking. Called once. */
  start(): void {
    this.#askNext();
  }

  /** Ends the search without a result: neither callback is called any more. */
  abandon(): void {
    this.#finish(undefined);
  }

  onReply(_connection: Connection, hello: Call, reply: Reply): void {
    this.#isHeard = true;
    hello.attemptAnswered(false);
    if (reply.code === ErrorCode.Ok) hello.settle(reply);
    else hello.fail(errorOf(reply, false));
  }

  onNotice(connection: Connection, reply: Reply): void {
    this.#isHeard = true;
    this.#note(errorOf(reply, false));
    connection.close('it refused the connection');
  }

  onClosed(connection: Connection, calls: Call[], error: HoldfastError): void {
    this.#connections.delete(connection); // a hello among the calls tells #onSilence
    for (const call of calls) call.fail(error);
  }

  #askNext(): void {
    this.#stagger?.cancel();
    this.#stagger = undefined;
    const candidate = this.#nextCandidate();
    if (candidate !== undefined) {
      this.#ask(candidate);
      this.#stagger = this.#ambient.clock.startTimer(SEEK_STAGGER_MS, () => this.#askNext());
    } else if (this.#unanswered === 0) {
      this.#fail();
    }
  }

  #nextCandidate(): Endpoint | undefined {
    for (;;) {
      const candidate = this.#candidates.shift();
      if (candidate === undefined) return undefined;
      const address = formatEndpoint(candidate);
      if (this.#asked.has(address)) continue;
      this.#asked.add(address);
      return candidate;
    }
  }

  #ask(candidate: Endpoint): void {
    const connection = new Connection(this.#ambient, this.#plan.dial, candidate, this);
    this.#connections.set(connection, false);
    this.#unanswered += 1;
    const hello = new Call(this.#ambient, {
      operation: [CommandKind.Hello, PROTOCOL_VERSION, this.#plan.clientName, null],
      deadlineMs: HELLO_TIMEOUT_MS,
      isLogged: false,
    });
    connection.send(hello);
    hello.result.then(
      (reply) => this.#onHello(connection, reply),
      (error: unknown) => this.#onSilence(connection, error),
    );
  }

  #onHello(connection: Connection, reply: Reply): void {
    if (this.#isOver) {
      connection.close('the search was over');
      return;
    }
    this.#unanswered -= 1;
    if (connection.isClosed) {
      this.#askNext();
      return;
    }
    const greeting = this.#readGreeting(connection, reply);
    if (greeting === null) {
      this.#askNext();
      return;
    }
    this.#ambient.counters.connections += 1;
    this.#connections.set(connection, true);
    this.#greeted.add(connection);
    this.#end.onMembers(greeting);
    if (greeting.leaderId === greeting.nodeId) {
      this.#onLeader(connection, greeting);
      return;
    }
    const leader = greeting.members.find((member) => member.nodeId === greeting.leaderId);
    const endpoint = leader === undefined ? null : parseEndpoint(leader.address);
    if (endpoint !== null) this.#candidates.unshift(endpoint);
    const message = `${connection.address} does not lead and knows no leader that answers`;
    this.#note(new HoldfastError(ErrorCode.NoQuorum, { message }));
    this.#askNext();
  }

  #onLeader(connection: Connection, greeting: Greeting): void {
    if (!this.#plan.mustServe) {
      this.#find(connection, greeting);
      return;
    }
    this.#unanswered += 1;
    const status = new Call(this.#ambient, {
      operation: [CommandKind.Status],
      deadlineMs: HELLO_TIMEOUT_MS,
      isLogged: false,
    });
    connection.send(status);
    status.result.then(
      (reply) => this.#onStatus(connection, greeting, reply),
      (error: unknown) => this.#onSilence(connection, error),
    );
  }

  #onStatus(connection: Connection, greeting: Greeting, reply: Reply): void {
    if (this.#isOver) return;
    this.#unanswered -= 1;
    if (!connection.isClosed && isServing(reply)) {
      this.#find(connection, greeting);
      return;
    }
    const message = `${connection.address} leads but does not serve: it reaches no majority`;
    this.#note(new HoldfastError(ErrorCode.NoQuorum, { message }));
    this.#askNext();
  }

  /** Keeps the error that says most: one that may pass before one that will not. */
  #note(error: HoldfastError): void {
    if (this.#lastError.retryable && this.#hasError && !error.retryable) return;
    this.#lastError = error;
    this.#hasError = true;
  }

  /** Null, and the connection closed, when the node is none of ours. */
  #readGreeting(connection: Connection, reply: Reply): Greeting | null {
    const greeting = greetingOf(reply);
    const wanted = this.#plan.clusterId;
    let message = '';
    if (greeting === null) message = `${connection.address} answered hello with unreadable fields`;
    else if (wanted !== undefined && greeting.clusterId !== wanted) {
      message = `${connection.address} is of cluster ${greeting.clusterId}, wanted ${wanted}`;
    }
    if (message === '') return greeting;
    this.#note(new HoldfastError(ErrorCode.BadRequest, { message, retryable: false }));
    connection.close('it is no node of this cluster');
    return null;
  }

  #onSilence(connection: Connection, error: unknown): void {
    this.#noteSilence(connection, asHoldfastError(error));
    connection.close('hello was not answered');
    if (this.#isOver) return;
    this.#unanswered -= 1;
    this.#askNext();
  }

  /** A node that did not answer is as good as no majority; one that refused says why itself. */
  #noteSilence(connection: Connection, error: HoldfastError): void {
    if (!SILENCE.has(error.number)) {
      this.#note(error);
      return;
    }
    const reason = silenceReason(connection, this.#greeted.has(connection));
    this.#silent.push({ address: connection.address, reason });
    if (this.#isHeard) return; // what a node has said says more
    this.#note(new HoldfastError(ErrorCode.NoQuorum, { message: silentWords(this.#silent) }));
  }

  #find(connection: Connection, greeting: Greeting): void {
    this.#connections.delete(connection);
    this.#finish(undefined);
    this.#end.onFound(connection, greeting);
  }

  #fail(): void {
    const [follower] = [...this.#connections].find(([, isGreeted]) => isGreeted) ?? [undefined];
    this.#finish(follower);
    this.#ambient.counters.seekFailures += 1;
    this.#end.onFailed(this.#failure(), follower);
  }

  /** When nobody was heard at all, that says more than the last of many silences. */
  #failure(): HoldfastError {
    if (this.#isHeard || this.#silent.length === 0) return this.#lastError;
    const silent = this.#silent;
    return new HoldfastError(ErrorCode.NoQuorum, {
      message: silentWords(silent),
      details: { silent },
    });
  }

  /** Closes what the search opened, except `kept`. */
  #finish(kept: Connection | undefined): void {
    this.#isOver = true;
    this.#stagger?.cancel();
    this.#stagger = undefined;
    const connections = [...this.#connections.keys()];
    this.#connections.clear();
    for (const connection of connections) {
      if (connection !== kept) connection.close('the search was over');
    }
  }
}

/** How a call ends that nobody answered. */
const SILENCE: ReadonlySet<number> = new Set([
  ErrorCode.UnknownOutcome,
  ErrorCode.DeadlinePassed,
  ErrorCode.NoQuorum,
]);

function silenceReason(connection: Connection, wasGreeted: boolean): string {
  if (connection.endReason === '') return connection.wasOpen ? SAYS_NOTHING : NO_ANSWER;
  return connection.wasOpen && !wasGreeted ? SPEAKS_NOT : connection.endReason;
}

/** A node that does not say whether it serves is taken to. */
function isServing(reply: Reply): boolean {
  const [status] = reply.fields;
  if (typeof status !== 'object' || status === null) return true;
  const counters: unknown = Reflect.get(status, 'counters');
  if (typeof counters !== 'object' || counters === null) return true;
  return Reflect.get(counters, 'serving') !== 0;
}
