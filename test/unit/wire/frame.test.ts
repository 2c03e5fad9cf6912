import assert from 'node:assert/strict';
import fc from 'fast-check';
import t from 'tap';
import { FRAME_BYTES_MAX, FRAME_OPERATIONS_MAX } from '../../../src/limits.js';
import {
  beginFrame,
  endFrame,
  FRAME_HEADER_BYTES,
  FrameReader,
  frameBytesAt,
  isFrameFull,
} from '../../../src/wire/frame.js';
import { FrameAssembler } from '../../../src/wire/frame-assembler.js';
import { INVALID } from '../../../src/wire/msgpack-reader.js';
import type { PackValue } from '../../../src/wire/msgpack-writer.js';
import { OutBuffer } from '../../../src/wire/out-buffer.js';
import { encodeRequest } from '../../../src/wire/request.js';
import {
  bitFlips,
  bytesOf,
  holds,
  packOracle,
  packOurs,
  trimmed,
  validOperations,
} from './oracle.js';

interface Request {
  readonly correlation: number;
  readonly deadlineMs: number;
  readonly operation: PackValue[];
}

const requests: fc.Arbitrary<Request[]> = fc.array(
  fc.record({
    correlation: fc.integer({ min: 1, max: 2 ** 32 - 1 }),
    deadlineMs: fc.integer({ min: -1, max: 60_000 }),
    operation: validOperations.map(trimmed),
  }),
  { maxLength: 8 },
);

function encodeFrame(items: readonly Request[]): Uint8Array {
  const out = new OutBuffer();
  const position = beginFrame(out);
  for (const { correlation, deadlineMs, operation } of items) {
    encodeRequest(out, correlation, deadlineMs, operation);
  }
  endFrame(out, position, items.length);
  return out.take().slice();
}

/** What the reader finds in a body; the fault at the end, 0 for none. */
function readAll(reader: FrameReader, bytes: Uint8Array, start: number, end: number) {
  const found: { correlation: number; deadlineMs: number; operation: Uint8Array }[] = [];
  const opened = reader.open(bytes, start, end);
  while (reader.next()) {
    const { correlation, deadlineMs, operationStart, operationEnd } = reader;
    const operation = bytes.slice(operationStart, operationEnd);
    assert.ok(operationStart < operationEnd && operationEnd <= end);
    found.push({ correlation, deadlineMs, operation });
  }
  assert.equal(opened === 0 || opened === reader.fault, true);
  return { found, fault: reader.fault };
}

t.test('every request of a frame is found, whoever wrote it', async (t) => {
  const reader = new FrameReader();
  holds(
    t,
    fc.property(requests, (items) => {
      const wanted = items.map(({ correlation, deadlineMs, operation }) => {
        const wantedMs = deadlineMs === -1 ? 10_000 : deadlineMs;
        return { correlation, deadlineMs: wantedMs, operation: packOurs(operation) };
      });
      const frame = encodeFrame(items);
      assert.equal(frameBytesAt(frame, 0, frame.length), frame.length);
      const ours = readAll(reader, frame, FRAME_HEADER_BYTES, frame.length);
      assert.deepEqual(ours, { found: wanted, fault: 0 });
      const body = packOracle([
        1,
        0,
        ...items.map(({ correlation, deadlineMs, operation }): PackValue => {
          return [correlation, deadlineMs === -1 ? null : deadlineMs, operation];
        }),
      ]);
      const theirs = readAll(reader, body, 0, body.length);
      assert.equal(theirs.fault, 0);
      assert.deepEqual(
        theirs.found.map(({ correlation, deadlineMs }) => [correlation, deadlineMs]),
        wanted.map(({ correlation, deadlineMs }) => [correlation, deadlineMs]),
      );
    }),
    { numRuns: 200 },
  );
});

t.test('a cut body is a fault, never a throw', async (t) => {
  const reader = new FrameReader();
  holds(
    t,
    fc.property(requests, (items) => {
      const frame = encodeFrame(items);
      for (let end = FRAME_HEADER_BYTES; end < frame.length; end += 1) {
        const { fault, found } = readAll(reader, frame, FRAME_HEADER_BYTES, end);
        assert.notEqual(fault, 0, `${end} of ${frame.length}`);
        assert.ok(found.length <= items.length);
      }
    }),
    { numRuns: 30 },
  );
});

