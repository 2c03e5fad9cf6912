/**
 * The rows of a snapshot of the lock machine: every logical record, one row for each, format 1.
 *
 * Owns: the numbers of row kinds and the fields of each row, on disk for ever (ADR-0010). A row
 * names a session or a lock by how many rows of that kind came before, a wait by its place.
 * Slots, indexes, heaps and lists are no part of it; who reads rows builds them anew. Never:
 * chunks, checksums. Used by: snapshot-writer.ts; read back by snapshot-restorer.ts.
 */
import type { RowWriter } from '../../collections/row-bytes.js';
import type { MachineState } from './machine-state.js';
import { type SettingName, SettingNumber } from './settings.js';
import type { DisabledRule } from './tables/disabled-names.js';
import { ResultState } from './tables/result-table.js';
import { SessionState } from './tables/session-table.js';
import { NONE } from './tables/table.js';

/** First byte of a row. Rows come in the order of this list. */
export const RowKind = {
  /** Counters and settings; the first row, and one only. */
  Head: 1,
  /** While a restored state grants nothing: until when. */
  Grace: 10,
  Session: 2,
  Lock: 3,
  Lease: 4,
  Wait: 5,
  Result: 6,
  Ended: 7,
  /** A name or prefix that is disabled. */
  Disabled: 9,
  /** The last row: how many came before it. */
  End: 8,
} as const;

/** Place of each kind in that order. */
export const ROW_ORDER: readonly number[] = Object.values(RowKind);

/** In place of a position: there is no such record. */
export const NO_ROW = 0xffff_ffff;

/** Where the rows of sessions and locks stand, by slot: later rows name them so. */
export interface RowPositions {
  readonly sessions: Uint32Array;
  readonly locks: Uint32Array;
}

export function writeHead(state: MachineState, out: RowWriter): void {
  out.u8(RowKind.Head);
  out.number(state.appliedIndex);
  out.number(state.now);
  out.number(state.revision);
  out.number(state.idleFloor);
  out.number(state.sessionNumber);
  out.number(state.results.lastOrdinal);
  const names = Object.keys(SettingNumber) as SettingName[];
  out.u32(names.length);
  for (const name of names) {
    out.u32(SettingNumber[name]);
    out.number(state.settings[name]);
  }
}

export function writeGrace(state: MachineState, out: RowWriter): void {
  out.u8(RowKind.Grace);
  out.number(state.grantsFrom);
}

export function writeSession(state: MachineState, slot: number, out: RowWriter): void {
  const { sessions } = state;
  out.u8(RowKind.Session);
  out.u32(sessions.id0[slot] as number);
  out.u32(sessions.id1[slot] as number);
  out.u32(sessions.id2[slot] as number);
  out.u32(sessions.id3[slot] as number);
  out.u32(sessions.secret0[slot] as number);
  out.u32(sessions.secret1[slot] as number);
  out.u32(sessions.secret2[slot] as number);
  out.u32(sessions.secret3[slot] as number);
  out.number(sessions.number[slot] as number);
  out.u32(sessions.principal[slot] as number);
  out.u8(sessions.state[slot] as number);
  out.number(sessions.ttlMs[slot] as number);
  out.number(sessions.renewedAt[slot] as number);
  out.number(sessions.deadline[slot] as number);
  out.number(sessions.endedAt[slot] as number);
  out.number(sessions.floor[slot] as number);
  out.number(sessions.mark[slot] as number);
  // The retention may be older than the setting that stands now: it cannot be computed again.
  const isLive = sessions.state[slot] === SessionState.Live;
  out.number(isLive ? -1 : sessions.retentions.deadlineOf(slot));
  writeBytes(state, sessions.metadata[slot] as number, out);
}

export function writeLock(state: MachineState, slot: number, out: RowWriter): void {
  const { locks } = state;
  out.u8(RowKind.Lock);
  out.u8(locks.isIdleAt(slot) ? 1 : 0);
  out.number(locks.lastRevision[slot] as number);
  writeBytes(state, locks.name[slot] as number, out);
}

