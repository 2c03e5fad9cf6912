/** A record hash depends on every bit and their order; a state digest on the set of records. */

import fc from 'fast-check';
import t from 'tap';
import { RecordHash, StateDigest } from '../../../src/collections/digest.js';
import { Prng } from '../../../src/collections/prng.js';

const KEY = [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344] as const;

function newHash(): RecordHash {
  return new RecordHash(KEY[0], KEY[1], KEY[2], KEY[3]);
}

function hexOf(hash: RecordHash): string {
  return [hash.h0, hash.h1, hash.h2, hash.h3].map((h) => h.toString(16).padStart(8, '0')).join('');
}

function hashOf(feed: (hash: RecordHash) => void, tag = 1): string {
  const hash = newHash();
  hash.begin(tag);
  feed(hash);
  hash.finish();
  return hexOf(hash);
}

const word = fc.oneof(
  fc.nat(0xffffffff),
  fc.constantFrom(0, 1, 0x7fffffff, 0x80000000, 0xffffffff),
);

t.test('the same calls give the same hash, whatever the object hashed before', async (t) => {
  const reused = newHash();
  fc.assert(
    fc.property(word, fc.array(word), (tag, words) => {
      reused.begin(tag);
      for (const value of words) reused.word(value);
      reused.finish();
      const fresh = hashOf((hash) => {
        for (const value of words) hash.word(value);
      }, tag);
      return hexOf(reused) === fresh;
    }),
  );
  t.pass('on random words');
});

t.test('the results are unsigned', async (t) => {
  const hash = newHash();
  let least = 0;
  let greatest = 0;
  for (let tag = 0; tag < 1_000; tag += 1) {
    hash.begin(tag);
    hash.finish();
    least = Math.min(least, hash.h0, hash.h1, hash.h2, hash.h3);
    greatest = Math.max(greatest, hash.h0, hash.h1, hash.h2, hash.h3);
  }
  t.equal(least, 0);
  t.ok(greatest > 0xff000000 && greatest <= 0xffffffff, 'up to 2^32 - 1');
});

t.test('tag, key, order, count and a trailing zero each change the hash', async (t) => {
  const feed = (hash: RecordHash): void => {
    hash.word(7);
    hash.word(9);
  };
  const base = hashOf(feed);
  t.not(hashOf(feed, 2), base, 'tag');
  const swapped = hashOf((hash) => {
    hash.word(9);
    hash.word(7);
  });
  t.not(swapped, base, 'order');
  const longer = hashOf((hash) => {
    feed(hash);
    hash.word(0);
  });
  t.not(longer, base, 'a zero at the end');
  for (let part = 0; part < 4; part += 1) {
    const key = [...KEY];
    key[part]! ^= 1;
    const hash = new RecordHash(key[0]!, key[1]!, key[2]!, key[3]!);
    hash.begin(1);
    feed(hash);
    hash.finish();
    t.not(hexOf(hash), base, `bit in key ${part}`);
  }
});

t.test('number is two words, and different numbers are different words', async (t) => {
  const whole = fc.oneof(
    fc.integer({ min: -1, max: 5 }),
    fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER }),
    fc.constantFrom(2 ** 31 - 1, 2 ** 31, 2 ** 32 - 1, 2 ** 32, 2 ** 32 + 1, 2 ** 53 - 1, 2 ** 53),
  );
  fc.assert(
    fc.property(whole, (value) => {
      const bits = BigInt.asUintN(64, BigInt(value));
      const asNumber = hashOf((hash) => hash.number(value));
      const asWords = hashOf((hash) => {
        hash.word(Number(bits & 0xffffffffn));
        hash.word(Number(bits >> 32n));
      });
      return asNumber === asWords;
    }),
    { numRuns: 2_000 },
  );
  t.pass('the two halves of its 64-bit form, so it is injective from -1 to 2^53');
});

t.test('a row of a column is hashed like its value', async (t) => {
  const number = fc.integer({ min: -1, max: Number.MAX_SAFE_INTEGER });
  fc.assert(
    fc.property(word, number, (first, second) => {
      const byValue = hashOf((hash) => {
        hash.word(first);
        hash.number(second);
      });
      const byRow = hashOf((hash) => {
        hash.wordAt(Uint32Array.of(5, first), 1);
        hash.numberAt(Float64Array.of(5, 6, second), 2);
      });
      return byValue === byRow;
    }),
    { numRuns: 500 },
  );
  t.pass('on random values');
});

