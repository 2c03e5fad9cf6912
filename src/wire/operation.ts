/**
 * Decodes a logged operation into the one reused Command, in place, checking its form.
 *
 * Owns: the form of logged operations at feature level 1: places, types, sizes, what must be there
 * and what goes together. Never: the state, settings, or a copy of a byte. The same function runs
 * at admission and at apply, so what was admitted decodes alike on every node.
 * Used by: replica.
 */
import { type Command, CommandKind, RequestKind } from '../core/locks/command.js';
import {
  ACKNOWLEDGED_SINGLES_MAX,
  METADATA_BYTES_MAX,
  OPERATION_BYTES_MAX,
  REQUEST_ID_BYTES_MAX,
} from '../limits.js';
import { adminFieldsMax, checkAdmin, decodeAdmin } from './admin-operation.js';
import { Fault } from './fault.js';
import {
  arrayAt,
  arrayHeaderBytes,
  INVALID,
  idAt,
  integerBytes,
  NIL,
  rangeAt,
  rangeHeaderBytes,
  unsignedAt,
  wordAt,
} from './msgpack-reader.js';
import {
  decodeLease,
  decodeMetadata,
  decodeName,
  decodeOwner,
  decodeTtl,
} from './operation-fields.js';

/** Elements that logged commands share: command, request, session, acknowledged, trace. */
export const HEAD_FIELDS = 5;

/** Elements that a logged command may have, head included; 0 when there is no such command. */
export function operationFieldsMax(kind: number): number {
  switch (kind) {
    case CommandKind.Acquire:
      return HEAD_FIELDS + 12;
    case CommandKind.Renew:
      return HEAD_FIELDS + 3;
    case CommandKind.SessionOpen:
      return HEAD_FIELDS + 2;
    case CommandKind.Release:
    case CommandKind.SessionRenew:
    case CommandKind.SessionTakeOver:
    case CommandKind.Cancel:
    case CommandKind.KeepWaits:
    case CommandKind.Settings:
    case CommandKind.Restored:
      return HEAD_FIELDS + 1;
    case CommandKind.SessionClose:
      return HEAD_FIELDS;
    default: {
      const fields = adminFieldsMax(kind);
      return fields === 0 ? 0 : HEAD_FIELDS + fields;
    }
  }
}

/**
 * Decodes the operation at `start` … `end` into `command`, whose byte ranges then point into
 * `bytes`. The principal is not in the bytes: the caller sets it afterwards.
 * Returns Fault.None, or the fault that names the offending field (faultCode, faultField); the
 * command is then not to be used.
 */
export function decodeOperation(
  bytes: Uint8Array,
  start: number,
  end: number,
  command: Command,
): number {
  command.reset();
  command.bytes = bytes;
  if (end - start > OPERATION_BYTES_MAX) return Fault.Size;
  const count = arrayAt(bytes, start, end);
  if (count < 1) return Fault.Operation;
  let at = start + arrayHeaderBytes(bytes[start]!);
  const kind = unsignedAt(bytes, at, end);
  if (kind < 0) return Fault.Command;
  const fieldsMax = operationFieldsMax(kind);
  if (fieldsMax === 0) return Fault.Command;
  if (count > fieldsMax) return Fault.Fields;
  command.kind = kind;
  at = decodeHead(bytes, at + integerBytes(bytes[at]!), end, count, command);
  if (at < 0) return -at;
  at = decodeArguments(bytes, at, end, count - HEAD_FIELDS, command);
  if (at < 0) return -at;
  if (at !== end) return Fault.Operation;
  return checkTogether(command);
}

/* Every function below returns the position after what it read, or the negative fault. */

function decodeHead(
  bytes: Uint8Array,
  from: number,
  end: number,
  count: number,
  command: Command,
): number {
  let at = from;
  if (count > 1) {
    at = decodeRequest(bytes, at, end, command);
    if (at < 0) return at;
  }
  if (count > 2) {
    const offset = idAt(bytes, at, end);
    if (offset < NIL) return -Fault.Session;
    if (offset >= 0) setSession(bytes, offset, command);
    at = offset < 0 ? at + 1 : offset + 16;
  }
  if (count > 3) {
    at = decodeAcknowledged(bytes, at, end, command);
    if (at < 0) return at;
  }
  if (count > 4) {
    const offset = idAt(bytes, at, end);
    if (offset < NIL) return -Fault.Trace;
    command.traceOffset = offset;
    at = offset < 0 ? at + 1 : offset + 16;
  }
  return at;
}

