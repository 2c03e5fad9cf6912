/**
 * The HTTP port of a node: checks a request, finds its route, sends it on its way.
 *
 * Owns: the order of the checks, the streams, the WebSockets, and their bounds. Never: an answer to
 * an operation; the replica gives it, this node's or the leader's. Made by: server/node.ts.
 */
import { PRINCIPAL_BUILT_IN } from '../../core/locks/command.js';
import {
  CONNECTIONS_MAX,
  HTTP_STREAMS_MAX,
  READY_AGE_MS_MAX,
  REQUEST_DEADLINE_DEFAULT_MS,
  REQUEST_DEADLINE_MAX_MS,
  REQUEST_ID_BYTES_MAX,
} from '../../limits.js';
import type { Health } from '../../replica/status.js';
import { ErrorCode } from '../../wire/errors.js';
import type { Json } from '../../wire/event-json.js';
import { type ExplainSteps, explainSteps } from '../../wire/explain-steps.js';
import { bytesOfHex } from '../../wire/http-answers.js';
import {
  BadParameter,
  checkTogether,
  type Names,
  operationOf,
  readBody,
  readQuery,
  type Values,
} from '../../wire/http-operations.js';
import { type Route, WEBSOCKET_PATH } from '../../wire/http-routes.js';
import type { PackValue } from '../../wire/msgpack-writer.js';
import { openApiOf, pathParameter } from '../../wire/openapi.js';
import type { StatusReply } from '../../wire/query-reply.js';
import type { ConnectionHandlers } from '../client-socket.js';
import { type ScrubDesk, scrubJson } from '../scrub/scrub-status.js';
import {
  answerBad,
  answerError,
  answerJson,
  answerNoRoute,
  type Place,
  placeHeaders,
} from './answer.js';
import { EventStream, type StreamPlan } from './event-stream.js';
import { Exchange } from './exchange.js';
import { ExplainExchange } from './explain-exchange.js';
import { FrameSocket } from './frame-socket.js';
import { type LedReplica, Lines } from './lines.js';
import { isHostAllowed, isOriginAllowed } from './origin.js';
import { matchRoute } from './route-match.js';
import { SocketSink, SseSink } from './sinks.js';
import { statusJson } from './status-json.js';
import {
  type Headers,
  type HttpCall,
  type SocketHandle,
  type SocketListener,
  UwsServer,
} from './uws-server.js';

/** What the door uses of the replica. */
export interface DoorReplica extends LedReplica {
  health(): Health;
  status(): StatusReply;
}

/** Told of each request that was answered; seconds from its arrival. */
export interface DoorMeter {
  onAnswered(routeId: string, status: number, seconds: number): void;
  /** The text of /metrics and its media type. */
  read(gauges: DoorGauges): Promise<{ readonly type: string; readonly text: string }>;
}

export interface DoorGauges {
  readonly calls: number;
  readonly streams: number;
  readonly sockets: number;
}

/** A file that the door serves beside its routes. */
export interface Asset {
  readonly headers: Headers;
  readonly body: Uint8Array;
}

export interface HttpDoorOptions {
  readonly host: string;
  readonly port: number;
  readonly nodeId: number;
  readonly version: string;
  /** Names beside addresses and localhost by which this node may be asked. */
  readonly names: readonly string[];
  readonly replica: DoorReplica;
  readonly handlers: ConnectionHandlers;
  readonly meter: DoorMeter;
  readonly scrub: ScrubDesk;
  /** Files by path: the dashboard. */
  readonly assets: ReadonlyMap<string, Asset>;
}

const MS_PER_S = 1_000;
const ELECTION_STREAM = 'observe';
const TRACE = /^[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}/;
const UTF8 = new TextEncoder();

/** The steps of a route that explains without a lock's name; null for every other route. */
function explainStepsOf({ id }: Route, { subject }: Names): ExplainSteps | null {
  const lease = id === 'explain-lease' && subject instanceof Uint8Array ? subject : null;
  const request = id === 'explain-request' && typeof subject === 'string' ? subject : null;
  if (lease === null && request === null) return null;
  return explainSteps({ name: null, session: null, request, lease });
}

export class HttpDoor {
  private readonly server: UwsServer;
  private readonly lines: Lines;
  private readonly names: ReadonlySet<string>;
  private readonly streams = new Set<EventStream>();
  private readonly openApi: string;
  private lastSocketId = 0;

