/**
 * One committed entry through the lock machine, without anybody who waits for its outcomes.
 *
 * Owns: the way from an entry's bytes to the machine's calls. The replica does the same with
 * callers (apply.ts) and shares what decodes; the snapshot worker replays a log with this alone.
 * Never: decides an outcome, or checks what admission has checked: a committed entry that does not
 * decode is a broken invariant. Used by: apply.ts, the snapshot worker, the simulator.
 */
import { assert } from '../collections/assert.js';
import { Command, OPERATION_VERSION } from '../core/locks/command.js';
import type { LockMachine } from '../core/locks/lock-machine.js';
import { Outcome } from '../core/locks/outcome.js';
import { EntryReader } from '../wire/entry.js';
import { decodeOperation } from '../wire/operation.js';

/** Opens the entry at `index` in the machine; `reader` then stands before its first operation. */
export function beginEntry(
  machine: LockMachine,
  reader: EntryReader,
  index: number,
  data: Uint8Array,
): void {
  assert(reader.open(data), 'apply: a committed entry is well formed');
  machine.beginEntry(
    index,
    reader.stampMs,
    reader.entropy0,
    reader.entropy1,
    reader.entropy2,
    reader.entropy3,
  );
}

/** Decodes the operation that `reader` stands at into `command`, principal included. */
export function decodeLogged(reader: EntryReader, data: Uint8Array, command: Command): void {
  const fault = decodeOperation(data, reader.start, reader.end, command);
  assert(fault === 0, 'apply: what was admitted decodes alike on every node');
  assert(reader.version <= OPERATION_VERSION, 'I11: this build knows the operation');
  command.principal = reader.principal;
}

/** Replays entries one after the other. */
export class Replayer {
  private readonly reader = new EntryReader();
  private readonly command = new Command();
  private readonly outcome = new Outcome();

  constructor(readonly machine: LockMachine) {}

  /** Applies the entry at `index`, the next one; `data` is read during the call only. */
  apply(index: number, data: Uint8Array): void {
    const { machine, reader, command, outcome } = this;
    beginEntry(machine, reader, index, data);
    while (reader.next()) {
      decodeLogged(reader, data, command);
      machine.apply(command, outcome);
    }
    machine.endEntry();
  }
}
