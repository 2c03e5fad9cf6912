/**
 * The records of one LMDB data file, read as bytes and without LMDB.
 *
 * Owns: what reading needs of the page format (data format 2): meta pages, branches, leaves,
 * overflow pages. Every number is checked before it is used, so that a damaged file is told in
 * words; the library maps the file and trusts it, and a bad page may take the process down.
 * Never: writes, maps or locks. A file that is written meanwhile may look damaged: whoever asks
 * compares `transaction` before and after. Used by: segment-check.ts, state-check.ts.
 */
import fs from 'node:fs';
import path from 'node:path';
import { getU64 } from '../log/u64.js';

/** Page header: u64 number, u64 transaction, u16 pad, u16 flags, u16 lower, u16 upper. */
const PAGE = { number: 0, flags: 18, lower: 20, upper: 22, overflowPages: 20, bytes: 24 } as const;
const FLAG = { branch: 1, leaf: 2, overflow: 4 } as const;
const KIND_MASK = 0x7f;
/** Node: u16 low, u16 high, u16 flags, u16 key bytes, key, data. */
const NODE = { low: 0, high: 2, flags: 4, keyBytes: 6, bytes: 8 } as const;
const NODE_BIG = 1;
/** Of a big value: u64 page, u64 transaction, u64 pages. */
const BIG_BYTES = 24;
/** Meta page: MDB_meta behind the page header. */
const META = {
  magic: 24,
  format: 28,
  pageBytes: 48,
  mainDepth: 102,
  mainEntries: 128,
  mainRoot: 136,
  lastPage: 144,
  transaction: 152,
  bytes: 160,
} as const;
const META_MAGIC = 0xbeefc0de;
const META_FORMAT = 2;
const KEY_BYTES = 8;
const DEPTH_MAX = 32;
const NONE = -1;
const TWO_32 = 2 ** 32;
const DATA = 'data.mdb';

/** What is wrong with a page, as words that follow the name of its file. */
export class PageDamage extends Error {
  override readonly name = 'PageDamage';
}

/** What a walk meets, in the order of keys. */
export type PageItem =
  /** `value` is valid until the walk goes on. */
  | { readonly kind: 'record'; readonly key: number; readonly value: Uint8Array }
  /** A page, and whatever lies below it, cannot be read. */
  | { readonly kind: 'damage'; readonly found: string };

interface Meta {
  readonly transaction: number;
  /** Page where the tree begins, NONE for an empty one. */
  readonly root: number;
  readonly depth: number;
  readonly entries: number;
  readonly lastPage: number;
}

/** A little-endian u64; NONE for 2^64 - 1. */
function getLong(view: DataView, at: number): number {
  const low = view.getUint32(at, true);
  const high = view.getUint32(at + 4, true);
  return low === 0xffff_ffff && high === 0xffff_ffff ? NONE : high * TWO_32 + low;
}

function metaOf(view: DataView): Meta | null {
  if (view.getUint32(META.magic, true) !== META_MAGIC) return null;
  if ((view.getUint32(META.format, true) & 0xffff) !== META_FORMAT) return null;
  return {
    transaction: getLong(view, META.transaction),
    root: getLong(view, META.mainRoot),
    depth: view.getUint16(META.mainDepth, true),
    entries: getLong(view, META.mainEntries),
    lastPage: getLong(view, META.lastPage),
  };
}

/** One level of a walk: the page that is open there. */
class Level {
  readonly bytes: Uint8Array;
  readonly view: DataView;

  constructor(pageBytes: number) {
    this.bytes = new Uint8Array(pageBytes);
    this.view = new DataView(this.bytes.buffer);
  }
}

/** An open data file. Close it. */
export class PageFile {
  /** Bytes read so far: what a reader's rate is counted in. */
  bytesRead = 0;
  private readonly levels: Level[] = [];
  private big = new Uint8Array(0);
  private pagesVisited = 0;
  private lastKey = NONE;

  private constructor(
    private readonly handle: number,
    private readonly pageBytes: number,
    private readonly meta: Meta,
  ) {}

  /** Opens the data file of the environment in `folder`. Throws PageDamage. */
  static open(folder: string): PageFile {
    let handle: number;
    try {
      handle = fs.openSync(path.join(folder, DATA), 'r');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      throw new PageDamage(`${DATA} is missing`);
    }
    try {
      const pageBytes = readPageBytes(handle);
      return new PageFile(handle, pageBytes, readNewestMeta(handle, pageBytes));
    } catch (error) {
      fs.closeSync(handle);
      throw error;
    }
  }

