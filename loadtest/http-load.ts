/**
 * Locks over HTTP/JSON, driven by autocannon: keep-alive connections, each in its own session.
 *
 * Owns: what each connection sends next (acquire, then release of what it got) and the look at
 * every answer. One request is out on a connection: autocannon pipelines only requests that are
 * all alike. Never: a retry. The only file that imports autocannon. Used by: the profile http.
 */
import { randomUUID } from 'node:crypto';
import autocannon, { type Request, type Result, type Run } from 'autocannon';
import { CommandKind } from '../src/core/locks/command.js';
import { OutcomeCode } from '../src/core/locks/outcome.js';
import { ERROR_ROWS, ErrorCode } from '../src/wire/errors.js';
import { LEASE_TTL_MS, type Load, makeNames, RoundRobin } from './load.js';
import { Meter } from './meter.js';

const SECONDS_MAX = 100_000;
const TIMEOUT_S = 10;
const DRAIN_MS = 50;
const OK = 200;
const CODES = new Map(ERROR_ROWS.map(({ code, number }) => [code, number]));
const TEXT = new TextDecoder();

export interface HttpLoadOptions {
  /** `http://host:port` of the node that is asked. */
  readonly url: string;
  readonly connections: number;
  readonly names: number;
  readonly sessionTtlMs: number;
}

interface Session {
  readonly id: string;
  readonly secret: string;
}

/** One connection: its session, its lease, the request that is out. */
class HttpSeat {
  kind = 0;
  private beganMs = 0;
  private lease = '';
  private token = 0;
  private requests = 0;

  constructor(
    private readonly load: HttpLoad,
    private readonly session: Session,
    private readonly stem: string,
  ) {}

  /** The next request. */
  next(request: Request): Request {
    this.beganMs = performance.now();
    this.kind = this.lease === '' ? CommandKind.Acquire : CommandKind.Release;
    this.load.meter.onSent(this.kind);
    if (this.kind === CommandKind.Release) {
      return {
        ...request,
        method: 'DELETE',
        path: `/v1/leases/${this.lease}`,
        headers: {},
        body: '',
      };
    }
    this.requests += 1;
    const body = JSON.stringify({ ttl_ms: LEASE_TTL_MS, session_id: this.session.id });
    const headers = {
      'content-type': 'application/json',
      'idempotency-key': `${this.stem}-${this.requests}`,
      'holdfast-session-secret': this.session.secret,
    };
    const path = `/v1/locks/${this.load.nextName()}/acquire`;
    return { ...request, method: 'POST', path, headers, body };
  }

  answer(status: number, text: string): void {
    const { meter } = this.load;
    const { kind } = this;
    this.kind = 0;
    const latencyMs = performance.now() - this.beganMs;
    meter.onAnswer(kind, status === OK ? OutcomeCode.Ok : codeIn(text), latencyMs);
    if (status !== OK) {
      this.lease = '';
      return;
    }
    if (kind === CommandKind.Release) {
      if (!text.includes('"released":true')) meter.onWrong(`release was answered ${text}`);
      this.lease = '';
      return;
    }
    const { lease_id: lease, fencing_token: token, replay } = JSON.parse(text);
    if (!(token > this.token) || replay === true) meter.onWrong(`acquire was answered ${text}`);
    this.lease = String(lease);
    this.token = Number(token);
  }
}

/** The number of an error's code; one that is no error of ours counts as a wrong answer. */
function codeIn(text: string): number {
  const code = /"code":"([A-Z_]+)"/.exec(text)?.[1] ?? '';
  return CODES.get(code) ?? ErrorCode.BadRequest;
}

export class HttpLoad implements Load {
  readonly meter = new Meter();
  /** Of the bodies that came; autocannon does not tell what it sent. */
  bytes = 0;
  private readonly names: RoundRobin;
  private readonly seats: HttpSeat[] = [];
  private readonly sessions: Session[] = [];
  private run: Run | null = null;
  private result: Result | null = null;

  constructor(private readonly options: HttpLoadOptions) {
    this.names = new RoundRobin(makeNames(options.names, 'http'));
  }

  nextName(): string {
    return encodeURIComponent(TEXT.decode(this.names.take()));
  }

  async open(): Promise<void> {
    const { connections, sessionTtlMs } = this.options;
    for (let at = 0; at < connections; at += 1) {
      this.meter.onSent(CommandKind.SessionOpen);
      const answer = await this.ask('POST', '/v1/sessions', {
        headers: { 'content-type': 'application/json', 'idempotency-key': randomUUID() },
        body: JSON.stringify({ ttl_ms: sessionTtlMs }),
      });
      const session = { id: String(answer['session_id']), secret: String(answer['secret']) };
      this.meter.onAnswer(CommandKind.SessionOpen, OutcomeCode.Ok, 0);
      this.sessions.push(session);
      this.seats.push(new HttpSeat(this, session, randomUUID().slice(0, 13)));
    }
  }

  start(): void {
    const { url, connections } = this.options;
    const free = [...this.seats];
    this.run = autocannon({
      url,
      connections,
      pipelining: 1,
      duration: SECONDS_MAX,
      timeout: TIMEOUT_S,
      setupClient: (client) => {
        const seat = free.pop();
        if (seat === undefined) throw new Error('http: more connections than seats');
        client.setRequests([
          {
            method: 'GET',
            setupRequest: (request) => seat.next(request),
            onResponse: (status, text) => {
              this.bytes += text.length;
              seat.answer(status, text);
            },
          },
        ]);
      },
    });
  }

  /** What is out when it stops is not answered: the log may have it. */
  async stop(): Promise<void> {
    const { run } = this;
    if (run === null) return;
    await new Promise((resolve) => setTimeout(resolve, DRAIN_MS));
    run.stop();
    this.result = await run;
    for (const { kind } of this.seats) {
      if (kind !== 0) this.meter.doubtful[kind] = (this.meter.doubtful[kind] ?? 0) + 1;
    }
  }

  async close(): Promise<void> {
    for (const { id, secret } of this.sessions) {
      this.meter.onSent(CommandKind.SessionClose);
      const headers = { 'holdfast-session-secret': secret };
      await this.ask('DELETE', `/v1/sessions/${id}`, { headers });
      this.meter.onAnswer(CommandKind.SessionClose, OutcomeCode.Ok, 0);
    }
  }

  /** What autocannon itself saw go wrong. */
  get faults(): number {
    const { errors = 0, timeouts = 0, non2xx = 0, resets = 0 } = this.result ?? {};
    return errors + timeouts + non2xx + resets;
  }

  private async ask(method: string, path: string, init: RequestInit) {
    const answer = await fetch(this.options.url + path, { ...init, method });
    if (!answer.ok) throw new Error(`${method} ${path} was answered ${answer.status}`);
    return (await answer.json()) as Record<string, unknown>;
  }
}
