/** The name order lists what a sorted array lists, from any key on, through splits and merges. */

import fc from 'fast-check';
import t from 'tap';
import { ByteStore } from '../../../src/collections/byte-store.js';
import { NameOrder } from '../../../src/collections/name-order.js';
import { Prng } from '../../../src/collections/prng.js';

/** An index beside the plain thing: names in hexadecimal, which sorts like their bytes. */
class Pair {
  readonly store = new ByteStore();
  readonly order = new NameOrder(this.store);
  readonly model = new Map<string, { handle: number; slot: number }>();

  insert(name: Uint8Array, slot: number): void {
    const key = Buffer.from(name).toString('hex');
    if (this.model.has(key)) return;
    const handle = this.store.store(name, 0, name.length);
    this.order.insert(handle, slot);
    this.model.set(key, { handle, slot });
  }

  remove(name: Uint8Array): boolean {
    const key = Buffer.from(name).toString('hex');
    const entry = this.model.get(key);
    if (entry === undefined) {
      const handle = this.store.store(name, 0, name.length);
      const wasIn = this.order.remove(handle);
      this.store.release(handle);
      return !wasIn;
    }
    const wasIn = this.order.remove(entry.handle);
    this.store.release(entry.handle);
    this.model.delete(key);
    return wasIn;
  }

  listed(from: Uint8Array, after: boolean, limit = Number.POSITIVE_INFINITY): number[] {
    const moved = Buffer.concat([Buffer.from('##'), from, Buffer.from('#')]);
    this.order.seek(moved, 2, from.length, after);
    const slots: number[] = [];
    for (let slot = this.order.nextSlot(); slot !== -1; slot = this.order.nextSlot()) {
      slots.push(slot);
      if (slots.length === limit) break;
    }
    return slots;
  }

  wanted(from: Uint8Array, after: boolean): number[] {
    const key = Buffer.from(from).toString('hex');
    return [...this.model]
      .filter(([name]) => (after ? name > key : name >= key))
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([, { slot }]) => slot);
  }

  agrees(from: Uint8Array, after: boolean): boolean {
    return this.listed(from, after).join() === this.wanted(from, after).join();
  }

  blockSizes(): number[] {
    const { blocks } = this.order as unknown as { blocks: { count: number }[] };
    return blocks.map(({ count }) => count);
  }
}

const name = fc.oneof(
  fc
    .array(fc.constantFrom(0x61, 0x62, 0x2f, 0xff, 0x00), { maxLength: 5 })
    .map((list) => Uint8Array.from(list)),
  fc.uint8Array({ maxLength: 20 }),
);

t.test('lists like a sorted array from every key', async (t) => {
  const step = fc.record({ isRemove: fc.boolean(), name, slot: fc.nat(1_000_000) });
  const steps = fc.array(step, { maxLength: 150, size: 'max' });
  fc.assert(
    fc.property(steps, fc.array(name), (list, keys) => {
      const pair = new Pair();
      for (const { isRemove, name, slot } of list) {
        if (!isRemove) pair.insert(name, slot);
        else if (!pair.remove(name)) return false;
        if (pair.order.count !== pair.model.size) return false;
      }
      const all = [...keys, new Uint8Array(0), ...list.map((step) => step.name)];
      return all.every((key) => pair.agrees(key, false) && pair.agrees(key, true));
    }),
    { numRuns: 100 },
  );
  t.pass('on random names');
});

function numbered(value: number): Uint8Array {
  return Buffer.from(`lock/${String(value).padStart(6, '0')}`);
}

