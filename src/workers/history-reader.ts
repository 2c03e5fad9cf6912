/**
 * Tells committed events from disk: a snapshot, and the entries behind it through apply once more.
 *
 * Owns: a few places in the history, each a lock machine that has applied everything before it, so
 * that a reader which asks for page after page costs one replay. Never: the state of the node, a
 * second form of events: they are what the production code says of the log, so they cannot differ
 * from what the node told when they were new. Used by: history-thread.ts.
 */
import { LockMachine } from '../core/locks/lock-machine.js';
import type { Settings } from '../core/locks/settings.js';
import { type HistoryBase, readHistory } from '../io/history/history-folder.js';
import { SealedWalk } from '../io/history/sealed-walk.js';
import { restoreNow, wordsOf } from '../io/snapshots/restore.js';
import { readManifest } from '../io/snapshots/snapshot-files.js';
import { HISTORY_CURSORS_MAX, HISTORY_SLICE_MS } from '../limits.js';
import { startsWith } from '../replica/audit-reads.js';
import { Replayer } from '../replica/replay.js';
import { type AuditRow, AuditRows } from '../wire/audit.js';

/** The clock is looked at after so many entries. */
const ENTRIES_PER_LOOK = 16;

export interface HistoryReaderOptions {
  readonly dataFolder: string;
  /** ID_BYTES of the cluster. */
  readonly clusterId: Uint8Array;
  /** Settings of the founding record. */
  readonly settings: Settings;
  /** ms; HISTORY_SLICE_MS by default. */
  readonly sliceMs?: number;
}

export interface HistoryAsk {
  /** First revision wanted. */
  readonly from: number;
  readonly prefix: Uint8Array;
  readonly limit: number;
  /** Last index that is sealed; the revision of the state there is not below `from`. */
  readonly sealedIndex: number;
}

export interface HistoryAnswer {
  readonly rows: readonly AuditRow[];
  /** The first revision that the rows do not cover. */
  readonly next: number;
}

/** An event that was replayed and not looked at yet. */
interface KeptEvent {
  readonly revision: number;
  readonly name: Uint8Array;
  readonly row: AuditRow;
}

/** A place in the history. */
class Cursor {
  private readonly replayer: Replayer;
  private readonly rows = new AuditRows();
  private kept: KeptEvent[] = [];
  private keptAt = 0;
  private readonly walk: SealedWalk;

  constructor(
    private readonly machine: LockMachine,
    dataFolder: string,
  ) {
    this.replayer = new Replayer(machine);
    this.walk = new SealedWalk(dataFolder, machine.appliedIndex);
  }

  /** Revision of the next event it gives. */
  get next(): number {
    return this.kept[this.keptAt]?.revision ?? this.machine.revision + 1;
  }

  get index(): number {
    return this.walk.index;
  }

  /** The next event that was replayed, undefined when another entry has to be. */
  shift(): KeptEvent | undefined {
    const event = this.kept[this.keptAt];
    if (event !== undefined) this.keptAt += 1;
    return event;
  }

  /** Replays one entry and keeps its events of revision `from` and later. */
  step(from: number): void {
    const { machine, rows } = this;
    const data = this.walk.next();
    const { index } = this.walk;
    this.replayer.apply(index, data);
    this.kept = [];
    this.keptAt = 0;
    const { events } = machine;
    for (let at = 0; at < events.count; at += 1) {
      const event = events.at(at);
      if (event.revision < from) continue;
      const name = machine.eventName(event);
      rows.open(index, data);
      this.kept.push({ revision: event.revision, name, row: rows.row(event, name) });
    }
  }

  close(): void {
    this.walk.close();
  }
}

export class HistoryReader {
  /** The one that was used last is the last. */
  private cursors: Cursor[] = [];

  constructor(private readonly options: HistoryReaderOptions) {}

  /**
   * Events from `from` on, as far as the slice of time goes. Null when they are no longer kept.
   * Throws what is wrong with the disk; but what was dropped while it was read is tried once more.
   */
  read(ask: HistoryAsk): HistoryAnswer | null {
    try {
      return this.readOnce(ask);
    } catch {
      this.forget();
      return this.readOnce(ask);
    }
  }

  private readOnce(ask: HistoryAsk): HistoryAnswer | null {
    const { from, limit, prefix, sealedIndex } = ask;
    const cursor = this.cursorAt(from);
    if (cursor === null) return null;
    const rows: AuditRow[] = [];
    const untilMs = performance.now() + (this.options.sliceMs ?? HISTORY_SLICE_MS);
    let entries = 0;
    while (rows.length < limit) {
      const event = cursor.shift();
      if (event !== undefined) {
        if (event.revision >= from && startsWith(event.name, prefix)) rows.push(event.row);
        continue;
      }
      if (cursor.index >= sealedIndex) break;
      entries += 1;
      if (entries % ENTRIES_PER_LOOK === 0 && performance.now() >= untilMs) break;
      cursor.step(from);
    }
    return { rows, next: Math.max(from, cursor.next) };
  }

  /** Lets go of every place: of another history from here on. */
  forget(): void {
    for (const cursor of this.cursors) cursor.close();
    this.cursors = [];
  }

  /** The place nearest before `from`: one that is known, or a base. */
  private cursorAt(from: number): Cursor | null {
    const { bases } = readHistory(this.options.dataFolder);
    const base = bases.findLast(({ revision }) => revision < from);
    const known = this.cursors
      .filter(({ next }) => next <= from)
      .reduce<Cursor | null>((best, each) => (best && best.next >= each.next ? best : each), null);
    if (known === null && base === undefined) return null;
    let cursor = known;
    if (cursor === null || (base !== undefined && base.index > cursor.index)) {
      if (base === undefined) return null;
      cursor = new Cursor(this.machineAt(base), this.options.dataFolder);
    }
    const others = this.cursors.filter((each) => each !== cursor);
    for (const gone of others.splice(0, others.length - HISTORY_CURSORS_MAX + 1)) gone.close();
    this.cursors = [...others, cursor];
    return cursor;
  }

  private machineAt({ index, folder }: HistoryBase): LockMachine {
    const { clusterId, settings } = this.options;
    if (index === 0) return new LockMachine(settings, wordsOf(clusterId));
    const manifest = readManifest(folder);
    if (typeof manifest === 'string') throw new Error(`snapshot ${folder}: ${manifest}`);
    const machine = restoreNow(folder, manifest, new Uint32Array(2));
    if (typeof machine === 'string') throw new Error(`snapshot ${folder}: ${machine}`);
    return machine;
  }
}
