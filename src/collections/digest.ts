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

/** One step of the mix: what a word makes of a lane and the lane behind it. */
function mix(word: number, lane: number, behind: number): number {
  let mixed = Math.imul(word, MULTIPLIER_FIRST);
  mixed = Math.imul((mixed << 15) | (mixed >>> 17), MULTIPLIER_SECOND) ^ lane;
  mixed = (((mixed << 19) | (mixed >>> 13)) + behind) | 0;
  return (Math.imul(mixed, 5) + ADDEND) | 0;
}

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
 * Each word takes the place of a lane in a way that can be undone, so that nothing is lost.
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
    this.word(tag);
  }

  /** Takes in one u32. */
  word(value: number): void {
    const mixed = mix(value, this.lane0, this.lane1);
    this.lane0 = this.lane1;
    this.lane1 = this.lane2;
    this.lane2 = this.lane3;
    this.lane3 = mixed;
  }

  /** Takes in a whole number from -1 to 2^53 as two words; different numbers, different words. */
  number(value: number): void {
    this.words(value | 0, Math.floor(value / TWO_TO_32) | 0);
  }

  /**
   * Like word and number, of a row of a column. A long record has more calls than the engine
   * inlines, and then a word above 2^31 or a double would be made an object to be handed over.
   */
  wordAt(column: Uint32Array, row: number): void {
    this.word(column[row]! | 0);
  }
  numberAt(column: Float64Array, row: number): void {
    const value = column[row]!;
    this.words(value | 0, Math.floor(value / TWO_TO_32) | 0);
  }

  /** Takes in `length` bytes of `source` from `offset`, and the length itself before them. */
  bytes(source: Uint8Array, offset: number, length: number): void {
    this.word(length);
    let lane0 = this.lane0;
    let lane1 = this.lane1;
    let lane2 = this.lane2;
    let lane3 = this.lane3;
    const end = offset + length;
    for (let at = offset; at < end; at += 4) {
      let word = source[at]!;
      if (at + 4 <= end) {
        word |= (source[at + 1]! << 8) | (source[at + 2]! << 16) | (source[at + 3]! << 24);
      } else {
        if (at + 1 < end) word |= source[at + 1]! << 8;
        if (at + 2 < end) word |= source[at + 2]! << 16;
      }
      const mixed = mix(word, lane0, lane1);
      lane0 = lane1;
      lane1 = lane2;
      lane2 = lane3;
      lane3 = mixed;
    }
    this.lane0 = lane0;
    this.lane1 = lane1;
    this.lane2 = lane2;
    this.lane3 = lane3;
  }

  /** Ends the record: h0 … h3 are its hash until the next begin. */
  finish(): void {
    let lane0 = (this.lane0 + this.lane1 + this.lane2 + this.lane3) | 0;
    const lane1 = avalanche((this.lane1 + lane0) | 0);
    const lane2 = avalanche((this.lane2 + lane0) | 0);
    const lane3 = avalanche((this.lane3 + lane0) | 0);
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

  /** Takes in two words at once. */
  private words(first: number, second: number): void {
    const mixed = mix(first, this.lane0, this.lane1);
    const mixedNext = mix(second, this.lane1, this.lane2);
    this.lane0 = this.lane2;
    this.lane1 = this.lane3;
    this.lane2 = mixed;
    this.lane3 = mixedNext;
  }
}

function hexOf(limb: number): string {
  return limb.toString(16).padStart(8, '0');
}

/** The carry out of `first` + `second` + a carry, given the low 32 bits of that sum: 0 or 1. */
function carryOf(first: number, second: number, sum: number): number {
  return ((first & second) | ((first | second) & ~sum)) >>> 31;
}

/** The sum modulo 2^128 of record hashes. Zero for no records. */
export class StateDigest {
  // Signed 32-bit, least significant first.
  private limb0 = 0;
  private limb1 = 0;
  private limb2 = 0;
  private limb3 = 0;

  /** Adds a record's hash: four u32, h0 the least significant. */
  add(h0: number, h1: number, h2: number, h3: number): void {
    this.accumulate(h0 | 0, h1 | 0, h2 | 0, h3 | 0, 0);
  }

  /** Takes out a record's hash that was added before. */
  subtract(h0: number, h1: number, h2: number, h3: number): void {
    this.accumulate(~h0, ~h1, ~h2, ~h3, 1);
  }

  /** The sum as four u32, s0 the least significant. */
  get s0(): number {
    return this.limb0 >>> 0;
  }
  get s1(): number {
    return this.limb1 >>> 0;
  }
  get s2(): number {
    return this.limb2 >>> 0;
  }
  get s3(): number {
    return this.limb3 >>> 0;
  }

  /** The sum as 32 hexadecimal digits, the most significant first. */
  toHex(): string {
    return hexOf(this.s3) + hexOf(this.s2) + hexOf(this.s1) + hexOf(this.s0);
  }

  private accumulate(h0: number, h1: number, h2: number, h3: number, carry: number): void {
    const sum0 = (this.limb0 + h0 + carry) | 0;
    const sum1 = (this.limb1 + h1 + carryOf(this.limb0, h0, sum0)) | 0;
    const sum2 = (this.limb2 + h2 + carryOf(this.limb1, h1, sum1)) | 0;
    const sum3 = (this.limb3 + h3 + carryOf(this.limb2, h2, sum2)) | 0;
    this.limb0 = sum0;
    this.limb1 = sum1;
    this.limb2 = sum2;
    this.limb3 = sum3;
  }
}
