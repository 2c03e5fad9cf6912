/**
 * Decodes what operators and guards ask of the log, in place, checking its form.
 *
 * Owns: the fields of force_release, disable, enable, expire_session and report_refusal, and what
 * must be there: who asks, and why. Never: the state. Off the hot path, but decoded at admission
 * and at apply alike. Used by: operation.ts.
 */
import { type Command, CommandKind, RequestKind } from '../core/locks/command.js';
import { GUARD_KIND_BYTES_MAX, NAME_BYTES_MAX } from '../limits.js';
import { Fault } from './fault.js';
import { integerBytes, NIL, rangeAt, rangeHeaderBytes, unsignedAt } from './msgpack-reader.js';
import { decodeLease, decodeMetadata, decodeName, decodeOwner } from './operation-fields.js';
import { isPlainText } from './utf8.js';

/** Elements after the head that such a command may have; 0 when it is none. */
export function adminFieldsMax(kind: number): number {
  switch (kind) {
    case CommandKind.ForceRelease:
    case CommandKind.ReportRefusal:
      return 5;
    case CommandKind.Disable:
    case CommandKind.Enable:
      return 4;
    case CommandKind.ExpireSession:
      return 3;
    default:
      return 0;
  }
}

/** One field: takes its position, returns the one after it, or the negative fault. */
type Field = (bytes: Uint8Array, at: number, end: number, command: Command) => number;

const FORCE_RELEASE: readonly Field[] = [decodeName, leaseOrNil, tokenOrNil, actor, reason];
const DISABLE: readonly Field[] = [nameOrNil, prefixOrNil, actor, reason];
const EXPIRE_SESSION: readonly Field[] = [target, actor, reason];
const REPORT_REFUSAL: readonly Field[] = [decodeName, token, mark, refusals, guardKind];

function fieldsOf(kind: number): readonly Field[] {
  switch (kind) {
    case CommandKind.ForceRelease:
      return FORCE_RELEASE;
    case CommandKind.ExpireSession:
      return EXPIRE_SESSION;
    case CommandKind.ReportRefusal:
      return REPORT_REFUSAL;
    default:
      return DISABLE;
  }
}

/** Reads the `count` elements after the head. */
export function decodeAdmin(
  bytes: Uint8Array,
  from: number,
  end: number,
  count: number,
  command: Command,
): number {
  const fields = fieldsOf(command.kind);
  let at = from;
  for (let field = 0; field < count && at >= 0; field += 1) {
    at = (fields[field] as Field)(bytes, at, end, command);
  }
  return at;
}

/** What must be there. Returns a fault, not a position. */
export function checkAdmin(command: Command): number {
  if (command.hasSession) return Fault.Session;
  if (command.requestKind !== RequestKind.Free) return Fault.Request;
  if (command.kind === CommandKind.ExpireSession) {
    if (!command.hasLease) return Fault.Target;
  } else if (command.nameOffset < 0) {
    return Fault.Name;
  }
  if (command.kind === CommandKind.ReportRefusal) {
    if (command.token < 0) return Fault.Token;
    if (command.mark < 0) return Fault.Mark;
    return command.refusals < 1 ? Fault.Refusals : Fault.None;
  }
  if (command.ownerOffset < 0) return Fault.Actor;
  return command.metadataBytes > 0 ? Fault.None : Fault.Reason;
}

function isNil(bytes: Uint8Array, at: number, end: number): boolean {
  return unsignedAt(bytes, at, end) === NIL;
}

function leaseOrNil(bytes: Uint8Array, at: number, end: number, command: Command): number {
  return isNil(bytes, at, end) ? at + 1 : decodeLease(bytes, at, end, command);
}

function nameOrNil(bytes: Uint8Array, at: number, end: number, command: Command): number {
  return isNil(bytes, at, end) ? at + 1 : decodeName(bytes, at, end, command);
}

/** A name or a prefix, never both; the empty prefix is every lock. */
function prefixOrNil(bytes: Uint8Array, at: number, end: number, command: Command): number {
  const length = rangeAt(bytes, at, end);
  if (length === NIL) return at + 1;
  if (length < 0 || length > NAME_BYTES_MAX || command.nameOffset >= 0) return -Fault.Prefix;
  const offset = at + rangeHeaderBytes(bytes[at]!);
  if (!isPlainText(bytes, offset, offset + length)) return -Fault.Prefix;
  command.isPrefix = true;
  command.nameOffset = offset;
  command.nameBytes = length;
  return offset + length;
}

/** The session to end: its id. */
function target(bytes: Uint8Array, at: number, end: number, command: Command): number {
  const after = decodeLease(bytes, at, end, command);
  return after < 0 ? -Fault.Target : after;
}

/** Who asks, as they name themselves: it is shown, so it is plain text. */
function actor(bytes: Uint8Array, at: number, end: number, command: Command): number {
  const after = decodeOwner(bytes, at, end, command);
  const { ownerOffset, ownerBytes } = command;
  const isPlain = ownerOffset >= 0 && isPlainText(bytes, ownerOffset, ownerOffset + ownerBytes);
  return after < 0 || !isPlain ? -Fault.Actor : after;
}

function reason(bytes: Uint8Array, at: number, end: number, command: Command): number {
  const after = decodeMetadata(bytes, at, end, command);
  const { metadataOffset: from, metadataBytes } = command;
  const isPlain = from >= 0 && isPlainText(bytes, from, from + metadataBytes);
  return after < 0 || !isPlain || metadataBytes === 0 ? -Fault.Reason : after;
}

/** The kind of the guard, or nil. */
function guardKind(bytes: Uint8Array, at: number, end: number, command: Command): number {
  if (isNil(bytes, at, end)) return at + 1;
  const after = reason(bytes, at, end, command);
  return after < 0 || command.metadataBytes > GUARD_KIND_BYTES_MAX ? -Fault.Guard : after;
}

function tokenOrNil(bytes: Uint8Array, at: number, end: number, command: Command): number {
  return isNil(bytes, at, end) ? at + 1 : token(bytes, at, end, command);
}

function token(bytes: Uint8Array, at: number, end: number, command: Command): number {
  command.token = unsignedAt(bytes, at, end);
  return command.token < 0 ? -Fault.Token : at + integerBytes(bytes[at]!);
}

function mark(bytes: Uint8Array, at: number, end: number, command: Command): number {
  command.mark = unsignedAt(bytes, at, end);
  return command.mark < 0 ? -Fault.Mark : at + integerBytes(bytes[at]!);
}

function refusals(bytes: Uint8Array, at: number, end: number, command: Command): number {
  command.refusals = unsignedAt(bytes, at, end);
  return command.refusals < 1 ? -Fault.Refusals : at + integerBytes(bytes[at]!);
}
