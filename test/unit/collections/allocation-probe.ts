/**
 * Measures what the collections allocate on the heap, one operation after another.
 *
 * Prints one JSON line: bytes for each operation, by name. Runs in a process of its own with a
 * garbage collector that can be called and a young generation so large that it does not run in
 * between: what an operation allocated is then still there. Started by allocation.test.ts.
 */

import { ByteStore } from '../../../src/collections/byte-store.js';
import { DeadlineHeap } from '../../../src/collections/deadline-heap.js';
import { RecordHash, StateDigest } from '../../../src/collections/digest.js';
import { HashIndex, hashBytes, hashPair, hashWords } from '../../../src/collections/hash-index.js';
import { NameOrder } from '../../../src/collections/name-order.js';
import { Prng } from '../../../src/collections/prng.js';
import { FloatRing, Ring } from '../../../src/collections/ring.js';
import { sipHash128 } from '../../../src/collections/sip-hash.js';
import { SlotAllocator } from '../../../src/collections/slot-allocator.js';

const ROWS = 20_000;
const OPERATIONS = 200_000;

const collect = globalThis.gc;
if (collect === undefined) throw new Error('start the probe with --expose-gc');

const prng = new Prng(1);
const source = new Uint8Array(64);
/** Keeps results alive, so that no operation is compiled away. */
const sink = new Float64Array(1);
let kept: object = {};

function index(): () => void {
  const table = new HashIndex();
  for (let slot = 0; slot < ROWS; slot += 1) table.insert(hashPair(slot, slot), slot);
  return () => {
    const slot = prng.below(ROWS);
    const hash = hashPair(slot, slot);
    sink[0]! += table.find(hash) + table.findNext();
    table.remove(hash, slot);
    table.insert(hash, slot);
  };
}

function heap(): () => void {
  const deadlines = new DeadlineHeap();
  for (let slot = 0; slot < ROWS; slot += 1) deadlines.push(slot, slot, slot);
  // Whole numbers below 2^31: a greater deadline is an object of 16 bytes, made by the caller,
  // wherever the engine does not inline its call.
  let now = ROWS;
  return () => {
    now += 1;
    deadlines.update(prng.below(ROWS), now + ROWS);
    const slot = deadlines.top();
    sink[0]! += deadlines.topDeadline();
    deadlines.remove(slot);
    deadlines.push(slot, now + 2 * ROWS, now);
  };
}

function bytes(): () => void {
  const store = new ByteStore();
  const handles = new Int32Array(ROWS);
  for (let at = 0; at < ROWS; at += 1) handles[at] = store.store(source, 0, at & 63);
  return () => {
    const at = prng.below(ROWS);
    const length = store.lengthOf(handles[at]!);
    sink[0]! += store.compareTo(handles[at]!, source, 0, length) + store.offsetOf(handles[at]!);
    if (!store.equals(handles[at]!, source, 0, length)) throw new Error('a string changed');
    store.release(handles[at]!);
    handles[at] = store.store(source, 0, length);
  };
}

function names(): () => void {
  const store = new ByteStore();
  const order = new NameOrder(store);
  const handles = new Int32Array(ROWS);
  const name = new Uint8Array(4);
  for (let at = 0; at < ROWS; at += 1) {
    name[1] = at >> 8;
    name[3] = at & 0xff;
    handles[at] = store.store(name, 0, 4);
    order.insert(handles[at]!, at);
  }
  return () => {
    const at = prng.below(ROWS);
    order.remove(handles[at]!);
    order.insert(handles[at]!, at);
    order.seek(source, 0, 4, false);
    sink[0]! += order.nextSlot();
  };
}

function identities(): () => void {
  const out = new Int32Array(4);
  return () => {
    sipHash128(1, 2, 3, 4, prng.below(2 ** 31), 6, out);
    sink[0]! += out[3]!;
  };
}

/** A record as long as a lease's, of columns that hold u32 and doubles of any size. */
function records(): () => void {
  const record = new RecordHash(1, 2, 3, 4);
  const words = new Uint32Array(8);
  const numbers = new Float64Array(8);
  return () => {
    words[3] = prng.below(2 ** 31) * 2 + 1;
    numbers[3] = 2 ** 40 + words[3]!;
    record.begin(1);
    for (let row = 0; row < 8; row += 4) {
      record.wordAt(words, row);
      record.wordAt(words, row + 1);
      record.wordAt(words, row + 2);
      record.wordAt(words, row + 3);
      record.numberAt(numbers, row);
      record.numberAt(numbers, row + 1);
      record.numberAt(numbers, row + 2);
      record.numberAt(numbers, row + 3);
      record.bytes(source, row, 30);
    }
    record.finish();
    sink[0]! += record.h2;
  };
}

function sums(): () => void {
  const digest = new StateDigest();
  const hash = new Uint32Array(4);
  return () => {
    hash[2] = prng.below(2 ** 31);
    digest.add(hash[0]!, hash[1]!, hash[2]!, 0xffffffff);
    digest.subtract(hash[2]!, hash[0]!, hash[1]!, 7);
    sink[0]! += digest.s2;
  };
}

function hashes(): () => void {
  return () => {
    const word = prng.below(2 ** 31);
    sink[0]! += hashBytes(source, 0, 20, word, 8) + hashWords(1, 2, 3, word) + hashPair(word, 9);
  };
}

function slots(): () => void {
  const allocator = new SlotAllocator();
  for (let at = 0; at < ROWS; at += 1) allocator.allocate();
  return () => {
    allocator.release(prng.below(ROWS));
    sink[0]! += allocator.allocate();
  };
}

function rings(): () => void {
  const floats = new FloatRing(1_024);
  const items = new Ring<object>(1_024);
  const item = {};
  for (let at = 0; at < 100; at += 1) {
    floats.push(at);
    items.push(item);
  }
  return () => {
    floats.push(prng.nextDouble());
    sink[0]! += floats.shift()!;
    items.push(items.shift()!);
  };
}

/** What the probe must not miss: one small object an operation. */
function planted(): () => void {
  return () => {
    kept = { previous: 0 };
  };
}

function run(operation: () => void, count: number): void {
  for (let at = 0; at < count; at += 1) operation();
}

/** The least of three rounds: one in which nothing was compiled counts. */
function bytesPerOperation(operation: () => void): number {
  run(operation, OPERATIONS);
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 3; round += 1) {
    collect!();
    const before = process.memoryUsage().heapUsed;
    run(operation, OPERATIONS);
    least = Math.min(least, process.memoryUsage().heapUsed - before);
  }
  return least / OPERATIONS;
}

const operations = [
  index,
  heap,
  bytes,
  names,
  identities,
  records,
  sums,
  hashes,
  slots,
  rings,
  planted,
];
// The first operation measured pays for the start of the process.
bytesPerOperation(slots());
const measured: Record<string, number> = {};
for (const operation of operations) {
  measured[operation.name] = bytesPerOperation(operation());
}
if (!Number.isFinite(sink[0]!) || kept === undefined) throw new Error('the operations did nothing');
console.log(JSON.stringify(measured));
