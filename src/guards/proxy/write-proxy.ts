/**
 * A proxy before an HTTP service that can check no token itself: writes pass it one at a time for
 * each lock, with a token that is not stale.
 *
 * Owns: the listening socket, the check, and what an answer that does not come means. Weaker than a
 * guard at the resource: it protects only against writes that come through it, and a write that the
 * upstream has not answered may arrive later, so it quarantines the lock. Used by: programs,
 * `holdfast guard proxy`.
 */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { badRequest, HoldfastError } from '../../client/errors.js';
import { checkFence, type Fence, type FenceKind } from '../fence.js';
import type { SqliteDatabase } from '../sqlite/sqlite-guard.js';
import { StaleTokenError } from '../stale-token.js';
import { type GuardObserver, Tally } from '../tally.js';
import { FlightLog, type Quarantine } from './flight-log.js';
import { LockQueue } from './lock-queue.js';
import { forward, readBody, type UpstreamAnswer, UpstreamError } from './upstream.js';

/** The lock's name, percent-encoded as in a URL. */
export const LOCK_HEADER = 'holdfast-lock';
/** Its fencing token, in decimal. */
export const TOKEN_HEADER = 'holdfast-token';
/** `exclusive` (default) or `shared`. */
export const KIND_HEADER = 'holdfast-kind';

export interface WriteProxyOptions {
  /** Where requests go: `http://10.0.0.7:8080`. */
  readonly upstream: string;
  /** Keeps marks and quarantines; of this proxy alone. */
  readonly database: SqliteDatabase;
  /** How long the upstream may take to answer a write, ms. Default 30,000. */
  readonly upstreamMsMax?: number;
  readonly observer?: GuardObserver;
}

const RESOURCE = 'proxy';
const UPSTREAM_MS_DEFAULT = 30_000;
const READS = new Set(['GET', 'HEAD', 'OPTIONS']);

/** A refusal as it is answered. */
interface Refusal {
  readonly status: number;
  readonly code: string;
  readonly message: string;
  readonly retryable: boolean;
  readonly outcome: 'none' | 'unknown';
  readonly details?: Readonly<Record<string, unknown>>;
}

export class WriteProxy {
  readonly tally: Tally;
  readonly flights: FlightLog;
  readonly #options: WriteProxyOptions;
  readonly #server: Server;
  readonly #queue = new LockQueue();

  private constructor(options: WriteProxyOptions) {
    this.#options = options;
    this.flights = new FlightLog(options.database);
    this.tally = new Tally(RESOURCE, options.observer);
    this.#server = createServer((request, response) => {
      this.#handle(request, response).catch((error: unknown) => fail(response, error));
    });
  }

  /** Listens. Locks whose write was under way when the last proxy ended are in quarantine. */
  static async start(options: WriteProxyOptions, host: string, port: number): Promise<WriteProxy> {
    const proxy = new WriteProxy(options);
    proxy.flights.recover();
    await new Promise<void>((resolve, reject) => {
      proxy.#server.once('error', reject);
      proxy.#server.listen(port, host, resolve);
    });
    return proxy;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** Takes no more requests and cuts those under way: their locks stay in quarantine. */
  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeAllConnections();
    await closed;
  }

  async #handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { upstream, upstreamMsMax = UPSTREAM_MS_DEFAULT } = this.#options;
    // The body is here before anything starts: a slow caller holds up nobody.
    const body = await readBody(request);
    if (body === null) return answer(response, TOO_LARGE);
    if (READS.has(request.method ?? '')) {
      return pass(response, await forward(upstream, request, body, upstreamMsMax));
    }
    const fence = fenceOfHeaders(request);
    const turn = this.#queue.run(fence.lock, () => this.#write(fence, request, response, body));
    if (turn === false) return answer(response, OVERLOADED);
    return turn;
  }

  async #write(
    fence: Required<Fence>,
    request: IncomingMessage,
    response: ServerResponse,
    body: Uint8Array,
  ): Promise<void> {
    const { upstream, upstreamMsMax = UPSTREAM_MS_DEFAULT } = this.#options;
    // A caller that hung up while it waited would never hear what became of its write.
    if (response.destroyed) return;
    const seen = await this.#start(fence, `${request.method} ${request.url}`, response);
    if (seen === null) return;
    try {
      const reply = await forward(upstream, request, body, upstreamMsMax);
      this.flights.end(fence.lock);
      this.tally.onAccepted(fence, seen);
      pass(response, reply);
    } catch (error) {
      if (!(error instanceof UpstreamError)) throw error;
      this.#onSilence(fence, error, response);
    }
  }

  /** The mark before this write, or null: it was refused, and answered. */
  async #start(
    fence: Required<Fence>,
    what: string,
    response: ServerResponse,
  ): Promise<number | null> {
    const { token: seen } = await this.flights.mark(fence.lock);
    try {
      const quarantine = this.flights.start(fence, what);
      if (quarantine === null) return seen;
      answer(response, refusalOfQuarantine(quarantine));
    } catch (error) {
      if (!(error instanceof StaleTokenError)) throw error;
      this.tally.onRefused(fence, error.seen);
      const { message, offered } = error;
      const details = { seen: error.seen, offered };
      const outcome = 'none';
      answer(response, {
        status: 410,
        code: error.code,
        message,
        retryable: false,
        outcome,
        details,
      });
    }
    return null;
  }

  #onSilence(fence: Required<Fence>, error: UpstreamError, response: ServerResponse): void {
    const { reason, message } = error;
    if (reason === 'unreachable') {
      this.flights.end(fence.lock);
      answer(response, { ...UNREACHABLE, message });
      return;
    }
    this.flights.quarantine(fence.lock, reason);
    this.tally.onUnknown(fence);
    answer(response, { ...UNANSWERED, message: `${message}; lock ${fence.lock} is in quarantine` });
  }
}