  constructor(private readonly options: HttpDoorOptions) {
    const { replica, nodeId, names, version } = options;
    this.names = new Set(names.map((name) => name.toLowerCase()));
    this.lines = new Lines(replica, nodeId, PRINCIPAL_BUILT_IN);
    this.openApi = JSON.stringify(openApiOf(version));
    this.server = new UwsServer({
      onCall: (call) => this.onCall(call),
      onUpgrade: (call) => this.onUpgrade(call),
    });
  }

  /** Resolves when the port is open; rejects with the system's code. */
  listen(): Promise<void> {
    return this.server.listen(this.options.host, this.options.port);
  }

  /** Ends everything; callers that still wait are told that the outcome is unknown. */
  close(): void {
    this.lines.close();
    for (const stream of [...this.streams]) stream.close();
    this.server.close();
  }

  private here(): Place {
    return { nodeId: this.options.nodeId, leaderId: this.options.replica.leaderId };
  }

  private onCall(call: HttpCall): void {
    if (!this.isWelcome(call)) return;
    const { method, path } = call.head;
    const asset = method === 'GET' ? this.options.assets.get(path) : undefined;
    if (asset !== undefined) {
      call.answer(200, asset.headers, asset.body);
      return;
    }
    const { route, subject, allowed, isBroken } = matchRoute(method, path);
    if (route === null) answerNoRoute(call, this.here(), allowed);
    else if (isBroken) answerBad(call, this.here(), pathParameter(route.path), 'is no UTF-8');
    else if (route.kind === 'own' && route.method === 'GET') this.answerOwn(call, route);
    else if (this.isStreamed(call, route)) this.openSse(call, route, subject);
    else if (route.method === 'POST') this.onPost(call, route, subject);
    else this.exchange(call, route, subject, new Map());
  }

  /** Host and Origin: see origin.ts. */
  private isWelcome(call: HttpCall): boolean {
    const { host, origin } = call.head;
    if (isHostAllowed(host, this.names) && isOriginAllowed(origin, host)) return true;
    const message = `this node is not asked as '${host}' by '${origin}'`;
    answerError(call, this.here(), ErrorCode.Forbidden, message);
    return false;
  }

  private onPost(call: HttpCall, route: Route, subject: string): void {
    const type = call.head.contentType.split(';')[0]?.trim().toLowerCase();
    if (type !== 'application/json') {
      answerBad(call, this.here(), 'content-type', 'send application/json');
      return;
    }
    call.readBody((body) => {
      if (body === null) {
        answerError(call, this.here(), ErrorCode.TooLarge);
        return;
      }
      const values = readBody(parseJson(body), route.body);
      if (values instanceof BadParameter) {
        answerBad(call, this.here(), values.field, values.message);
      } else if (route.kind === 'own') {
        this.answerOwn(call, route);
      } else {
        this.exchange(call, route, subject, values);
      }
    });
  }

  /** Sends one request on its way, once everything that can be checked here was. */
  private exchange(call: HttpCall, route: Route, subject: string, body: Values): void {
    const query = readQuery(new URLSearchParams(call.head.query), route.query);
    if (query instanceof BadParameter) {
      answerBad(call, this.here(), query.field, query.message);
      return;
    }
    const values = new Map([...query, ...body]);
    const fault = checkTogether(route, values);
    if (fault !== null) {
      answerBad(call, this.here(), fault.field, fault.message);
      return;
    }
    const named = this.namesOf(call, route, subject, values);
    if (named === null) return;
    const deadlineMs = deadlineOf(call.head.deadline);
    if (deadlineMs === 0) {
      const words = `give 1 to ${REQUEST_DEADLINE_MAX_MS} ms`;
      answerBad(call, this.here(), 'holdfast-deadline-ms', words);
      return;
    }
    const line = route.kind === 'read' ? this.lines.local : this.lines.toLeader();
    if (line === null || this.lines.isFullFor(route.id)) {
      answerError(call, this.here(), ErrorCode.Overloaded, '', { retry_after_ms: MS_PER_S });
      return;
    }
    const startedMs = performance.now();
    const done = (status: number): void => {
      const seconds = (performance.now() - startedMs) / MS_PER_S;
      this.options.meter.onAnswered(route.id, status, seconds);
    };
    const here = (): Place => this.here();
    const steps = explainStepsOf(route, named.names);
    if (steps !== null) {
      new ExplainExchange(call, line, steps, deadlineMs, here, done).start();
      return;
    }
    const errand = {
      route,
      operation: operationOf(route, values, named.names),
      asked: {
        subject,
        leaseId: hexAt(values, 'lease_id'),
        nodeId: Number(values.get('node_id') ?? 0),
        key: named.names.key ?? '',
      },
      deadlineMs,
      waitMs: Number(values.get('wait_ms') ?? 0),
      session: named.session,
    };
    new Exchange(call, line, errand, here, done).start();
  }

