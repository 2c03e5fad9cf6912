/**
 * TCP streams to nodes: the only file of the client that knows sockets.
 *
 * Owns: socket options and the order of events. Never: frames, retries. Nagle is off because a
 * frame is a whole turn's requests already. Used by: client.ts, as the default way to dial.
 */
import net from 'node:net';
import type { Endpoint, Transport, TransportEvents } from './transport.js';

const KEEP_ALIVE_MS = 10_000;

class TcpTransport implements Transport {
  readonly #socket: net.Socket;

  constructor(socket: net.Socket) {
    this.#socket = socket;
  }

  write(bytes: Uint8Array): boolean {
    return this.#socket.write(bytes);
  }

  close(): void {
    this.#socket.destroy();
  }
}

/** Dials a node over TCP. Errors of the socket come by onClose. */
export function dialTcp(endpoint: Endpoint, events: TransportEvents): Transport {
  const socket = net.connect({
    host: endpoint.host,
    port: endpoint.port,
    noDelay: true,
    keepAlive: true,
    keepAliveInitialDelay: KEEP_ALIVE_MS,
  });
  let failure: Error | undefined;
  socket.on('connect', () => events.onOpen());
  socket.on('data', (chunk: Buffer) => events.onBytes(chunk));
  socket.on('drain', () => events.onDrain());
  socket.on('error', (error) => {
    failure = error;
  });
  socket.on('close', () => events.onClose(failure));
  return new TcpTransport(socket);
}
