/**
 * The client port: accepts TCP connections and keeps them within their bounds.
 *
 * Owns: the listening socket, the set of connections, and one sweep timer for all their time-outs
 * (a frame that does not end, a hello that does not come, a close that is not answered). Never: the
 * meaning of a frame. Past CONNECTIONS_MAX a newcomer is told OVERLOADED and closed.
 * Made by: server.
 */
import net from 'node:net';
import { CLOSE_LINGER_MS, CONNECTIONS_MAX, FRAME_TIMEOUT_MS, KEEPALIVE_MS } from '../limits.js';
import { ErrorCode } from '../wire/errors.js';
import { beginFrame, endFrame } from '../wire/frame.js';
import { OutBuffer } from '../wire/out-buffer.js';
import { encodeRefusal } from '../wire/reply.js';
import { ClientSocket, type ConnectionHandlers } from './client-socket.js';

const BACKLOG = 1_024;
const SWEEPS_A_TIMEOUT = 8;

export interface TcpServerOptions {
  readonly host: string;
  /** 0 lets the system choose. */
  readonly port: number;
  readonly handlers: ConnectionHandlers;
  /** The principal of every connection until it authenticates. */
  readonly principal: number;
  /** Ms for a frame or a hello, FRAME_TIMEOUT_MS by default. */
  readonly frameTimeoutMs?: number;
  /** Connections at once, CONNECTIONS_MAX by default. */
  readonly connectionsMax?: number;
}

export class TcpServer {
  private readonly server: net.Server;
  private readonly sockets = new Set<ClientSocket>();
  private readonly frameTimeoutMs: number;
  private readonly connectionsMax: number;
  private sweepTimer: NodeJS.Timeout | null = null;
  private lastId = 0;

  constructor(private readonly options: TcpServerOptions) {
    this.frameTimeoutMs = options.frameTimeoutMs ?? FRAME_TIMEOUT_MS;
    this.connectionsMax = options.connectionsMax ?? CONNECTIONS_MAX;
    const settings = { noDelay: true, keepAlive: true, keepAliveInitialDelay: KEEPALIVE_MS };
    this.server = net.createServer(settings, (socket) => this.onSocket(socket));
  }

  get connectionCount(): number {
    return this.sockets.size;
  }

  /** Resolves with the port; rejects with the system's error (EADDRINUSE, EACCES, …). */
  listen(): Promise<number> {
    const { host, port } = this.options;
    return new Promise((resolve, reject) => {
      this.server.once('error', reject);
      this.server.listen({ host, port, backlog: BACKLOG }, () => {
        this.server.off('error', reject);
        this.server.on('error', () => undefined); // out of descriptors: accepting goes on later
        this.sweepTimer = setInterval(() => this.sweep(), this.sweepMs);
        this.sweepTimer.unref();
        resolve((this.server.address() as net.AddressInfo).port);
      });
    });
  }

  /** Stops accepting, closes every connection after its last flush, resolves when all are gone. */
  async close(): Promise<void> {
    const isClosed = new Promise<void>((resolve) => this.server.close(() => resolve()));
    for (const socket of this.sockets) socket.close();
    const linger = setTimeout(() => this.destroyAll(), CLOSE_LINGER_MS);
    await isClosed;
    clearTimeout(linger);
    // The server counts a socket as gone a tick before the socket's owner is told.
    while (this.sockets.size > 0) await new Promise((resolve) => setImmediate(resolve));
    if (this.sweepTimer !== null) clearInterval(this.sweepTimer);
  }

  private get sweepMs(): number {
    return Math.max(1, Math.min(this.frameTimeoutMs, CLOSE_LINGER_MS) / SWEEPS_A_TIMEOUT);
  }

  private onSocket(socket: net.Socket): void {
    if (this.sockets.size >= this.connectionsMax) {
      refuse(socket);
      return;
    }
    this.lastId += 1;
    const { handlers, principal } = this.options;
    const client = new ClientSocket(this.lastId, principal, socket, handlers);
    this.sockets.add(client);
    socket.once('close', () => this.sockets.delete(client));
    handlers.onOpen(client.connection);
  }

  private destroyAll(): void {
    for (const socket of this.sockets) socket.destroy();
  }

  private sweep(): void {
    const now = performance.now();
    for (const socket of this.sockets) {
      if (this.isOverdue(socket, now)) socket.destroy();
    }
  }

  private isOverdue(socket: ClientSocket, now: number): boolean {
    if (socket.closedSinceMs !== 0) return now - socket.closedSinceMs > CLOSE_LINGER_MS;
    if (socket.isPaused) return false;
    const { greeted } = socket.connection;
    if (!greeted && now - socket.openedAtMs > this.frameTimeoutMs) return true;
    return socket.frameSinceMs !== 0 && now - socket.frameSinceMs > this.frameTimeoutMs;
  }
}

/** Says OVERLOADED to a connection that will not be served, and drops it. */
function refuse(socket: net.Socket): void {
  const out = new OutBuffer();
  const position = beginFrame(out);
  encodeRefusal(out, 0, ErrorCode.Overloaded);
  endFrame(out, position, 1);
  socket.on('error', () => undefined); // the newcomer hung up first: it is gone either way
  socket.write(out.take());
  socket.destroySoon();
}
