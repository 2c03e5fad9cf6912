/**
 * HTTP and WebSocket on one port. The only file that knows uWebSockets.js.
 *
 * Owns: the listening socket, copying out of a request what is dead when its handler returns, and
 * one corked write for each answer. Never: routes, or what a message means. To swap the package for
 * the upstream build, change its line in package.json; the calls used here are upstream's.
 * Made by: http-door.ts.
 */
import uWS, { type HttpRequest, type HttpResponse, type WebSocket } from 'uWebSockets.js';
import { CONNECTION_OUT_BYTES_MAX, FRAME_BYTES_MAX, HTTP_BODY_BYTES_MAX } from '../../limits.js';
import { HttpHeader } from '../../wire/http-routes.js';

/** uSockets: refuse a port that another process listens on, instead of sharing it. */
const EXCLUSIVE_PORT = 1;
/** A WebSocket that says nothing, not even a pong, for this long is closed. */
const IDLE_S = 60;
const GOING_AWAY = 1_001;

const STATUS_TEXTS: { readonly [status: number]: string } = {
  200: '200 OK',
  304: '304 Not Modified',
  400: '400 Bad Request',
  401: '401 Unauthorized',
  403: '403 Forbidden',
  404: '404 Not Found',
  405: '405 Method Not Allowed',
  408: '408 Request Timeout',
  409: '409 Conflict',
  410: '410 Gone',
  413: '413 Content Too Large',
  429: '429 Too Many Requests',
  500: '500 Internal Server Error',
  503: '503 Service Unavailable',
  504: '504 Gateway Timeout',
};

/** What is read of a request before its handler returns; absent headers are empty. */
export class RequestHead {
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly host: string;
  readonly origin: string;
  readonly contentType: string;
  readonly accept: string;
  readonly key: string;
  readonly secret: string;
  readonly deadline: string;
  readonly trace: string;
  readonly lastEventId: string;

  constructor(request: HttpRequest) {
    this.method = request.getMethod().toUpperCase();
    this.path = request.getUrl();
    this.query = request.getQuery() ?? '';
    this.host = request.getHeader('host');
    this.origin = request.getHeader('origin');
    this.contentType = request.getHeader('content-type');
    this.accept = request.getHeader('accept');
    this.key = request.getHeader(HttpHeader.Key);
    this.secret = request.getHeader(HttpHeader.Secret);
    this.deadline = request.getHeader(HttpHeader.Deadline);
    this.trace = request.getHeader(HttpHeader.Trace);
    this.lastEventId = request.getHeader('last-event-id');
  }
}

export type Headers = readonly (readonly [string, string])[];

/** One request, until it is answered or its caller hangs up. */
export class HttpCall {
  /** Answered, or gone: nothing may be written any more. */
  isOver = false;
  isGone = false;
  /** Called once when the caller hangs up before the answer. */
  onGone: () => void = () => undefined;
  private onWritable: () => void = () => undefined;

  constructor(
    readonly head: RequestHead,
    private readonly response: HttpResponse,
  ) {
    response.onAborted(() => {
      if (this.isOver) return;
      this.isOver = true;
      this.isGone = true;
      this.onGone();
    });
  }

  /** Reads the body, then calls `then`; null when it is too large. */
  readBody(then: (body: Buffer | null) => void): void {
    const chunks: Buffer[] = [];
    let bytes = 0;
    this.response.onData((chunk, isLast) => {
      if (bytes <= HTTP_BODY_BYTES_MAX) {
        bytes += chunk.byteLength;
        // The chunk is dead when this returns.
        if (bytes <= HTTP_BODY_BYTES_MAX) chunks.push(Buffer.from(Buffer.from(chunk)));
      }
      if (!isLast || this.isOver) return;
      then(bytes > HTTP_BODY_BYTES_MAX ? null : Buffer.concat(chunks));
    });
  }

  /** Answers, in one write. */
  answer(status: number, headers: Headers, body: string | Uint8Array): void {
    if (this.isOver) return;
    this.isOver = true;
    const { response } = this;
    response.cork(() => {
      response.writeStatus(STATUS_TEXTS[status] ?? String(status));
      for (const [name, value] of headers) response.writeHeader(name, value);
      response.end(body);
    });
  }

  /** Begins an answer that goes on. `onWritable` is called when a write that was held has left. */
  beginStream(headers: Headers, onWritable: () => void): void {
    if (this.isOver) return;
    const { response } = this;
    this.onWritable = onWritable;
    response.onWritable(() => {
      this.onWritable();
      return true;
    });
    response.cork(() => {
      response.writeStatus('200 OK');
      for (const [name, value] of headers) response.writeHeader(name, value);
      response.write(':\n\n');
    });
  }

