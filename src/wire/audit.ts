/**
 * The rows of the audit stream: an event of the lock machine beside the operation that caused it.
 *
 * Owns: the row [revision, kind, name, token, place, cause, principal, cluster_time, log_index,
 * actor, command|nil, request|nil, session|nil, trace|nil], with a reason behind it where one was
 * given, its public words, and how the cause is found in the entry's own bytes. Never: a lease id
 * or a secret: who reads what happened may not therefore release it; the token names the lease.
 * Used by: replica, workers, http-answers, cli.
 */
import { Command, CommandKind, PRINCIPAL_CLUSTER, RequestKind } from '../core/locks/command.js';
import { ID_BYTES, TRACE_ID_BYTES } from '../limits.js';
import { COMMAND_ROWS } from './commands.js';
import { copyOf } from './copy.js';
import { EntryReader } from './entry.js';
import { eventOf, hexOf, type Json } from './event-json.js';
import type { PackValue } from './msgpack-writer.js';
import { decodeOperation } from './operation.js';
import type { Reply } from './response.js';

/** What the lock machine says of an event. */
export interface AuditedEvent {
  readonly revision: number;
  readonly kind: number;
  readonly token: number;
  readonly place: number;
  readonly cause: number;
  readonly principal: number;
  /** Position in the entry of the command that caused it; -1: time did, or a closed session. */
  readonly position: number;
}

export type AuditRow = readonly PackValue[];

/** Version of the row, for who stores it. */
export const AUDIT_SCHEMA = 1;
/** The first element is the revision. */
const ROW_REVISION = 0;

const STRICT = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const NAMES = new TextDecoder();

/** The revision of a row. */
export function revisionOf(row: AuditRow): number {
  return Number(row[ROW_REVISION]);
}

/** Text where the bytes are some, else the bytes. */
function textOrBytes(bytes: Uint8Array): PackValue {
  try {
    return STRICT.decode(bytes);
  } catch {
    return bytes;
  }
}

/** Finds causes in one entry after the other; positions of one entry are asked for in order. */
export class AuditRows {
  private readonly reader = new EntryReader();
  private readonly command = new Command();
  private data: Uint8Array = new Uint8Array(0);
  private index = 0;
  /** Position of the operation that the reader stands at. */
  private position = -1;

  /** Goes to the committed entry at `index`, unless it is there already. */
  open(index: number, data: Uint8Array): void {
    if (index === this.index) return;
    if (!this.reader.open(data)) throw new Error(`audit: entry ${index} is not well formed`);
    this.index = index;
    this.data = data;
    this.position = -1;
  }

  /** The row of an event of the open entry. `name` is valid UTF-8. */
  row(event: AuditedEvent, name: Uint8Array): AuditRow {
    const { revision, kind, token, place, cause, principal, position } = event;
    const { stampMs } = this.reader;
    const head = [revision, kind, NAMES.decode(name), token, place, cause, principal, stampMs];
    return [...head, this.index, ...this.causeAt(position)];
  }

  /** actor, command, request, session, trace, and a reason if there is one */
  private causeAt(position: number): PackValue[] {
    if (position < 0) return [PRINCIPAL_CLUSTER, null, null, null, null];
    const { reader, command, data } = this;
    if (position < this.position) {
      reader.open(data);
      this.position = -1;
    }
    while (this.position < position) {
      if (!reader.next()) throw new Error(`audit: entry ${this.index} ends before ${position}`);
      this.position += 1;
    }
    if (decodeOperation(data, reader.start, reader.end, command) !== 0) {
      throw new Error(`audit: operation ${position} of entry ${this.index} does not decode`);
    }
    const cause = [reader.principal, command.kind, requestOf(command), sessionOf(command)];
    return [...cause, this.trace(), ...reasonOf(command)];
  }

  private trace(): PackValue {
    const { traceOffset } = this.command;
    return traceOffset < 0 ? null : copyOf(this.data, traceOffset, traceOffset + TRACE_ID_BYTES);
  }
}

function requestOf(command: Command): PackValue {
  if (command.requestKind === RequestKind.Sequence) return command.sequence;
  if (command.requestKind === RequestKind.None) return null;
  const { bytes, requestOffset, requestBytes } = command;
  return textOrBytes(copyOf(bytes, requestOffset, requestOffset + requestBytes));
}

function reasonOf(command: Command): PackValue[] {
  if (command.kind !== CommandKind.Restored) return [];
  const { bytes, metadataOffset, metadataBytes } = command;
  return [NAMES.decode(bytes.subarray(metadataOffset, metadataOffset + metadataBytes))];
}

function sessionOf(command: Command): PackValue {
  if (!command.hasSession) return null;
  const { session0, session1, session2, session3 } = command;
  const id = new Uint8Array(ID_BYTES);
  const view = new DataView(id.buffer);
  view.setInt32(0, session0);
  view.setInt32(4, session1);
  view.setInt32(8, session2);
  view.setInt32(12, session3);
  return id;
}

const COMMAND_NAMES = new Map<number, string>(
  COMMAND_ROWS.map(({ number, name }) => [number, name]),
);

/** One row as JSON. `clusterId`: 32 hexadecimal digits; with the revision it is the event's id. */
export function auditEventOf(row: unknown, clusterId: string): Json {
  const fields: readonly unknown[] = Array.isArray(row) ? row : [];
  const [index, actor, command, request, session, trace, reason] = fields.slice(8);
  const isSequence = typeof request === 'number';
  return {
    id: `${clusterId}-${String(fields[ROW_REVISION])}`,
    schema: AUDIT_SCHEMA,
    ...eventOf(row),
    log_index: Number(index),
    actor: Number(actor),
    command: COMMAND_NAMES.get(Number(command)) ?? null,
    request_id: typeof request === 'string' ? request : null,
    ...(request instanceof Uint8Array ? { request_id_hex: hexOf(request) } : {}),
    sequence: isSequence ? request : null,
    session_id: session instanceof Uint8Array ? hexOf(session) : null,
    trace_id: trace instanceof Uint8Array ? hexOf(trace) : null,
    ...(typeof reason === 'string' ? { reason } : {}),
  };
}

/** A page as JSON. */
export function auditPageOf(reply: Reply): Json {
  const [rows, next, oldest, revision, cluster] = reply.fields;
  const clusterId = hexOf(cluster);
  return {
    events: (Array.isArray(rows) ? rows : []).map((row) => auditEventOf(row, clusterId)),
    next_revision: Number(next),
    oldest_revision: Number(oldest),
    revision: Number(revision),
    cluster_id: clusterId,
    cluster_time: reply.clusterTimeMs,
  };
}
