/**
 * SipHash-2-4 with 128 bits of output, for messages of exactly eight bytes.
 *
 * Owns: nothing; a pure function that allocates nothing. Never: other lengths. Lease ids, session
 * ids and secrets are this hash of a position under the random bits of an entry, so that nobody
 * can guess one from another ("SipHash: a fast short-input PRF", Aumasson and Bernstein, 2012).
 * A 64-bit word is two signed 32-bit halves. Used by: the lock machine.
 */

/** Rounds: two for the message, two for its length, four for each half of the output. */
const ROUNDS_MESSAGE = 2;
const ROUNDS_LENGTH = 4;
const ROUNDS_FIRST_HALF = 8;
const ROUNDS = 12;
/** The last block of an eight-byte message: its length in the top byte, upper half of 64 bits. */
const LENGTH_BLOCK_HIGH = 8 << 24;

/**
 * Hashes the message of eight bytes under the key of sixteen bytes.
 *
 * `key0` … `key3`: the key as four u32, little-endian words in the order of its bytes.
 * `message0`, `message1`: the message likewise. Any value that ToInt32 maps to the word will do.
 * `out`: its first four elements become the output, little-endian words in the order of its bytes,
 * signed: small integers to the engine, where half of all u32 are objects.
 */
export function sipHash128(
  key0: number,
  key1: number,
  key2: number,
  key3: number,
  message0: number,
  message1: number,
  out: Int32Array,
): void {
  let low0 = key0 ^ 0x70736575;
  let high0 = key1 ^ 0x736f6d65;
  let low1 = key2 ^ 0x6e646f6d ^ 0xee;
  let high1 = key3 ^ 0x646f7261;
  let low2 = key0 ^ 0x6e657261;
  let high2 = key1 ^ 0x6c796765;
  let low3 = key2 ^ 0x79746573 ^ message0;
  let high3 = key3 ^ 0x74656462 ^ message1;
  let swap = 0;
  for (let round = 1; round <= ROUNDS; round += 1) {
    // v0 += v1; v1 = (v1 <<< 13) ^ v0; v0 <<<= 32. The carry is the top bit of the majority.
    swap = (low0 + low1) | 0;
    high0 = (high0 + high1 + (((low0 & low1) | ((low0 | low1) & ~swap)) >>> 31)) | 0;
    low0 = swap;
    swap = (low1 << 13) | (high1 >>> 19);
    high1 = ((high1 << 13) | (low1 >>> 19)) ^ high0;
    low1 = swap ^ low0;
    swap = low0;
    low0 = high0;
    high0 = swap;
    // v2 += v3; v3 = (v3 <<< 16) ^ v2.
    swap = (low2 + low3) | 0;
    high2 = (high2 + high3 + (((low2 & low3) | ((low2 | low3) & ~swap)) >>> 31)) | 0;
    low2 = swap;
    swap = (low3 << 16) | (high3 >>> 16);
    high3 = ((high3 << 16) | (low3 >>> 16)) ^ high2;
    low3 = swap ^ low2;
    // v0 += v3; v3 = (v3 <<< 21) ^ v0.
    swap = (low0 + low3) | 0;
    high0 = (high0 + high3 + (((low0 & low3) | ((low0 | low3) & ~swap)) >>> 31)) | 0;
    low0 = swap;
    swap = (low3 << 21) | (high3 >>> 11);
    high3 = ((high3 << 21) | (low3 >>> 11)) ^ high0;
    low3 = swap ^ low0;
    // v2 += v1; v1 = (v1 <<< 17) ^ v2; v2 <<<= 32.
    swap = (low2 + low1) | 0;
    high2 = (high2 + high1 + (((low2 & low1) | ((low2 | low1) & ~swap)) >>> 31)) | 0;
    low2 = swap;
    swap = (low1 << 17) | (high1 >>> 15);
    high1 = ((high1 << 17) | (low1 >>> 15)) ^ high2;
    low1 = swap ^ low2;
    swap = low2;
    low2 = high2;
    high2 = swap;
    if (round === ROUNDS_MESSAGE) {
      low0 ^= message0;
      high0 ^= message1;
      high3 ^= LENGTH_BLOCK_HIGH;
    } else if (round === ROUNDS_LENGTH) {
      high0 ^= LENGTH_BLOCK_HIGH;
      low2 ^= 0xee;
    } else if (round === ROUNDS_FIRST_HALF) {
      out[0] = low0 ^ low1 ^ low2 ^ low3;
      out[1] = high0 ^ high1 ^ high2 ^ high3;
      low1 ^= 0xdd;
    }
  }
  out[2] = low0 ^ low1 ^ low2 ^ low3;
  out[3] = high0 ^ high1 ^ high2 ^ high3;
}
