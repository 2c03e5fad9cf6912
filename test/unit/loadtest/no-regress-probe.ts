/**
 * Measures an operation of the product beside the plainest lock table there could be.
 *
 * Prints one JSON line. Both go through the same requests in the same process, in turns: codecs
 * and lock machine of the product, then msgpackr and a Map. The least of many short rounds counts,
 * so that other work on the machine falls on neither. Bytes are counted, not timed. Runs in a
 * process of its own with a collector that can be called. Started by no-regress.test.ts.
 */
import { Packr, Unpackr } from 'msgpackr';
import { bytesOf } from '../../../native-bench/apply.js';
import { ApplyLoop } from '../../../native-bench/apply-loop.js';

const SEATS = 2_048;
const NAMES = 20_000;
const OPERATIONS = 512;
const ROUNDS = 12;
const ENTRIES_A_ROUND = 20;
const WARM_UP_ENTRIES = 200;
const NS_PER_MS = 1_000_000;

const packr = new Packr({ useRecords: false });
const unpackr = new Unpackr({ useRecords: false, mapsAsObjects: true, int64AsType: 'number' });

/** A lock table of objects: decode, look up, change, encode the reply. */
class PlainTable {
  private readonly locks = new Map<string, { token: number; seat: number }>();
  private readonly held: (string | null)[] = new Array<string | null>(SEATS).fill(null);
  private token = 0;
  private nextName = 0;
  private nextSeat = 0;
  bytes = 0;

  step(): void {
    for (let i = 0; i < OPERATIONS; i += 1) {
      const seat = this.nextSeat;
      this.nextSeat = (this.nextSeat + 1) % SEATS;
      const name = this.held[seat] ?? `load/${this.nextName}`;
      this.nextName = (this.nextName + 1) % NAMES;
      const request = packr.pack([i, 10_000, [36, this.token, seat, name, 30_000]]);
      this.bytes += this.answer(unpackr.unpack(request) as [number, number, unknown[]]).length;
    }
  }

  private answer([correlation, , operation]: [number, number, unknown[]]): Uint8Array {
    const [, , seat, name] = operation as [number, number, number, string];
    const lock = this.locks.get(name);
    this.token += 1;
    if (lock === undefined) {
      this.locks.set(name, { token: this.token, seat });
      this.held[seat] = name;
    } else {
      this.locks.delete(name);
      this.held[seat] = null;
    }
    return packr.pack([correlation, 0, this.token, false, this.token]);
  }
}

/** What the check must not miss: a request that is also copied through text. */
class WastefulLoop {
  private sink = 0;

  constructor(private readonly loop: ApplyLoop) {}

  step(): void {
    this.loop.step();
    for (let i = 0; i < OPERATIONS; i += 1) {
      const text = JSON.stringify({ name: `load/${i}`, ttl: 30_000, session: [i, i, i, i] });
      for (let copy = 0; copy < 4; copy += 1) {
        this.sink += (JSON.parse(text) as { ttl: number }).ttl;
      }
    }
  }
}

function nsOfRound(subject: { step(): void }): number {
  const startedMs = performance.now();
  for (let i = 0; i < ENTRIES_A_ROUND; i += 1) subject.step();
  return ((performance.now() - startedMs) * NS_PER_MS) / (ENTRIES_A_ROUND * OPERATIONS);
}

const loop = new ApplyLoop(SEATS, NAMES, OPERATIONS);
const plain = new PlainTable();
const wasteful = new WastefulLoop(new ApplyLoop(SEATS, NAMES, OPERATIONS));
for (const subject of [loop, plain, wasteful]) {
  for (let i = 0; i < WARM_UP_ENTRIES; i += 1) subject.step();
}
const least = { loop: Number.POSITIVE_INFINITY, plain: Number.POSITIVE_INFINITY, wasteful: 0 };
least.wasteful = Number.POSITIVE_INFINITY;
for (let round = 0; round < ROUNDS; round += 1) {
  least.loop = Math.min(least.loop, nsOfRound(loop));
  least.plain = Math.min(least.plain, nsOfRound(plain));
  least.wasteful = Math.min(least.wasteful, nsOfRound(wasteful));
}
const perOp = (bytes: number): number => bytes / OPERATIONS;
console.log(
  JSON.stringify({
    ratio: least.loop / least.plain,
    wasteful: least.wasteful / least.plain,
    ns: least.loop,
    heapBytes: bytesOf(loop),
    requestBytes: perOp(loop.requestBytes),
    entryBytes: perOp(loop.entryBytes),
    replyBytes: perOp(loop.replyBytes),
  }),
);
