/**
 * What the runner asks of a load, and the names that loads lock.
 *
 * Owns: the shape of a load, the table of names. Never: what a load does. Used by: runner.ts and
 * every load.
 */
import { Prng } from '../src/collections/prng.js';
import { ErrorCode } from '../src/wire/errors.js';
import type { Meter } from './meter.js';

export const NAMES_DEFAULT = 100_000;
export const LEASE_TTL_MS = 30_000;
export const REQUEST_DEADLINE_MS = 10_000;
/** Sessions outlast the run that opened them by this. */
const SESSION_MARGIN_MS = 600_000;
const MS_PER_S = 1_000;

export interface Load {
  readonly meter: Meter;
  /** Bytes that its connections have sent and received. */
  readonly bytes: number;
  /** Connects, opens sessions, and whatever has to be there before the load begins. */
  open(): Promise<void>;
  start(): void;
  /** Sends nothing new; resolves when everything sent was answered or is missing. */
  stop(): Promise<void>;
  /** Ends its sessions and closes its connections. */
  close(): Promise<void>;
}

/**
 * True when the node that a closed loop asks leads no more. Such an answer makes the figure void;
 * whoever hears it does not ask again, or the loop would turn as fast as refusals come, and take
 * the processors from the nodes that elect another leader.
 */
export function isLeaderGone(code: number): boolean {
  return code === ErrorCode.NotLeader || code === ErrorCode.NoQuorum;
}

export function sessionTtlMs(durationS: number): number {
  return durationS * MS_PER_S + SESSION_MARGIN_MS;
}

/** `load/0`, `load/1`, …: made once. */
export function makeNames(count: number, stem = 'load'): Uint8Array[] {
  const names: Uint8Array[] = [];
  for (let i = 0; i < count; i += 1) names.push(Buffer.from(`${stem}/${i}`));
  return names;
}

/** Goes round over all names: a name comes again only after every other. */
export class RoundRobin {
  private next = 0;

  constructor(readonly names: readonly Uint8Array[]) {}

  take(): Uint8Array {
    const name = this.names[this.next] as Uint8Array;
    this.next = this.next + 1 === this.names.length ? 0 : this.next + 1;
    return name;
  }
}

/**
 * Draws ranks 0 … count - 1 with a probability in proportion to 1 / (rank + 1)^exponent.
 * One search in a table of cumulative shares a draw: exact, and nothing is made for it.
 */
export class Zipf {
  private readonly shares: Float64Array;
  private readonly prng: Prng;

  constructor(count: number, exponent: number, seed: number) {
    this.prng = new Prng(seed);
    this.shares = new Float64Array(count);
    let sum = 0;
    for (let rank = 0; rank < count; rank += 1) {
      sum += (rank + 1) ** -exponent;
      this.shares[rank] = sum;
    }
    for (let rank = 0; rank < count; rank += 1) {
      this.shares[rank] = (this.shares[rank] as number) / sum;
    }
  }

  draw(): number {
    const wanted = this.prng.nextU32() / 2 ** 32;
    let low = 0;
    let high = this.shares.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.shares[middle] as number) > wanted) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}
