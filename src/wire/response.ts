/**
 * Decodes a node's frames into replies as objects, for clients.
 *
 * Owns: the head of a reply: [correlation, code, cluster_time|nil, replay, field, ...]. Never: what
 * the fields mean; docs/PROTOCOL.md lists them by command. Used by: client.
 */
import { ERROR_CODE_MIN } from './errors.js';
import { frameItemsAt } from './frame.js';
import { unpackValue } from './msgpack.js';

/** One reply, or with correlation 0 a notice to the whole connection. */
export interface Reply {
  readonly correlation: number;
  readonly code: number;
  /** Cluster time of the entry, ms; -1 when no entry was involved. */
  readonly clusterTimeMs: number;
  /** The effect is an earlier entry's. */
  readonly isReplay: boolean;
  /** What follows the head; for refusals what follows the retry time. */
  readonly fields: readonly unknown[];
  /** Refusals: the node's words, empty when it used none. */
  readonly message: string;
  /** Refusals: when to come back, ms; -1 when not said. */
  readonly retryAfterMs: number;
}

/**
 * The replies of the frame body `start` … `end`, in order; binaries are copies.
 * Returns null when the body is no frame of version 1: the connection is to be closed.
 */
export function decodeReplies(bytes: Uint8Array, start: number, end: number): Reply[] | null {
  if (frameItemsAt(bytes, start, end) < 0) return null;
  const body = unpackValue(bytes, start, end);
  if (!Array.isArray(body)) return null;
  const replies: Reply[] = [];
  for (let item = 2; item < body.length; item += 1) {
    const reply = replyOf(body[item]);
    if (reply === null) return null;
    replies.push(reply);
  }
  return replies;
}

function isCount(value: unknown): value is number {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0;
}

/** An absent number is nil on the wire and -1 here; anything else that is no count is null. */
function optionalOf(value: unknown): number | null {
  if (value === null) return -1;
  return isCount(value) ? value : null;
}

function replyOf(item: unknown): Reply | null {
  if (!Array.isArray(item) || item.length < 4) return null;
  const parts: readonly unknown[] = item;
  const correlation = parts[0];
  const code = parts[1];
  const clusterTimeMs = optionalOf(parts[2]);
  const isReplay = parts[3];
  if (!isCount(correlation) || !isCount(code) || clusterTimeMs === null) return null;
  if (typeof isReplay !== 'boolean') return null;
  if (code < ERROR_CODE_MIN) {
    const fields = parts.slice(4);
    const message = '';
    return { correlation, code, clusterTimeMs, isReplay, fields, message, retryAfterMs: -1 };
  }
  const message = parts[4] ?? '';
  const retryAfterMs = optionalOf(parts[5] ?? null);
  if (typeof message !== 'string' || retryAfterMs === null) return null;
  const fields = parts.slice(6);
  return { correlation, code, clusterTimeMs, isReplay, fields, message, retryAfterMs };
}
