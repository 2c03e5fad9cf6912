/** A byte store gives back what was put in, keeps strings apart and reuses their room. */

import fc from 'fast-check';
import t from 'tap';
import { ByteStore, PAGE_BYTES, STRING_BYTES_MAX } from '../../../src/collections/byte-store.js';
import { Prng } from '../../../src/collections/prng.js';

function stored(store: ByteStore, text: string): number {
  const bytes = Buffer.from(text);
  return store.store(bytes, 0, bytes.length);
}

const length = fc.oneof(
  fc.nat(40),
  fc.nat(STRING_BYTES_MAX),
  fc.constantFrom(0, 1, 5, 6, 7, 14, 510, 512, 518, 1_024, 1_030, STRING_BYTES_MAX),
);

t.test('what is stored is read back, whatever is stored and released around it', async (t) => {
  const step = fc.record({ isRelease: fc.boolean(), length, seed: fc.nat(), pick: fc.nat() });
  fc.assert(
    fc.property(fc.array(step, { maxLength: 400, size: 'max' }), (steps) => {
      const store = new ByteStore();
      const model: { handle: number; bytes: Buffer }[] = [];
      for (const { isRelease, length, seed, pick } of steps) {
        if (isRelease && model.length > 0) {
          const [gone] = model.splice(pick % model.length, 1);
          store.release(gone!.handle);
          continue;
        }
        const prng = new Prng(seed);
        const bytes = Buffer.from(Array.from({ length }, () => prng.below(256)));
        const handle = store.store(Buffer.concat([Buffer.from('xyz'), bytes]), 3, length);
        if (!(handle > 0 && handle < 2 ** 31)) return false;
        model.push({ handle, bytes });
      }
      if (new Set(model.map(({ handle }) => handle)).size !== model.length) return false;
      return model.every(({ handle, bytes }) => {
        const page = store.pageOf(handle);
        const offset = store.offsetOf(handle);
        return (
          store.lengthOf(handle) === bytes.length &&
          bytes.equals(store.copyOf(handle)) &&
          bytes.equals(page.subarray(offset, offset + bytes.length)) &&
          store.equals(handle, bytes, 0, bytes.length)
        );
      });
    }),
    { numRuns: 60 },
  );
  t.pass('on random stores and releases');
});

t.test('comparisons order like Buffer.compare', async (t) => {
  const text = fc.oneof(
    fc.uint8Array({ maxLength: 12 }),
    fc.array(fc.constantFrom(0, 1, 255), { maxLength: 6 }).map((list) => Uint8Array.from(list)),
  );
  fc.assert(
    fc.property(text, text, fc.nat(5), (first, second, shift) => {
      const store = new ByteStore();
      const one = store.store(first, 0, first.length);
      const two = store.store(second, 0, second.length);
      const moved = Buffer.concat([Buffer.alloc(shift, 9), second, Buffer.alloc(2, 9)]);
      const wanted = Buffer.compare(first, second);
      return (
        Math.sign(store.compare(one, two)) === wanted &&
        Math.sign(store.compareTo(one, moved, shift, second.length)) === wanted &&
        store.equals(one, moved, shift, second.length) === (wanted === 0)
      );
    }),
    { numRuns: 1_000 },
  );
  t.pass('on random strings');
});

t.test('an empty string has a handle of its own', async (t) => {
  const store = new ByteStore();
  const first = stored(store, '');
  const second = stored(store, '');
  t.not(first, 0);
  t.not(second, 0);
  t.not(first, second);
  t.equal(store.lengthOf(first), 0);
  t.ok(store.equals(first, Buffer.from('abc'), 1, 0));
  t.notOk(store.equals(first, Buffer.from('abc'), 1, 1));
  t.equal(store.compare(first, second), 0);
  t.strictSame(store.copyOf(first), new Uint8Array(0));
});

t.test('a copy is the caller’s', async (t) => {
  const store = new ByteStore();
  const handle = stored(store, 'name');
  store.copyOf(handle).fill(0);
  t.ok(store.equals(handle, Buffer.from('name'), 0, 4));
});

