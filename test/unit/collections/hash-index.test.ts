/** A hash index finds what a map of sets finds, however weak the hashes; its hashes are keyed. */

import fc from 'fast-check';
import t from 'tap';
import { HashIndex, hashBytes, hashPair, hashWords } from '../../../src/collections/hash-index.js';
import { Prng } from '../../../src/collections/prng.js';

function candidates(index: HashIndex, hash: number): number[] {
  const slots: number[] = [];
  for (let slot = index.find(hash); slot !== -1; slot = index.findNext()) slots.push(slot);
  return slots.sort((a, b) => a - b);
}

/** Runs steps on an index and on a map of sets; false where they differ. */
function agrees(steps: readonly { isRemove: boolean; hash: number; slot: number }[]): boolean {
  const index = new HashIndex();
  const model = new Map<number, Set<number>>();
  let count = 0;
  for (const { isRemove, hash, slot } of steps) {
    const slots = model.get(hash) ?? new Set();
    model.set(hash, slots);
    if (isRemove) {
      const was = slots.delete(slot);
      if (was) count -= 1;
      if (index.remove(hash, slot) !== was) return false;
    } else if (!slots.has(slot)) {
      slots.add(slot);
      count += 1;
      index.insert(hash, slot);
    }
    if (index.count !== count) return false;
  }
  for (const [hash, slots] of model) {
    const wanted = [...slots].sort((a, b) => a - b);
    if (candidates(index, hash).join() !== wanted.join()) return false;
  }
  return true;
}

const weakHash = fc.oneof(
  fc.nat(3),
  fc.constantFrom(0xffffffff, 0xfffffffe, 0x80000000, 0x7fffffff),
  fc.nat(255).map((n) => (n << 24) >>> 0),
  fc.nat(0xffffffff),
);

t.test('finds, inserts and removes like a map of sets', async (t) => {
  const step = fc.record({ isRemove: fc.boolean(), hash: weakHash, slot: fc.nat(20) });
  fc.assert(fc.property(fc.array(step, { maxLength: 500, size: 'max' }), agrees), { numRuns: 200 });
  t.pass('on random steps with weak hashes');
});

t.test('a removal closes the gap in runs that wrap around the end of the table', async (t) => {
  // The golden ratio's inverse modulo 2^32: hashes whose home is any place wanted.
  const inverse = 0xe8b2f51;
  t.equal(Math.imul(inverse, 0x9e3779b1), 1);
  const homedAt = (place: number): number => Math.imul(place << 28, inverse) >>> 0;
  const step = fc.record({
    isRemove: fc.boolean(),
    hash: fc.constantFrom(12, 13, 14, 15, 0, 1).map(homedAt),
    slot: fc.nat(1),
  });
  fc.assert(fc.property(fc.array(step, { maxLength: 60, size: 'max' }), agrees), {
    numRuns: 2_000,
  });
  t.pass('on random steps around the end');
});

t.test('an empty index finds and removes nothing', async (t) => {
  const index = new HashIndex();
  t.equal(index.find(0), -1);
  t.equal(index.find(0xffffffff), -1);
  t.equal(index.remove(7, 0), false);
  t.equal(index.count, 0);
  index.insert(-1, 5);
  t.equal(index.find(0xffffffff), 5, 'signed and unsigned words are one hash');
  t.equal(index.findNext(), -1);
  t.throws(() => index.insert(1, -1), { name: 'AssertionError' });
});

/** The longest run of taken places: what the slowest search walks. */
function longestRun(index: HashIndex): number {
  const { entries } = index as unknown as { entries: Int32Array };
  let longest = 0;
  let run = 0;
  for (let at = 1; at < entries.length; at += 2) {
    run = entries[at] === 0 ? 0 : run + 1;
    longest = Math.max(longest, run);
  }
  return longest;
}

t.test('weak hashes spread: no search is long', async (t) => {
  const patterns: [name: string, hashOf: (at: number) => number][] = [
    ['sequential', (at) => at],
    ['from 2^31 on', (at) => (0x80000000 + at) >>> 0],
    ['multiples of 16', (at) => at * 16],
    ['multiples of 10000', (at) => (at * 10_000) >>> 0],
    ['upper bits only', (at) => (at << 15) >>> 0],
    ['reversed', (at) => 0xffffffff - at],
    ['hashPair', (at) => hashPair(at >> 5, at & 31)],
    ['hashPair of one session', (at) => hashPair(3, at)],
    ['hashWords', (at) => hashWords(0, at, 0, 0)],
    ['hashWords of equal words', (at) => hashWords(at, at, at, at)],
    ['hashBytes', (at) => hashBytes(Buffer.from(`lock-${at}`), 0, `lock-${at}`.length)],
  ];
  for (const [name, hashOf] of patterns) {
    const index = new HashIndex();
    for (let at = 0; at < 75_000; at += 1) index.insert(hashOf(at), at);
    // The table is as full as it gets. Chance alone makes runs of about 150.
    t.ok(longestRun(index) < 400, name, { run: longestRun(index) });
    let found = 0;
    for (let at = 0; at < 75_000; at += 1) {
      if (candidates(index, hashOf(at)).includes(at)) found += 1;
    }
    t.equal(found, 75_000, `${name}: all found`);
    for (let at = 0; at < 75_000; at += 1) index.remove(hashOf(at), at);
    t.equal(longestRun(index), 0, `${name}: nothing stays behind`);
    t.equal(index.count, 0);
  }
});