t.test('bytes are hashed by content, with their length, wherever they lie', async (t) => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 40 }), fc.nat(9), (content, offset) => {
      const moved = new Uint8Array(offset + content.length + 3).fill(0xaa);
      moved.set(content, offset);
      const here = hashOf((hash) => hash.bytes(content, 0, content.length));
      const there = hashOf((hash) => hash.bytes(moved, offset, content.length));
      const padded = new Uint8Array(content.length + 1);
      padded.set(content);
      const longer = hashOf((hash) => hash.bytes(padded, 0, padded.length));
      return here === there && here !== longer;
    }),
  );
  const whole = new Uint8Array([1, 2, 3, 4, 5, 6]);
  const apart = hashOf((hash) => {
    hash.bytes(whole, 0, 2);
    hash.bytes(whole, 2, 4);
  });
  const otherwise = hashOf((hash) => {
    hash.bytes(whole, 0, 4);
    hash.bytes(whole, 4, 2);
  });
  t.not(apart, otherwise, 'a border between two strings counts');
});

t.test('bytes are their length and then their words, little-endian', async (t) => {
  const content = Buffer.from('abcdefg');
  const byWords = hashOf((hash) => {
    hash.word(7);
    hash.word(content.readUInt32LE(0));
    hash.word(content.readUIntLE(4, 3));
  });
  t.equal(
    hashOf((hash) => hash.bytes(content, 0, 7)),
    byWords,
  );
});

t.test('each bit of a record reaches each bit of the hash', async (t) => {
  const prng = new Prng(20);
  const first = newHash();
  const second = newHash();
  const wordsMax = 9;
  for (let words = 1; words <= wordsMax; words += 1) {
    const trials = 3_000;
    const flips = new Float64Array(128);
    const values = new Uint32Array(words);
    for (let trial = 0; trial < trials; trial += 1) {
      for (let at = 0; at < words; at += 1) values[at] = prng.nextU32() >>> prng.below(32);
      const place = trial % words;
      first.begin(trial & 3);
      for (const value of values) first.word(value);
      first.finish();
      values[place]! ^= 1 << prng.below(32);
      second.begin(trial & 3);
      for (const value of values) second.word(value);
      second.finish();
      const changes = [
        first.h0 ^ second.h0,
        first.h1 ^ second.h1,
        first.h2 ^ second.h2,
        first.h3 ^ second.h3,
      ];
      for (let bit = 0; bit < 128; bit += 1) {
        flips[bit]! += (changes[bit >> 5]! >>> (bit & 31)) & 1;
      }
    }
    const rates = [...flips].map((count) => count / trials);
    const worst = Math.max(...rates.map((rate) => Math.abs(rate - 0.5)));
    // Six standard deviations of a fair coin: 6 × 0.5 / sqrt(3000).
    t.ok(worst < 0.055, `${words} words: every output bit flips half the time`, { worst });
  }
});

t.test('close records collide no more often than chance has it', async (t) => {
  const hash = newHash();
  const records = 200_000;
  const lanes = Array.from({ length: 4 }, () => new Set<number>());
  for (let at = 0; at < records; at += 1) {
    hash.begin(3);
    hash.number(at);
    hash.number(at + 30_000);
    hash.finish();
    lanes[0]!.add(hash.h0);
    lanes[1]!.add(hash.h1);
    lanes[2]!.add(hash.h2);
    lanes[3]!.add(hash.h3);
  }
  // Chance: 200000² / 2^33 = 4.7 in 32 bits.
  for (const lane of lanes) t.ok(records - lane.size < 20, `${records - lane.size} in 32 bits`);
});

const MODULUS = 2n ** 128n;
const hash128 = fc.tuple(word, word, word, word);

function integerOf([h0, h1, h2, h3]: readonly [number, number, number, number]): bigint {
  return BigInt(h0) + (BigInt(h1) << 32n) + (BigInt(h2) << 64n) + (BigInt(h3) << 96n);
}

t.test('the digest is the sum modulo 2^128', async (t) => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.boolean(), hash128)), (changes) => {
      const digest = new StateDigest();
      let sum = 0n;
      for (const [isAdded, hash] of changes) {
        if (isAdded) digest.add(...hash);
        else digest.subtract(...hash);
        sum = BigInt.asUintN(128, isAdded ? sum + integerOf(hash) : sum - integerOf(hash));
      }
      const limbs = integerOf([digest.s0, digest.s1, digest.s2, digest.s3]);
      return limbs === sum && digest.toHex() === sum.toString(16).padStart(32, '0');
    }),
    { numRuns: 500 },
  );
  t.pass('on random additions and subtractions');
});

t.test('a carry and a borrow run through all limbs', async (t) => {
  const digest = new StateDigest();
  t.equal(digest.toHex(), '0'.repeat(32));
  digest.subtract(1, 0, 0, 0);
  t.equal(digest.toHex(), 'f'.repeat(32));
  t.equal(BigInt(`0x${digest.toHex()}`), MODULUS - 1n);
  digest.add(1, 0, 0, 0);
  t.equal(digest.toHex(), '0'.repeat(32));
  digest.add(-1, -1, -1, 0);
  t.equal(digest.toHex(), `00000000${'f'.repeat(24)}`, 'signed words count as their bits');
});