  /** Number of the last transaction that the file had when it was opened. */
  get transaction(): number {
    return this.meta.transaction;
  }

  /** True when something has been written since the file was opened. */
  hasChanged(): boolean {
    return readNewestMeta(this.handle, this.pageBytes).transaction !== this.meta.transaction;
  }

  /** Every record, and every page that is not sound. */
  *walk(): Generator<PageItem, void> {
    const { root, depth, entries } = this.meta;
    this.pagesVisited = 0;
    this.lastKey = NONE;
    let records = 0;
    let isWhole = true;
    if (root !== NONE) {
      for (const item of this.visit(root, depth)) {
        if (item.kind === 'record') records += 1;
        else isWhole = false;
        yield item;
      }
    }
    if (!isWhole || records === entries) return;
    yield { kind: 'damage', found: `${DATA} has ${records} records, its meta page ${entries}` };
  }

  close(): void {
    fs.closeSync(this.handle);
  }

  private *visit(page: number, level: number): Generator<PageItem, void> {
    let open: Level;
    let count: number;
    try {
      open = this.openPage(page, level);
      count = countNodes(open.view, page, this.pageBytes);
    } catch (error) {
      yield damageOf(error);
      return;
    }
    for (let at = 0; at < count; at += 1) {
      if (level > 1) {
        let child: number;
        try {
          child = childAt(open.view, page, at);
        } catch (error) {
          yield damageOf(error);
          return;
        }
        yield* this.visit(child, level - 1);
        continue;
      }
      yield this.recordAt(open, page, at);
    }
  }

  private openPage(page: number, level: number): Level {
    this.pagesVisited += 1;
    if (this.pagesVisited > this.meta.lastPage + 1) {
      throw new PageDamage(`${DATA} has a tree that runs in a circle`);
    }
    if (page > this.meta.lastPage) {
      throw new PageDamage(`${DATA} names page ${page}, its last is ${this.meta.lastPage}`);
    }
    const open = this.levels[level] ?? new Level(this.pageBytes);
    this.levels[level] = open;
    this.read(open.bytes, this.pageBytes, page);
    checkHeader(open.view, page, level > 1 ? FLAG.branch : FLAG.leaf);
    return open;
  }

  private recordAt({ bytes, view }: Level, page: number, at: number): PageItem {
    try {
      const node = nodeAt(view, page, at);
      const key = keyOf(view, page, node);
      if (key <= this.lastKey) {
        throw new PageDamage(`page ${page} of ${DATA} has keys that do not rise`);
      }
      this.lastKey = key;
      const high = view.getUint16(node + NODE.high, true);
      const length = view.getUint16(node + NODE.low, true) + high * 65_536;
      const flags = view.getUint16(node + NODE.flags, true);
      const data = node + NODE.bytes + KEY_BYTES;
      if (flags === NODE_BIG) {
        return { kind: 'record', key, value: this.bigAt(view, page, data, length) };
      }
      if (flags !== 0 || data + length > this.pageBytes) {
        throw new PageDamage(`page ${page} of ${DATA} has a record that does not lie in it`);
      }
      return { kind: 'record', key, value: bytes.subarray(data, data + length) };
    } catch (error) {
      return damageOf(error);
    }
  }

  /** A value on pages of its own. */
  private bigAt(view: DataView, page: number, data: number, length: number): Uint8Array {
    const first = data + BIG_BYTES <= this.pageBytes ? getLong(view, data) : NONE;
    const pages = Math.ceil((PAGE.bytes + length) / this.pageBytes);
    if (first === NONE || first + pages - 1 > this.meta.lastPage) {
      throw new PageDamage(`page ${page} of ${DATA} names pages behind the last`);
    }
    const bytes = PAGE.bytes + length;
    if (this.big.length < bytes) this.big = new Uint8Array(bytes);
    this.read(this.big, bytes, first);
    const header = new DataView(this.big.buffer, 0, PAGE.bytes);
    checkHeader(header, first, FLAG.overflow);
    return this.big.subarray(PAGE.bytes, bytes);
  }

  private read(target: Uint8Array, bytes: number, page: number): void {
    readAt(this.handle, target, bytes, page * this.pageBytes);
    this.bytesRead += bytes;
  }
}