t.test('room asked for at the start is room that does not grow', async (t) => {
  const index = new HashIndex(10_000);
  const sizeOf = (): number => (index as unknown as { entries: Int32Array }).entries.length;
  const before = sizeOf();
  for (let at = 0; at < 10_000; at += 1) index.insert(at, at);
  t.equal(sizeOf(), before);
  t.throws(() => new HashIndex(2 ** 30), { name: 'AssertionError' });
});

function rotate(value: number, bits: number): number {
  return (value << bits) | (value >>> (32 - bits));
}

/** HalfSipHash-c-d with 32 bits of output, as its authors' code has it. */
function reference(bytes: Buffer, key0: number, key1: number, c: number, d: number): number {
  const v = [key0, key1, key0 ^ 0x6c796765, key1 ^ 0x74656462];
  const rounds = (count: number): void => {
    for (let round = 0; round < count; round += 1) {
      v[0] = (v[0]! + v[1]!) | 0;
      v[1] = rotate(v[1]!, 5) ^ v[0];
      v[0] = rotate(v[0], 16);
      v[2] = (v[2]! + v[3]!) | 0;
      v[3] = rotate(v[3]!, 8) ^ v[2];
      v[0] = (v[0] + v[3]) | 0;
      v[3] = rotate(v[3], 7) ^ v[0];
      v[2] = (v[2] + v[1]) | 0;
      v[1] = rotate(v[1], 13) ^ v[2];
      v[2] = rotate(v[2], 16);
    }
  };
  const padded = Buffer.alloc((bytes.length & ~3) + 4);
  bytes.copy(padded);
  padded[padded.length - 1] = bytes.length & 0xff;
  for (let at = 0; at < padded.length; at += 4) {
    const block = padded.readInt32LE(at);
    v[3]! ^= block;
    rounds(c);
    v[0]! ^= block;
  }
  v[2]! ^= 0xff;
  rounds(d);
  return v[1]! ^ v[3]!;
}

t.test('hashBytes is HalfSipHash-1-3', async (t) => {
  // The authors' vectors are of HalfSipHash-2-4, message 00 01 … under the key 00 … 07.
  const counting = Buffer.from(Array.from({ length: 8 }, (_, at) => at));
  const vectors = ['a9359f5b', '27475ab8', 'fa62a603', '8afee704', '2a6e4689', 'c5fab669'];
  vectors.forEach((vector, length) => {
    const hash = reference(counting.subarray(0, length), 0x03020100, 0x07060504, 2, 4);
    const bytes = Buffer.alloc(4);
    bytes.writeInt32LE(hash);
    t.equal(bytes.toString('hex'), vector, `the transcription, ${length} bytes`);
  });
  fc.assert(
    fc.property(
      fc.uint8Array({ maxLength: 300, size: 'max' }),
      fc.nat(0xffffffff),
      fc.nat(0xffffffff),
      fc.nat(7),
      (content, seed0, seed1, offset) => {
        const source = Buffer.concat([Buffer.alloc(offset, 0xaa), content, Buffer.alloc(3, 0xaa)]);
        const hash = hashBytes(source, offset, content.length, seed0, seed1);
        return hash === reference(Buffer.from(content), seed0, seed1, 1, 3);
      },
    ),
    { numRuns: 1_000 },
  );
  t.equal(hashBytes(counting, 0, 5), reference(counting.subarray(0, 5), 0, 0, 1, 3), 'no seed');
});

t.test('names that collide under one seed do not under another', async (t) => {
  const byHash = new Map<number, string>();
  const pairs: [string, string][] = [];
  for (let at = 0; pairs.length < 8; at += 1) {
    const name = `n${at}`;
    const hash = hashBytes(Buffer.from(name), 0, name.length, 1, 2);
    const other = byHash.get(hash);
    if (other !== undefined) pairs.push([other, name]);
    byHash.set(hash, name);
  }
  const still = pairs.filter(
    ([one, two]) =>
      hashBytes(Buffer.from(one), 0, one.length, 1, 3) ===
      hashBytes(Buffer.from(two), 0, two.length, 1, 3),
  );
  t.strictSame(still, []);
});

t.test('hashPair and hashWords depend on every part', async (t) => {
  const prng = new Prng(9);
  const hashes = new Set<number>();
  const trials = 20_000;
  for (let trial = 0; trial < trials; trial += 1) {
    hashes.add(hashPair(prng.nextU32(), prng.nextU32() * 2 ** 21));
  }
  t.ok(trials - hashes.size < 5, 'random pairs');
  const base = hashPair(5, 2 ** 40, 7);
  t.not(hashPair(6, 2 ** 40, 7), base);
  t.not(hashPair(5, 2 ** 40 + 1, 7), base);
  t.not(hashPair(5, 2 ** 41, 7), base, 'the bits above 32 count');
  t.not(hashPair(5, 2 ** 40, 8), base, 'the seed counts');
  t.not(hashPair(5, 2 ** 53, 7), hashPair(5, 0, 7));
  const words = hashWords(1, 2, 3, 4);
  for (const other of [
    hashWords(2, 2, 3, 4),
    hashWords(1, 3, 3, 4),
    hashWords(1, 2, 4, 4),
    hashWords(1, 2, 3, 5),
    hashWords(4, 3, 2, 1),
  ]) {
    t.not(other, words);
  }
  t.equal(hashWords(-1, -2, -3, -4), hashWords(2 ** 32 - 1, 2 ** 32 - 2, 2 ** 32 - 3, 2 ** 32 - 4));
  for (const hash of [base, words, hashWords(-1, -1, -1, -1), hashPair(0xffffffff, 2 ** 53)]) {
    t.equal(hash, hash | 0, 'a signed 32-bit number');
  }
});
