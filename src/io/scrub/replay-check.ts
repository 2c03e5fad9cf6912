/**
 * The state that a data folder gives: its log through apply once more, held against each snapshot.
 *
 * Owns: the way from the oldest base (the founding, or a snapshot) over every entry, with each
 * whole snapshot on the way compared by digest and then restored and gone on from, as a start
 * would. What cannot be read is left out up to the next snapshot behind it. Never: writes.
 * Used by: folder-check.ts.
 */
import { LockMachine } from '../../core/locks/lock-machine.js';
import { Replayer } from '../../replica/replay.js';
import type { FoundingRecord } from '../../wire/founding.js';
import type { SnapshotManifest } from '../../wire/snapshot-manifest.js';
import { RECORD_HEADER_BYTES, RecordHeader } from '../log/record.js';
import { restoreNow, wordsOf } from '../snapshots/restore.js';
import { readManifest } from '../snapshots/snapshot-files.js';
import { FaultKind, type ScrubFault } from './fault.js';
import { PageDamage, PageFile } from './page-file.js';
import { listHistory, listLog, type SegmentPlace, type SnapshotPlace } from './places.js';

/** A state, by what two nodes compare. */
export interface StatePoint {
  readonly index: number;
  readonly term: number;
  readonly revision: number;
  readonly clusterTimeMs: number;
  readonly digest: string;
}

export interface ReplayReport {
  /** Index of the base that the last stretch began with, 0 for the founding. */
  readonly from: number;
  readonly end: StatePoint;
  /** The state itself. */
  readonly machine: LockMachine;
  /** The same at the last index that is known to be committed, null where that is not reached. */
  readonly committed: StatePoint | null;
  /** Indices of the snapshots that the log before them gives as well. */
  readonly compared: readonly number[];
  /** True when entries lie behind `end` that could not be read. */
  readonly isCut: boolean;
}

export interface ReplayTask {
  readonly dataFolder: string;
  readonly founding: FoundingRecord;
  /** Snapshots whose files are whole, ascending. */
  readonly snapshots: readonly SnapshotPlace[];
  readonly committedIndex: number;
  /** The last entry that is there, 0 without one. */
  readonly lastIndex: number;
}

export interface ReplayEvents {
  fault(kind: ScrubFault['kind'], file: string, index: number, found: string): void;
}

interface StoredEntry {
  readonly index: number;
  readonly term: number;
  readonly data: Uint8Array;
}

/** The entries behind `from` as far as they follow one another; damage ends them. */
function* entriesBehind(dataFolder: string, from: number): Generator<StoredEntry> {
  const places = [...listHistory(dataFolder), ...listLog(dataFolder)];
  const header = new RecordHeader();
  let last = from;
  for (const [at, place] of places.entries()) {
    const next = places[at + 1]?.first ?? Number.POSITIVE_INFINITY;
    if (next <= last + 1) continue;
    if (place.first > last + 1) return;
    for (const [index, record] of recordsOf(place)) {
      if (index <= last) continue;
      if (index !== last + 1 || !header.tryRead(record)) return;
      last = index;
      yield { index, term: header.term, data: record.subarray(RECORD_HEADER_BYTES) };
    }
  }
}

function* recordsOf({ folder }: SegmentPlace): Generator<readonly [number, Uint8Array]> {
  let file: PageFile;
  try {
    file = PageFile.open(folder);
  } catch (error) {
    if (error instanceof PageDamage) return; // the check of the segment has told
    throw error;
  }
  try {
    for (const item of file.walk()) if (item.kind === 'record') yield [item.key, item.value];
  } finally {
    file.close();
  }
}

class Replay {
  machine: LockMachine;
  private replayer: Replayer;
  from = 0;
  term = 0;
  committed: StatePoint | null = null;
  readonly compared: number[] = [];
  /** True after an entry that the machine refused: what it holds is no state of any index. */
  isBroken = false;

  constructor(
    private readonly task: ReplayTask,
    private readonly events: ReplayEvents,
  ) {
    const { settings, clusterId } = task.founding;
    this.machine = new LockMachine(settings, wordsOf(clusterId));
    this.replayer = new Replayer(this.machine);
  }

  get index(): number {
    return this.machine.appliedIndex;
  }

  point(): StatePoint {
    const { machine, term } = this;
    const { revision, now: clusterTimeMs } = machine;
    return { index: machine.appliedIndex, term, revision, clusterTimeMs, digest: machine.digest() };
  }

  /** Applies one entry. False: the machine refuses it, which is told. */
  apply({ index, term, data }: StoredEntry): boolean {
    try {
      this.replayer.apply(index, data);
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      const found = `the entry is whole and cannot be applied: ${reason}`;
      this.events.fault(FaultKind.State, this.task.dataFolder, index, found);
      this.isBroken = true;
      return false;
    }
    this.term = term;
    if (index === this.task.committedIndex) this.committed = this.point();
    return true;
  }

  /** Goes on from a snapshot; false when its rows give no state, which is told. */
  goOnFrom({ folder, index }: SnapshotPlace, manifest: SnapshotManifest): boolean {
    const machine = restoreNow(folder, manifest, new Uint32Array(2));
    if (typeof machine === 'string') {
      this.events.fault(FaultKind.State, folder, index, `the snapshot ${machine}`);
      return false;
    }
    this.machine = machine;
    this.replayer = new Replayer(machine);
    this.isBroken = false;
    this.from = index;
    this.term = manifest.term;
    if (index === this.task.committedIndex) this.committed = this.point();
    return true;
  }

  /** Holds the machine, which is at the snapshot's index, against it. */
  compare({ folder, index }: SnapshotPlace, { digest, term }: SnapshotManifest): void {
    const own = this.machine.digest();
    if (own !== digest || this.term !== term) {
      const found = `the log gives digest ${own} in term ${this.term}`;
      const text = `${found}, the snapshot has ${digest} in term ${term}`;
      this.events.fault(FaultKind.State, folder, index, text);
      return;
    }
    this.compared.push(index);
  }
}

/** Replays what is there, up to the index `at`. Null when there is nothing to begin with. */
export function replayFolder(
  task: ReplayTask,
  events: ReplayEvents,
  { at }: { readonly at: number },
): ReplayReport | null {
  const replay = new Replay(task, events);
  const first = [...listHistory(task.dataFolder), ...listLog(task.dataFolder)][0]?.first ?? 1;
  const bases = task.snapshots.filter(({ index }) => index <= at);
  let hasBase = first === 1;
  for (const base of bases) {
    if (hasBase) advance(replay, task, base.index);
    const manifest = readManifest(base.folder);
    if (typeof manifest === 'string') continue; // its check has told
    const isReached = hasBase && !replay.isBroken && replay.index === base.index;
    if (isReached) replay.compare(base, manifest);
    hasBase = replay.goOnFrom(base, manifest) || hasBase;
  }
  if (!hasBase || replay.isBroken) return null;
  advance(replay, task, at);
  if (replay.isBroken) return null;
  const { from, committed, compared } = replay;
  const isCut = replay.index < Math.min(at, task.lastIndex);
  return { from, end: replay.point(), machine: replay.machine, committed, compared, isCut };
}

/** Applies entries up to `to`, as far as they can be read. */
function advance(replay: Replay, { dataFolder }: ReplayTask, to: number): void {
  if (replay.index >= to || replay.isBroken) return;
  for (const entry of entriesBehind(dataFolder, replay.index)) {
    if (entry.index > to || !replay.apply(entry) || entry.index === to) return;
  }
}
