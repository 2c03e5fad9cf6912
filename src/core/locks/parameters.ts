/**
 * The digest of a command's parameters: is a repeated request id the same request? (I6)
 *
 * Owns: which fields count. Left out: deadline, trace id, acknowledgements and the request id
 * itself. An absent field differs from every value it could have. Called by: requests.ts.
 */
import type { RecordHash } from '../../collections/digest.js';
import { type Command, CommandKind, RequestKind } from './command.js';
import type { MachineState } from './machine-state.js';

const TAG_PARAMETERS = 7;

/** Bits above the command number that say which fields are there. */
const HAS_LEASE = 1 << 8;
const HAS_NAME = 1 << 9;
const HAS_OWNER = 1 << 10;
const HAS_METADATA = 1 << 11;
const HAS_TARGET = 1 << 12;
const HAS_TARGET_SEQUENCE = 1 << 13;
const HAS_TTL = 1 << 14;
const HAS_WAIT = 1 << 15;
const HAS_SESSION = 1 << 16;
const HAS_RARE = 1 << 17;

/**
 * Leaves the digest in state.parameters0 and state.parameters1. A sequence is looked up in its own
 * session, so only a free-form request has its session among the parameters.
 */
export function digestParameters(state: MachineState, command: Command): void {
  const { hash } = state;
  const { bytes } = command;
  const fields = presentFields(command);
  hash.begin(TAG_PARAMETERS);
  hash.word(command.kind | fields);
  if ((fields & HAS_SESSION) !== 0) {
    hash.word(command.session0);
    hash.word(command.session1);
    hash.word(command.session2);
    hash.word(command.session3);
  }
  if ((fields & HAS_LEASE) !== 0) {
    hash.word(command.lease0);
    hash.word(command.lease1);
    hash.word(command.lease2);
    hash.word(command.lease3);
  }
  if ((fields & HAS_NAME) !== 0) hash.bytes(bytes, command.nameOffset, command.nameBytes);
  if ((fields & HAS_TTL) !== 0) hash.number(command.ttlMs);
  if ((fields & HAS_WAIT) !== 0) hash.number(command.waitMs);
  if ((fields & HAS_OWNER) !== 0) hash.bytes(bytes, command.ownerOffset, command.ownerBytes);
  if ((fields & HAS_METADATA) !== 0) {
    hash.bytes(bytes, command.metadataOffset, command.metadataBytes);
  }
  if ((fields & HAS_TARGET) !== 0) hash.bytes(bytes, command.targetOffset, command.targetBytes);
  if ((fields & HAS_TARGET_SEQUENCE) !== 0) hash.number(command.targetSequence);
  if ((fields & HAS_RARE) !== 0) digestRare(hash, command);
  if (command.kind >= CommandKind.ForceRelease) digestAdmin(hash, command);
  hash.finish();
  state.parameters0 = hash.h0 | 0;
  state.parameters1 = hash.h1 | 0;
}

function presentFields(command: Command): number {
  let fields = 0;
  if (command.hasSession && command.requestKind !== RequestKind.Sequence) fields |= HAS_SESSION;
  if (command.hasLease) fields |= HAS_LEASE;
  if (command.nameOffset >= 0) fields |= HAS_NAME;
  if (command.ttlMs >= 0) fields |= HAS_TTL;
  if (command.waitMs >= 0) fields |= HAS_WAIT;
  if (command.ownerOffset >= 0) fields |= HAS_OWNER;
  if (command.metadataOffset >= 0) fields |= HAS_METADATA;
  if (command.targetOffset >= 0) fields |= HAS_TARGET;
  if (command.targetSequence >= 0) fields |= HAS_TARGET_SEQUENCE;
  if (hasRareFields(command)) fields |= HAS_RARE;
  return fields;
}

function hasRareFields(command: Command): boolean {
  return (
    command.mode >= 0 ||
    command.permits >= 0 ||
    command.capacity >= 0 ||
    command.expectedRevision >= 0 ||
    command.notAfter >= 0 ||
    command.lockDelayMs >= 0 ||
    command.holdMsMax >= 0
  );
}

/** All or none: each is -1 when it is absent. */
function digestRare(hash: RecordHash, command: Command): void {
  hash.number(command.mode);
  hash.number(command.permits);
  hash.number(command.capacity);
  hash.number(command.expectedRevision);
  hash.number(command.notAfter);
  hash.number(command.lockDelayMs);
  hash.number(command.holdMsMax);
}

function digestAdmin(hash: RecordHash, command: Command): void {
  hash.number(command.token);
  hash.number(command.mark);
  hash.number(command.refusals);
  hash.word(command.isPrefix ? 1 : 0);
}