export function writeLease(
  state: MachineState,
  slot: number,
  positions: RowPositions,
  out: RowWriter,
): void {
  const { leases } = state;
  out.u8(RowKind.Lease);
  out.u32(leases.id0[slot] as number);
  out.u32(leases.id1[slot] as number);
  out.u32(leases.id2[slot] as number);
  out.u32(leases.id3[slot] as number);
  out.u32(positions.locks[leases.lock[slot] as number] as number);
  out.u32(positionOf(positions.sessions, leases.session[slot] as number));
  out.u32(leases.principal[slot] as number);
  out.number(leases.token[slot] as number);
  out.number(leases.grantedAt[slot] as number);
  out.number(leases.renewedAt[slot] as number);
  out.number(leases.ttlMs[slot] as number);
  out.number(leases.deadlineFloor[slot] as number);
  writeBytes(state, leases.metadata[slot] as number, out);
}

export function writeWait(
  state: MachineState,
  slot: number,
  positions: RowPositions,
  out: RowWriter,
): void {
  const { waits } = state;
  out.u8(RowKind.Wait);
  out.number(waits.place[slot] as number);
  out.u32(positions.locks[waits.lock[slot] as number] as number);
  out.u32(positionOf(positions.sessions, waits.session[slot] as number));
  out.u32(waits.principal[slot] as number);
  out.number(waits.queuedAt[slot] as number);
  out.number(waits.until[slot] as number);
  out.number(waits.keptUntil[slot] as number);
  out.number(waits.ttlMs[slot] as number);
  writeBytes(state, waits.metadata[slot] as number, out);
}

export function writeResult(
  state: MachineState,
  slot: number,
  positions: RowPositions,
  out: RowWriter,
): void {
  const { results, waits } = state;
  out.u8(RowKind.Result);
  out.u8(results.state[slot] as number);
  out.u32(results.principal[slot] as number);
  out.u32(positionOf(positions.sessions, results.session[slot] as number));
  out.number(results.sequence[slot] as number);
  writeBytes(state, results.free[slot] as number, out);
  out.number(results.ordinal[slot] as number);
  out.u32(results.digest0[slot] as number);
  out.u32(results.digest1[slot] as number);
  out.u8(results.anyParameters[slot] as number);
  out.number(results.notAfter[slot] as number);
  out.number(results.retentions.has(slot) ? results.retentions.deadlineOf(slot) : -1);
  const wait = results.wait[slot] as number;
  out.number(wait === NONE ? -1 : (waits.place[wait] as number));
  if (results.state[slot] !== ResultState.Acknowledged) writeAnswer(state, slot, out);
}

function writeAnswer(state: MachineState, slot: number, out: RowWriter): void {
  const { results } = state;
  out.u8(results.code[slot] as number);
  out.u8(results.kind[slot] as number);
  out.u8(results.cause[slot] as number);
  out.number(results.entryTime[slot] as number);
  for (let i = 0; i < 8; i += 1) out.u32(results.words[slot * 8 + i] as number);
  out.number(results.token[slot] as number);
  out.number(results.revision[slot] as number);
  out.number(results.deadline[slot] as number);
  out.number(results.ttlMs[slot] as number);
  out.number(results.holderSince[slot] as number);
  out.u32(results.holderPrincipal[slot] as number);
  writeBytes(state, results.blob[slot] as number, out);
}

export function writeEnded(state: MachineState, slot: number, out: RowWriter): void {
  const { ended } = state;
  out.u8(RowKind.Ended);
  for (let word = 0; word < 4; word += 1) out.u32(ended.wordOf(slot, word));
  out.u32(ended.principalOf(slot));
  out.u8(ended.causeOf(slot));
  out.number(ended.revisionOf(slot));
}

export function writeDisabled(state: MachineState, rule: DisabledRule, out: RowWriter): void {
  out.u8(RowKind.Disabled);
  out.u8(rule.isPrefix ? 1 : 0);
  out.number(rule.revision);
  out.number(rule.since);
  out.u32(rule.principal);
  writeBytes(state, rule.name, out);
  writeBytes(state, rule.actor, out);
  writeBytes(state, rule.reason, out);
}

export function writeEnd(rows: number, out: RowWriter): void {
  out.u8(RowKind.End);
  out.number(rows);
}

function positionOf(positions: Uint32Array, slot: number): number {
  return slot === NONE ? NO_ROW : (positions[slot] as number);
}

function writeBytes(state: MachineState, handle: number, out: RowWriter): void {
  const { store } = state;
  if (handle === 0) out.absent();
  else out.string(store.pageOf(handle), store.offsetOf(handle), store.lengthOf(handle));
}
