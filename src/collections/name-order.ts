/**
 * Names in byte order, for lists and prefixes.
 *
 * Owns: sorted blocks of up to 512 (handle, slot) pairs and one cursor. Never: the bytes, which are
 * a ByteStore's; a name must stay stored as long as it is in here. A block that fills is split, one
 * that empties is merged with a neighbour, so an insert moves at most a block and a list walks
 * memory in order. Used by: the lock machine.
 */

import { assert } from './assert.js';
import type { ByteStore } from './byte-store.js';

/** Names in one block, and how few or how many together make it worth merging two. */
const BLOCK_NAMES_MAX = 512;
const BLOCK_NAMES_FEW = BLOCK_NAMES_MAX / 4;
const MERGED_NAMES_MAX = (BLOCK_NAMES_MAX * 3) / 4;

class Block {
  readonly handles = new Uint32Array(BLOCK_NAMES_MAX);
  readonly slots = new Int32Array(BLOCK_NAMES_MAX);
  count = 0;

  insertAt(position: number, handle: number, slot: number): void {
    this.handles.copyWithin(position + 1, position, this.count);
    this.slots.copyWithin(position + 1, position, this.count);
    this.handles[position] = handle;
    this.slots[position] = slot;
    this.count += 1;
  }

  removeAt(position: number): void {
    this.handles.copyWithin(position, position + 1, this.count);
    this.slots.copyWithin(position, position + 1, this.count);
    this.count -= 1;
  }

  /** Moves the names of `source` from `position` on behind its own. */
  takeFrom(source: Block, position: number): void {
    this.handles.set(source.handles.subarray(position, source.count), this.count);
    this.slots.set(source.slots.subarray(position, source.count), this.count);
    this.count += source.count - position;
    source.count = position;
  }
}

export class NameOrder {
  private readonly store: ByteStore;
  /** Blocks in order, none of them empty, and the first name of each for the search. */
  private readonly blocks: Block[] = [];
  private readonly firsts: number[] = [];
  private nameCount = 0;
  /** The cursor: a place in a block, or block -1 after a change, when it must be set again. */
  private cursorBlock = -1;
  private cursorPosition = 0;

  /** `store`: where the handles are from. */
  constructor(store: ByteStore) {
    this.store = store;
  }

  /** Names in the index. */
  get count(): number {
    return this.nameCount;
  }

  /** Adds the name behind `handle`, which must not be in the index; `slot` is 0 or more. */
  insert(handle: number, slot: number): void {
    const bytes = this.store.pageOf(handle);
    const offset = this.store.offsetOf(handle);
    const length = this.store.lengthOf(handle);
    this.cursorBlock = -1;
    this.nameCount += 1;
    if (this.blocks.length === 0) {
      this.addBlock(0, handle, slot);
      return;
    }
    const index = this.blockOf(bytes, offset, length);
    const block = this.blocks[index]!;
    const position = this.positionOf(block, bytes, offset, length, false);
    assert(
      position === block.count || this.store.compare(block.handles[position]!, handle) !== 0,
      'insert a name that is not in the index',
    );
    if (block.count < BLOCK_NAMES_MAX) this.insertAt(index, position, handle, slot);
    else this.insertFull(index, position, handle, slot);
  }

  /** Takes the name behind `handle` out. Returns false when that name is not in the index. */
  remove(handle: number): boolean {
    if (this.blocks.length === 0) return false;
    const bytes = this.store.pageOf(handle);
    const offset = this.store.offsetOf(handle);
    const length = this.store.lengthOf(handle);
    const index = this.blockOf(bytes, offset, length);
    const block = this.blocks[index]!;
    const position = this.positionOf(block, bytes, offset, length, false);
    if (position === block.count) return false;
    if (!this.store.equals(block.handles[position]!, bytes, offset, length)) return false;
    this.cursorBlock = -1;
    this.nameCount -= 1;
    block.removeAt(position);
    if (block.count === 0) this.dropBlock(index);
    else if (position === 0) this.firsts[index] = block.handles[0]!;
    if (block.count > 0 && block.count < BLOCK_NAMES_FEW) this.mergeAround(index);
    return true;
  }

