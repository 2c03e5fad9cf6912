/**
 * The state digest: the sum modulo 2^128 of a keyed hash of each logical record.
 *
 * Owns: the lanes of one hash and the four limbs of one sum. Never: protection against somebody who
 * knows the key and wants a collision; it finds replicas that disagree, it proves nothing. A sum
 * has no order and a record can be taken out again, so it is kept up incrementally and a node that
 * was restored from a snapshot agrees. Used by: the lock machine, the snapshot worker.
 */

/** Words of the mix: MurmurHash3 x86-128 with its four lanes taking turns. */
const MULTIPLIER_FIRST = 0x239b961b;
const MULTIPLIER_SECOND = 0xab0e9789 | 0;
const ADDEND = 0x561ccd1b;
const TWO_TO_32 = 2 ** 32;

/** The finalizer of MurmurHash3: each bit of `value` reaches each bit of the result. */
function avalanche(value: number): number {
  let mixed = value ^ (value >>> 16);
  mixed = Math.imul(mixed, 0x85ebca6b);
  mixed ^= mixed >>> 13;
  mixed = Math.imul(mixed, 0xc2b2ae35);
  return mixed ^ (mixed >>> 16);
}

/**
 * A keyed hash of one record, fed word by word: begin, any number of word, number and bytes, then
 * finish. Reused for the next record. The same calls under the same key give the same 128 bits.
 */
export class RecordHash {
  private readonly key0: number;
  private readonly key1: number;
  private readonly key2: number;
  private readonly key3: number;
  // Signed 32-bit, so that the engine keeps them as small integers.
  private lane0 = 0;
  private lane1 = 0;
  private lane2 = 0;
  private lane3 = 0;
  private words = 0;

  /** `key0` … `key3`: four u32; the same on every node of a cluster. */
  constructor(key0: number, key1: number, key2: number, key3: number) {
    this.key0 = key0 | 0;
    this.key1 = key1 | 0;
    this.key2 = key2 | 0;
    this.key3 = key3 | 0;
  }

  /** Starts a record. `tag`: the kind of the record, a u32. */
  begin(tag: number): void {
    this.lane0 = this.key0;
    this.lane1 = this.key1;
    this.lane2 = this.key2;
    this.lane3 = this.key3;
    this.words = 0;
    this.word(tag);
  }

  /** Takes in one u32. */
  word(value: number): void {
    let mixed = Math.imul(value, MULTIPLIER_FIRST);
    mixed = Math.imul((mixed << 15) | (mixed >>> 17), MULTIPLIER_SECOND) ^ this.lane0;
    mixed = (((mixed << 19) | (mixed >>> 13)) + this.lane1) | 0;
    this.lane0 = this.lane1;
    this.lane1 = this.lane2;
    this.lane2 = this.lane3;
    this.lane3 = (Math.imul(mixed, 5) + ADDEND) | 0;
    this.words = (this.words + 1) | 0;
  }

  /** Takes in a whole number from -1 to 2^53 as two words; different numbers, different words. */
  number(value: number): void {
    this.word(value >>> 0);
    this.word(Math.floor(value / TWO_TO_32) | 0);
  }

  /** Takes in `length` bytes of `source` from `offset`, and the length itself before them. */
  bytes(source: Uint8Array, offset: number, length: number): void {
    this.word(length);
    const end = offset + length;
    let at = offset;
    for (; at + 4 <= end; at += 4) {
      this.word(
        source[at]! | (source[at + 1]! << 8) | (source[at + 2]! << 16) | (source[at + 3]! << 24),
      );
    }
    if (at === end) return;
    let tail = 0;
    for (let shift = 0; at < end; at += 1, shift += 8) tail |= source[at]! << shift;
    this.word(tail);
  }

  /** Ends the record: h0 … h3 are its hash until the next begin. */
  finish(): void {
    let lane0 = this.lane0 ^ this.words;
    let lane1 = this.lane1 ^ this.words;
    let lane2 = this.lane2 ^ this.words;
    let lane3 = this.lane3 ^ this.words;
    lane0 = (lane0 + lane1 + lane2 + lane3) | 0;
    lane1 = avalanche((lane1 + lane0) | 0);
    lane2 = avalanche((lane2 + lane0) | 0);
    lane3 = avalanche((lane3 + lane0) | 0);
    lane0 = avalanche(lane0);
    lane0 = (lane0 + lane1 + lane2 + lane3) | 0;
    this.lane0 = lane0;
    this.lane1 = (lane1 + lane0) | 0;
    this.lane2 = (lane2 + lane0) | 0;
    this.lane3 = (lane3 + lane0) | 0;
  }

  /** The hash as four u32, after finish. */
  get h0(): number {
    return this.lane0 >>> 0;
  }
  get h1(): number {
    return this.lane1 >>> 0;
  }
  get h2(): number {
    return this.lane2 >>> 0;
  }
  get h3(): number {
    return this.lane3 >>> 0;
  }
}

function hexOf(limb: number): string {
  return limb.toString(16).padStart(8, '0');
}

/** The sum modulo 2^128 of record hashes. Zero for no records. */
export class StateDigest {
  private limb0 = 0;
  private limb1 = 0;
  private limb2 = 0;
  private limb3 = 0;

  /** Adds a record's hash: four u32, h0 the least significant. */
  add(h0: number, h1: number, h2: number, h3: number): void {
    const sum0 = this.limb0 + (h0 >>> 0);
    const sum1 = this.limb1 + (h1 >>> 0) + (sum0 >= TWO_TO_32 ? 1 : 0);
    const sum2 = this.limb2 + (h2 >>> 0) + (sum1 >= TWO_TO_32 ? 1 : 0);
    const sum3 = this.limb3 + (h3 >>> 0) + (sum2 >= TWO_TO_32 ? 1 : 0);
    this.limb0 = sum0 >>> 0;
    this.limb1 = sum1 >>> 0;
    this.limb2 = sum2 >>> 0;
    this.limb3 = sum3 >>> 0;
  }

  /** Takes out a record's hash that was added before. */
  subtract(h0: number, h1: number, h2: number, h3: number): void {
    const rest0 = this.limb0 - (h0 >>> 0);
    const rest1 = this.limb1 - (h1 >>> 0) - (rest0 < 0 ? 1 : 0);
    const rest2 = this.limb2 - (h2 >>> 0) - (rest1 < 0 ? 1 : 0);
    const rest3 = this.limb3 - (h3 >>> 0) - (rest2 < 0 ? 1 : 0);
    this.limb0 = rest0 >>> 0;
    this.limb1 = rest1 >>> 0;
    this.limb2 = rest2 >>> 0;
    this.limb3 = rest3 >>> 0;
  }

  /** The sum as four u32, s0 the least significant. */
  get s0(): number {
    return this.limb0;
  }
  get s1(): number {
    return this.limb1;
  }
  get s2(): number {
    return this.limb2;
  }
  get s3(): number {
    return this.limb3;
  }

  /** The sum as 32 hexadecimal digits, the most significant first. */
  toHex(): string {
    return hexOf(this.limb3) + hexOf(this.limb2) + hexOf(this.limb1) + hexOf(this.limb0);
  }
}
