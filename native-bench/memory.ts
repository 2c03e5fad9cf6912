/**
 * What finding a lock by its name costs, in the index that the lock machine has.
 *
 * Owns: 100,000 names, looked up in an order that caches do not like. Used by: main.ts.
 */
import { ByteStore } from '../src/collections/byte-store.js';
import { HashIndex, hashBytes } from '../src/collections/hash-index.js';
import { NameOrder } from '../src/collections/name-order.js';
import { Prng } from '../src/collections/prng.js';
import { cost, type Figure, nsOfCall } from './figure.js';

const NAMES = 100_000;
const FOR_MS = 500;
const SEED = 11;

export async function measure(): Promise<Figure[]> {
  const store = new ByteStore();
  const order = new NameOrder(store);
  const index = new HashIndex(NAMES);
  const prng = new Prng(1);
  const names: Buffer[] = [];
  const handles = new Uint32Array(NAMES);
  for (let slot = 0; slot < NAMES; slot += 1) {
    const name = Buffer.from(`load/${slot}`);
    names.push(name);
    handles[slot] = store.store(name, 0, name.length);
    index.insert(hashBytes(name, 0, name.length, SEED), slot);
    order.insert(handles[slot] as number, slot);
  }
  const find = (name: Buffer): number => {
    const hash = hashBytes(name, 0, name.length, SEED);
    let slot = index.find(hash);
    while (slot >= 0 && !store.equals(handles[slot] as number, name, 0, name.length)) {
      slot = index.findNext();
    }
    return slot;
  };
  let found = 0;
  const findNs = nsOfCall(() => {
    if (find(names[prng.below(NAMES)] as Buffer) >= 0) found += 1;
  }, FOR_MS);
  const map = new Map(names.map((name, slot) => [name.toString('latin1'), slot]));
  const mapNs = nsOfCall(() => {
    const name = names[prng.below(NAMES)] as Buffer;
    if (map.get(name.toString('latin1')) !== undefined) found += 1;
  }, FOR_MS);
  const orderNs = nsOfCall(() => {
    const slot = prng.below(NAMES);
    order.remove(handles[slot] as number);
    order.insert(handles[slot] as number, slot);
  }, FOR_MS);
  if (found === 0) throw new Error('no name was found');
  return [
    cost('find one of 100,000 names', 'ns', findNs),
    cost('find one of 100,000 names, Map of strings', 'ns', mapNs),
    cost('remove a name from the order and put it back', 'ns', orderNs),
  ];
}
