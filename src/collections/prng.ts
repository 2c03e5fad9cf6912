/**
 * Pseudo-random numbers from a seed: the same seed, the same numbers, on every machine.
 *
 * Owns: 128 bits of xoshiro128** ("Scrambled linear pseudorandom number generators", Blackman and
 * Vigna, 2021), filled from the seed by splitmix32. Never: secrets; whoever sees a few numbers
 * knows the rest. Used by: raft (election time-outs), the client's jitter, the simulator.
 */

import { assert } from './assert.js';

const TWO_TO_32 = 2 ** 32;

export class Prng {
  // Signed 32-bit, so that the engine keeps them as small integers.
  private state0 = 0;
  private state1 = 0;
  private state2 = 0;
  private state3 = 0;
  private filler: number;

  /** `seed`: a whole number of 0 to 2^53 - 1; neighbours give unrelated numbers. */
  constructor(seed: number) {
    assert(Number.isSafeInteger(seed) && seed >= 0, 'seed with a whole number of 0 to 2^53 - 1');
    this.filler = seed | 0;
    const upper = this.fill();
    this.filler = Math.floor(seed / TWO_TO_32) ^ upper;
    this.state0 = this.fill();
    this.state1 = this.fill();
    this.state2 = this.fill();
    this.state3 = this.fill();
    // All zero is the one state that xoshiro never leaves.
    if ((this.state0 | this.state1 | this.state2 | this.state3) === 0) this.state0 = 1;
  }

  /** A whole number of 0 to 2^32 - 1. */
  nextU32(): number {
    return this.next() >>> 0;
  }

  /** A whole number of 0 to n - 1, each as likely. `n`: 1 to 2^32. */
  below(n: number): number {
    assert(Number.isInteger(n) && n >= 1 && n <= TWO_TO_32, 'draw below 1 to 2^32');
    const fair = TWO_TO_32 - (TWO_TO_32 % n);
    for (;;) {
      // Numbers past the last whole multiple of n would favour the small remainders.
      const drawn = this.next() >>> 0;
      if (drawn < fair) return drawn % n;
    }
  }

  /** A number of 0 to 1, 1 excluded, with 53 random bits. */
  nextDouble(): number {
    const upper = this.next() >>> 5;
    const lower = this.next() >>> 6;
    return (upper * 0x400_0000 + lower) / 2 ** 53;
  }

  /** The next 32 bits, signed: the engine never makes an object of them. */
  private next(): number {
    const product = Math.imul(this.state1, 5);
    const result = Math.imul((product << 7) | (product >>> 25), 9);
    const shifted = this.state1 << 9;
    this.state2 ^= this.state0;
    this.state3 ^= this.state1;
    this.state1 ^= this.state2;
    this.state0 ^= this.state3;
    this.state2 ^= shifted;
    this.state3 = (this.state3 << 11) | (this.state3 >>> 21);
    return result;
  }

  /** The next number of splitmix32. */
  private fill(): number {
    this.filler = (this.filler + 0x9e3779b9) | 0;
    let mixed = Math.imul(this.filler ^ (this.filler >>> 16), 0x21f0aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    return mixed ^ (mixed >>> 15);
  }
}
