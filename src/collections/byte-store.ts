/**
 * Byte strings of up to 2,048 bytes, out of the garbage collector's sight.
 *
 * Owns: pages of 256 KiB, each cut into slots of one size class, and the bytes in them. A string is
 * known by a handle, a number; there is no object for each. Never: two strings in one slot, a slot
 * across pages. A page whose slots are all free serves any class again, so a change of sizes does
 * not leak. A slot opens with two bytes: the length and a mark while it is live, the next free slot
 * afterwards. Used by: the lock machine (names, ids, metadata), NameOrder.
 */

import { assert } from './assert.js';

/** Bytes of the longest string. */
export const STRING_BYTES_MAX = 2_048;
/** Bytes of one page. */
export const PAGE_BYTES = 1 << 18;
/** Pages of one store, 16 GiB: a handle stays below 2^31. Full: the node ends. */
const PAGES_MAX = 1 << 16;
/** Empty pages kept for the next class that needs one; more are given back to the system. */
const EMPTY_PAGES_KEPT = 4;

/** Slots start at multiples of a granule; a handle is a page number and a granule in it. */
const GRANULE_SHIFT = 3;
const PAGE_GRANULE_BITS = 15;
const PAGE_GRANULE_MASK = (1 << PAGE_GRANULE_BITS) - 1;

/** The two bytes before a string: bit 15 while it is live, its length in the lower bits. */
const HEADER_BYTES = 2;
const LIVE = 0x8000;
const LENGTH_MASK = 0x7fff;

/** Slot sizes in bytes, at most a quarter apart. A full name and full metadata just fit theirs. */
const SLOT_BYTES: readonly number[] = [
  8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 136, 160, 192, 224, 256, 320, 384, 448, 520, 640, 768,
  896, 1_032, 1_280, 1_536, 1_792, 2_056,
];
const CLASSES = SLOT_BYTES.length;

function classesByGranules(): Uint8Array {
  const granulesMax = (HEADER_BYTES + STRING_BYTES_MAX + 7) >> GRANULE_SHIFT;
  const table = new Uint8Array(granulesMax + 1);
  let sizeClass = 0;
  for (let granules = 0; granules <= granulesMax; granules += 1) {
    if (granules << GRANULE_SHIFT > SLOT_BYTES[sizeClass]!) sizeClass += 1;
    table[granules] = sizeClass;
  }
  return table;
}

/** The size class of a slot by the granules it needs. Filled at load, never written after. */
const CLASS_BY_GRANULES = classesByGranules();

const NO_PAGE = new Uint8Array(0);
/** Page 0 is never used, so that no handle is 0. */
const NONE = 0;

/** One page: its bytes, its free slots, its neighbours in the list of its class. */
class Page {
  bytes: Uint8Array = NO_PAGE;
  sizeClass = 0;
  slotBytes = 0;
  /** Strings that live here. */
  live = 0;
  /** First freed slot, as its granule plus one; 0 when there is none. */
  freed = 0;
  /** Bytes of the page from which on no slot was ever used since the page took its class. */
  fresh = 0;
  /** Neighbours among the pages of the class that have room; NONE at the ends. */
  previous = NONE;
  next = NONE;
  /** True while the page stands in that list. */
  isListed = false;
}

/** The length in a slot's header. Asserts that the slot is live. */
function lengthAt(bytes: Uint8Array, start: number): number {
  const header = bytes[start]! | (bytes[start + 1]! << 8);
  assert((header & LIVE) !== 0, 'read a live handle');
  return header & LENGTH_MASK;
}

export class ByteStore {
  /** Pages by number; the first stands for NONE. */
  private readonly pages: Page[] = [new Page()];
  /** Numbers of pages that hold memory and no string, and of those that hold neither. */
  private readonly empty: number[] = [];
  private readonly vacant: number[] = [];
  /** First page with room of each class. */
  private readonly roomy = new Int32Array(CLASSES);
  private slotBytesLive = 0;
  private pagesHeld = 0;

  /** Bytes of the slots that live strings occupy, rounding included. */
  get bytesUsed(): number {
    return this.slotBytesLive;
  }

  /** Pages of PAGE_BYTES that the store holds memory for. */
  get pageCount(): number {
    return this.pagesHeld;
  }

  /**
   * Copies `length` bytes of `source` from `offset`, 0 to STRING_BYTES_MAX of them.
   * Returns the handle, 1 to 2^31 - 1, valid until release.
   */
  store(source: Uint8Array, offset: number, length: number): number {
    assert(length >= 0 && length <= STRING_BYTES_MAX, 'store a string of 0 to 2048 bytes');
    assert(offset >= 0 && offset + length <= source.length, 'store a range inside its source');
    const sizeClass = CLASS_BY_GRANULES[(length + HEADER_BYTES + 7) >> GRANULE_SHIFT]!;
    let number = this.roomy[sizeClass]!;
    if (number === NONE) number = this.openPage(sizeClass);
    const page = this.pages[number]!;
    const start = this.takeSlot(page);
    const bytes = page.bytes;
    bytes[start] = length & 0xff;
    bytes[start + 1] = (length | LIVE) >> 8;
    const to = start + HEADER_BYTES;
    for (let at = 0; at < length; at += 1) bytes[to + at] = source[offset + at]!;
    if (page.freed === 0 && page.fresh + page.slotBytes > PAGE_BYTES) this.unlist(page);
    return (number << PAGE_GRANULE_BITS) | (start >> GRANULE_SHIFT);
  }

