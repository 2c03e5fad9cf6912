/**
 * Why a node was not reached, in few words.
 *
 * Owns: the words for what a socket says, and for several nodes at once. Never: a verdict on what
 * became of a request. Used by: connection.ts, leader-search.ts, cli/node-call.ts.
 */

/** A node that was asked and did not answer as a node. */
export interface SilentNode {
  /** `host:port` as it was dialled. */
  readonly address: string;
  /** `refused`, `host name not found`, … */
  readonly reason: string;
}

/** It ends the connection before the greeting is answered. */
export const SPEAKS_NOT =
  'accepts connections but does not speak the client protocol: a peer port?';
/** It keeps the connection and does not answer the greeting. */
export const SAYS_NOTHING = 'accepts connections but does not answer: a peer port, or it hangs';
/** It cannot be told yet. */
export const NO_ANSWER = 'no answer';

const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'refused',
  ENOTFOUND: 'host name not found',
  EAI_AGAIN: 'host name not found: the name server does not answer',
  ETIMEDOUT: NO_ANSWER,
  EHOSTUNREACH: 'no route',
  ENETUNREACH: 'no route',
  ECONNRESET: 'reset',
  EPIPE: 'reset',
  EACCES: 'not allowed',
};

/** What a socket's error means to somebody who gave the address. */
export function reasonOf(error: Error): string {
  const { code } = error as NodeJS.ErrnoException;
  return REASONS[code ?? ''] ?? (error.message || (code ?? 'failed'));
}

/** `no node answers at A (refused), B (no answer)`. */
export function silentWords(nodes: readonly SilentNode[]): string {
  const words = nodes.map(({ address, reason }) => `${address} (${reason})`);
  return `no node answers at ${words.join(', ')}`;
}
