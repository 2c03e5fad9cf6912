/**
 * One request to the service behind the write proxy, and its whole answer.
 *
 * Owns: which headers travel, the bound on bodies, and the line between "never reached" and "not
 * answered", on which the quarantine depends. Never: a retry. Used by: write-proxy.ts.
 */
import { type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http';
import { Agent as SecureAgent, request as secureRequest } from 'node:https';

export interface UpstreamAnswer {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Uint8Array;
}

/** Why there is no answer. */
export type Silence = 'unreachable' | 'timeout' | 'broken';

export class UpstreamError extends Error {
  override readonly name = 'UpstreamError';

  constructor(
    readonly reason: Silence,
    message: string,
  ) {
    super(message);
  }
}

export const BODY_BYTES_MAX = 8 * 1024 * 1024;
/** Between two neighbours only (RFC 9110 §7.6.1), or set anew. */
const HOP_HEADERS = [
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'expect',
  'content-length',
];
/** TLS connections of the proxy; one that is not kept cannot deliver a write late. */
const SECURE_AGENT = new SecureAgent({ keepAlive: false });

function withoutHops(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const kept = { ...headers };
  const named = String(headers.connection ?? '')
    .toLowerCase()
    .split(',')
    .map((word) => word.trim());
  for (const name of [...HOP_HEADERS, ...named]) delete kept[name];
  return kept;
}

/** The whole body, or null: it is larger than BODY_BYTES_MAX. */
export async function readBody(message: IncomingMessage): Promise<Uint8Array | null> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const part of message as AsyncIterable<Uint8Array>) {
    bytes += part.length;
    if (bytes > BODY_BYTES_MAX) return null;
    parts.push(part);
  }
  return Buffer.concat(parts);
}

/**
 * Sends the request on and resolves with the whole answer. Rejects UpstreamError: `unreachable`
 * when no connection came about, so that nothing was sent; else `timeout` or `broken`.
 */
export function forward(
  upstream: string,
  from: IncomingMessage,
  body: Uint8Array,
  msMax: number,
): Promise<UpstreamAnswer> {
  const url = new URL(from.url ?? '/', upstream);
  const headers = { ...withoutHops(from.headers), host: url.host, 'content-length': body.length };
  const isSecure = url.protocol === 'https:';
  const ask = isSecure ? secureRequest : request;
  // A connection of its own, so that whether it came about is known.
  const agent = isSecure ? SECURE_AGENT : false;
  return new Promise((resolve, reject) => {
    let isConnected = false;
    const call = ask(url, { method: from.method ?? 'GET', headers, agent });
    const timer = setTimeout(() => {
      const reason = isConnected ? 'timeout' : 'unreachable';
      call.destroy(new UpstreamError(reason, `upstream did not answer within ${msMax} ms`));
    }, msMax);
    const lose = (error: Error): void => {
      clearTimeout(timer);
      const reason = isConnected ? 'broken' : 'unreachable';
      const isTimeout = error instanceof UpstreamError;
      reject(isTimeout ? error : new UpstreamError(reason, `upstream: ${error.message}`));
    };
    call.once('socket', (socket) => {
      socket.once(isSecure ? 'secureConnect' : 'connect', () => {
        isConnected = true;
      });
    });
    call.on('error', lose);
    call.once('response', (message) => {
      message.once('error', lose);
      readBody(message).then((whole) => {
        clearTimeout(timer);
        if (whole === null) return lose(new Error(`answer is above ${BODY_BYTES_MAX} bytes`));
        const status = message.statusCode ?? 502;
        resolve({ status, headers: withoutHops(message.headers), body: whole });
      }, lose);
    });
    call.end(body);
  });
}
