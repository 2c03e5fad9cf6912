/** SipHash-2-4-128 agrees with the published vectors and with a plain 64-bit transcription. */

import fc from 'fast-check';
import t from 'tap';
import { sipHash128 } from '../../../src/collections/sip-hash.js';

const MASK = 2n ** 64n - 1n;

function rotate(value: bigint, bits: bigint): bigint {
  return ((value << bits) | (value >> (64n - bits))) & MASK;
}

function sipRound(v: bigint[]): void {
  v[0] = (v[0]! + v[1]!) & MASK;
  v[1] = rotate(v[1]!, 13n) ^ v[0];
  v[0] = rotate(v[0], 32n);
  v[2] = (v[2]! + v[3]!) & MASK;
  v[3] = rotate(v[3]!, 16n) ^ v[2];
  v[0] = (v[0] + v[3]) & MASK;
  v[3] = rotate(v[3], 21n) ^ v[0];
  v[2] = (v[2] + v[1]) & MASK;
  v[1] = rotate(v[1], 17n) ^ v[2];
  v[2] = rotate(v[2], 32n);
}

/** The paper's algorithm for any length, with 128 bits of output, over big integers. */
function reference(key: Buffer, message: Buffer): string {
  const k0 = key.readBigUInt64LE(0);
  const k1 = key.readBigUInt64LE(8);
  const v = [
    k0 ^ 0x736f6d6570736575n,
    k1 ^ 0x646f72616e646f6dn ^ 0xeen,
    k0 ^ 0x6c7967656e657261n,
    k1 ^ 0x7465646279746573n,
  ];
  const padded = Buffer.alloc((message.length & ~7) + 8);
  message.copy(padded);
  padded[padded.length - 1] = message.length;
  for (let at = 0; at < padded.length; at += 8) {
    const block = padded.readBigUInt64LE(at);
    v[3]! ^= block;
    for (let round = 0; round < 2; round += 1) sipRound(v);
    v[0]! ^= block;
  }
  const output = Buffer.alloc(16);
  v[2]! ^= 0xeen;
  for (let round = 0; round < 4; round += 1) sipRound(v);
  output.writeBigUInt64LE(v[0]! ^ v[1]! ^ v[2]! ^ v[3]!, 0);
  v[1]! ^= 0xddn;
  for (let round = 0; round < 4; round += 1) sipRound(v);
  output.writeBigUInt64LE(v[0]! ^ v[1]! ^ v[2]! ^ v[3]!, 8);
  return output.toString('hex');
}

function hashed(key: Buffer, message: Buffer): string {
  const out = new Int32Array(4);
  sipHash128(
    key.readUInt32LE(0),
    key.readUInt32LE(4),
    key.readUInt32LE(8),
    key.readUInt32LE(12),
    message.readUInt32LE(0),
    message.readUInt32LE(4),
    out,
  );
  const bytes = Buffer.alloc(16);
  for (let word = 0; word < 4; word += 1) bytes.writeInt32LE(out[word]!, 4 * word);
  return bytes.toString('hex');
}

/** The authors' vectors: message 00 01 02 … of each length under the key 00 01 … 0f. */
const vectors: readonly string[] = [
  'a3817f04ba25a8e66df67214c7550293',
  'da87c1d86b99af44347659119b22fc45',
  '8177228da4a45dc7fca38bdef60affe4',
  '9c70b60c5267a94e5f33b6b02985ed51',
  'f88164c12d9c8faf7d0f6e7c7bcd5579',
  '1368875980776f8854527a07690e9627',
  '14eeca338b208613485ea0308fd7a15e',
  'a1f1ebbed8dbc153c0b84aa61ff08239',
  '3b62a9ba6258f5610f83e264f31497b4',
  '264499060ad9baabc47f8b02bb6d71ed',
];

const counting = Buffer.from(Array.from({ length: 16 }, (_, at) => at));

t.test('the vector of the authors for eight bytes', async (t) => {
  t.equal(hashed(counting, counting.subarray(0, 8)), vectors[8]);
});

t.test('the transcription agrees with the vectors of the authors', async (t) => {
  vectors.forEach((vector, length) => {
    t.equal(reference(counting, counting.subarray(0, length)), vector, `${length} bytes`);
  });
});

t.test('any key and message hash like the transcription', async (t) => {
  const word = fc.oneof(fc.nat(255), fc.constantFrom(0, 0x7f, 0x80, 0xff));
  const key = fc.array(word, { minLength: 16, maxLength: 16 });
  const message = fc.array(word, { minLength: 8, maxLength: 8 });
  fc.assert(
    fc.property(key, message, (keyBytes, messageBytes) => {
      const keyBuffer = Buffer.from(keyBytes);
      const messageBuffer = Buffer.from(messageBytes);
      return hashed(keyBuffer, messageBuffer) === reference(keyBuffer, messageBuffer);
    }),
    { numRuns: 2_000 },
  );
  t.pass('on random keys and messages');
});

t.test('signed words hash like the unsigned words of the same bits', async (t) => {
  const unsigned = new Int32Array(4);
  const signed = new Int32Array(4);
  sipHash128(0xffffffff, 0x80000000, 3, 0xdeadbeef, 0xfffffffe, 0x80000001, unsigned);
  sipHash128(-1, 0x80000000 | 0, 3, 0xdeadbeef | 0, -2, 0x80000001 | 0, signed);
  t.strictSame(signed, unsigned);
});