  /** Frees the string. Asserts that `handle` is live: a second release could free a newer one. */
  release(handle: number): void {
    const number = handle >>> PAGE_GRANULE_BITS;
    const page = this.pageAt(number);
    const granule = handle & PAGE_GRANULE_MASK;
    const start = granule << GRANULE_SHIFT;
    const bytes = page.bytes;
    assert(
      start % page.slotBytes === 0 && (bytes[start + 1]! & 0x80) !== 0,
      'release a live handle',
    );
    bytes[start] = 0;
    bytes[start + 1] = 0;
    bytes[start + 2] = page.freed & 0xff;
    bytes[start + 3] = page.freed >> 8;
    page.freed = granule + 1;
    page.live -= 1;
    this.slotBytesLive -= page.slotBytes;
    if (page.live === 0) this.closePage(page, number);
    else if (!page.isListed) this.list(page, number);
  }

  /** Bytes of the string, 0 to STRING_BYTES_MAX. */
  lengthOf(handle: number): number {
    const page = this.pageAt(handle >>> PAGE_GRANULE_BITS);
    return lengthAt(page.bytes, (handle & PAGE_GRANULE_MASK) << GRANULE_SHIFT);
  }

  /** The page that holds the string, from offsetOf on. Owned by the store; valid until release. */
  pageOf(handle: number): Uint8Array {
    return this.pageAt(handle >>> PAGE_GRANULE_BITS).bytes;
  }

  /** Where in its page the string starts. */
  offsetOf(handle: number): number {
    return ((handle & PAGE_GRANULE_MASK) << GRANULE_SHIFT) + HEADER_BYTES;
  }

  /** A copy of the string that the caller owns. For cold paths: it allocates. */
  copyOf(handle: number): Uint8Array {
    const start = this.offsetOf(handle);
    return this.pageOf(handle).slice(start, start + this.lengthOf(handle));
  }

  /** True when the string is the `length` bytes of `source` from `offset`. */
  equals(handle: number, source: Uint8Array, offset: number, length: number): boolean {
    const bytes = this.pageAt(handle >>> PAGE_GRANULE_BITS).bytes;
    const start = (handle & PAGE_GRANULE_MASK) << GRANULE_SHIFT;
    if (lengthAt(bytes, start) !== length) return false;
    const from = start + HEADER_BYTES;
    for (let at = 0; at < length; at += 1) {
      if (bytes[from + at] !== source[offset + at]) return false;
    }
    return true;
  }

  /** Compares two strings bytewise: negative, 0 or positive; a prefix sorts first. */
  compare(handleA: number, handleB: number): number {
    return this.compareTo(
      handleA,
      this.pageOf(handleB),
      this.offsetOf(handleB),
      this.lengthOf(handleB),
    );
  }

  /** Compares the string with `length` bytes of `source` from `offset`, like compare. */
  compareTo(handle: number, source: Uint8Array, offset: number, length: number): number {
    const bytes = this.pageAt(handle >>> PAGE_GRANULE_BITS).bytes;
    const start = (handle & PAGE_GRANULE_MASK) << GRANULE_SHIFT;
    const ownLength = lengthAt(bytes, start);
    const common = Math.min(ownLength, length);
    const from = start + HEADER_BYTES;
    for (let at = 0; at < common; at += 1) {
      const difference = bytes[from + at]! - source[offset + at]!;
      if (difference !== 0) return difference;
    }
    return ownLength - length;
  }

  private pageAt(number: number): Page {
    const page = this.pages[number];
    assert(page !== undefined, 'use a handle of this store');
    return page;
  }

  /** Takes a slot of a page that has one; returns where it starts. */
  private takeSlot(page: Page): number {
    page.live += 1;
    this.slotBytesLive += page.slotBytes;
    if (page.freed !== 0) {
      const start = (page.freed - 1) << GRANULE_SHIFT;
      page.freed = page.bytes[start + 2]! | (page.bytes[start + 3]! << 8);
      return start;
    }
    const start = page.fresh;
    page.fresh += page.slotBytes;
    return start;
  }

  /** Gives an empty page, or new memory, to a class; returns the page's number. */
  private openPage(sizeClass: number): number {
    let number = this.empty.pop() ?? NONE;
    if (number === NONE) number = this.addPage();
    const page = this.pages[number]!;
    page.sizeClass = sizeClass;
    page.slotBytes = SLOT_BYTES[sizeClass]!;
    page.freed = 0;
    page.fresh = 0;
    this.list(page, number);
    return number;
  }

  private addPage(): number {
    let number = this.vacant.pop() ?? NONE;
    if (number === NONE) {
      number = this.pages.length;
      assert(number < PAGES_MAX, 'keep a byte store below 16 GiB');
      this.pages.push(new Page());
    }
    this.pages[number]!.bytes = new Uint8Array(PAGE_BYTES);
    this.pagesHeld += 1;
    return number;
  }

  /** Takes a page without strings from its class; keeps it for another or gives it back. */
  private closePage(page: Page, number: number): void {
    if (page.isListed) this.unlist(page);
    if (this.empty.length < EMPTY_PAGES_KEPT) {
      this.empty.push(number);
      return;
    }
    page.bytes = NO_PAGE;
    this.vacant.push(number);
    this.pagesHeld -= 1;
  }

  private list(page: Page, number: number): void {
    const first = this.roomy[page.sizeClass]!;
    page.previous = NONE;
    page.next = first;
    if (first !== NONE) this.pages[first]!.previous = number;
    this.roomy[page.sizeClass] = number;
    page.isListed = true;
  }

  private unlist(page: Page): void {
    if (page.previous === NONE) this.roomy[page.sizeClass] = page.next;
    else this.pages[page.previous]!.next = page.next;
    if (page.next !== NONE) this.pages[page.next]!.previous = page.previous;
    page.isListed = false;
  }
}