  /** What names the operation. Null after having refused the call. */
  private namesOf(
    call: HttpCall,
    route: Route,
    subject: string,
    values: Values,
  ): {
    readonly names: Names;
    readonly session: { id: Uint8Array; secret: Uint8Array } | null;
  } | null {
    const { head } = call;
    const parameter = pathParameter(route.path);
    const isId = parameter === 'lease_id' || parameter === 'session_id';
    const id = isId ? bytesOfHex(subject) : null;
    if (isId && id === null) {
      answerBad(call, this.here(), parameter, 'give 32 hexadecimal digits');
      return null;
    }
    const key = head.key !== '' ? head.key : String(values.get('request_id') ?? '');
    if (route.isNamed && (key === '' || UTF8.encode(key).length > REQUEST_ID_BYTES_MAX)) {
      const words = `name the operation by Idempotency-Key or request_id, 1 to 64 bytes`;
      answerBad(call, this.here(), 'request_id', words);
      return null;
    }
    const session = this.sessionOf(call, route, id, values);
    if (session === undefined) return null;
    const trace = TRACE.exec(head.trace)?.[1];
    const names = {
      subject: parameter === '' ? null : (id ?? subject),
      key: route.isNamed ? key : null,
      session: session?.id ?? null,
      trace: trace === undefined ? null : bytesOfHex(trace),
    };
    return { names, session };
  }

  /** The session and its secret, null for none, undefined after having refused the call. */
  private sessionOf(
    call: HttpCall,
    route: Route,
    pathId: Uint8Array | null,
    values: Values,
  ): { id: Uint8Array; secret: Uint8Array } | null | undefined {
    const named = values.get('session_id');
    const id = route.session === 'path' ? pathId : named instanceof Uint8Array ? named : null;
    if (route.session === 'none' || id === null) return null;
    const secret = bytesOfHex(call.head.secret);
    if (secret !== null) return { id, secret };
    const words = 'send the secret of the session in Holdfast-Session-Secret, 32 digits';
    answerError(call, this.here(), ErrorCode.Unauthenticated, words);
    return undefined;
  }

  private answerOwn(call: HttpCall, route: Route): void {
    const { replica, nodeId, scrub } = this.options;
    switch (route.id) {
      case 'livez':
        answerJson(call, this.here(), 200, { live: true, node: nodeId });
        return;
      case 'readyz':
        this.answerReady(call);
        return;
      case 'metrics':
        void this.answerMetrics(call);
        return;
      case 'openapi': {
        const type = ['content-type', 'application/json'] as const;
        call.answer(200, [type, ...placeHeaders(this.here())], this.openApi);
        return;
      }
      case 'scrub':
        answerJson(call, this.here(), 200, scrubJson(nodeId, scrub.status, null));
        return;
      case 'scrub-now': {
        const asked = scrub.begin();
        answerJson(call, this.here(), 200, scrubJson(nodeId, scrub.status, asked));
        return;
      }
      default:
        answerJson(call, this.here(), 200, statusJson(replica.status()));
    }
  }

  private answerReady(call: HttpCall): void {
    const { role, leaderId, isServing, isShuttingDown, ageMs } = this.options.replica.health();
    let reason = '';
    if (isShuttingDown) reason = 'the node is stopping';
    else if (leaderId === 0) reason = 'no leader is known';
    else if (role === 'leader' && !isServing) reason = 'this node leads and is not ready yet';
    else if (role !== 'leader' && ageMs > READY_AGE_MS_MAX) reason = 'the leader is silent';
    const ready = reason === '';
    const body: Json = {
      ready,
      node: this.options.nodeId,
      role,
      leader_id: leaderId,
      age_ms: ageMs,
      reason,
    };
    answerJson(call, this.here(), ready ? 200 : 503, body);
  }

  private async answerMetrics(call: HttpCall): Promise<void> {
    const gauges = {
      calls: this.lines.unanswered,
      streams: this.streams.size,
      sockets: this.server.socketCount,
    };
    const { type, text } = await this.options.meter.read(gauges);
    call.answer(200, [['content-type', type]], text);
  }

