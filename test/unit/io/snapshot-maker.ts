/**
 * Entries and the machine that applied them, for tests of snapshots.
 *
 * Owns: a log that is a function of its indices: entry `index` opens no session and acquires a lock
 * of its own name, so that every index has another state. Used by: tests of snapshots and workers.
 */
import { CommandKind, OPERATION_VERSION } from '../../../src/core/locks/command.js';
import { LockMachine } from '../../../src/core/locks/lock-machine.js';
import { defaultSettings } from '../../../src/core/locks/settings.js';
import { Entry, EntryKind } from '../../../src/core/raft/message.js';
import { wordsOf } from '../../../src/io/snapshots/restore.js';
import { Replayer } from '../../../src/replica/replay.js';
import { EntryWriter } from '../../../src/wire/entry.js';
import { writeValue } from '../../../src/wire/msgpack-writer.js';
import { OutBuffer } from '../../../src/wire/out-buffer.js';

export const CLUSTER_ID = new Uint8Array(16).fill(7);

/** The entry of `index`: one acquire of `name-<index>` under the request id of the same name. */
export function lockEntry(index: number, term = 1): Entry {
  const out = new OutBuffer();
  const name = `name-${index}`;
  writeValue(out, [CommandKind.Acquire, name, null, null, null, name, 3_600_000]);
  const writer = new EntryWriter();
  writer.open();
  writer.addOperation(1, OPERATION_VERSION, out.bytes, 0, out.length);
  const data = writer.close(1_000 + index, 1, new Uint8Array(16).fill(index));
  return new Entry(index, term, EntryKind.Batch, data);
}

/** A machine that applied the entries 1 … `index`. */
export function machineWith(index: number): LockMachine {
  const machine = new LockMachine(defaultSettings(), wordsOf(CLUSTER_ID));
  const replayer = new Replayer(machine);
  for (let at = 1; at <= index; at += 1) replayer.apply(at, lockEntry(at).data);
  return machine;
}