function setSession(bytes: Uint8Array, offset: number, command: Command): void {
  command.hasSession = true;
  command.session0 = wordAt(bytes, offset);
  command.session1 = wordAt(bytes, offset + 4);
  command.session2 = wordAt(bytes, offset + 8);
  command.session3 = wordAt(bytes, offset + 12);
}

/** nil, a sequence, or a free-form id of 1 to REQUEST_ID_BYTES_MAX bytes. */
function decodeRequest(bytes: Uint8Array, at: number, end: number, command: Command): number {
  const sequence = unsignedAt(bytes, at, end);
  if (sequence === NIL) return at + 1;
  if (sequence >= 0) {
    if (sequence === 0) return -Fault.Request;
    command.requestKind = RequestKind.Sequence;
    command.sequence = sequence;
    return at + integerBytes(bytes[at]!);
  }
  const length = rangeAt(bytes, at, end);
  if (length < 1 || length > REQUEST_ID_BYTES_MAX) return -Fault.Request;
  command.requestKind = RequestKind.Free;
  command.requestOffset = at + rangeHeaderBytes(bytes[at]!);
  command.requestBytes = length;
  return command.requestOffset + length;
}

/** nil, a mark, or [mark, single, ...] with singles above the mark. */
function decodeAcknowledged(
  bytes: Uint8Array,
  from: number,
  end: number,
  command: Command,
): number {
  const plain = unsignedAt(bytes, from, end);
  if (plain !== INVALID) {
    command.acknowledgedMark = plain;
    return from + integerBytes(bytes[from]!);
  }
  const count = arrayAt(bytes, from, end);
  if (count < 1 || count > 1 + ACKNOWLEDGED_SINGLES_MAX) return -Fault.Acknowledged;
  let at = from + arrayHeaderBytes(bytes[from]!);
  const mark = unsignedAt(bytes, at, end);
  if (mark < 0) return -Fault.Acknowledged;
  command.acknowledgedMark = mark;
  at += integerBytes(bytes[at]!);
  for (let single = 0; single < count - 1; single += 1) {
    const sequence = unsignedAt(bytes, at, end);
    if (sequence <= mark) return -Fault.Acknowledged;
    command.acknowledged[single] = sequence;
    at += integerBytes(bytes[at]!);
  }
  command.acknowledgedCount = count - 1;
  return at;
}

/** `count` is the number of elements after the head; zero or less when there are none. */
function decodeArguments(
  bytes: Uint8Array,
  at: number,
  end: number,
  count: number,
  command: Command,
): number {
  if (count <= 0) return at;
  switch (command.kind) {
    case CommandKind.Acquire:
      return decodeAcquire(bytes, at, end, count, command);
    case CommandKind.Release:
      return decodeLease(bytes, at, end, command);
    case CommandKind.Renew:
      return decodeRenew(bytes, at, end, count, command);
    case CommandKind.SessionRenew:
      return decodeTtl(bytes, at, end, command);
    case CommandKind.SessionOpen:
      return decodeSessionOpen(bytes, at, end, count, command);
    case CommandKind.Cancel:
      return decodeTarget(bytes, at, end, command);
    case CommandKind.SessionTakeOver:
      return decodeSecret(bytes, at, end, command);
    case CommandKind.KeepWaits:
      return decodePlaces(bytes, at, end, command);
    case CommandKind.Restored:
      return decodeReason(bytes, at, end, command);
    case CommandKind.Settings:
      return decodeSettings(bytes, at, end, command);
    default:
      return decodeAdmin(bytes, at, end, count, command);
  }
}

function decodeAcquire(
  bytes: Uint8Array,
  from: number,
  end: number,
  count: number,
  command: Command,
): number {
  let at = decodeName(bytes, from, end, command);
  if (at < 0 || count === 1) return at;
  at = decodeTtl(bytes, at, end, command);
  if (at < 0 || count === 2) return at;
  const waitMs = unsignedAt(bytes, at, end);
  if (waitMs < NIL) return -Fault.WaitMs;
  command.waitMs = waitMs;
  at += integerBytes(bytes[at]!);
  if (count === 3) return at;
  return decodeAcquireOptions(bytes, at, end, count, command);
}

