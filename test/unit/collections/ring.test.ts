/** A ring is a bounded queue: first in, first out, no at its bound, and it lets go of its items. */

import fc from 'fast-check';
import t from 'tap';
import { FloatRing, Ring } from '../../../src/collections/ring.js';

interface Queue<T> {
  readonly length: number;
  push(item: T): boolean;
  shift(): T | undefined;
  peek(): T | undefined;
}

/** A ring of numbers with undefined for "there is none", as the other ring has it. */
class FloatQueue implements Queue<number> {
  private readonly ring: FloatRing;

  constructor(max: number) {
    this.ring = new FloatRing(max);
  }

  get length(): number {
    return this.ring.length;
  }

  push(item: number): boolean {
    return this.ring.push(item);
  }

  shift(): number | undefined {
    return this.ring.length === 0 ? undefined : this.ring.shift();
  }

  peek(): number | undefined {
    return this.ring.length === 0 ? undefined : this.ring.peek();
  }
}

/** Runs steps on a ring and on an array: a number is pushed, null shifts. */
function agrees<T>(ring: Queue<T>, max: number, steps: readonly (T | null)[]): boolean {
  const model: T[] = [];
  for (const step of steps) {
    if (step === null) {
      if (ring.shift() !== model.shift()) return false;
    } else {
      const fits = model.length < max;
      if (fits) model.push(step);
      if (ring.push(step) !== fits) return false;
    }
    if (ring.length !== model.length || ring.peek() !== model[0]) return false;
  }
  while (model.length > 0) if (ring.shift() !== model.shift()) return false;
  return ring.length === 0 && ring.shift() === undefined && ring.peek() === undefined;
}

const bound = fc.oneof(fc.integer({ min: 1, max: 20 }), fc.integer({ min: 1, max: 200 }));
const step = fc.oneof({ weight: 3, arbitrary: fc.double({ noNaN: true }) }, fc.constant(null));
const steps = fc.array(step, { maxLength: 500, size: 'max' });

t.test('agrees with an array', async (t) => {
  fc.assert(
    fc.property(bound, steps, (max, list) => agrees(new FloatQueue(max), max, list)),
    { numRuns: 200 },
  );
  const objects = steps.map((list) => list.map((item) => (item === null ? null : { item })));
  fc.assert(
    fc.property(bound, objects, (max, list) => agrees(new Ring<{ item: number }>(max), max, list)),
    { numRuns: 200 },
  );
  t.pass('on random steps');
});

t.test('grows while its items wrap around', async (t) => {
  for (let turned = 0; turned < 16; turned += 1) {
    const ring = new FloatRing(1_000);
    const generic = new Ring<number>(1_000);
    for (let at = 0; at < turned; at += 1) {
      ring.push(-1);
      generic.push(-1);
      ring.shift();
      generic.shift();
    }
    for (let at = 0; at < 1_000; at += 1) {
      if (!ring.push(at) || !generic.push(at)) t.fail(`push ${at}`);
    }
    t.equal(ring.push(1), false, 'full');
    t.equal(generic.push(1), false, 'full');
    const wanted = Array.from({ length: 1_000 }, (_, at) => at);
    t.strictSame(
      wanted.map(() => ring.shift()),
      wanted,
    );
    t.strictSame(
      wanted.map(() => generic.shift()),
      wanted,
    );
  }
});

t.test('an item that was shifted out is not held on to', async (t) => {
  const ring = new Ring<object>(100);
  const held = (): unknown[] => {
    const { items } = ring as unknown as { items: unknown[] };
    return items.filter((item) => item !== undefined);
  };
  for (let at = 0; at < 10; at += 1) ring.push({});
  for (let at = 0; at < 10; at += 1) ring.shift();
  for (let at = 0; at < 40; at += 1) ring.push({});
  t.equal(held().length, 40);
  for (let at = 0; at < 40; at += 1) ring.shift();
  t.equal(held().length, 0);
});

t.test('an empty ring of numbers asserts', async (t) => {
  const ring = new FloatRing(4);
  t.throws(() => ring.shift(), { name: 'AssertionError' });
  t.throws(() => ring.peek(), { name: 'AssertionError' });
  ring.push(1);
  t.equal(ring.peek(), 1);
  t.equal(ring.shift(), 1);
  t.throws(() => ring.shift(), { name: 'AssertionError' });
});

t.test('a ring has a bound of 1 to 2^26', async (t) => {
  for (const max of [0, -1, Number.NaN, 2 ** 26 + 1]) {
    t.throws(() => new Ring(max), { name: 'AssertionError' });
    t.throws(() => new FloatRing(max), { name: 'AssertionError' });
  }
});