t.test('a flipped bit never throws', async (t) => {
  const reader = new FrameReader();
  holds(
    t,
    fc.property(requests, (items) => {
      const body = encodeFrame(items).subarray(FRAME_HEADER_BYTES, 200);
      for (const flipped of bitFlips(body)) readAll(reader, flipped, 0, flipped.length);
    }),
    { numRuns: 20 },
  );
  holds(
    t,
    fc.property(fc.uint8Array({ maxLength: 100 }), (bytes) => {
      readAll(reader, bytes, 0, bytes.length);
    }),
    { numRuns: 2_000 },
  );
});

t.test('a frame is read in any array width', async (t) => {
  const reader = new FrameReader();
  for (const header of ['93', 'dc0003', 'dd00000003']) {
    const body = bytesOf(`${header} 01 00 93 07 c0 91 03`);
    const { found, fault } = readAll(reader, body, 0, body.length);
    t.equal(fault, 0, header);
    t.same(found, [{ correlation: 7, deadlineMs: 10_000, operation: bytesOf('9103') }]);
  }
});

t.test('what is wrong with a frame has its code', async (t) => {
  const reader = new FrameReader();
  const cases: readonly (readonly [number, string])[] = [
    [0, '92 01 00'],
    [23, ''],
    [23, '01'],
    [23, '90'],
    [23, '91 01'],
    [23, 'c0'],
    [23, '82 01 00 02 00'],
    [23, '92 c0 00'],
    [23, '92 a131 00'],
    [46, '92 02 00'],
    [46, '92 00 00'],
    [46, '92 cd0101 00'],
    [23, '92 01 01'],
    [23, '92 01 c0'],
    [23, '92 01 00 00'],
    [23, '93 01 00 c0'],
    [23, '93 01 00 92 01 c0'],
    [23, '93 01 00 94 01 c0 91 03 00'],
    [23, '93 01 00 93 00 c0 91 03'],
    [23, '93 01 00 93 c0 c0 91 03'],
    [23, '93 01 00 93 cf0000000100000000 c0 91 03'],
    [23, '93 01 00 93 01 ff 91 03'],
    [23, '93 01 00 93 01 cb3ff0000000000000 91 03'],
    [23, '93 01 00 93 01 c0 c1'],
    [23, '93 01 00 93 01 c0 d40001'],
    [23, 'ddffffffff 01 00'],
    [23, 'dcffff 01 00'],
  ];
  for (const [code, hex] of cases) {
    const body = bytesOf(hex);
    t.equal(readAll(reader, body, 0, body.length).fault, code, hex);
  }
});

t.test('what comes before a broken request is still found', async (t) => {
  const body = bytesOf('94 01 00 93 05 c0 91 03 93 06 c0 c1');
  const { found, fault } = readAll(new FrameReader(), body, 0, body.length);
  t.equal(found.length, 1);
  t.equal(found[0]?.correlation, 5);
  t.equal(fault, 23);
});

t.test(
  'an operation without a command is command 0, to be refused by its correlation',
  async (t) => {
    const reader = new FrameReader();
    for (const [command, hex] of [
      [0, 'c0'],
      [0, '90'],
      [0, '91 a3616263'],
      [0, '91 ff'],
      [3, '91 03'],
      [36, '91 cc24'],
      [4_000, '91 cd0fa0'],
    ] as const) {
      const body = bytesOf(`93 01 00 93 09 c0 ${hex}`);
      t.equal(reader.open(body, 0, body.length), 0, hex);
      t.ok(reader.next(), hex);
      t.equal(reader.correlation, 9);
      t.equal(reader.command, command, hex);
      t.notOk(reader.next());
      t.equal(reader.fault, 0);
    }
  },
);

t.test('a deadline is bounded and has a default', async (t) => {
  const reader = new FrameReader();
  const msOf = (hex: string): number => {
    const body = bytesOf(`93 01 00 93 01 ${hex} 91 03`);
    reader.open(body, 0, body.length);
    reader.next();
    return reader.deadlineMs;
  };
  t.equal(msOf('c0'), 10_000);
  t.equal(msOf('00'), 0);
  t.equal(msOf('cd2328'), 9_000);
  t.equal(msOf('ce0000ea60'), 60_000);
  t.equal(msOf('ce0000ea61'), 60_000);
  t.equal(msOf('cf001fffffffffffff'), 60_000);
});

