/**
 * The JSON of a lock: its holder and its queue, wherever they are shown.
 *
 * Owns: the names of these fields. Metadata that is no UTF-8 is null, with its bytes beside it in
 * metadata_base64. Never: an answer of a route (http-answers.ts). Used by: io/http, explain.ts.
 */
import type { Json } from './event-json.js';

const STRICT = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function base64Of(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes));
}

/** `name` as text, and `name`_base64 when it is none. */
export function textOrBytes(name: string, value: unknown): Json {
  if (!(value instanceof Uint8Array)) return { [name]: typeof value === 'string' ? value : null };
  try {
    return { [name]: STRICT.decode(value) };
  } catch {
    return { [name]: null, [`${name}_base64`]: base64Of(value) };
  }
}

export function countAt(fields: readonly unknown[], at: number): number {
  const value = fields[at];
  return typeof value === 'number' ? value : 0;
}

export function listAt(fields: readonly unknown[], at: number): readonly unknown[] {
  const value = fields[at];
  return Array.isArray(value) ? value : [];
}

function holderOf(row: unknown, now: number): Json | null {
  if (!Array.isArray(row)) return null;
  const expiresAt = countAt(row, 2);
  return {
    fencing_token: countAt(row, 0),
    since: countAt(row, 1),
    expires_at: expiresAt,
    expires_in_ms: Math.max(0, expiresAt - now),
    last_renewed: countAt(row, 3),
    principal: countAt(row, 4),
    in_session: row[5] === true,
    ...textOrBytes('metadata', row[6]),
  };
}

function waiterOf(row: unknown): Json {
  const fields = Array.isArray(row) ? row : [];
  return {
    place: countAt(fields, 0),
    since: countAt(fields, 1),
    until: countAt(fields, 2),
    principal: countAt(fields, 3),
    ...textOrBytes('metadata', fields[4]),
  };
}

/** The rule that disables a lock; null for none. */
export function ruleJson(row: unknown): Json | null {
  if (!Array.isArray(row)) return null;
  return {
    name: String(row[0]),
    is_prefix: row[1] === true,
    revision: countAt(row, 2),
    since: countAt(row, 3),
    principal: countAt(row, 4),
    ...textOrBytes('asked_by', row[5]),
    ...textOrBytes('reason', row[6]),
  };
}

/** A lock row without its queue. */
export function lockRowOf(row: unknown, now: number): Json {
  const fields: readonly unknown[] = Array.isArray(row) ? row : [];
  return {
    name: String(fields[0]),
    last_revision: countAt(fields, 1),
    holder: holderOf(fields[2], now),
    waiters: countAt(fields, 3),
    fencing: fields[4] === 'best-effort' ? 'best-effort' : 'required',
  };
}

/** A lock row with its queue; null for a lock without a record. */
export function lockJson(row: readonly unknown[] | null, now: number): Json | null {
  return row === null ? null : { ...lockRowOf(row, now), queue: listAt(row, 5).map(waiterOf) };
}
