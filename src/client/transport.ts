/**
 * The byte stream under a connection, as types.
 *
 * Owns: what a transport promises. Never: a socket; tcp.ts has the real one, tests have one in
 * memory. Used by: connection.ts.
 */

/** Where a node listens. */
export interface Endpoint {
  readonly host: string;
  readonly port: number;
}

/** What a transport tells; nothing is called from inside dial, write or close. */
export interface TransportEvents {
  onOpen(): void;
  /** Bytes as they came; the callee may keep them. */
  onBytes(bytes: Uint8Array): void;
  /** The transport takes more after write returned false. */
  onDrain(): void;
  /** The stream has ended, for whatever reason; called once, also after close(). */
  onClose(error: Error | undefined): void;
}

/** An open or opening stream. */
export interface Transport {
  /** Sends bytes, which then belong to the transport. False: hold back until onDrain. */
  write(bytes: Uint8Array): boolean;
  /** Ends the stream at once, without waiting for the other side. Idempotent. */
  close(): void;
}

/** Opens a stream; the outcome comes by onOpen or onClose. */
export type Dial = (endpoint: Endpoint, events: TransportEvents) => Transport;

/** `host:port`, with brackets around an IPv6 address. */
export function formatEndpoint(endpoint: Endpoint): string {
  const host = endpoint.host.includes(':') ? `[${endpoint.host}]` : endpoint.host;
  return `${host}:${endpoint.port}`;
}

const PORT_MAX = 65_535;
const PATTERN = /^(?:\[([0-9A-Fa-f:.]+)\]|([^:[\]\s]+)):(\d{1,5})$/;

/** Reads `host:port` or `[ipv6]:port`; null when the text is neither. */
export function parseEndpoint(text: string): Endpoint | null {
  const match = PATTERN.exec(text);
  if (match === null) return null;
  const host = match[1] ?? match[2] ?? '';
  const port = Number(match[3]);
  return port >= 1 && port <= PORT_MAX ? { host, port } : null;
}