/** A read error of the medium is damage as well; any other error is the caller's. */
function readAt(handle: number, target: Uint8Array, bytes: number, position: number): void {
  let count: number;
  try {
    count = fs.readSync(handle, target, 0, bytes, position);
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (code !== 'EIO') throw error;
    throw new PageDamage(`${DATA} cannot be read at ${position} (${code})`);
  }
  if (count !== bytes) throw new PageDamage(`${DATA} ends at ${position + count}`);
}

function readPageBytes(handle: number): number {
  const field = new Uint8Array(4);
  readAt(handle, field, field.length, META.pageBytes);
  const pageBytes = new DataView(field.buffer).getUint32(0, true);
  const isSound = pageBytes >= 512 && pageBytes <= 65_536 && (pageBytes & (pageBytes - 1)) === 0;
  if (!isSound) throw new PageDamage(`the page size in ${DATA} is not valid`);
  return pageBytes;
}

/** LMDB uses the newer of two; both must be sound for it to open the file. */
function readNewestMeta(handle: number, pageBytes: number): Meta {
  const bytes = new Uint8Array(META.bytes);
  const metas = [0, pageBytes].map((position) => {
    readAt(handle, bytes, bytes.length, position);
    return metaOf(new DataView(bytes.buffer));
  });
  const [first, second] = metas;
  if (!first || !second) throw new PageDamage(`a meta page of ${DATA} is not valid`);
  const newest = first.transaction > second.transaction ? first : second;
  const { size } = fs.fstatSync(handle);
  const wanted = (newest.lastPage + 1) * pageBytes;
  if (size < wanted) throw new PageDamage(`${DATA} has ${size} bytes, wanted ${wanted}`);
  const { root, depth, lastPage } = newest;
  if (root > lastPage) throw new PageDamage(`a tree of ${DATA} starts beyond its last page`);
  if (root !== NONE && (depth < 1 || depth > DEPTH_MAX)) {
    throw new PageDamage(`a tree of ${DATA} has a depth of ${depth}`);
  }
  return newest;
}

function damageOf(error: unknown): PageItem {
  if (!(error instanceof PageDamage)) throw error;
  return { kind: 'damage', found: error.message };
}

function checkHeader(view: DataView, page: number, kind: number): void {
  const number = getLong(view, PAGE.number);
  if (number !== page) throw new PageDamage(`page ${page} of ${DATA} says it is page ${number}`);
  const flags = view.getUint16(PAGE.flags, true) & KIND_MASK;
  if (flags !== kind)
    throw new PageDamage(`page ${page} of ${DATA} is of kind ${flags}, wanted ${kind}`);
}

function countNodes(view: DataView, page: number, pageBytes: number): number {
  const lower = view.getUint16(PAGE.lower, true);
  const upper = view.getUint16(PAGE.upper, true);
  if (lower % 2 === 0 && lower <= upper && upper <= pageBytes - PAGE.bytes) return lower / 2;
  throw new PageDamage(`page ${page} of ${DATA} has bounds ${lower} and ${upper}`);
}

/** Where the node at a position begins: within the page, its head included. */
function nodeAt(view: DataView, page: number, at: number): number {
  const pointer = view.getUint16(PAGE.bytes + 2 * at, true);
  const node = PAGE.bytes + pointer;
  if (pointer >= view.getUint16(PAGE.upper, true) && node + NODE.bytes <= view.byteLength)
    return node;
  throw new PageDamage(`page ${page} of ${DATA} has a node outside of its bounds`);
}

function keyOf(view: DataView, page: number, node: number): number {
  const bytes = view.getUint16(node + NODE.keyBytes, true);
  if (bytes === KEY_BYTES && node + NODE.bytes + bytes <= view.byteLength) {
    return getU64(view, node + NODE.bytes);
  }
  throw new PageDamage(`page ${page} of ${DATA} has a key of ${bytes} bytes, wanted ${KEY_BYTES}`);
}

/** The page below a node of a branch: 48 bits. */
function childAt(view: DataView, page: number, at: number): number {
  const node = nodeAt(view, page, at);
  const low = view.getUint16(node + NODE.low, true);
  const high = view.getUint16(node + NODE.high, true);
  return low + high * 65_536 + view.getUint16(node + NODE.flags, true) * TWO_32;
}
