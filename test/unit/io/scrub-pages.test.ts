/** Reading LMDB's file without LMDB gives what LMDB gives, and damage is told in words. */

import fs from 'node:fs';
import path from 'node:path';
import t, { type Test } from 'tap';
import { Prng } from '../../../src/collections/prng.js';
import { Environment } from '../../../src/io/log/environment.js';
import { PageDamage, PageFile } from '../../../src/io/scrub/page-file.js';

/** Values below about half a page lie in it, others on pages of their own. */
const SIZES = [0, 1, 25, 200, 1_900, 2_100, 4_072, 4_073, 9_000, 70_000];

interface Stored {
  readonly folder: string;
  readonly keys: number[];
}

/** An environment of many commits: values of every size, some of them deleted and written again. */
function makeEnvironment(t: Test, seed: number, count: number, sizes = SIZES): Stored {
  const parent = t.testdir({});
  const folder = path.join(parent, 'env');
  const random = new Prng(seed);
  const environment = Environment.create(folder, 1 << 20);
  const keys = new Set<number>();
  const makeValue = (key: number): Uint8Array => {
    const size = sizes[random.below(sizes.length)]!;
    return new Uint8Array(size).fill(key % 251);
  };
  for (let key = 1; key <= count; ) {
    environment.commit(() => {
      for (let at = 0; at < 1 + random.below(25) && key <= count; at += 1, key += 1) {
        environment.put(key, makeValue(key));
        keys.add(key);
      }
    });
    if (random.below(4) > 0) continue;
    // A cut, as the log makes them: the newest go, and their pages are used again.
    const from = key - random.below(12);
    environment.commit(() => {
      for (let gone = Math.max(1, from); gone < key; gone += 1) {
        environment.delete(gone);
        keys.delete(gone);
      }
    });
  }
  environment.close();
  return { folder, keys: [...keys].sort((left, right) => left - right) };
}

interface Read {
  readonly records: Map<number, Buffer>;
  readonly damage: string[];
}

function readPages(folder: string): Read {
  const records = new Map<number, Buffer>();
  const damage: string[] = [];
  let file: PageFile;
  try {
    file = PageFile.open(folder);
  } catch (error) {
    if (!(error instanceof PageDamage)) throw error;
    return { records, damage: [error.message] };
  }
  for (const item of file.walk()) {
    if (item.kind === 'damage') damage.push(item.found);
    else records.set(item.key, Buffer.from(item.value));
  }
  file.close();
  return { records, damage };
}

function demandSame(t: Test, { folder, keys }: Stored, { records, damage }: Read): void {
  t.strictSame(damage, []);
  t.equal([...records.keys()].join(), keys.join());
  const environment = Environment.openToRead(folder);
  const wrong = keys.find((key) => !records.get(key)?.equals(environment.get(key)!));
  environment.endReads();
  environment.close();
  t.equal(wrong, undefined, 'every value is that of LMDB');
}

t.test(
  'an empty file, a page, and trees of three levels are read as LMDB reads them',
  async (t) => {
    for (const [seed, count] of [
      [1, 0],
      [2, 1],
      [3, 40],
      [4, 900],
      [5, 1_500],
    ] as const) {
      const stored = makeEnvironment(t, seed, count);
      demandSame(t, stored, readPages(stored.folder));
    }
  },
);

t.test('a tree of small records has branches over branches', async (t) => {
  const folder = path.join(t.testdir({}), 'env');
  const environment = Environment.create(folder, 1 << 20);
  const keys: number[] = [];
  environment.commit(() => {
    for (let key = 1; key <= 20_000; key += 1) {
      environment.put(key, new Uint8Array(60).fill(key % 251));
      keys.push(key);
    }
  });
  environment.close();
  const read = readPages(folder);
  demandSame(t, { folder, keys }, read);
});

t.test('a flipped bit is told, or changes nothing that is read', async (t) => {
  const { folder } = makeEnvironment(t, 6, 400, [25, 200, 900]);
  const file = path.join(folder, 'data.mdb');
  const saved = fs.readFileSync(file);
  const intact = readPages(folder);
  const pages = Number(newestMeta(saved).getBigUint64(144, true)) + 1;
  const random = new Prng(77);
  const handle = fs.openSync(file, 'r+');
  let told = 0;
  let wrong = 0;
  for (let flip = 0; flip < 400; flip += 1) {
    // The first bytes of a page are where its structure is.
    const page = random.below(pages);
    const offset = page * 4_096 + random.below(flip % 2 === 0 ? 64 : 4_096);
    const flipped = saved[offset]! ^ (1 << random.below(8));
    fs.writeSync(handle, Uint8Array.of(flipped), 0, 1, offset);
    const { records, damage } = readPages(folder);
    if (damage.length > 0) told += 1;
    // What is in a value is for the record's own checksum to find.
    else if (records.size !== intact.records.size) wrong += 1;
    fs.writeSync(handle, saved, offset, 1, offset);
  }
  fs.closeSync(handle);
  t.equal(wrong, 0, 'no record was lost in silence');
  t.ok(told > 30, `${told} of 400 were told`);
});

