/**
 * What one operation costs a replica without disk and network: decode and apply, one thread.
 *
 * `node test/gate/exec.mjs native-bench/lock-machine.ts [rounds] [slots] [names]` writes the log of
 * a closed loop (so many slots, each with a session, acquire then release, names in turn), then
 * applies it to fresh machines and prints µs an operation. That is what each
 * replica pays beside its disk and sockets; with `--perf-basic-prof` it is the program to profile.
 */
import { Command, CommandKind } from '../src/core/locks/command.js';
import { LockMachine } from '../src/core/locks/lock-machine.js';
import { Outcome, OutcomeCode } from '../src/core/locks/outcome.js';
import { defaultSettings } from '../src/core/locks/settings.js';
import { ENTROPY_BYTES, EntryReader, EntryWriter } from '../src/wire/entry.js';
import { decodeOperation } from '../src/wire/operation.js';
import { OutBuffer } from '../src/wire/out-buffer.js';
import { encodeAcquire, encodeRelease, encodeRequest } from '../src/wire/request.js';

/** Entries before the timed ones: every name is known afterwards. */
const ENTRIES_FIRST = 420;
const ENTRIES_TIMED = 400;
const OPERATIONS_AN_ENTRY = 512;
const STAMP_STEP_MS = 5;
const PRINCIPAL = 1;
const TTL_MS = 30_000;
const SESSION_TTL_MS = 3_600_000;
/** A request opens with an array header, a correlation and a deadline: three bytes here. */
const REQUEST_HEAD_BYTES = 3;

class Slot {
  session = new Uint8Array(16);
  lease = new Uint8Array(16);
  isHolding = false;
  sequence = 0;
}

function putId(target: Uint8Array, outcome: Outcome): void {
  const view = new DataView(target.buffer);
  view.setUint32(0, outcome.id0);
  view.setUint32(4, outcome.id1);
  view.setUint32(8, outcome.id2);
  view.setUint32(12, outcome.id3);
}

/** One replica's apply loop, as src/replica/apply.ts has it, without callers. */
class Applier {
  readonly machine = new LockMachine(defaultSettings(), new Uint32Array(4).fill(7));
  readonly outcome = new Outcome();
  private readonly reader = new EntryReader();
  private readonly command = new Command();
  private index = 0;

  apply(entry: Uint8Array, onOutcome: ((position: number) => void) | null): void {
    const { machine, outcome, reader, command } = this;
    this.index += 1;
    reader.open(entry);
    const { stampMs, entropy0, entropy1, entropy2, entropy3 } = reader;
    machine.beginEntry(this.index, stampMs, entropy0, entropy1, entropy2, entropy3);
    let position = 0;
    while (reader.next()) {
      decodeOperation(entry, reader.start, reader.end, command);
      command.principal = reader.principal;
      machine.apply(command, outcome);
      if (onOutcome !== null) onOutcome(position);
      position += 1;
    }
    machine.endEntry();
  }
}

/** The log of the closed loop; every outcome in it is Ok. */
class LogMaker {
  readonly entries: Uint8Array[] = [];
  private readonly applier = new Applier();
  private readonly writer = new EntryWriter();
  private readonly entropy = new Uint8Array(ENTROPY_BYTES);
  private readonly out = new OutBuffer();
  private readonly slots: Slot[] = [];
  private batch: Slot[] = [];
  private nextName = 0;
  private names: Uint8Array[] = [];

  constructor(slots: number, names: number) {
    for (let i = 0; i < slots; i += 1) this.slots.push(new Slot());
    for (let i = 0; i < names; i += 1) this.names.push(Buffer.from(`load/${i}`));
    this.writer.open();
    this.openSessions();
    for (let made = 0; made < ENTRIES_FIRST + ENTRIES_TIMED; made += 1) this.makeEntry(made);
  }

  private openSessions(): void {
    for (const [index, slot] of this.slots.entries()) {
      this.take(slot, () => {
        const operation = [
          CommandKind.SessionOpen,
          `open-${index}`,
          null,
          null,
          null,
          SESSION_TTL_MS,
        ];
        encodeRequest(this.out, 1, 1, operation);
      });
    }
    this.close((slot, outcome) => putId(slot.session, outcome));
  }

  private makeEntry(made: number): void {
    for (let i = 0; i < OPERATIONS_AN_ENTRY; i += 1) {
      const slot = this.slots[(made * OPERATIONS_AN_ENTRY + i) % this.slots.length] as Slot;
      slot.sequence += 1;
      this.take(slot, () => this.encode(slot));
    }
    this.close((slot, outcome) => {
      if (!slot.isHolding) putId(slot.lease, outcome);
      slot.isHolding = !slot.isHolding;
    });
  }

  private encode(slot: Slot): void {
    const { session, sequence, lease } = slot;
    if (slot.isHolding) {
      encodeRelease(this.out, 1, 1, session, sequence, sequence - 1, lease);
      return;
    }
    const name = this.names[this.nextName] as Uint8Array;
    this.nextName = (this.nextName + 1) % this.names.length;
    encodeAcquire(this.out, 1, 1, session, sequence, sequence - 1, name, TTL_MS, 0);
  }

  private take(slot: Slot, encode: () => void): void {
    encode();
    const bytes = this.out.take();
    this.writer.addOperation(PRINCIPAL, 1, bytes, REQUEST_HEAD_BYTES, bytes.length);
    this.batch.push(slot);
  }

  private close(onOk: (slot: Slot, outcome: Outcome) => void): void {
    this.entropy[0] = this.entries.length & 255;
    this.entropy[1] = this.entries.length >> 8;
    const entry = this.writer.close(this.entries.length * STAMP_STEP_MS, 1, this.entropy);
    this.entries.push(entry);
    const { batch } = this;
    this.batch = [];
    this.applier.apply(entry, (position) => {
      const { outcome } = this.applier;
      if (outcome.code !== OutcomeCode.Ok) throw new Error(`answered ${outcome.code}`);
      onOk(batch[position] as Slot, outcome);
    });
  }

  get digest(): string {
    return this.applier.machine.digest();
  }
}

function main(): void {
  const rounds = Number(process.argv[2] ?? 9);
  const log = new LogMaker(Number(process.argv[3] ?? 2_048), Number(process.argv[4] ?? 100_000));
  const operations = ENTRIES_TIMED * OPERATIONS_AN_ENTRY;
  const figures: number[] = [];
  for (let round = 1; round <= rounds; round += 1) {
    const applier = new Applier();
    const timedFrom = log.entries.length - ENTRIES_TIMED;
    for (let i = 0; i < timedFrom; i += 1) applier.apply(log.entries[i] as Uint8Array, null);
    const started = performance.now();
    for (let i = timedFrom; i < log.entries.length; i += 1) {
      applier.apply(log.entries[i] as Uint8Array, null);
    }
    figures.push(((performance.now() - started) * 1_000) / operations);
    if (applier.machine.digest() !== log.digest) throw new Error('two machines disagree');
  }
  figures.sort((a, b) => a - b);
  const [least, median] = [figures[0] as number, figures[rounds >> 1] as number];
  console.log(
    `decode + apply: least ${least.toFixed(3)}, median ${median.toFixed(3)} µs an operation`,
  );
}

main();