t.test('grows and shrinks through splits and merges', async (t) => {
  for (const seed of [1, 2, 3]) {
    const prng = new Prng(seed);
    const pair = new Pair();
    for (const [steps, share] of [
      [6_000, 90],
      [6_000, 50],
      [40_000, 5],
      [4_000, 80],
    ] as const) {
      for (let at = 0; at < steps; at += 1) {
        const key = numbered(prng.below(8_000));
        if (prng.below(100) < share) pair.insert(key, prng.below(2 ** 31));
        else if (!pair.remove(key)) t.fail('a name was lost');
      }
      t.equal(pair.order.count, pair.model.size);
      for (let at = 0; at < 5; at += 1) {
        const key = numbered(prng.below(8_000));
        t.ok(pair.agrees(key, at % 2 === 0), `seed ${seed}: from ${Buffer.from(key).toString()}`);
      }
      const sizes = pair.blockSizes();
      t.ok(
        sizes.every((count) => count > 0 && count <= 512),
        'no block is empty or too full',
      );
      const sparse = sizes.filter((count, at) => count < 128 && (sizes[at + 1] ?? 512) < 128);
      t.strictSame(sparse, [], 'two small neighbours were merged');
    }
  }
});

t.test('names that come in order fill their blocks', async (t) => {
  const pair = new Pair();
  for (let at = 0; at < 2_000; at += 1) pair.insert(numbered(at), at);
  t.strictSame(pair.blockSizes(), [512, 512, 512, 464]);
  t.ok(pair.agrees(numbered(511), true), 'across a border of blocks');
  t.ok(pair.agrees(numbered(512), false));
  t.ok(pair.agrees(numbered(1_999), true), 'behind the last');
  const reversed = new Pair();
  for (let at = 2_000; at > 0; at -= 1) reversed.insert(numbered(at), at);
  t.ok(reversed.agrees(numbered(0), false), 'in reverse order');
  for (let at = 1; at <= 2_000; at += 1) reversed.remove(numbered(at));
  t.strictSame(reversed.blockSizes(), []);
  t.strictSame(reversed.listed(numbered(0), false), []);
});

t.test('pages by the last name neither repeat nor skip', async (t) => {
  const pair = new Pair();
  for (let at = 0; at < 1_500; at += 1) pair.insert(numbered(at), at);
  const seen: number[] = [];
  let page = pair.listed(new Uint8Array(0), false, 64);
  while (page.length > 0) {
    seen.push(...page);
    page = pair.listed(numbered(seen.at(-1)!), true, 64);
  }
  t.strictSame(
    seen,
    Array.from({ length: 1_500 }, (_, at) => at),
  );
});

t.test('names that are prefixes of one another are apart', async (t) => {
  const pair = new Pair();
  const names = ['a', 'a/', 'a/b', 'a/b/', 'a//', 'aa', 'a\u00ff', `${'a'.repeat(512)}`];
  names.forEach((text, slot) => {
    pair.insert(Buffer.from(text), slot);
  });
  t.equal(pair.order.count, names.length);
  t.ok(pair.agrees(Buffer.from('a/'), false));
  t.ok(pair.agrees(Buffer.from('a/'), true));
  t.ok(pair.remove(Buffer.from('a/')));
  t.ok(pair.agrees(Buffer.from('a'), false), 'removing one leaves the others');
});

t.test('an empty index lists nothing, and a broken contract asserts', async (t) => {
  const pair = new Pair();
  t.strictSame(pair.listed(new Uint8Array(0), false), []);
  t.strictSame(pair.listed(Buffer.from('a'), true), []);
  t.ok(pair.remove(Buffer.from('a')), 'there is nothing to remove');
  pair.insert(Buffer.from('a'), 1);
  t.throws(() => pair.order.nextSlot(), { name: 'AssertionError' }, 'the cursor was unset');
  pair.order.seek(new Uint8Array(0), 0, 0, false);
  t.equal(pair.order.nextSlot(), 1);
  t.equal(pair.order.nextSlot(), -1);
  t.equal(pair.order.nextSlot(), -1, 'the end stays the end');
  const twin = pair.store.store(Buffer.from('a'), 0, 1);
  t.throws(() => pair.order.insert(twin, 2), { name: 'AssertionError' }, 'a name twice');
});