  /**
   * Sets the cursor to the first name at or behind the key, `length` bytes of `source` from
   * `offset`; with `after`, to the first one behind it. An insert or remove unsets the cursor.
   */
  seek(source: Uint8Array, offset: number, length: number, after: boolean): void {
    this.cursorBlock = 0;
    this.cursorPosition = 0;
    if (this.blocks.length === 0) return;
    this.cursorBlock = this.blockOf(source, offset, length);
    const block = this.blocks[this.cursorBlock]!;
    this.cursorPosition = this.positionOf(block, source, offset, length, after);
  }

  /** The slot at the cursor, which moves to the next name; -1 behind the last. */
  nextSlot(): number {
    assert(this.cursorBlock >= 0, 'seek again after a change of the index');
    if (this.cursorBlock === this.blocks.length) return -1;
    let block = this.blocks[this.cursorBlock]!;
    if (this.cursorPosition === block.count) {
      this.cursorBlock += 1;
      this.cursorPosition = 0;
      if (this.cursorBlock === this.blocks.length) return -1;
      block = this.blocks[this.cursorBlock]!;
    }
    const slot = block.slots[this.cursorPosition]!;
    this.cursorPosition += 1;
    return slot;
  }

  /** The last block whose first name is at or before the key, the first block if there is none. */
  private blockOf(source: Uint8Array, offset: number, length: number): number {
    let low = 1;
    let high = this.firsts.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (this.store.compareTo(this.firsts[middle]!, source, offset, length) <= 0) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  /** The first position in `block` at or behind the key, or only behind it. May be its count. */
  private positionOf(
    block: Block,
    source: Uint8Array,
    offset: number,
    length: number,
    after: boolean,
  ): number {
    let low = 0;
    let high = block.count;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const order = this.store.compareTo(block.handles[middle]!, source, offset, length);
      if (order < 0 || (after && order === 0)) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  private insertAt(index: number, position: number, handle: number, slot: number): void {
    this.blocks[index]!.insertAt(position, handle, slot);
    if (position === 0) this.firsts[index] = handle;
  }

  /** Makes room in a full block. Names that come in order fill their blocks. */
  private insertFull(index: number, position: number, handle: number, slot: number): void {
    if (position === BLOCK_NAMES_MAX && index === this.blocks.length - 1) {
      this.addBlock(index + 1, handle, slot);
      return;
    }
    const half = BLOCK_NAMES_MAX / 2;
    const block = this.blocks[index]!;
    const added = new Block();
    added.takeFrom(block, half);
    this.blocks.splice(index + 1, 0, added);
    this.firsts.splice(index + 1, 0, added.handles[0]!);
    if (position <= half) this.insertAt(index, position, handle, slot);
    else this.insertAt(index + 1, position - half, handle, slot);
  }

  private addBlock(index: number, handle: number, slot: number): void {
    const block = new Block();
    block.insertAt(0, handle, slot);
    this.blocks.splice(index, 0, block);
    this.firsts.splice(index, 0, handle);
  }

  private dropBlock(index: number): void {
    this.blocks.splice(index, 1);
    this.firsts.splice(index, 1);
  }

  /** Joins a small block with a neighbour when both fit one with room to spare. */
  private mergeAround(index: number): void {
    const before = index > 0 ? this.blocks[index - 1]!.count : BLOCK_NAMES_MAX;
    const behind = this.blocks[index + 1]?.count ?? BLOCK_NAMES_MAX;
    const first = before <= behind ? index - 1 : index;
    if (Math.min(before, behind) + this.blocks[index]!.count > MERGED_NAMES_MAX) return;
    this.blocks[first]!.takeFrom(this.blocks[first + 1]!, 0);
    this.dropBlock(first + 1);
  }
}