t.test('every kind of damage has its words', async (t) => {
  const { folder } = makeEnvironment(t, 8, 200);
  const file = path.join(folder, 'data.mdb');
  const saved = fs.readFileSync(file);
  const root = Number(newestMeta(saved).getBigUint64(136, true));
  const leaf = findLeaf(saved, root);
  const cases: [RegExp, (bytes: DataView) => void][] = [
    [/page size .* is not valid/, (view) => view.setUint32(48, 4_095, true)],
    [/a meta page .* is not valid/, (view) => view.setUint32(24, 1, true)],
    [/a meta page .* is not valid/, (view) => view.setUint16(4_096 + 28, 3, true)],
    [/starts beyond its last page/, (view) => metaOf(view).setBigUint64(136, 99_999n, true)],
    [/has a depth of 77/, (view) => metaOf(view).setUint16(102, 77, true)],
    [/has \d+ records, its meta page 5/, (view) => metaOf(view).setBigUint64(128, 5n, true)],
    [/says it is page 12345/, (view) => view.setUint32(root * 4_096, 12_345, true)],
    [/is of kind 4, wanted 1/, (view) => view.setUint16(root * 4_096 + 18, 4, true)],
    [/has bounds 7 and/, (view) => view.setUint16(root * 4_096 + 20, 7, true)],
    [/names page 65535, its last/, (view) => setChild(view, root, 65_535)],
    [/is of kind 1, wanted 2|runs in a circle/, (view) => setChild(view, root, root)],
    [/node outside of its bounds/, (view) => view.setUint16(leaf * 4_096 + 24, 4_090, true)],
    [/a key of 9 bytes/, (view) => view.setUint16(nodeOf(view, leaf) + 6, 9, true)],
    [/keys that do not rise/, (view) => view.setUint32(nodeOf(view, leaf, 1) + 8, 0, true)],
    [/a record that does not lie in it/, (view) => view.setUint16(nodeOf(view, leaf) + 4, 2, true)],
  ];
  for (const [words, spoil] of cases) {
    const bytes = new Uint8Array(saved);
    const view = new DataView(bytes.buffer);
    spoil(view);
    if (/keys that/.test(String(words))) view.setUint32(nodeOf(view, leaf, 1) + 12, 0, true);
    fs.writeFileSync(file, bytes);
    t.match(readPages(folder).damage[0], words, String(words));
  }
  fs.writeFileSync(file, saved.subarray(0, 50_000));
  t.match(readPages(folder).damage[0], /data.mdb has 50000 bytes, wanted \d+/);
  fs.writeFileSync(file, saved.subarray(0, 100));
  t.match(readPages(folder).damage[0], /data.mdb ends at 100/);
  fs.rmSync(file);
  t.match(readPages(folder).damage[0], /data.mdb is missing/);
  // Reading there fails as a medium does that has gone bad.
  fs.symlinkSync('/proc/self/mem', file);
  t.match(readPages(folder).damage[0], /cannot be read at 48 \(EIO\)/);
});

t.test('a big value that names pages behind the last is damage', async (t) => {
  const folder = path.join(t.testdir({}), 'env');
  const environment = Environment.create(folder, 1 << 20);
  environment.commit(() => environment.put(1, new Uint8Array(9_000).fill(3)));
  environment.close();
  const file = path.join(folder, 'data.mdb');
  const saved = fs.readFileSync(file);
  const root = Number(newestMeta(saved).getBigUint64(136, true));
  const bytes = new Uint8Array(saved);
  const view = new DataView(bytes.buffer);
  view.setUint32(nodeOf(view, root) + 16, 5_000, true);
  fs.writeFileSync(file, bytes);
  t.match(readPages(folder).damage[0], /names pages behind the last/);
});

function metaOf(view: DataView): DataView {
  const isFirst = view.getBigUint64(152, true) > view.getBigUint64(4_096 + 152, true);
  return new DataView(view.buffer, view.byteOffset + (isFirst ? 0 : 4_096), 4_096);
}

function newestMeta(bytes: Uint8Array): DataView {
  return metaOf(new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength));
}

/** Byte offset of a node of a page. */
function nodeOf(view: DataView, page: number, at = 0): number {
  return page * 4_096 + 24 + view.getUint16(page * 4_096 + 24 + 2 * at, true);
}

function setChild(view: DataView, page: number, child: number): void {
  view.setUint16(nodeOf(view, page), child, true);
  view.setUint16(nodeOf(view, page) + 2, 0, true);
}

function findLeaf(bytes: Uint8Array, root: number): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let page = root;
  while (view.getUint16(page * 4_096 + 18, true) !== 2) {
    page = view.getUint16(nodeOf(view, page), true);
  }
  return page;
}
