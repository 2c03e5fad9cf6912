/**
 * Term, vote and identity on disk: one record in an LMDB environment of its own.
 *
 * Owns: `state/` of a data folder, and the newest record in memory. Never: log entries.
 * Used by: the log thread, which commits here first when an order changes term or vote.
 */
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { Environment, findDamage } from './environment.js';
import { corruptState, LogError, LogErrorCode } from './log-error.js';
import { DISK_ID_BYTES, decodeState, encodeState, type StateRecord } from './state-record.js';

const KEY = 0;
/** The record is a few hundred bytes; LMDB keeps a handful of page versions. */
const FILE_BYTES = 1 << 20;

/** The open state store of one data folder. */
export class StateStore {
  private constructor(
    private readonly environment: Environment,
    private state: StateRecord,
  ) {}

  /**
   * Opens `state/` below `folder`, or creates it with a fresh disk id.
   * `hasLog` says that entries were ever stored: then the record must be there.
   * Throws LogError FOLDER_FOREIGN when the folder is another node's, STATE_CORRUPT when its
   * record is damaged or lost: a replica that forgot its vote must not take part (Raft §5.2).
   */
  static open(folder: string, nodeId: number, hasLog: boolean): StateStore {
    const place = path.join(folder, 'state');
    if (!fs.existsSync(place)) {
      if (hasLog) throw corruptState(place, 'the folder is missing beside a log');
      return StateStore.create(place, nodeId);
    }
    const damage = findDamage(place);
    if (damage !== null) throw corruptState(place, damage);
    const environment = Environment.open(place);
    const bytes = environment.get(KEY);
    if (bytes === null) {
      environment.close();
      if (hasLog) throw corruptState(place, 'the record is missing beside a log');
      // A crash between creating the environment and its first record: nobody was promised
      // anything, so it may be drawn again.
      Environment.delete(place);
      return StateStore.create(place, nodeId);
    }
    const state = decodeState(bytes);
    environment.endReads();
    if (typeof state === 'string') throw corruptState(place, `the record ${state}`);
    if (state.nodeId !== nodeId) {
      throw new LogError(
        LogErrorCode.FolderForeign,
        `Give node ${nodeId} a folder of its own: ${folder} belongs to node ${state.nodeId}.`,
      );
    }
    return new StateStore(environment, state);
  }

  /** Makes `state/` below `folder`, which has none, with this record; durable when it returns. */
  static write(folder: string, state: StateRecord): void {
    StateStore.createWith(path.join(folder, 'state'), state).close();
  }

  private static create(place: string, nodeId: number): StateStore {
    const diskId = new Uint8Array(randomBytes(DISK_ID_BYTES));
    return StateStore.createWith(place, { term: 0, votedFor: 0, nodeId, diskId, founding: null });
  }

  private static createWith(place: string, state: StateRecord): StateStore {
    const store = new StateStore(Environment.create(place, FILE_BYTES), state);
    store.save(state);
    return store;
  }

  get current(): StateRecord {
    return this.state;
  }

  /** Makes term and vote durable. */
  saveHardState(term: number, votedFor: number): void {
    this.save({ ...this.state, term, votedFor });
  }

  /** Makes the founding record durable. */
  saveFounding(founding: Uint8Array): void {
    this.save({ ...this.state, founding });
  }

  close(): void {
    this.environment.close();
  }

  private save(state: StateRecord): void {
    this.environment.commit(() => this.environment.put(KEY, encodeState(state)));
    this.state = state;
  }
}
