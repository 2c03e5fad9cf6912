/**
 * The words that JSON has for events and their causes, wherever they are shown.
 *
 * Owns: the names of kinds, ends and codes, and the JSON of one event row. Never: an answer of a
 * route (http-answers.ts). Used by: io/http, audit.ts, client, command line.
 */
import { EventKind } from '../core/locks/event.js';
import { LeaseEnd } from '../core/locks/outcome.js';
import { ErrorCode, errorRow } from './errors.js';

export type Json = { readonly [name: string]: unknown };

/** 32 hexadecimal digits. */
export function hexOf(bytes: unknown): string {
  if (!(bytes instanceof Uint8Array)) return '';
  let text = '';
  for (const byte of bytes) text += byte.toString(16).padStart(2, '0');
  return text;
}

/** The public name of a code: OK, QUEUED, or that of the error. */
export function codeName(code: number): string {
  if (code === ErrorCode.Ok) return 'OK';
  return code === ErrorCode.Queued ? 'QUEUED' : errorRow(code).code;
}

function countAt(fields: readonly unknown[], at: number): number {
  const value = fields[at];
  return typeof value === 'number' ? value : 0;
}

const LEASE_END_NAMES = namesOf(LeaseEnd);
const EVENT_NAMES = namesOf(EventKind);

/** snake_case names by number. */
function namesOf(numbers: { readonly [name: string]: number }): ReadonlyMap<number, string> {
  const names = new Map<number, string>();
  for (const [name, number] of Object.entries(numbers)) {
    names.set(number, name.replace(/(?<!^)[A-Z]/g, (letter) => `_${letter}`).toLowerCase());
  }
  return names;
}

/** How a lease ended, in words. */
export function leaseEndName(cause: number): string {
  return LEASE_END_NAMES.get(cause) ?? 'unknown';
}

/** One event row as JSON. */
export function eventOf(row: unknown): Json {
  const fields: readonly unknown[] = Array.isArray(row) ? row : [];
  const kind = countAt(fields, 1);
  const cause = countAt(fields, 5);
  return {
    type: EVENT_NAMES.get(kind) ?? 'unknown',
    revision: countAt(fields, 0),
    name: String(fields[2]),
    fencing_token: countAt(fields, 3),
    place: countAt(fields, 4),
    cause: causeName(kind, cause),
    principal: countAt(fields, 6),
    cluster_time: countAt(fields, 7),
  };
}

function causeName(kind: number, cause: number): string | null {
  if (kind === EventKind.Ended || kind === EventKind.Expelled) return leaseEndName(cause);
  return cause === 0 ? null : codeName(cause);
}