t.test('a frame is bounded in operations and in bytes', async (t) => {
  const reader = new FrameReader();
  const most = new Uint8Array(5 + 2 + FRAME_OPERATIONS_MAX + 1).fill(0xc0);
  most.set(bytesOf('dd 00002003 01 00'));
  t.equal(reader.open(most, 0, most.length), 45);
  const large = new Uint8Array(FRAME_BYTES_MAX + 1);
  t.equal(reader.open(large, 0, large.length), 45);
  t.equal(frameBytesAt(bytesOf('00100000'), 0, 4), 4 + FRAME_BYTES_MAX);
  t.equal(frameBytesAt(bytesOf('00100001'), 0, 4), INVALID);
  t.equal(frameBytesAt(bytesOf('ffffffff'), 0, 4), INVALID);
  t.equal(frameBytesAt(bytesOf('00000000'), 0, 4), INVALID);
  t.equal(frameBytesAt(bytesOf('000000'), 0, 3), 0);
});

t.test('a frame is full at half its bound, so that one more reply fits', async (t) => {
  const out = new OutBuffer();
  out.reserve(10);
  out.length = 10;
  const position = beginFrame(out);
  t.notOk(isFrameFull(out, position));
  out.reserve(FRAME_BYTES_MAX / 2);
  out.length += FRAME_BYTES_MAX / 2;
  t.ok(isFrameFull(out, position));
});

/** The bodies that come out of a stream that is cut into `chunks`. */
function assemble(chunks: readonly Uint8Array[]): { bodies: string[]; broken: boolean } {
  const assembler = new FrameAssembler(frameBytesAt);
  const bodies: string[] = [];
  for (const chunk of chunks) {
    const borrowed = chunk.slice();
    assembler.push(borrowed);
    while (assembler.next()) {
      const { bytes, frameStart, frameEnd } = assembler;
      bodies.push(Buffer.from(bytes.slice(frameStart + 4, frameEnd)).toString('hex'));
    }
    borrowed.fill(0xee); // the transport's buffer is used again
  }
  return { bodies, broken: assembler.broken };
}

function framed(body: Uint8Array): Uint8Array {
  const frame = new Uint8Array(4 + body.length);
  new DataView(frame.buffer).setUint32(0, body.length);
  frame.set(body, 4);
  return frame;
}

t.test('a stream gives the same frames however it is cut', async (t) => {
  const bodies = fc.array(fc.uint8Array({ minLength: 1, maxLength: 60 }), {
    minLength: 1,
    maxLength: 6,
  });
  holds(
    t,
    fc.property(bodies, fc.array(fc.nat({ max: 40 }), { maxLength: 60 }), (parts, cuts) => {
      const stream = Uint8Array.from(parts.flatMap((part) => [...framed(part)]));
      const wanted = parts.map((part) => Buffer.from(part).toString('hex'));
      const chunks: Uint8Array[] = [];
      let at = 0;
      for (const cut of cuts) {
        chunks.push(stream.subarray(at, at + cut));
        at = Math.min(at + cut, stream.length);
      }
      chunks.push(stream.subarray(at));
      assert.deepEqual(assemble(chunks), { bodies: wanted, broken: false });
    }),
    { numRuns: 300 },
  );
  const stream = Uint8Array.from([...framed(bytesOf('010203')), ...framed(bytesOf('04'))]);
  for (let at = 0; at <= stream.length; at += 1) {
    const { bodies: found } = assemble([stream.subarray(0, at), stream.subarray(at)]);
    t.same(found, ['010203', '04'], `split at ${at}`);
  }
  t.same(assemble([...stream].map((byte) => Uint8Array.of(byte))).bodies, ['010203', '04']);
});

t.test('a stream stops at a length that is refused', async (t) => {
  const good = framed(bytesOf('01'));
  for (const header of ['00000000', 'ffffffff', '00100001']) {
    const bad = bytesOf(header);
    const { bodies, broken } = assemble([Uint8Array.from([...good, ...bad, ...good]), good]);
    t.same(bodies, ['01'], header);
    t.ok(broken, header);
  }
});

t.test('a large frame in small pieces is copied a few times, not once a piece', async (t) => {
  const frame = framed(new Uint8Array(FRAME_BYTES_MAX).fill(7));
  const assembler = new FrameAssembler(frameBytesAt);
  let buffers = 0;
  let last: Uint8Array | null = null;
  for (let at = 0; at < frame.length; at += 1_000) {
    assembler.push(frame.slice(at, at + 1_000));
    if (assembler.bytes !== last && at > 0) buffers += 1;
    last = assembler.bytes;
    if (assembler.next()) break;
    assert.ok(assembler.pendingBytes <= at + 1_000, 'holds no more than came');
  }
  t.equal(assembler.frameEnd - assembler.frameStart, frame.length);
  t.ok(buffers < 16, `${buffers} buffers`);
  t.notOk(assembler.next());
  t.equal(assembler.pendingBytes, 0);
});