t.test('a broken contract asserts', async (t) => {
  const store = new ByteStore();
  const source = new Uint8Array(4_096);
  t.throws(() => store.store(source, 0, STRING_BYTES_MAX + 1), { name: 'AssertionError' });
  t.throws(() => store.store(source, 0, -1), { name: 'AssertionError' });
  t.throws(() => store.store(source, -1, 2), { name: 'AssertionError' });
  t.throws(() => store.store(source, 4_090, 7), { name: 'AssertionError' });
  const handle = stored(store, 'once');
  const kept = stored(store, 'kept');
  store.release(handle);
  t.throws(() => store.release(handle), { name: 'AssertionError' }, 'double release');
  t.throws(() => store.lengthOf(handle), { name: 'AssertionError' }, 'use after release');
  t.throws(() => store.compare(kept, handle), { name: 'AssertionError' });
  t.throws(() => store.equals(handle, source, 0, 0), { name: 'AssertionError' });
  const loud = store.store(new Uint8Array(20).fill(0xff), 0, 20);
  t.throws(() => store.release(loud + 1), { name: 'AssertionError' }, 'no slot starts there');
  store.release(loud);
  t.throws(() => store.release(0), { name: 'AssertionError' }, 'no handle');
  t.throws(() => store.lengthOf(0), { name: 'AssertionError' });
  t.throws(() => store.release(50_000_000), { name: 'AssertionError' }, 'no such page');
  store.release(kept);
  t.throws(() => store.release(kept), { name: 'AssertionError' }, 'double release, empty page');
  t.equal(store.bytesUsed, 0, 'a refused release changes nothing');
});

t.test('a freed slot is the next to be used', async (t) => {
  const store = new ByteStore();
  const handles = Array.from({ length: 100 }, (_, at) => stored(store, `name-${100 + at}`));
  const freed = handles.filter((_, at) => at % 3 === 0);
  for (const handle of freed) store.release(handle);
  const again = new Set(freed.map(() => stored(store, 'name-xyz')));
  t.strictSame([...again].sort(), [...freed].sort());
});

t.test('room is bounded by what lives, and empty pages serve any size', async (t) => {
  const store = new ByteStore();
  const source = new Uint8Array(STRING_BYTES_MAX);
  for (const size of [6, 20, 100, 600, STRING_BYTES_MAX, 0]) {
    const handles: number[] = [];
    for (let at = 0; at < 3_000; at += 1) handles.push(store.store(source, 0, size));
    const least = 3_000 * (size + 2);
    t.ok(store.bytesUsed >= least && store.bytesUsed <= 1.25 * least + 3_000 * 7, `${size} bytes`);
    const pages = Math.ceil(store.bytesUsed / (PAGE_BYTES - STRING_BYTES_MAX));
    t.ok(store.pageCount <= Math.max(pages, 4), `${store.pageCount} pages`, { pages });
    for (const handle of handles) store.release(handle);
    t.equal(store.bytesUsed, 0);
    t.ok(store.pageCount <= 4, 'pages go back');
  }
});

t.test('a page is opened only when no page of the class has room', async (t) => {
  const store = new ByteStore();
  const prng = new Prng(8);
  const source = new Uint8Array(STRING_BYTES_MAX).fill(7);
  const slotsInPage = Math.floor(PAGE_BYTES / 2_056);
  const handles: number[] = [];
  let liveMax = 0;
  for (let at = 0; at < 60_000; at += 1) {
    // Between 600 and 2,000 strings on sixteen pages, coming and going in turns.
    const share = Math.floor(at / 5_000) % 2 === 0 ? 60 : 40;
    const isStore = handles.length < 600 || (handles.length < 2_000 && prng.below(100) < share);
    if (isStore) {
      handles.push(store.store(source, 0, STRING_BYTES_MAX));
    } else {
      const place = prng.below(handles.length);
      store.release(handles[place]!);
      handles[place] = handles.at(-1)!;
      handles.pop();
    }
    liveMax = Math.max(liveMax, handles.length);
    const pages = Math.ceil(liveMax / slotsInPage);
    if (store.pageCount > pages) t.fail(`${store.pageCount} pages, wanted ${pages}`);
    if (store.pageCount > pages) break;
  }
  t.ok(liveMax > 1_500, 'many pages were in use');
  t.equal(new Set(handles).size, handles.length);
  t.ok(handles.every((handle) => store.equals(handle, source, 0, STRING_BYTES_MAX)));
});

t.test('millions of cycles over thousands of names keep to the room of one', async (t) => {
  const store = new ByteStore();
  const prng = new Prng(5);
  const source = new Uint8Array(600);
  const handles = new Int32Array(5_000);
  let pagesAfterFirst = 0;
  for (let cycle = 0; cycle < 2_000_000; cycle += 1) {
    const place = prng.below(handles.length);
    if (handles[place] !== 0) store.release(handles[place]!);
    handles[place] = store.store(source, 0, prng.below(40));
    if (cycle === 100_000) pagesAfterFirst = store.pageCount;
  }
  t.ok(store.pageCount <= pagesAfterFirst + 1, `${store.pageCount} pages`, { pagesAfterFirst });
});
