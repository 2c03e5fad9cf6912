/**
 * Random bytes from the operating system, fetched in blocks: one draw costs no system call.
 *
 * Owns: a block of bytes not yet given out; each byte is given out once and wiped. Never: a seed
 * that anyone could guess or restore. Used by: the replica, through EntropyPort.
 */
import { randomFillSync } from 'node:crypto';
import type { EntropyPort } from '../replica/ports.js';

const DRAW_BYTES = 16;
const BLOCK_BYTES = 256 * DRAW_BYTES;

export class SystemEntropy implements EntropyPort {
  private readonly block = new Uint8Array(BLOCK_BYTES);
  private used = BLOCK_BYTES;

  fill16(target: Uint8Array, offset: number): void {
    if (this.used === BLOCK_BYTES) {
      randomFillSync(this.block);
      this.used = 0;
    }
    for (let i = 0; i < DRAW_BYTES; i++) {
      target[offset + i] = this.block[this.used + i]!;
      this.block[this.used + i] = 0;
    }
    this.used += DRAW_BYTES;
  }
}