  /** Writes a piece of a stream. False: the caller reads too slowly, hold back. */
  write(text: string): boolean {
    if (this.isOver) return true;
    let isTaken = true;
    this.response.cork(() => {
      isTaken = this.response.write(text);
    });
    return isTaken;
  }

  /** Ends a stream. */
  endStream(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.response.cork(() => this.response.end());
  }
}

/** What the owner of a WebSocket is told. */
export interface SocketListener {
  onOpen(socket: SocketHandle): void;
  /** The bytes are lent until this returns. */
  onMessage(bytes: Uint8Array, isBinary: boolean): void;
  onDrain(): void;
  /** Exactly once after onOpen. */
  onClose(): void;
}

/** One open WebSocket. */
export class SocketHandle {
  isOpen = true;

  constructor(private readonly socket: WebSocket<SocketData>) {}

  get backlogBytes(): number {
    return this.isOpen ? this.socket.getBufferedAmount() : 0;
  }

  send(message: string | Uint8Array): void {
    if (!this.isOpen) return;
    this.socket.cork(() => {
      this.socket.send(message, typeof message !== 'string', false);
    });
  }

  end(code: number, reason: string): void {
    if (this.isOpen) this.socket.end(code, reason);
  }
}

interface SocketData {
  listener: SocketListener;
  handle: SocketHandle | null;
}

export interface UwsHandlers {
  onCall(call: HttpCall): void;
  /** Who listens to a WebSocket that is asked for, or null after having refused the call. */
  onUpgrade(call: HttpCall): SocketListener | null;
}

export class UwsServer {
  private readonly app = uWS.App();
  private listening: uWS.us_listen_socket | false = false;
  private readonly sockets = new Set<SocketHandle>();

  constructor(private readonly handlers: UwsHandlers) {
    this.app.any('/*', (response, request) => {
      handlers.onCall(new HttpCall(new RequestHead(request), response));
    });
    this.app.ws<SocketData>('/*', {
      maxPayloadLength: FRAME_BYTES_MAX + 4,
      maxBackpressure: 2 * CONNECTION_OUT_BYTES_MAX,
      // A message past that bound would be dropped: the connection ends instead.
      closeOnBackpressureLimit: 1,
      idleTimeout: IDLE_S,
      sendPingsAutomatically: true,
      upgrade: (response, request, context) => this.upgrade(response, request, context),
      open: (socket) => this.open(socket),
      message: (socket, message, isBinary) => {
        socket.getUserData().listener.onMessage(new Uint8Array(message), isBinary);
      },
      drain: (socket) => socket.getUserData().listener.onDrain(),
      close: (socket) => this.closed(socket),
    });
  }

  /** Resolves when it listens; rejects with code EADDRINUSE when the port cannot be had. */
  listen(host: string, port: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const onListening = (socket: uWS.us_listen_socket | false): void => {
        this.listening = socket;
        if (socket !== false) resolve();
        else reject(listenError(host, port));
      };
      // The declarations have no form with a host and options; the library takes it.
      const listen = this.app.listen as unknown as (
        ...words: [string, number, number, (socket: uWS.us_listen_socket | false) => void]
      ) => void;
      listen.call(this.app, host, port, EXCLUSIVE_PORT, onListening);
    });
  }

  get socketCount(): number {
    return this.sockets.size;
  }

  /** Stops listening and ends every connection. */
  close(): void {
    if (this.listening !== false) uWS.us_listen_socket_close(this.listening);
    this.listening = false;
    for (const socket of this.sockets) socket.end(GOING_AWAY, 'the node is stopping');
    (this.app as unknown as { close(): void }).close();
  }

  private upgrade(
    response: HttpResponse,
    request: HttpRequest,
    context: Parameters<HttpResponse['upgrade']>[4],
  ): void {
    const call = new HttpCall(new RequestHead(request), response);
    const listener = this.handlers.onUpgrade(call);
    if (listener === null || call.isOver) return;
    call.isOver = true;
    response.upgrade<SocketData>(
      { listener, handle: null },
      request.getHeader('sec-websocket-key'),
      request.getHeader('sec-websocket-protocol'),
      request.getHeader('sec-websocket-extensions'),
      context,
    );
  }

  private open(socket: WebSocket<SocketData>): void {
    const data = socket.getUserData();
    data.handle = new SocketHandle(socket);
    this.sockets.add(data.handle);
    data.listener.onOpen(data.handle);
  }

  private closed(socket: WebSocket<SocketData>): void {
    const { handle, listener } = socket.getUserData();
    if (handle === null) return;
    handle.isOpen = false;
    this.sockets.delete(handle);
    listener.onClose();
  }
}

function listenError(host: string, port: number): Error {
  const error = new Error(`listen EADDRINUSE: ${host}:${port} cannot be listened on`);
  return Object.assign(error, { code: 'EADDRINUSE' });
}
