/** A deadline heap gives slots in (deadline, order), whatever was pushed, moved and removed. */

import fc from 'fast-check';
import t from 'tap';
import { DeadlineHeap } from '../../../src/collections/deadline-heap.js';
import { Prng } from '../../../src/collections/prng.js';

interface Entry {
  slot: number;
  deadline: number;
  order: number;
}

function earliest(model: Map<number, Entry>): Entry | undefined {
  let least: Entry | undefined;
  for (const entry of model.values()) {
    const isFirst =
      least === undefined ||
      entry.deadline < least.deadline ||
      (entry.deadline === least.deadline && entry.order < least.order);
    if (isFirst) least = entry;
  }
  return least;
}

function topAgrees(heap: DeadlineHeap, model: Map<number, Entry>): boolean {
  const first = earliest(model);
  return (
    heap.count === model.size &&
    heap.top() === (first?.slot ?? -1) &&
    heap.topDeadline() === (first?.deadline ?? Number.POSITIVE_INFINITY)
  );
}

function drained(heap: DeadlineHeap): number[] {
  const slots: number[] = [];
  while (heap.count > 0) {
    slots.push(heap.top());
    heap.remove(heap.top());
  }
  return slots;
}

function sorted(model: Map<number, Entry>): number[] {
  return [...model.values()]
    .sort((a, b) => a.deadline - b.deadline || a.order - b.order)
    .map(({ slot }) => slot);
}

const step = fc.record({
  kind: fc.constantFrom('push', 'push', 'remove', 'update', 'pop'),
  slot: fc.oneof(fc.nat(30), fc.nat(3_000)),
  deadline: fc.oneof(fc.nat(5), fc.nat(2 ** 31), fc.constant(2 ** 52)),
});

t.test('agrees with a sorted list', async (t) => {
  fc.assert(
    fc.property(fc.array(step, { maxLength: 400, size: 'max' }), (steps) => {
      const heap = new DeadlineHeap();
      const model = new Map<number, Entry>();
      let order = 2 ** 40;
      for (const { kind, slot, deadline } of steps) {
        const isIn = model.has(slot);
        if (heap.has(slot) !== isIn) return false;
        if (kind === 'push' && !isIn) {
          order += 1;
          heap.push(slot, deadline, order);
          model.set(slot, { slot, deadline, order });
        } else if (kind === 'remove' && heap.remove(slot) !== model.delete(slot)) {
          return false;
        } else if (kind === 'update' && isIn) {
          heap.update(slot, deadline);
          model.get(slot)!.deadline = deadline;
        } else if (kind === 'pop' && heap.count > 0) {
          const top = heap.top();
          if (!heap.remove(top) || !model.delete(top)) return false;
        }
        if (!topAgrees(heap, model)) return false;
      }
      for (const { slot, deadline } of model.values()) {
        if (heap.deadlineOf(slot) !== deadline) return false;
      }
      return drained(heap).join() === sorted(model).join();
    }),
    { numRuns: 300 },
  );
  t.pass('on random steps');
});

t.test('the order that comes out does not depend on the order that went in', async (t) => {
  const prng = new Prng(3);
  const entries = Array.from({ length: 3_000 }, (_, slot) => ({
    slot,
    deadline: prng.below(50),
    order: slot,
  }));
  const model = new Map(entries.map((entry) => [entry.slot, entry]));
  for (const list of [entries, [...entries].reverse(), sorted(model).map((s) => entries[s]!)]) {
    const heap = new DeadlineHeap();
    for (const { slot, deadline, order } of list) heap.push(slot, deadline, order);
    t.strictSame(drained(heap), sorted(model));
  }
});

t.test('renewals of many slots keep the heap in order', async (t) => {
  const prng = new Prng(4);
  const heap = new DeadlineHeap();
  const model = new Map<number, Entry>();
  const slots = 20_000;
  for (let slot = 0; slot < slots; slot += 1) {
    heap.push(slot, 30_000 + slot / 10, slot);
    model.set(slot, { slot, deadline: 30_000 + slot / 10, order: slot });
  }
  for (let at = 0; at < 100_000; at += 1) {
    const slot = prng.below(slots);
    const deadline = 30_000 + prng.below(60_000);
    heap.update(slot, deadline);
    model.get(slot)!.deadline = deadline;
  }
  t.equal(drained(heap).join(), sorted(model).join());
});

t.test('a push behind all others moves nothing', async (t) => {
  const heap = new DeadlineHeap();
  const inside = heap as unknown as { slots: Int32Array };
  let moved = 0;
  for (let slot = 0; slot < 1_000; slot += 1) {
    const before = inside.slots.slice(3, 3 + slot);
    heap.push(slot, slot >> 2, slot);
    before.forEach((other, at) => {
      if (inside.slots[3 + at] !== other) moved += 1;
    });
  }
  t.equal(moved, 0);
});

t.test('room asked for at the start is room that does not grow', async (t) => {
  const heap = new DeadlineHeap(1_000);
  const inside = heap as unknown as { slots: Int32Array; places: Int32Array };
  const { slots, places } = inside;
  for (let slot = 0; slot < 1_000; slot += 1) heap.push(slot, 1_000 - slot, slot);
  t.equal(inside.slots, slots);
  t.equal(inside.places, places);
  t.equal(heap.top(), 999);
});

t.test('an empty heap has no top, and a broken contract asserts', async (t) => {
  const heap = new DeadlineHeap();
  t.equal(heap.top(), -1);
  t.equal(heap.topDeadline(), Number.POSITIVE_INFINITY);
  t.equal(heap.count, 0);
  t.equal(heap.has(0), false);
  t.equal(heap.has(1_000_000), false);
  t.equal(heap.remove(0), false);
  t.equal(heap.remove(1_000_000), false);
  heap.push(2, 10, 1);
  t.throws(() => heap.push(2, 11, 2), { name: 'AssertionError' }, 'pushed twice');
  t.throws(() => heap.push(-1, 11, 2), { name: 'AssertionError' });
  t.throws(() => heap.push(3, Number.NaN, 2), { name: 'AssertionError' }, 'NaN has no order');
  t.throws(() => heap.update(2, Number.NaN), { name: 'AssertionError' });
  t.throws(() => heap.update(1, 5), { name: 'AssertionError' });
  t.throws(() => heap.deadlineOf(1), { name: 'AssertionError' });
  t.equal(heap.deadlineOf(2), 10);
  t.equal(heap.count, 1, 'a refused call changes nothing');
});
