/**
 * Fills a Command of the production machine from the plain form of a command.
 *
 * Owns: the byte ranges, all in one array per command, as a decoder would leave them. Never: ids;
 * whoever calls says which 128 bits a symbolic session or lease stands for. Used by: the adapter
 * of the production machine and the unit tests of the lock machine.
 */

import type { Command } from '../../src/core/locks/command.js';
import { RequestKind } from '../../src/core/locks/command.js';
import type { ModelCommand } from './model-types.js';

/** 128 bits as four big-endian u32. */
export type Id = readonly [number, number, number, number];

const encoder = new TextEncoder();

/** Collects the byte fields of one command. */
class Ranges {
  private readonly parts: Uint8Array[] = [];
  /** Bytes collected so far. A few unrelated ones come first, so that offset 0 is never right. */
  private length = 0;

  constructor() {
    this.add('….');
  }

  /** Appends `text` and returns its range; an absent one has offset -1. */
  add(text: string | undefined): { offset: number; bytes: number } {
    if (text === undefined) return { offset: -1, bytes: 0 };
    const part = encoder.encode(text);
    const offset = this.length;
    this.parts.push(part);
    this.length += part.length;
    return { offset, bytes: part.length };
  }

  toBytes(): Uint8Array {
    const all = new Uint8Array(this.length);
    let offset = 0;
    for (const part of this.parts) {
      all.set(part, offset);
      offset += part.length;
    }
    return all;
  }
}

function fillRequest(target: Command, command: ModelCommand, ranges: Ranges): void {
  const { request } = command;
  if (request.kind === 'free') {
    const { offset, bytes } = ranges.add(request.id);
    target.requestKind = RequestKind.Free;
    target.requestOffset = offset;
    target.requestBytes = bytes;
  }
  if (request.kind !== 'sequence') return;
  target.requestKind = RequestKind.Sequence;
  target.sequence = request.sequence;
  target.acknowledgedMark = request.mark ?? -1;
  for (const [index, single] of (request.singles ?? []).entries()) {
    target.acknowledged[index] = single;
    target.acknowledgedCount = index + 1;
  }
}

function fillTarget(target: Command, command: ModelCommand, ranges: Ranges): void {
  const aim = command.target;
  if (aim?.kind === 'sequence') {
    target.targetKind = RequestKind.Sequence;
    target.targetSequence = aim.sequence;
  }
  if (aim?.kind !== 'free') return;
  const { offset, bytes } = ranges.add(aim.id);
  target.targetKind = RequestKind.Free;
  target.targetOffset = offset;
  target.targetBytes = bytes;
}

function fillRanges(target: Command, command: ModelCommand, ranges: Ranges): void {
  const name = ranges.add(command.name);
  target.nameOffset = name.offset;
  target.nameBytes = name.bytes;
  const owner = ranges.add(command.owner);
  target.ownerOffset = owner.offset;
  target.ownerBytes = owner.bytes;
  const metadata = ranges.add(command.metadata);
  target.metadataOffset = metadata.offset;
  target.metadataBytes = metadata.bytes;
}

function fillNumbers(target: Command, command: ModelCommand): void {
  target.ttlMs = command.ttlMs ?? -1;
  target.waitMs = command.waitMs ?? -1;
  target.mode = command.mode ?? -1;
  target.permits = command.permits ?? -1;
  target.capacity = command.capacity ?? -1;
  target.expectedRevision = command.expectedRevision ?? -1;
  target.notAfter = command.notAfter ?? -1;
  target.lockDelayMs = command.lockDelayMs ?? -1;
  target.holdMsMax = command.holdMsMax ?? -1;
  target.token = command.token ?? -1;
  target.mark = command.mark ?? -1;
  target.refusals = command.refusals ?? -1;
  target.isPrefix = command.isPrefix ?? false;
  target.numbers = Float64Array.from(command.numbers ?? []);
  target.numbersCount = target.numbers.length;
}

/**
 * Sets every field of `target` from `command`.
 *
 * @param session id that the command's session stands for, null when it names none
 * @param lease id that the command's lease stands for, or the session that it ends, null when it
 *   names neither
 */
export function fillCommand(
  target: Command,
  command: ModelCommand,
  session: Id | null,
  lease: Id | null,
): void {
  const ranges = new Ranges();
  target.reset();
  target.kind = command.kind;
  target.principal = command.principal;
  fillRequest(target, command, ranges);
  fillTarget(target, command, ranges);
  fillRanges(target, command, ranges);
  fillNumbers(target, command);
  if (session !== null) {
    target.hasSession = true;
    [target.session0, target.session1, target.session2, target.session3] = session;
  }
  if (lease !== null) {
    target.hasLease = true;
    [target.lease0, target.lease1, target.lease2, target.lease3] = lease;
  }
  target.bytes = ranges.toBytes();
}
