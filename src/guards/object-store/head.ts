/**
 * The head of a guarded object: a small object under the guarded key that names the data, the lock
 * and the highest token.
 *
 * Owns: its bytes. Each head has a nonce, so no two have the same content. That is what makes a
 * condition on an ETag safe: S3 makes the tag from the content alone, and if a newer holder wrote
 * the very bytes that were there before, a delayed write of an older one would still find the tag
 * that it knew. Used by: object-guard.ts.
 */
import { assert } from '../../collections/assert.js';

const VERSION = 1;

export interface Head {
  readonly lock: string;
  /** Highest exclusive or barrier token. */
  readonly token: number;
  readonly nonce: string;
  /** Key of the data; null when nothing was written yet, or it was removed. */
  readonly data: string | null;
  readonly contentType: string;
}

export function encodeHead(head: Head): Uint8Array {
  assert(Number.isSafeInteger(head.token) && head.token >= 0, `token is ${head.token}`);
  return new TextEncoder().encode(JSON.stringify({ holdfast: VERSION, ...head }));
}

/** The head in these bytes, or null when they are none: a plain object, or a later version. */
export function decodeHead(body: Uint8Array): Head | null {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
  } catch {
    return null; // bytes that are no JSON are no head
  }
  if (typeof value !== 'object' || value === null) return null;
  const { holdfast, lock, token, nonce, data, contentType } = value as Record<string, unknown>;
  const isHead =
    holdfast === VERSION &&
    typeof lock === 'string' &&
    Number.isSafeInteger(token) &&
    typeof nonce === 'string' &&
    (data === null || typeof data === 'string') &&
    typeof contentType === 'string';
  if (!isHead) return null;
  return { lock, token: token as number, nonce, data, contentType };
}