const TOO_LARGE: Refusal = {
  status: 413,
  code: 'TOO_LARGE',
  message: 'send a smaller body: this one is larger than the proxy holds',
  retryable: false,
  outcome: 'none',
};
const OVERLOADED: Refusal = {
  status: 503,
  code: 'OVERLOADED',
  message: 'try later: too many writes wait for this lock',
  retryable: true,
  outcome: 'none',
};
const UNREACHABLE: Refusal = {
  status: 502,
  code: 'UPSTREAM_UNREACHABLE',
  message: '',
  retryable: true,
  outcome: 'none',
};
const UNANSWERED: Refusal = {
  status: 504,
  code: 'UNKNOWN_OUTCOME',
  message: '',
  retryable: false,
  outcome: 'unknown',
};

function refusalOfQuarantine({ lock, token, what, reason }: Quarantine): Refusal {
  const words = `lock ${lock} is in quarantine: ${what} under token ${token} was not answered`;
  return {
    status: 503,
    code: 'QUARANTINED',
    message: `${words} (${reason || 'under way'}); lift it with holdfast guard lift`,
    retryable: false,
    outcome: 'none',
    details: { token, what, reason },
  };
}

/** Reads the headers of a write. Throws BAD_REQUEST. */
function fenceOfHeaders({ headers }: IncomingMessage): Required<Fence> {
  const { [LOCK_HEADER]: lock, [TOKEN_HEADER]: token, [KIND_HEADER]: kind } = headers;
  if (typeof lock !== 'string' || typeof token !== 'string') {
    throw badRequest('headers', `a write needs the headers ${LOCK_HEADER} and ${TOKEN_HEADER}`);
  }
  if (!/^[0-9]{1,16}$/.test(token)) throw badRequest('token', `${TOKEN_HEADER} is ${token}`);
  let name: string;
  try {
    name = decodeURIComponent(lock);
  } catch {
    throw badRequest('lock', `${LOCK_HEADER} is not percent-encoded UTF-8`);
  }
  const kinds = kind === undefined ? {} : { kind: kind as FenceKind };
  return checkFence({ lock: name, token: Number(token), ...kinds });
}

function pass(response: ServerResponse, { status, headers, body }: UpstreamAnswer): void {
  response.writeHead(status, headers);
  response.end(body);
}

function answer(response: ServerResponse, refusal: Refusal): void {
  const { status, details, ...error } = refusal;
  const text = JSON.stringify({ error: { ...error, ...details } });
  const headers: Record<string, string> = { 'content-type': 'application/json' };
  if (status === 503) headers['retry-after'] = '1';
  response.writeHead(status, headers);
  response.end(text);
}

/** What was thrown, as an answer: a typed refusal, or that the proxy has a fault. */
function fail(response: ServerResponse, error: unknown): void {
  if (response.headersSent || response.destroyed) {
    response.destroy();
    return;
  }
  if (error instanceof UpstreamError) {
    answer(response, { ...UNREACHABLE, message: error.message });
    return;
  }
  const isTyped = error instanceof HoldfastError;
  const message = error instanceof Error ? error.message : String(error);
  const code = isTyped ? error.code : 'FAULT';
  const status = isTyped ? 400 : 500;
  answer(response, { status, code, message, retryable: false, outcome: 'none' });
}
