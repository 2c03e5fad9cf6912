/**
 * What one operation costs on one thread without disk and network, and what it leaves to the
 * collector.
 *
 * Owns: the three parts of the closed loop, timed apart. The process has been started with a
 * collector that can be called and a young generation in which nothing is collected meanwhile.
 * Used by: main.ts.
 */
import { ApplyLoop } from './apply-loop.js';
import { cost, type Figure } from './figure.js';

const SEATS = 2_048;
const NAMES = 100_000;
const OPERATIONS = 512;
const NS_PER_MS = 1_000_000;
/** Entries before the timed ones: every name is known afterwards. */
const WARM_UP_ENTRIES = 500;
const TIMED_ENTRIES = 600;
const COUNTED_ENTRIES = 60;

export async function measure(): Promise<Figure[]> {
  const loop = new ApplyLoop(SEATS, NAMES, OPERATIONS);
  for (let i = 0; i < WARM_UP_ENTRIES; i += 1) loop.step();
  let encodeMs = 0;
  let admitMs = 0;
  let applyMs = 0;
  for (let i = 0; i < TIMED_ENTRIES; i += 1) {
    const startMs = performance.now();
    loop.encode();
    const encodedMs = performance.now();
    loop.admit();
    const admittedMs = performance.now();
    loop.apply();
    applyMs += performance.now() - admittedMs;
    admitMs += admittedMs - encodedMs;
    encodeMs += encodedMs - startMs;
  }
  const perOp = (ms: number): number => (ms * NS_PER_MS) / (TIMED_ENTRIES * OPERATIONS);
  return [
    cost('client: encode a request', 'ns', perOp(encodeMs)),
    cost('leader: find, decode and copy it', 'ns', perOp(admitMs)),
    cost('replica: decode, apply, encode the reply', 'ns', perOp(applyMs)),
    cost('heap of an operation, all three', 'B', bytesOf(loop)),
  ];
}

/** Bytes on the heap that an operation leaves behind; NaN without a collector to call. */
export function bytesOf(loop: ApplyLoop): number {
  const collect = globalThis.gc;
  if (collect === undefined) return Number.NaN;
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < 3; round += 1) {
    collect();
    const before = process.memoryUsage().heapUsed;
    for (let i = 0; i < COUNTED_ENTRIES; i += 1) loop.step();
    const left = process.memoryUsage().heapUsed - before;
    least = Math.min(least, left / (COUNTED_ENTRIES * OPERATIONS));
  }
  return least;
}
