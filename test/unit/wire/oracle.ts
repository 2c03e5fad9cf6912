/**
 * msgpackr as the second opinion on every codec, and arbitrary operations to try them on.
 *
 * Owns: how msgpackr is told to write standard MessagePack, the generators of valid operations, and
 * the way back from a decoded Command to the elements it was made of. Used by: the tests beside it.
 */
import fc from 'fast-check';
import { Packr } from 'msgpackr';
import type { Test } from 'tap';
import { type Command, CommandKind, RequestKind } from '../../../src/core/locks/command.js';
import {
  GUARD_KIND_BYTES_MAX,
  METADATA_BYTES_MAX,
  NAME_BYTES_MAX,
  OWNER_BYTES_MAX,
  SAFE_INTEGER_MAX,
} from '../../../src/limits.js';
import { type PackValue, writeValue } from '../../../src/wire/msgpack-writer.js';
import { OutBuffer } from '../../../src/wire/out-buffer.js';

const PACKR = new Packr({ useRecords: false, mapsAsObjects: true, int64AsType: 'number' });
const UTF8 = new TextEncoder();

/** One assertion for a whole property; a failure shows the smallest example. */
export function holds<T>(
  t: Test,
  property: fc.IProperty<T>,
  parameters: fc.Parameters<T> = {},
): void {
  const details = fc.check(property, parameters);
  t.notOk(details.failed, fc.defaultReportMessage(details) ?? 'the property holds');
}

/** msgpackr writes integers from 2^32 up as floats unless they are BigInt. */
function widen(value: PackValue): unknown {
  if (typeof value === 'number') {
    const isWide = Number.isSafeInteger(value) && Math.abs(value) >= 2 ** 31;
    return isWide ? BigInt(value) : value;
  }
  if (Array.isArray(value)) return value.map(widen);
  if (value === null || typeof value !== 'object' || value instanceof Uint8Array) return value;
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, widen(part)]));
}

/** The bytes that msgpackr writes. */
export function packOracle(value: PackValue): Uint8Array {
  return new Uint8Array(PACKR.pack(widen(value)));
}

/** What msgpackr reads; binaries as plain Uint8Array. */
export function unpackOracle(bytes: Uint8Array): unknown {
  return plain(PACKR.unpack(bytes));
}

function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return new Uint8Array(value);
  if (Array.isArray(value)) return value.map(plain);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, plain(part)]));
}

/** The bytes that our own writer writes. */
export function packOurs(value: PackValue): Uint8Array {
  const out = new OutBuffer();
  writeValue(out, value);
  return out.take().slice();
}

