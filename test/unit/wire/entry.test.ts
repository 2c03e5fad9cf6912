import assert from 'node:assert/strict';
import fc from 'fast-check';
import t from 'tap';
import { ENTROPY_BYTES, EntryReader, EntryWriter, stampOf } from '../../../src/wire/entry.js';
import { bitFlips, bytesOf, holds, integers } from './oracle.js';

const operations = fc.array(
  fc.record({
    principal: fc.nat({ max: 2 ** 32 - 1 }),
    version: fc.integer({ min: 0, max: 255 }),
    bytes: fc.uint8Array({ maxLength: 600 }),
  }),
  { maxLength: 12 },
);
const headers = fc.record({
  stampMs: integers,
  featureLevel: fc.nat({ max: 65_535 }),
  entropy: fc.uint8Array({ minLength: ENTROPY_BYTES, maxLength: ENTROPY_BYTES }),
});

t.test('what is written is read again, and batches do not mix', async (t) => {
  const writer = new EntryWriter();
  const reader = new EntryReader();
  holds(
    t,
    fc.property(operations, headers, (batch, { stampMs, featureLevel, entropy }) => {
      writer.open();
      for (const { principal, version, bytes } of batch) {
        const padded = Uint8Array.from([9, ...bytes, 9]);
        writer.addOperation(principal, version, padded, 1, padded.length - 1);
      }
      assert.equal(writer.count, batch.length);
      const length = writer.length;
      const data = writer.close(stampMs, featureLevel, entropy);
      assert.equal(data.length, length);
      assert.equal(data.buffer.byteLength, length, 'the buffer is the entry and nothing else');
      assert.equal(writer.count, 0);
      assert.ok(reader.open(data));
      assert.deepEqual(
        [reader.stampMs, reader.featureLevel, reader.count],
        [stampMs, featureLevel, batch.length],
      );
      assert.equal(stampOf(data), stampMs);
      const view = new DataView(entropy.buffer, entropy.byteOffset);
      assert.deepEqual(
        [reader.entropy0, reader.entropy1, reader.entropy2, reader.entropy3],
        [view.getUint32(0), view.getUint32(4), view.getUint32(8), view.getUint32(12)],
      );
      for (const { principal, version, bytes } of batch) {
        assert.ok(reader.next());
        assert.deepEqual([reader.principal, reader.version], [principal, version]);
        assert.deepEqual(data.slice(reader.start, reader.end), bytes);
      }
      assert.equal(reader.next(), false);
    }),
    { numRuns: 300 },
  );
});

t.test('an entry has the bytes that the format says', async (t) => {
  const writer = new EntryWriter();
  writer.addOperation(1, 1, bytesOf('9126'), 0, 2);
  const entropy = bytesOf('000102030405060708090a0b0c0d0e0f');
  t.same(
    writer.close(0x01_0203_0405, 1, entropy),
    bytesOf(
      '01 00 0001 00000001 0000000102030405' +
        '000102030405060708090a0b0c0d0e0f' +
        '01 000000 00000001 00000002 9126',
    ),
  );
  t.equal(writer.close(5, 1, entropy).length, 32, 'a pulse is a header');
});

t.test('a batch larger than the first buffer keeps every byte', async (t) => {
  const writer = new EntryWriter();
  const operation = new Uint8Array(30_000).map((_, index) => index);
  for (let index = 0; index < 20; index += 1) {
    operation[0] = index;
    writer.addOperation(index, 1, operation, 0, operation.length);
  }
  const reader = new EntryReader();
  const data = writer.close(1, 1, new Uint8Array(16));
  t.ok(reader.open(data));
  for (let index = 0; reader.next(); index += 1) {
    operation[0] = index;
    t.equal(reader.principal, index);
    t.same(Buffer.compare(data.subarray(reader.start, reader.end), operation), 0);
  }
});

t.test(
  'cut, lengthened and damaged entries are refused or read whole, never thrown on',
  async (t) => {
    const writer = new EntryWriter();
    const reader = new EntryReader();
    holds(
      t,
      fc.property(operations, headers, (batch, { stampMs, featureLevel, entropy }) => {
        writer.open();
        for (const { bytes } of batch) writer.addOperation(1, 1, bytes, 0, bytes.length);
        const data = writer.close(stampMs, featureLevel, entropy);
        for (let end = 0; end < data.length; end += Math.ceil(data.length / 60)) {
          assert.equal(reader.open(data.slice(0, end)), false);
          assert.equal(reader.next(), false, 'nothing is read after a refusal');
        }
        assert.equal(reader.open(Uint8Array.from([...data, 0])), false);
        for (const flipped of bitFlips(data.subarray(0, 60))) {
          const damaged = data.slice();
          damaged.set(flipped);
          if (!reader.open(damaged)) continue;
          while (reader.next()) assert.ok(reader.start <= reader.end && reader.end <= data.length);
        }
      }),
      { numRuns: 60 },
    );
  },
);

t.test('another format, and anything set that is reserved, is refused', async (t) => {
  const writer = new EntryWriter();
  const reader = new EntryReader();
  writer.addOperation(1, 1, bytesOf('9126'), 0, 2);
  const data = writer.close(5, 1, new Uint8Array(16));
  t.ok(reader.open(data));
  for (const [offset, value] of [
    [0, 0],
    [0, 2],
    [1, 1],
    [8, 0x20],
    [33, 1],
    [34, 1],
    [35, 1],
    [7, 2],
    [7, 0],
    [4, 0xff],
    [43, 1],
    [43, 3],
    [40, 0xff],
  ] as const) {
    const damaged = data.slice();
    damaged[offset] = value;
    t.notOk(reader.open(damaged), `byte ${offset} is ${value}`);
  }
  t.equal(stampOf(data.subarray(0, 31)), -2);
});