/** The fourth element and those after it. */
function decodeAcquireOptions(
  bytes: Uint8Array,
  from: number,
  end: number,
  count: number,
  command: Command,
): number {
  let at = from;
  const mode = unsignedAt(bytes, at, end);
  if (mode < NIL) return -Fault.Mode;
  command.mode = mode;
  at += integerBytes(bytes[at]!);
  if (count > 4) {
    const permits = unsignedAt(bytes, at, end);
    if (permits < NIL) return -Fault.Permits;
    command.permits = permits;
    at += integerBytes(bytes[at]!);
  }
  if (count > 5) {
    const capacity = unsignedAt(bytes, at, end);
    if (capacity < NIL) return -Fault.Capacity;
    command.capacity = capacity;
    at += integerBytes(bytes[at]!);
  }
  if (count > 6) {
    const expectedRevision = unsignedAt(bytes, at, end);
    if (expectedRevision < NIL) return -Fault.ExpectedRevision;
    command.expectedRevision = expectedRevision;
    at += integerBytes(bytes[at]!);
  }
  if (count > 7) return decodeAcquireRest(bytes, at, end, count, command);
  return at;
}

/** The eighth element and those after it. */
function decodeAcquireRest(
  bytes: Uint8Array,
  from: number,
  end: number,
  count: number,
  command: Command,
): number {
  let at = decodeOwner(bytes, from, end, command);
  if (at < 0 || count === 8) return at;
  at = decodeMetadata(bytes, at, end, command);
  if (at < 0 || count === 9) return at;
  const notAfter = unsignedAt(bytes, at, end);
  if (notAfter < NIL) return -Fault.NotAfter;
  command.notAfter = notAfter;
  at += integerBytes(bytes[at]!);
  if (count > 10) {
    const lockDelayMs = unsignedAt(bytes, at, end);
    if (lockDelayMs < NIL) return -Fault.LockDelayMs;
    command.lockDelayMs = lockDelayMs;
    at += integerBytes(bytes[at]!);
  }
  if (count > 11) {
    const holdMsMax = unsignedAt(bytes, at, end);
    if (holdMsMax < NIL) return -Fault.HoldMsMax;
    command.holdMsMax = holdMsMax;
    at += integerBytes(bytes[at]!);
  }
  return at;
}

function decodeRenew(
  bytes: Uint8Array,
  from: number,
  end: number,
  count: number,
  command: Command,
): number {
  let at = decodeLease(bytes, from, end, command);
  if (at < 0 || count === 1) return at;
  at = decodeTtl(bytes, at, end, command);
  if (at < 0 || count === 2) return at;
  return decodeMetadata(bytes, at, end, command);
}

function decodeSessionOpen(
  bytes: Uint8Array,
  from: number,
  end: number,
  count: number,
  command: Command,
): number {
  const at = decodeTtl(bytes, from, end, command);
  if (at < 0 || count === 1) return at;
  return decodeMetadata(bytes, at, end, command);
}

function decodeSecret(bytes: Uint8Array, at: number, end: number, command: Command): number {
  const offset = idAt(bytes, at, end);
  if (offset < 0) return -Fault.Secret;
  command.secret0 = wordAt(bytes, offset);
  command.secret1 = wordAt(bytes, offset + 4);
  command.secret2 = wordAt(bytes, offset + 8);
  command.secret3 = wordAt(bytes, offset + 12);
  return offset + 16;
}

function decodeTarget(bytes: Uint8Array, at: number, end: number, command: Command): number {
  const sequence = unsignedAt(bytes, at, end);
  if (sequence > 0) {
    command.targetKind = RequestKind.Sequence;
    command.targetSequence = sequence;
    return at + integerBytes(bytes[at]!);
  }
  const length = rangeAt(bytes, at, end);
  if (length < 1 || length > REQUEST_ID_BYTES_MAX) return -Fault.Target;
  command.targetKind = RequestKind.Free;
  command.targetOffset = at + rangeHeaderBytes(bytes[at]!);
  command.targetBytes = length;
  return command.targetOffset + length;
}