/** Bytes of hexadecimal digits; blanks are passed over. */
export function bytesOf(hex: string): Uint8Array {
  const digits = hex.replace(/\s/g, '');
  return Uint8Array.from(digits.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
}

/** Every value with one bit of one byte flipped. */
export function* bitFlips(bytes: Uint8Array): Generator<Uint8Array> {
  for (let bit = 0; bit < bytes.length * 8; bit += 1) {
    const flipped = bytes.slice();
    flipped[bit >> 3]! ^= 1 << (bit & 7);
    yield flipped;
  }
}

/** Integers with every width in reach. */
export const integers: fc.Arbitrary<number> = fc.oneof(
  fc.integer({ min: 0, max: 300 }),
  fc.integer({ min: 0, max: 70_000 }),
  fc.integer({ min: 0, max: 0xffff_ffff }),
  fc.maxSafeNat(),
  fc.constantFrom(
    127,
    128,
    255,
    256,
    65_535,
    65_536,
    2 ** 31,
    2 ** 32 - 1,
    2 ** 32,
    SAFE_INTEGER_MAX,
  ),
);
export const positives: fc.Arbitrary<number> = integers.map((value) => Math.max(1, value));
export const ids: fc.Arbitrary<Uint8Array> = fc.uint8Array({ minLength: 16, maxLength: 16 });
export const names: fc.Arbitrary<string> = fc
  .string({ unit: 'grapheme', minLength: 1, maxLength: 80 })
  .filter((name) => {
    const length = UTF8.encode(name).length;
    return length > 0 && length <= NAME_BYTES_MAX && !/\p{Cc}/u.test(name);
  });
export const freeIds: fc.Arbitrary<PackValue> = fc.oneof(
  fc.uint8Array({ minLength: 1, maxLength: 64 }),
  fc.string({ minLength: 1, maxLength: 64 }).filter((id) => UTF8.encode(id).length <= 64),
);
const requests = fc.oneof(positives, freeIds);
export const metadata: fc.Arbitrary<PackValue> = fc.oneof(
  fc.uint8Array({ maxLength: 300 }),
  fc.string({ maxLength: 100 }),
);

function maybe<T>(value: fc.Arbitrary<T>): fc.Arbitrary<T | null> {
  return fc.option(value, { nil: null });
}

const acknowledgements: fc.Arbitrary<PackValue> = fc
  .tuple(fc.integer({ min: 0, max: 1e9 }), fc.array(positives, { maxLength: 64 }), fc.boolean())
  .map(([mark, above, isPlain]): PackValue => {
    const singles = above.map((step) => Math.min(mark + step, SAFE_INTEGER_MAX));
    return isPlain ? mark : [mark, ...singles];
  });

/** request, session, acknowledged, trace, in a way that goes together. */
function heads(isNameNeeded: boolean, isSessionNeeded: boolean): fc.Arbitrary<PackValue[]> {
  const request = isNameNeeded ? requests : maybe(requests);
  const session = isSessionNeeded ? ids : maybe(ids);
  return fc
    .tuple(request, session, maybe(acknowledgements), maybe(ids), ids)
    .map(([name, binding, acknowledged, trace, other]): PackValue[] => {
      const isSequence = typeof name === 'number';
      const held = isSequence ? (binding ?? other) : binding;
      return [name, held, isSequence ? acknowledged : null, trace];
    });
}

const freeHeads: fc.Arbitrary<PackValue[]> = fc
  .tuple(freeIds, maybe(ids))
  .map(([name, trace]): PackValue[] => [name, null, null, trace]);

const numbers = maybe(integers);
const acquireFields: fc.Arbitrary<PackValue[]> = fc
  .tuple(
    names,
    fc.tuple(numbers, numbers, numbers, numbers, numbers, numbers),
    maybe(fc.uint8Array({ minLength: 1, maxLength: 128 })),
    maybe(metadata),
    fc.tuple(numbers, numbers, numbers),
  )
  .map(([name, before, owner, note, after]): PackValue[] => [
    name,
    ...before,
    owner,
    note,
    ...after,
  ]);

function operations(
  kind: CommandKind,
  head: fc.Arbitrary<PackValue[]>,
  fields: fc.Arbitrary<PackValue[]>,
): fc.Arbitrary<PackValue[]> {
  return fc.tuple(head, fields).map(([first, rest]): PackValue[] => [kind, ...first, ...rest]);
}

/** Text without control characters, `least` graphemes or more and up to `bytesMax` bytes. */
function plainTexts(least: number, bytesMax: number): fc.Arbitrary<string> {
  return fc
    .string({ unit: 'grapheme', minLength: least, maxLength: Math.min(60, bytesMax) })
    .filter((text) => UTF8.encode(text).length <= bytesMax && !/\p{Cc}/u.test(text));
}

/** Who asks and why. */
const said = fc.tuple(plainTexts(1, OWNER_BYTES_MAX), plainTexts(1, METADATA_BYTES_MAX));

/** A name, or in its place a prefix, which may be empty. */
const ruledNames: fc.Arbitrary<PackValue[]> = fc.oneof(
  names.map((name): PackValue[] => [name, null]),
  plainTexts(0, NAME_BYTES_MAX).map((prefix): PackValue[] => [null, prefix]),
);

function saidBehind(fields: fc.Arbitrary<PackValue[]>): fc.Arbitrary<PackValue[]> {
  return fc.tuple(fields, said).map(([first, last]): PackValue[] => [...first, ...last]);
}

const adminOperations: readonly fc.Arbitrary<PackValue[]>[] = [
  operations(
    CommandKind.ForceRelease,
    freeHeads,
    saidBehind(fc.tuple(names, maybe(ids), numbers).map((fields): PackValue[] => fields)),
  ),
  operations(CommandKind.Disable, freeHeads, saidBehind(ruledNames)),
  operations(CommandKind.Enable, freeHeads, saidBehind(ruledNames)),
  operations(CommandKind.ExpireSession, freeHeads, saidBehind(ids.map((id): PackValue[] => [id]))),
  operations(
    CommandKind.ReportRefusal,
    freeHeads,
    fc.tuple(names, integers, integers, positives, maybe(plainTexts(1, GUARD_KIND_BYTES_MAX))),
  ),
];

const secrets = ids.filter((id) => id.some((byte) => byte !== 0));
const targets = fc.tuple(heads(false, true), requests);

/** Valid logged operations with every element written out, absent ones as nil. */
export const validOperations: fc.Arbitrary<PackValue[]> = fc.oneof(
  ...adminOperations,
  operations(CommandKind.Acquire, heads(true, false), acquireFields),
  operations(CommandKind.Renew, heads(false, false), fc.tuple(ids, numbers, maybe(metadata))),
  operations(CommandKind.Release, heads(false, false), fc.tuple(ids)),
  operations(CommandKind.SessionOpen, freeHeads, fc.tuple(numbers, maybe(metadata))),
  operations(CommandKind.SessionRenew, heads(false, true), fc.tuple(numbers)),
  operations(CommandKind.SessionClose, heads(false, true), fc.constant([])),
  fc.tuple(freeIds, ids, secrets).map(([name, session, secret]): PackValue[] => {
    return [CommandKind.SessionTakeOver, name, session, null, null, secret];
  }),
  targets.map(([head, target]): PackValue[] => [CommandKind.Cancel, ...head, target]),
  operations(
    CommandKind.KeepWaits,
    fc.constant([null, null, null, null]),
    fc.tuple(fc.array(positives, { minLength: 1, maxLength: 100 })),
  ),
  operations(
    CommandKind.Settings,
    fc.constant([null, null, null, null]),
    fc.tuple(fc.array(fc.tuple(positives, integers), { minLength: 1, maxLength: 40 })),
  ),
  operations(
    CommandKind.Restored,
    fc.constant([null, null, null, null]),
    fc.tuple(fc.uint8Array({ minLength: 1, maxLength: 1_024 })),
  ),
);

/** Without the nils at the end. */
export function trimmed(operation: readonly PackValue[]): PackValue[] {
  let length = operation.length;
  while (length > 1 && operation[length - 1] === null) length -= 1;
  return operation.slice(0, length);
}

/** Strings as their bytes and a list of only a mark as the mark: what decoding keeps. */
export function normalized(operation: readonly PackValue[]): PackValue[] {
  return operation.map((element, place) => {
    if (typeof element === 'string') return UTF8.encode(element);
    if (place === 3 && Array.isArray(element) && element.length === 1) return element[0] ?? null;
    return element;
  });
}

function numberOrNil(value: number): PackValue {
  return value === -1 ? null : value;
}

function rangeOrNil(command: Command, offset: number, length: number): PackValue {
  return offset === -1 ? null : new Uint8Array(command.bytes.subarray(offset, offset + length));
}

function wordsToBytes(...words: number[]): Uint8Array {
  const view = new DataView(new ArrayBuffer(16));
  for (const [index, word] of words.entries()) view.setUint32(4 * index, word);
  return new Uint8Array(view.buffer);
}

function headOf(command: Command): PackValue[] {
  const { acknowledgedMark, acknowledgedCount, acknowledged } = command;
  const singles = [...acknowledged.subarray(0, acknowledgedCount)];
  const isFree = command.requestKind === RequestKind.Free;
  return [
    command.kind,
    isFree
      ? rangeOrNil(command, command.requestOffset, command.requestBytes)
      : numberOrNil(command.sequence),
    command.hasSession
      ? wordsToBytes(command.session0, command.session1, command.session2, command.session3)
      : null,
    singles.length === 0 ? numberOrNil(acknowledgedMark) : [acknowledgedMark, ...singles],
    rangeOrNil(command, command.traceOffset, 16),
  ];
}

function adminFieldsOf(command: Command): PackValue[] {
  const { kind, isPrefix } = command;
  const name = rangeOrNil(command, command.nameOffset, command.nameBytes);
  const id = wordsToBytes(command.lease0, command.lease1, command.lease2, command.lease3);
  const reason = rangeOrNil(command, command.metadataOffset, command.metadataBytes);
  const last = [rangeOrNil(command, command.ownerOffset, command.ownerBytes), reason];
  switch (kind) {
    case CommandKind.ForceRelease:
      return [name, command.hasLease ? id : null, numberOrNil(command.token), ...last];
    case CommandKind.ExpireSession:
      return [id, ...last];
    case CommandKind.ReportRefusal:
      return [name, command.token, command.mark, command.refusals, reason];
    default:
      return isPrefix ? [null, name, ...last] : [name, null, ...last];
  }
}

function fieldsOf(command: Command): PackValue[] {
  const note = rangeOrNil(command, command.metadataOffset, command.metadataBytes);
  const ttlMs = numberOrNil(command.ttlMs);
  const lease = wordsToBytes(command.lease0, command.lease1, command.lease2, command.lease3);
  const listed = [...command.numbers.subarray(0, command.numbersCount)];
  switch (command.kind) {
    case CommandKind.Acquire:
      return [
        rangeOrNil(command, command.nameOffset, command.nameBytes),
        ttlMs,
        numberOrNil(command.waitMs),
        numberOrNil(command.mode),
        numberOrNil(command.permits),
        numberOrNil(command.capacity),
        numberOrNil(command.expectedRevision),
        rangeOrNil(command, command.ownerOffset, command.ownerBytes),
        note,
        numberOrNil(command.notAfter),
        numberOrNil(command.lockDelayMs),
        numberOrNil(command.holdMsMax),
      ];
    case CommandKind.Renew:
      return [lease, ttlMs, note];
    case CommandKind.Release:
      return [lease];
    case CommandKind.SessionOpen:
      return [ttlMs, note];
    case CommandKind.SessionRenew:
      return [ttlMs];
    case CommandKind.SessionTakeOver:
      return [wordsToBytes(command.secret0, command.secret1, command.secret2, command.secret3)];
    case CommandKind.Cancel:
      return [
        command.targetKind === RequestKind.Sequence
          ? command.targetSequence
          : rangeOrNil(command, command.targetOffset, command.targetBytes),
      ];
    case CommandKind.Restored:
      return [note];
    case CommandKind.KeepWaits:
      return [listed];
    case CommandKind.Settings:
      return [Array.from({ length: listed.length / 2 }, (_, i) => listed.slice(2 * i, 2 * i + 2))];
    case CommandKind.SessionClose:
      return [];
    default:
      return adminFieldsOf(command);
  }
}

/** The elements that a command was decoded from, every place filled. */
export function readBack(command: Command): PackValue[] {
  return [...headOf(command), ...fieldsOf(command)];
}
