/**
 * Measures what the codecs of the hot path allocate on the heap, one operation after another.
 *
 * Prints one JSON line: bytes for each operation, by name. Runs in a process of its own with a
 * garbage collector that can be called and a young generation so large that it does not run in
 * between: what an operation allocated is then still there. Started by allocation.test.ts.
 */
import { Command, CommandKind } from '../../../src/core/locks/command.js';
import { Outcome, OutcomeCode } from '../../../src/core/locks/outcome.js';
import { EntryReader, EntryWriter } from '../../../src/wire/entry.js';
import { beginFrame, endFrame, FrameReader } from '../../../src/wire/frame.js';
import type { PackValue } from '../../../src/wire/msgpack-writer.js';
import { decodeOperation } from '../../../src/wire/operation.js';
import { OutBuffer } from '../../../src/wire/out-buffer.js';
import { encodeOutcome } from '../../../src/wire/reply.js';
import { ReplyReader } from '../../../src/wire/reply-reader.js';
import { encodeAcquire, encodeRelease, encodeRenew } from '../../../src/wire/request.js';
import { packOurs } from './oracle.js';

const OPERATIONS = 200_000;
const ID = Uint8Array.from({ length: 16 }, (_, index) => 255 - index);
const NAME = new TextEncoder().encode('jobs/region-1/shard-17');

const collect = globalThis.gc;
if (collect === undefined) throw new Error('start the probe with --expose-gc');

const sink = new Float64Array(1);
let kept: object = {};

const OPERATION_VALUES: readonly PackValue[][] = [
  [CommandKind.Acquire, 100_000, ID, 99_000, ID, 'jobs/region-1/shard-17', 30_000, 5_000],
  [
    CommandKind.Acquire,
    'free-form',
    null,
    null,
    null,
    'jobs/é',
    null,
    0,
    0,
    null,
    null,
    7,
    'o',
    ID,
  ],
  [CommandKind.Release, 100_001, ID, [99_000, 99_002], null, ID],
  [CommandKind.Renew, null, null, null, null, ID],
  [CommandKind.SessionRenew, null, ID, null, null, 20_000],
];

function decodes(): () => void {
  const command = new Command();
  const packed = OPERATION_VALUES.map(packOurs);
  let at = 0;
  return () => {
    at = at + 1 === packed.length ? 0 : at + 1;
    const bytes = packed[at]!;
    if (decodeOperation(bytes, 0, bytes.length, command) !== 0) throw new Error('refused');
    sink[0]! += command.session0 + command.lease3;
  };
}

/** Outcomes as they are after months: every number far beyond 2^31. */
function oldOutcomes(): Outcome[] {
  const kinds = [CommandKind.Acquire, CommandKind.Release, CommandKind.Renew];
  const codes = [OutcomeCode.Ok, OutcomeCode.Queued, OutcomeCode.LockBusy, OutcomeCode.StaleLease];
  return codes.flatMap((code) =>
    kinds.map((kind) => {
      return Object.assign(new Outcome(), {
        code,
        kind,
        entryTime: 2 ** 36 + 1,
        id0: 0xffff_fff1,
        id1: 0xffff_fff2,
        id2: 3,
        id3: 0xffff_fff4,
        token: 2 ** 40 + 1,
        revision: 2 ** 40 + 3,
        deadline: 2 ** 36 + 30_001,
        ttlMs: 30_000,
        holderSince: 2 ** 36 - 1,
        holderPrincipal: 1,
      });
    }),
  );
}

function outcomes(): () => void {
  const out = new OutBuffer();
  const all = oldOutcomes();
  let at = 0;
  return () => {
    at = at + 1 === all.length ? 0 : at + 1;
    out.length = 0;
    encodeOutcome(out, at, all[at]!);
    sink[0]! += out.length;
  };
}

function requestFrame(): Uint8Array {
  const out = new OutBuffer();
  const position = beginFrame(out);
  for (let item = 1; item <= 64; item += 1) {
    encodeAcquire(out, item, 9_000, ID, item, item - 1, NAME, 30_000, 0);
  }
  endFrame(out, position, 64);
  return out.take().slice(4);
}

/** One request of a frame of 64. */
function frames(): () => void {
  const reader = new FrameReader();
  const body = requestFrame();
  return () => {
    if (!reader.next()) reader.open(body, 0, body.length);
    sink[0]! += reader.correlation + reader.command;
  };
}

/** One operation of a batch of 512, without the copy that closing it is. */
function entryWrites(): () => void {
  const writer = new EntryWriter();
  const bytes = packOurs(OPERATION_VALUES[0]!);
  return () => {
    if (writer.count === 512) writer.open();
    writer.addOperation(1, 1, bytes, 0, bytes.length);
  };
}

function entryReads(): () => void {
  const writer = new EntryWriter();
  const bytes = packOurs(OPERATION_VALUES[0]!);
  for (let index = 0; index < 512; index += 1) writer.addOperation(1, 1, bytes, 0, bytes.length);
  const data = writer.close(2 ** 36, 1, ID);
  const reader = new EntryReader();
  return () => {
    if (!reader.next()) reader.open(data);
    sink[0]! += reader.start + reader.principal;
  };
}

function requests(): () => void {
  const out = new OutBuffer();
  let sequence = 0;
  return () => {
    sequence += 1;
    out.length = 0;
    encodeAcquire(out, 7, 9_000, ID, sequence, sequence - 1, NAME, 30_000, 0);
    encodeRelease(out, 8, 9_000, ID, sequence, sequence - 1, ID);
    encodeRenew(out, 9, 9_000, ID, -1);
    sink[0]! += out.length;
  };
}

function replies(): () => void {
  const out = new OutBuffer();
  const all = oldOutcomes();
  const position = beginFrame(out);
  for (const outcome of all) encodeOutcome(out, 5, outcome);
  endFrame(out, position, all.length);
  const body = out.take().slice(4);
  const reader = new ReplyReader();
  return () => {
    if (!reader.next()) reader.open(body, 0, body.length);
    sink[0]! += reader.fieldsStart + reader.code;
  };
}

/** What the probe must not miss: one small object an operation. */
function planted(): () => void {
  return () => {
    kept = { previous: 0 };
  };
}

function run(operation: () => void, count: number): void {
  for (let at = 0; at < count; at += 1) operation();
}

/**
 * The least of up to eight rounds: one in which nothing was compiled counts. On a busy machine the
 * compiler's own thread is late, so the rounds go on until one is clean.
 */
function bytesPerOperation(operation: () => void): number {
  run(operation, OPERATIONS);
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 8 && least > OPERATIONS / 2; round += 1) {
    collect!();
    const before = process.memoryUsage().heapUsed;
    run(operation, OPERATIONS);
    least = Math.min(least, process.memoryUsage().heapUsed - before);
  }
  return least / OPERATIONS;
}

const operations = [decodes, outcomes, frames, entryWrites, entryReads, requests, replies, planted];
const measured: Record<string, number> = {};
for (const make of operations) measured[make.name] = bytesPerOperation(make());
if (sink[0] === 0 || kept === undefined) throw new Error('nothing was measured');
console.log(JSON.stringify(measured));
