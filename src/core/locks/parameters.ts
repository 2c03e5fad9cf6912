/**
 * The digest of a command's parameters: is a repeated request id the same request? (I6)
 *
 * Owns: which fields count. Left out: deadline, trace id, acknowledgements and the request id
 * itself. An absent field differs from every value it could have. Called by: requests.ts.
 */
import type { RecordHash } from '../../collections/digest.js';
import type { Command } from './command.js';
import type { MachineState } from './machine-state.js';

const TAG_PARAMETERS = 7;

/** Leaves the digest in state.parameters0 and state.parameters1. */
export function digestParameters(state: MachineState, command: Command): void {
  const hash = state.hash;
  hash.begin(TAG_PARAMETERS);
  hash.word(command.kind);
  if (command.hasSession) {
    hash.word(command.session0);
    hash.word(command.session1);
    hash.word(command.session2);
    hash.word(command.session3);
  } else {
    hash.number(-1);
  }
  if (command.hasLease) {
    hash.word(command.lease0);
    hash.word(command.lease1);
    hash.word(command.lease2);
    hash.word(command.lease3);
  } else {
    hash.number(-1);
  }
  digestRange(hash, command.bytes, command.nameOffset, command.nameBytes);
  digestRange(hash, command.bytes, command.ownerOffset, command.ownerBytes);
  digestRange(hash, command.bytes, command.metadataOffset, command.metadataBytes);
  digestRange(hash, command.bytes, command.targetOffset, command.targetBytes);
  hash.number(command.targetSequence);
  hash.number(command.ttlMs);
  hash.number(command.waitMs);
  hash.number(command.mode);
  hash.number(command.permits);
  hash.number(command.capacity);
  hash.number(command.expectedRevision);
  hash.number(command.notAfter);
  hash.number(command.lockDelayMs);
  hash.number(command.holdMsMax);
  hash.finish();
  state.parameters0 = hash.h0;
  state.parameters1 = hash.h1;
}

function digestRange(hash: RecordHash, bytes: Uint8Array, offset: number, length: number): void {
  if (offset < 0) hash.number(-1);
  else hash.bytes(bytes, offset, length);
}
