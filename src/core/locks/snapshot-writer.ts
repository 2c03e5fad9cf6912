/**
 * Writes the whole state of a lock machine as rows, cut into chunks at row boundaries.
 *
 * Owns: the order of the rows. Lists are written in their own order (a session's leases by token,
 * waits by place, idle locks from the oldest on, ends from the oldest on), so that who reads them
 * appends. Never: a device; each chunk is handed out and forgotten. It runs to its end at once:
 * only where nobody waits for the thread. Called by: LockMachine.writeSnapshot.
 */
import { RowWriter } from '../../collections/row-bytes.js';
import type { MachineState } from './machine-state.js';
import {
  type RowPositions,
  writeDisabled,
  writeEnd,
  writeEnded,
  writeGrace,
  writeHead,
  writeLease,
  writeLock,
  writeResult,
  writeSession,
  writeWait,
} from './snapshot-rows.js';
import { NONE, type Table } from './tables/table.js';

const NO_BYTES = new Uint8Array(0);

/** Rows in chunks of at most `chunkBytesMax` bytes and one row. */
class ChunkWriter {
  readonly out: RowWriter;
  rows = 0;

  constructor(
    private readonly chunkBytesMax: number,
    private readonly emit: (chunk: Uint8Array) => void,
  ) {
    this.out = new RowWriter(chunkBytesMax);
  }

  /** A row is complete. */
  endRow(): void {
    this.rows += 1;
    if (this.out.length >= this.chunkBytesMax) this.flush();
  }

  flush(): void {
    if (this.out.length > 0) this.emit(this.out.take());
  }
}

/**
 * Writes `state` between two entries. `emit` gets each chunk in turn, about `chunkBytesMax` bytes
 * and never more than a row above it; the bytes are its own until it returns.
 */
export function writeSnapshot(
  state: MachineState,
  chunkBytesMax: number,
  emit: (chunk: Uint8Array) => void,
): void {
  const chunks = new ChunkWriter(chunkBytesMax, emit);
  const { out } = chunks;
  writeHead(state, out);
  chunks.endRow();
  if (state.grantsFrom > 0) {
    writeGrace(state, out);
    chunks.endRow();
  }
  const sessions = writeSessions(state, chunks);
  const locks = writeLocks(state, chunks);
  const positions: RowPositions = { sessions, locks };
  writeLeases(state, positions, chunks);
  for (const wait of waitsByPlace(state)) {
    writeWait(state, wait, positions, out);
    chunks.endRow();
  }
  const { results, ended, disabled } = state;
  for (let slot = 0; slot <= results.slots.highest; slot += 1) {
    if (!results.isLive(slot)) continue;
    writeResult(state, slot, positions, out);
    chunks.endRow();
  }
  for (let position = 0; position < ended.count; position += 1) {
    writeEnded(state, ended.slotAt(position), out);
    chunks.endRow();
  }
  for (let position = 0; position < disabled.count; position += 1) {
    writeDisabled(state, disabled.at(position), out);
    chunks.endRow();
  }
  writeEnd(chunks.rows, out);
  chunks.flush();
}

function noPositions(table: Table): Uint32Array {
  return new Uint32Array(table.slots.highest + 1);
}

function writeSessions(state: MachineState, chunks: ChunkWriter): Uint32Array {
  const { sessions } = state;
  const positions = noPositions(sessions);
  let position = 0;
  for (let slot = 0; slot <= sessions.slots.highest; slot += 1) {
    if (!sessions.isLive(slot)) continue;
    positions[slot] = position;
    position += 1;
    writeSession(state, slot, chunks.out);
    chunks.endRow();
  }
  return positions;
}

/**
 * Locks in use by name, so that who reads them fills the order of names from its end; then idle
 * ones from the oldest on.
 */
function writeLocks(state: MachineState, chunks: ChunkWriter): Uint32Array {
  const { locks } = state;
  const positions = noPositions(locks);
  let position = 0;
  const writeOne = (slot: number): void => {
    positions[slot] = position;
    position += 1;
    writeLock(state, slot, chunks.out);
    chunks.endRow();
  };
  locks.order.seek(NO_BYTES, 0, 0, false);
  for (let slot = locks.order.nextSlot(); slot !== NONE; slot = locks.order.nextSlot()) {
    if (!locks.isIdleAt(slot)) writeOne(slot);
  }
  for (let slot = locks.oldestIdle; slot !== NONE; slot = locks.nextIdleOf(slot)) writeOne(slot);
  return positions;
}

/** Each session's leases in the order of its list, then those that stand alone. */
function writeLeases(state: MachineState, positions: RowPositions, chunks: ChunkWriter): void {
  const { sessions, leases } = state;
  for (let session = 0; session <= sessions.slots.highest; session += 1) {
    if (!sessions.isLive(session)) continue;
    let lease = sessions.firstLease[session] as number;
    while (lease !== NONE) {
      writeLease(state, lease, positions, chunks.out);
      chunks.endRow();
      lease = leases.nextInSession[lease] as number;
    }
  }
  for (let lease = 0; lease <= leases.slots.highest; lease += 1) {
    if (!leases.isLive(lease) || leases.session[lease] !== NONE) continue;
    writeLease(state, lease, positions, chunks.out);
    chunks.endRow();
  }
}

/** A wait belongs to a lock's queue and to a session's list; both are in the order of places. */
function waitsByPlace(state: MachineState): Int32Array {
  const { waits } = state;
  const slots = new Int32Array(waits.count);
  let count = 0;
  for (let slot = 0; slot <= waits.slots.highest; slot += 1) {
    if (!waits.isLive(slot)) continue;
    slots[count] = slot;
    count += 1;
  }
  return slots.sort((a, b) => (waits.place[a] as number) - (waits.place[b] as number));
}
