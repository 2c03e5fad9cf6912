/** The same seed gives the same numbers; they are uniform, and other seeds give others. */

import fc from 'fast-check';
import t from 'tap';
import { Prng } from '../../../src/collections/prng.js';

/** xoshiro128** over big integers, from a state. */
function* reference(state: bigint[]): Generator<number> {
  const mask = 0xffffffffn;
  const rotate = (value: bigint, bits: bigint): bigint =>
    ((value << bits) | (value >> (32n - bits))) & mask;
  const s = [...state];
  for (;;) {
    yield Number((rotate((s[1]! * 5n) & mask, 7n) * 9n) & mask);
    const shifted = (s[1]! << 9n) & mask;
    s[2]! ^= s[0]!;
    s[3]! ^= s[1]!;
    s[1]! ^= s[2]!;
    s[0]! ^= s[3]!;
    s[2]! ^= shifted;
    s[3] = rotate(s[3]!, 11n);
  }
}

const seed = fc.oneof(fc.nat(10), fc.maxSafeNat());

t.test('numbers are those of xoshiro128**', async (t) => {
  // The first outputs from the state 1, 2, 3, 4, by the authors' code.
  const known = reference([1n, 2n, 3n, 4n]);
  const first = [11_520, 0, 5_927_040, 70_819_200];
  t.strictSame(
    first.map(() => known.next().value),
    first,
  );
  fc.assert(
    fc.property(seed, (value) => {
      const prng = new Prng(value);
      const inside = prng as unknown as Record<string, number>;
      const state = [0, 1, 2, 3].map((at) => BigInt(inside[`state${at}`]! >>> 0));
      const wanted = reference(state);
      return Array.from({ length: 50 }).every(() => prng.nextU32() === wanted.next().value);
    }),
  );
  t.pass('from any seed');
});

t.test('a seed is a stream, and neighbouring seeds are other streams', async (t) => {
  fc.assert(
    fc.property(seed, (value) => {
      const one = new Prng(value);
      const two = new Prng(value);
      return Array.from({ length: 20 }).every(() => one.nextU32() === two.nextU32());
    }),
  );
  const firsts = new Set<number>();
  for (let value = 0; value < 2_000; value += 1) {
    firsts.add(new Prng(value).nextU32());
    firsts.add(new Prng(value * 2 ** 32 + 7).nextU32());
  }
  t.ok(firsts.size > 3_995, `${firsts.size} of 4000 first numbers differ`);
});

t.test('numbers are of their range, and even', async (t) => {
  const prng = new Prng(1);
  const counts = new Array<number>(7).fill(0);
  let least = 1;
  let greatest = 0;
  for (let at = 0; at < 70_000; at += 1) {
    counts[prng.below(7)]! += 1;
    const double = prng.nextDouble();
    least = Math.min(least, double);
    greatest = Math.max(greatest, double);
  }
  for (const count of counts) t.ok(Math.abs(count - 10_000) < 600, `${count} of 10000`);
  t.ok(least >= 0 && least < 0.001);
  t.ok(greatest < 1 && greatest > 0.999);
  fc.assert(
    fc.property(seed, fc.integer({ min: 1, max: 2 ** 32 }), (value, bound) => {
      const drawn = new Prng(value).below(bound);
      return Number.isInteger(drawn) && drawn >= 0 && drawn < bound;
    }),
  );
  t.equal(new Prng(3).below(1), 0);
});

t.test('each bit is set half the time', async (t) => {
  const prng = new Prng(2);
  const trials = 20_000;
  const counts = new Array<number>(32).fill(0);
  for (let at = 0; at < trials; at += 1) {
    const drawn = prng.nextU32();
    for (let bit = 0; bit < 32; bit += 1) counts[bit]! += (drawn >>> bit) & 1;
  }
  for (const count of counts) t.ok(Math.abs(count / trials - 0.5) < 0.022, `${count / trials}`);
});

t.test('a bound that the remainder would favour is drawn evenly', async (t) => {
  // Without rejection, numbers below 2^30 would come twice as often as the others.
  const prng = new Prng(6);
  const bound = 3 * 2 ** 30;
  let low = 0;
  for (let at = 0; at < 30_000; at += 1) if (prng.below(bound) < 2 ** 30) low += 1;
  t.ok(Math.abs(low - 10_000) < 600, `${low} of 10000`);
});

t.test('a broken contract asserts', async (t) => {
  for (const value of [-1, 0.5, Number.NaN, 2 ** 53]) {
    t.throws(() => new Prng(value), { name: 'AssertionError' }, `seed ${value}`);
  }
  for (const bound of [0, -1, 1.5, 2 ** 32 + 1, Number.NaN]) {
    t.throws(() => new Prng(1).below(bound), { name: 'AssertionError' }, `below ${bound}`);
  }
});
