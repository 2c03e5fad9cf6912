/** The size that the lease table is made for: a million leases held at once, half then kept. */

import t from 'tap';
import { CommandKind, OPERATION_VERSION } from '../../../src/core/locks/command.js';
import { LockMachine } from '../../../src/core/locks/lock-machine.js';
import { defaultSettings } from '../../../src/core/locks/settings.js';
import { Replayer } from '../../../src/replica/replay.js';
import { EntryWriter } from '../../../src/wire/entry.js';
import { type PackValue, writeValue } from '../../../src/wire/msgpack-writer.js';
import { OutBuffer } from '../../../src/wire/out-buffer.js';

const LEASES = 1_000_000;
const BATCH = 1_000;
const TTL_MS = 30_000;
const KEPT_TTL_MS = 300_000;
const DIGEST_KEY = Uint32Array.of(1, 2, 3, 4);

/** A log of entries of many operations, applied as a node replays it. */
class Log {
  readonly machine = new LockMachine(defaultSettings(), DIGEST_KEY);
  private readonly replayer = new Replayer(this.machine);
  private index = 0;

  append(stampMs: number, operations: readonly PackValue[][]): void {
    this.index += 1;
    const writer = new EntryWriter();
    const out = new OutBuffer();
    writer.open();
    for (const operation of operations) {
      out.length = 0;
      writeValue(out, operation);
      writer.addOperation(1, OPERATION_VERSION, out.bytes, 0, out.length);
    }
    const entropy = Buffer.alloc(16);
    entropy.writeUInt32LE(this.index);
    this.replayer.apply(this.index, writer.close(stampMs, 1, entropy));
  }
}

t.test('a million leases: granted and read, half of them run out, half are kept', (t) => {
  const log = new Log();
  const { machine } = log;
  for (let first = 0; first < LEASES; first += BATCH) {
    const operations: PackValue[][] = [];
    for (let number = first; number < first + BATCH; number += 1) {
      const ttlMs = number % 2 === 0 ? TTL_MS : KEPT_TTL_MS;
      operations.push([
        CommandKind.Acquire,
        `r${number}`,
        null,
        null,
        null,
        `job/${number}`,
        ttlMs,
      ]);
    }
    log.append(1, operations);
  }
  t.equal(machine.counts.leases, LEASES, 'every lease is held at once');
  const last = Buffer.from(`job/${LEASES - 1}`);
  t.equal(machine.get(last, 0, last.length, 0)?.holder?.token, LEASES, 'one token a grant');

  const expiriesMost = defaultSettings().expiriesPerEntryMax;
  for (let entry = 1; machine.counts.leases > LEASES / 2; entry += 1) {
    const before = machine.counts.leases;
    log.append(1 + TTL_MS, []);
    const ended = before - machine.counts.leases;
    if (ended !== expiriesMost) t.equal(ended, expiriesMost, `entry ${entry} ends its share`);
    if (ended === 0) break;
  }
  log.append(1 + TTL_MS, []);
  t.equal(machine.counts.leases, LEASES / 2, 'those with time left are all that is held');
  const first = Buffer.from('job/0');
  t.equal(machine.get(first, 0, first.length, 0)?.holder ?? null, null, 'the first has run out');
  t.equal(machine.get(last, 0, last.length, 0)?.holder?.token, LEASES, 'the last is still held');
  t.end();
});
