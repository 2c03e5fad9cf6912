/**
 * The rows of the audit stream: an event of the lock machine beside the operation that caused it.
 *
 * Owns: the row [revision, kind, name, token, place, cause, principal, cluster_time, log_index,
 * actor, command|nil, request|nil, session|nil, trace|nil, asked_by|nil, reason|nil, refusals|nil],
 * its public words, and how the cause is
 * found in the entry's own bytes. Never: a lease id or a secret: who reads what happened may not
 * therefore release it; the token names the lease. Used by: replica, workers, http-answers, cli.
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

  /** actor, command, request, session, trace, asked_by, reason, refusals */
  private causeAt(position: number): PackValue[] {
    if (position < 0) return [PRINCIPAL_CLUSTER, null, null, null, null, null, null, null];
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
    const { kind } = command;
    const cause = [reader.principal, kind, requestOf(command), sessionOf(command), this.trace()];
    return kind < CommandKind.ForceRelease
      ? [...cause, null, null, null]
      : [...cause, ...saidBy(command)];
  }

  private trace(): PackValue {
    const { traceOffset } = this.command;
    return traceOffset < 0 ? null : copyOf(this.data, traceOffset, traceOffset + TRACE_ID_BYTES);
  }
}

/** asked_by, reason, refusals. Who reports a refusal is the guard, by its kind. */
function saidBy(command: Command): PackValue[] {
  const { bytes, ownerOffset, ownerBytes, metadataOffset, metadataBytes } = command;
  const said = textAt(bytes, metadataOffset, metadataBytes);
  if (command.kind === CommandKind.ReportRefusal) return [said, null, command.refusals];
  return [textAt(bytes, ownerOffset, ownerBytes), said, null];
}

/** A range that was decoded as plain text, null when it is absent. */
function textAt(bytes: Uint8Array, offset: number, length: number): string | null {
  return offset < 0 ? null : NAMES.decode(bytes.subarray(offset, offset + length));
}

function requestOf(command: Command): PackValue {
  if (command.requestKind === RequestKind.Sequence) return command.sequence;
  if (command.requestKind === RequestKind.None) return null;
  const { bytes, requestOffset, requestBytes } = command;
  return textOrBytes(copyOf(bytes, requestOffset, requestOffset + requestBytes));
}

/** The session that asked, or the one that was ended. */
function sessionOf(command: Command): PackValue {
  if (command.kind === CommandKind.ExpireSession) {
    return idOf(command.lease0, command.lease1, command.lease2, command.lease3);
  }
  if (!command.hasSession) return null;
  return idOf(command.session0, command.session1, command.session2, command.session3);
}

function idOf(word0: number, word1: number, word2: number, word3: number): Uint8Array {
  const id = new Uint8Array(ID_BYTES);
  const view = new DataView(id.buffer);
  view.setInt32(0, word0);
  view.setInt32(4, word1);
  view.setInt32(8, word2);
  view.setInt32(12, word3);
  return id;
}

/** [revision, command, actor, asked_by|nil, reason|nil] of an operator's or a guard's command. */
export function saidIn(row: AuditRow): PackValue | null {
  const [revision] = row;
  const [, actor, command, , , , askedBy = null, reason = null] = row.slice(8);
  if (Number(command ?? 0) < CommandKind.ForceRelease) return null;
  return [revision ?? null, command ?? null, actor ?? null, askedBy, reason];
}

/** The name of a command's number, null for none. */
export function commandName(command: unknown): string | null {
  return COMMAND_NAMES.get(Number(command)) ?? null;
}

const COMMAND_NAMES = new Map<number, string>(
  COMMAND_ROWS.map(({ number, name }) => [number, name]),
);

/** One row as JSON. `clusterId`: 32 hexadecimal digits; with the revision it is the event's id. */
export function auditEventOf(row: unknown, clusterId: string): Json {
  const fields: readonly unknown[] = Array.isArray(row) ? row : [];
  const [index, actor, command, request, session, trace, askedBy, reason, refusals] =
    fields.slice(8);
  const isSequence = typeof request === 'number';
  return {
    id: `${clusterId}-${String(fields[ROW_REVISION])}`,
    schema: AUDIT_SCHEMA,
    ...eventOf(row),
    log_index: Number(index),
    actor: Number(actor),
    command: commandName(command),
    request_id: typeof request === 'string' ? request : null,
    ...(request instanceof Uint8Array ? { request_id_hex: hexOf(request) } : {}),
    sequence: isSequence ? request : null,
    session_id: session instanceof Uint8Array ? hexOf(session) : null,
    trace_id: trace instanceof Uint8Array ? hexOf(trace) : null,
    asked_by: typeof askedBy === 'string' ? askedBy : null,
    reason: typeof reason === 'string' ? reason : null,
    ...(typeof refusals === 'number' ? { refusals } : {}),
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