  private isStreamed(call: HttpCall, route: Route): boolean {
    if (route.kind === 'stream') return true;
    const isEvents = call.head.accept.includes('text/event-stream');
    return route.id === 'get' && isEvents && call.head.query.includes('revision=');
  }

  /** Server-sent events. */
  private openSse(call: HttpCall, route: Route, subject: string): void {
    if (!call.head.accept.includes('text/event-stream')) {
      const words = 'ask for text/event-stream, or upgrade to a WebSocket';
      answerBad(call, this.here(), 'accept', words);
      return;
    }
    const plan = this.planOf(call, route, subject);
    if (plan === null) return;
    const sink = new SseSink(call);
    const headers = [
      ['content-type', 'text/event-stream'],
      ['cache-control', 'no-store'],
      ...placeHeaders(this.here()),
    ] as const;
    call.beginStream(headers, () => {
      sink.isBlocked = false;
    });
    const stream = this.openStream(plan, sink);
    call.onGone = () => stream.close();
  }

  private openStream(plan: StreamPlan, sink: SseSink | SocketSink): EventStream {
    const { replica } = this.options;
    const over = (): void => {
      this.streams.delete(stream);
    };
    const stream: EventStream = new EventStream(replica, PRINCIPAL_BUILT_IN, plan, sink, over);
    this.streams.add(stream);
    return stream;
  }

  /** What a stream is to show. Null after having refused the call. */
  private planOf(call: HttpCall, route: Route, subject: string): StreamPlan | null {
    if (this.streams.size >= HTTP_STREAMS_MAX) {
      answerError(call, this.here(), ErrorCode.Overloaded, '', { retry_after_ms: MS_PER_S });
      return null;
    }
    const values = readQuery(new URLSearchParams(call.head.query), route.query);
    if (values instanceof BadParameter) {
      answerBad(call, this.here(), values.field, values.message);
      return null;
    }
    const last = /^\d{1,15}$/.test(call.head.lastEventId)
      ? Number(call.head.lastEventId) + 1
      : null;
    const isPrefix = route.id === 'watch-prefix';
    const asked = values.get('revision');
    const revision = last ?? (typeof asked === 'number' ? asked : null);
    return {
      name: isPrefix ? null : subject,
      prefix: isPrefix ? String(values.get('prefix') ?? '') : null,
      revision,
      snapshot: values.get('snapshot') === true && revision === null,
      isElection: route.id === ELECTION_STREAM,
    };
  }

  private onUpgrade(call: HttpCall): SocketListener | null {
    if (!this.isWelcome(call)) return null;
    if (call.head.path === WEBSOCKET_PATH) {
      if (this.server.socketCount >= CONNECTIONS_MAX) {
        answerError(call, this.here(), ErrorCode.Overloaded, '', { retry_after_ms: MS_PER_S });
        return null;
      }
      this.lastSocketId += 1;
      return new FrameSocket(this.lastSocketId, PRINCIPAL_BUILT_IN, this.options.handlers);
    }
    const { route, subject, allowed } = matchRoute('GET', call.head.path);
    if (route === null || !(route.kind === 'stream' || route.id === 'get')) {
      answerNoRoute(call, this.here(), allowed);
      return null;
    }
    const plan = this.planOf(call, route, subject);
    return plan === null ? null : this.eventSocket(plan);
  }

  /** JSON messages of a WebSocket; what such a reader sends means nothing. */
  private eventSocket(plan: StreamPlan): SocketListener {
    let stream: EventStream | null = null;
    return {
      onOpen: (socket: SocketHandle) => {
        stream = this.openStream(plan, new SocketSink(socket));
      },
      onMessage: () => undefined,
      onDrain: () => undefined,
      onClose: () => stream?.close(),
    };
  }
}

/** The value, or undefined when it is no JSON. */
function parseJson(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString('utf8'));
  } catch {
    return undefined; // the caller is told to send one JSON object
  }
}

/** Ms, 0 when the header is no valid one. */
function deadlineOf(header: string): number {
  if (header === '') return REQUEST_DEADLINE_DEFAULT_MS;
  const value = /^\d{1,6}$/.test(header) ? Number(header) : 0;
  return value <= REQUEST_DEADLINE_MAX_MS ? value : 0;
}

function hexAt(values: ReadonlyMap<string, PackValue>, name: string): string {
  const value = values.get(name);
  return value instanceof Uint8Array ? Buffer.from(value).toString('hex') : '';
}
