/**
 * Pages of the audit stream that were asked for and not given yet.
 *
 * Owns: which of them wait for an event and which for the history on disk. Never: a page; audit.ts
 * gives those. Made by: state.ts. Used by: audit.ts.
 */
import { AuditRows } from '../wire/audit.js';
import type { Query } from '../wire/query.js';
import type { Connection } from './connection.js';

/** One page that was asked for. */
export class AuditRead {
  readonly prefix: Uint8Array;
  readonly limit: number;

  constructor(
    readonly connection: Connection,
    readonly correlation: number,
    query: Query,
    /** The next revision to look at. */
    public next: number,
    /** ClockPort µs until which it waits for an event, and until which it must be answered. */
    readonly waitUntilUs: number,
    readonly deadlineUs: number,
  ) {
    this.prefix = query.name;
    this.limit = query.limit;
  }
}

/** The pages that are owed. */
export class AuditReads {
  waiting: AuditRead[] = [];
  readonly reading = new Map<number, AuditRead>();
  lastReadId = 0;
  readonly rows = new AuditRows();

  get count(): number {
    return this.waiting.length + this.reading.size;
  }
}

/** True when `name` begins with `prefix`. */
export function startsWith(name: Uint8Array, prefix: Uint8Array): boolean {
  if (name.length < prefix.length) return false;
  for (let at = 0; at < prefix.length; at += 1) if (name[at] !== prefix[at]) return false;
  return true;
}