/** Kept where metadata is: no command has both. */
function decodeReason(bytes: Uint8Array, at: number, end: number, command: Command): number {
  const length = rangeAt(bytes, at, end);
  if (length < 1 || length > METADATA_BYTES_MAX) return -Fault.Reason;
  command.metadataOffset = at + rangeHeaderBytes(bytes[at]!);
  command.metadataBytes = length;
  return command.metadataOffset + length;
}

/** Makes room for `count` numbers; arrayAt has bounded it by the operation's bytes. */
function reserveNumbers(command: Command, count: number): void {
  if (command.numbers.length >= count) return;
  let capacity = 64;
  while (capacity < count) capacity *= 2;
  command.numbers = new Float64Array(capacity);
}

function decodePlaces(bytes: Uint8Array, from: number, end: number, command: Command): number {
  const count = arrayAt(bytes, from, end);
  if (count < 0) return -Fault.Places;
  reserveNumbers(command, count);
  let at = from + arrayHeaderBytes(bytes[from]!);
  for (let index = 0; index < count; index += 1) {
    const place = unsignedAt(bytes, at, end);
    if (place < 1) return -Fault.Places;
    command.numbers[index] = place;
    at += integerBytes(bytes[at]!);
  }
  command.numbersCount = count;
  return at;
}

function decodeSettings(bytes: Uint8Array, from: number, end: number, command: Command): number {
  const count = arrayAt(bytes, from, end);
  if (count < 1) return -Fault.Settings;
  reserveNumbers(command, 2 * count);
  let at = from + arrayHeaderBytes(bytes[from]!);
  for (let index = 0; index < count; index += 1) {
    if (arrayAt(bytes, at, end) !== 2) return -Fault.Settings;
    at += arrayHeaderBytes(bytes[at]!);
    const setting = unsignedAt(bytes, at, end);
    if (setting < 1) return -Fault.Settings;
    at += integerBytes(bytes[at]!);
    const value = unsignedAt(bytes, at, end);
    if (value < 0) return -Fault.Settings;
    at += integerBytes(bytes[at]!);
    command.numbers[2 * index] = setting;
    command.numbers[2 * index + 1] = value;
  }
  command.numbersCount = 2 * count;
  return at;
}

/** What must be there, and what goes together. Returns a fault, not a position. */
function checkTogether(command: Command): number {
  if (command.requestKind === RequestKind.Sequence && !command.hasSession) return Fault.Session;
  if (command.acknowledgedMark >= 0 && command.requestKind !== RequestKind.Sequence) {
    return Fault.Acknowledged;
  }
  switch (command.kind) {
    case CommandKind.Acquire:
      if (command.nameOffset < 0) return Fault.Name;
      return command.requestKind === RequestKind.None ? Fault.Request : Fault.None;
    case CommandKind.Renew:
    case CommandKind.Release:
      return command.hasLease ? Fault.None : Fault.Lease;
    case CommandKind.SessionOpen:
      if (command.hasSession) return Fault.Session;
      return command.requestKind === RequestKind.Free ? Fault.None : Fault.Request;
    case CommandKind.SessionRenew:
    case CommandKind.SessionClose:
      return command.hasSession ? Fault.None : Fault.Session;
    default:
      return checkRareTogether(command);
  }
}

function checkRareTogether(command: Command): number {
  switch (command.kind) {
    case CommandKind.SessionTakeOver:
      if (!command.hasSession) return Fault.Session;
      if (command.requestKind !== RequestKind.Free) return Fault.Request;
      return isSecretZero(command) ? Fault.Secret : Fault.None;
    case CommandKind.Cancel:
      if (command.targetKind === RequestKind.None) return Fault.Target;
      if (command.targetKind === RequestKind.Free) return Fault.None;
      return command.hasSession ? Fault.None : Fault.Session;
    case CommandKind.KeepWaits:
      return command.numbersCount > 0 ? Fault.None : Fault.Places;
    case CommandKind.Restored:
      return command.metadataBytes > 0 ? Fault.None : Fault.Reason;
    case CommandKind.Settings:
      return command.numbersCount > 0 ? Fault.None : Fault.Settings;
    default:
      return checkAdmin(command);
  }
}

/** A secret is 128 random bits: all zero means that it was left out. */
function isSecretZero(command: Command): boolean {
  return (command.secret0 | command.secret1 | command.secret2 | command.secret3) === 0;
}
