/**
 * The audit stream of one node, read page by page from a revision on, over TCP.
 *
 * Owns: the places of a page's fields. Never: a connection. Used by: tests of history.
 */
import { ErrorCode } from '../../src/wire/errors.js';
import { CommandKind } from '../../src/wire/request.js';
import type { RawConnection } from './acceptance/raw-connection.js';

/** What tests look at of an event. */
export interface AuditedRow {
  readonly revision: number;
  readonly name: string;
  readonly requestId: string;
}

export interface AuditedPage {
  readonly rows: AuditedRow[];
  readonly next: number;
  readonly revision: number;
}

/** One page. Throws when it is refused. */
export async function readPage(
  connection: RawConnection,
  from: number,
  limit: number,
): Promise<AuditedPage> {
  const reply = await connection.call([CommandKind.Audit, null, from, limit]);
  if (reply.code !== ErrorCode.Ok) throw new Error(`revision ${from} was refused: ${reply.code}`);
  const [rows, next, , revision] = reply.fields as [unknown[][], number, number, number];
  const rowOf = (row: unknown[]): AuditedRow => ({
    revision: Number(row[0]),
    name: String(row[2]),
    requestId: String(row[11]),
  });
  return { rows: rows.map(rowOf), next, revision };
}

/** Every event from `from` on. */
export async function readEvents(
  connection: RawConnection,
  from: number,
  limit = 200,
): Promise<AuditedRow[]> {
  const all: AuditedRow[] = [];
  for (let next = from; ; ) {
    const page = await readPage(connection, next, limit);
    all.push(...page.rows);
    if (page.next > page.revision) return all;
    next = page.next;
  }
}
