/** Slots are given out once, the one freed last first; columns grow with what they hold. */

import fc from 'fast-check';
import t from 'tap';
import {
  growFloat64,
  growInt32,
  growUint8,
  growUint32,
  SlotAllocator,
} from '../../../src/collections/slot-allocator.js';

t.test('allocates and releases like a stack of free slots', async (t) => {
  const step = fc.record({ isRelease: fc.boolean(), pick: fc.nat() });
  const steps = fc.array(step, { maxLength: 400, size: 'max' });
  fc.assert(
    fc.property(steps, fc.integer({ min: 1, max: 9 }), (list, capacity) => {
      const slots = new SlotAllocator(capacity);
      const live: number[] = [];
      const freed: number[] = [];
      let used = 0;
      for (const { isRelease, pick } of list) {
        if (isRelease && live.length > 0) {
          const [slot] = live.splice(pick % live.length, 1);
          slots.release(slot!);
          freed.push(slot!);
        } else {
          const wanted = freed.pop() ?? used;
          if (wanted === used) used += 1;
          if (slots.allocate() !== wanted) return false;
          live.push(wanted);
        }
        if (slots.count !== live.length || slots.highest !== used - 1) return false;
        if (slots.capacity < used || slots.capacity < capacity) return false;
      }
      for (let slot = -1; slot < used + 20; slot += 1) {
        if (slots.isLive(slot) !== live.includes(slot)) return false;
      }
      return true;
    }),
    { numRuns: 300 },
  );
  t.pass('on random steps');
});

t.test('capacity doubles, and covers each slot before it is given out', async (t) => {
  const slots = new SlotAllocator(4);
  const capacities = Array.from({ length: 17 }, () => {
    const slot = slots.allocate();
    if (slot >= slots.capacity) t.fail(`no row for slot ${slot}`);
    return slots.capacity;
  });
  t.strictSame(capacities, [4, 4, 4, 4, 8, 8, 8, 8, ...Array(8).fill(16), 32]);
  t.equal(new SlotAllocator().highest, -1);
});

t.test('a broken contract asserts', async (t) => {
  const slots = new SlotAllocator();
  const slot = slots.allocate();
  slots.release(slot);
  t.throws(() => slots.release(slot), { name: 'AssertionError' }, 'double release');
  t.throws(() => slots.release(slot + 1), { name: 'AssertionError' }, 'never given out');
  t.throws(() => slots.release(-1), { name: 'AssertionError' });
  t.throws(() => slots.release(1_000_000), { name: 'AssertionError' });
  t.throws(() => new SlotAllocator(0), { name: 'AssertionError' });
  t.throws(() => new SlotAllocator(2 ** 27), { name: 'AssertionError' });
  t.equal(slots.count, 0);
});

t.test('a grown column keeps its rows and fills the new ones', async (t) => {
  t.strictSame(growFloat64(Float64Array.of(1.5, 2), 4, -1), Float64Array.of(1.5, 2, -1, -1));
  t.strictSame(growUint32(Uint32Array.of(0xffffffff), 3), Uint32Array.of(0xffffffff, 0, 0));
  t.strictSame(growInt32(Int32Array.of(-5), 3, -1), Int32Array.of(-5, -1, -1));
  t.strictSame(growUint8(Uint8Array.of(255), 2, 7), Uint8Array.of(255, 7));
  t.strictSame(growUint8(Uint8Array.of(255), 1, 7), Uint8Array.of(255), 'no new rows');
  t.throws(() => growFloat64(new Float64Array(2), 1), { name: 'AssertionError' });
  t.throws(() => growUint32(new Uint32Array(2), 1), { name: 'AssertionError' });
  t.throws(() => growInt32(new Int32Array(2), 1), { name: 'AssertionError' });
  t.throws(() => growUint8(new Uint8Array(2), 1), { name: 'AssertionError' });
});
