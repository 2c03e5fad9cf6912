/**
 * A data folder that nobody has open, checked as a whole: identity, log, history, snapshots, and
 * the state that they give.
 *
 * Owns: how the parts must fit together, and whether a node would start from them. Never: writes,
 * opens LMDB, or stops at the first fault. Used by: cli/verify, cli/repair.
 */
import fs from 'node:fs';
import { FaultKind, type ScrubFault } from './fault.js';
import {
  listHistory,
  listLog,
  listStates,
  logFolder,
  type SegmentPlace,
  type SnapshotPlace,
} from './places.js';
import { type ReplayReport, replayFolder } from './replay-check.js';
import {
  type ChainPoint,
  CRC_UNKNOWN,
  checkSegment,
  FOUNDING_POINT,
  missingWords,
} from './segment-check.js';
import { checkSnapshot } from './snapshot-check.js';
import { hexOf, type Identity, readIdentity, statePlace } from './state-check.js';

/** Faults of one folder that are told; more are only counted. */
export const FAULTS_TOLD_MAX = 64;

export interface FolderCheckOptions {
  /** Replays up to this index; absent: to the end of the log. */
  readonly at?: number;
  /** Hears of the bytes read so far, now and then. */
  onProgress?(bytes: number): void;
}

/** Row of records: what the log, or history, holds. */
export interface RowReport {
  /** First index, 0 where there is none. */
  readonly first: number;
  readonly last: number;
  readonly segments: number;
}

export interface FolderReport {
  readonly identity: Identity;
  readonly log: RowReport;
  readonly history: RowReport;
  /** Indices of the snapshots that are whole, ascending. */
  readonly snapshots: readonly number[];
  readonly bytes: number;
  /** Highest index that this folder knows to be committed. */
  readonly committedIndex: number;
  /** The state at the end, null where none can be built. */
  readonly replay: ReplayReport | null;
  readonly faults: readonly ScrubFault[];
  /** Faults beyond those that are told. */
  readonly faultsLeftOut: number;
  /** What is not as usual and no fault. */
  readonly remarks: readonly string[];
}

const PROGRESS_BYTES = 64 << 20;

class FolderCheck {
  readonly faults: ScrubFault[] = [];
  readonly remarks: string[] = [];
  faultsLeftOut = 0;
  bytes = 0;
  committedIndex = 0;
  readonly snapshots: SnapshotPlace[] = [];
  /** Highest index of a snapshot that a node would start from, 0 for none. */
  startIndex = 0;
  private toldBytes = 0;

  constructor(private readonly options: FolderCheckOptions) {}

  fault(kind: ScrubFault['kind'], file: string, index: number, found: string): void {
    if (this.faults.length < FAULTS_TOLD_MAX) this.faults.push({ kind, file, index, found });
    else this.faultsLeftOut += 1;
  }

  /** Runs a check to its end, counting what it reads. */
  run<T>(check: Generator<number, T>): T {
    for (;;) {
      const { done, value } = check.next();
      if (done) return value;
      this.bytes += value;
      if (this.bytes - this.toldBytes < PROGRESS_BYTES) continue;
      this.toldBytes = this.bytes;
      this.options.onProgress?.(this.bytes);
    }
  }

  checkSnapshots(dataFolder: string, clusterId: string): void {
    for (const place of listStates(dataFolder)) {
      const { kind, folder, index } = place;
      const onFault = (file: string, found: string) => this.fault(kind, file, index, found);
      const manifest = this.run(checkSnapshot(folder, index, { onFault }));
      if (manifest === null) continue;
      const cluster = hexOf(manifest.clusterId);
      if (clusterId !== '' && cluster !== clusterId) {
        onFault(folder, `it is of cluster ${cluster}, the folder of ${clusterId}`);
        continue;
      }
      this.snapshots.push(place);
      if (kind === FaultKind.Snapshot) this.startIndex = Math.max(this.startIndex, index);
    }
  }

  /** Reads a row of segments, each of which must go on where the one before has ended. */
  checkRow(places: readonly SegmentPlace[], before: ChainPoint | null, superseded: number): Row {
    let point = before ?? startOf(places[0]);
    const row = { first: places[0]?.first ?? 0, end: point, segments: places.length };
    let isHidden = false;
    for (const [at, { first, folder, kind }] of places.entries()) {
      if (first > point.index + 1 && isHidden) {
        point = { index: first - 1, term: point.term, crc: CRC_UNKNOWN };
      } else if (first !== point.index + 1) {
        if (first <= superseded && first > point.index + 1) {
          this.remarks.push(
            `what lies before ${folder} is superseded by a snapshot: the next start drops it`,
          );
          row.first = first;
        } else {
          this.fault(kind, folder, point.index + 1, gapWords(point.index + 1, first));
        }
        point = { index: first - 1, term: point.term, crc: CRC_UNKNOWN };
      }
      const onFault = (index: number, found: string) => this.fault(kind, folder, index, found);
      const reading = this.run(checkSegment(folder, point, { onFault }));
      const { end, records, commitIndex, isEndHidden } = reading;
      this.committedIndex = Math.max(this.committedIndex, commitIndex);
      const isLast = at === places.length - 1;
      const isEmpty = records === 0 && !isEndHidden;
      if (isEmpty && !isLast) onFault(first, 'the segment is empty');
      isHidden = isEndHidden;
      point = end;
    }
    row.end = point;
    return row;
  }
}

interface Row {
  first: number;
  end: ChainPoint;
  segments: number;
}

/** The first record of all follows nothing; any other follows one that was dropped. */
function startOf(place: SegmentPlace | undefined): ChainPoint {
  if (place === undefined || place.first === 1) return FOUNDING_POINT;
  return { index: place.first - 1, term: 0, crc: CRC_UNKNOWN };
}

function gapWords(from: number, next: number): string {
  if (next > from) return `${missingWords(from, next - 1)} before this segment`;
  return `its name says that it begins at ${next}, and the segment before it ends at ${from - 1}`;
}

function reportOf({ first, end, segments }: Row): RowReport {
  return segments === 0
    ? { first: 0, last: 0, segments }
    : { first, last: Math.max(end.index, first - 1), segments };
}

/** What the node would say at its start, beyond damage in a part. */
function checkStart(check: FolderCheck, dataFolder: string, log: Row, identity: Identity): void {
  const place = logFolder(dataFolder);
  const { state } = identity;
  if (log.segments === 0) {
    if (state !== null && state.founding !== null) {
      check.fault(FaultKind.Log, place, 0, 'no segment is there');
    }
    return;
  }
  if (log.first > check.startIndex + 1) {
    const newest = `the newest whole snapshot is ${check.startIndex}`;
    const found = `the log begins at ${log.first}, ${newest}`;
    check.fault(FaultKind.Snapshot, place, log.first, found);
  }
  if (state === null || log.end.index <= check.startIndex || log.end.term <= state.term) return;
  const found = `the last entry has term ${log.end.term}, the node has been in term ${state.term}`;
  check.fault(FaultKind.Identity, statePlace(dataFolder), log.end.index, found);
}

function checkIdentity(check: FolderCheck, dataFolder: string): Identity {
  const place = statePlace(dataFolder);
  const isNew = !fs.existsSync(place) && listLog(dataFolder).length === 0;
  if (isNew) {
    check.remarks.push('the folder holds nothing: no node has served from it');
    return { state: null, founding: null, found: [] };
  }
  const identity = readIdentity(dataFolder);
  for (const found of identity.found) check.fault(FaultKind.Identity, place, 0, found);
  if (identity.state !== null && identity.state.founding === null) {
    check.remarks.push('the node was never founded');
  }
  return identity;
}

/**
 * Checks the data folder, which nobody writes. Everything that is wrong is in the report; throws
 * only what the system refuses, such as a folder that may not be read.
 */
export function checkFolder(dataFolder: string, options: FolderCheckOptions = {}): FolderReport {
  const check = new FolderCheck(options);
  const identity = checkIdentity(check, dataFolder);
  const { founding } = identity;
  check.checkSnapshots(dataFolder, founding === null ? '' : hexOf(founding.clusterId));
  const kept = listHistory(dataFolder);
  const own = listLog(dataFolder);
  const history = check.checkRow(kept, null, 0);
  const isJoined = kept.length > 0 && own[0]?.first === history.end.index + 1;
  if (kept.length > 0 && own.length > 0 && !isJoined) {
    const found = `history ends at ${history.end.index}, the log begins at ${own[0]?.first}`;
    check.fault(FaultKind.History, kept.at(-1)!.folder, history.end.index + 1, found);
  }
  const log = check.checkRow(own, isJoined ? history.end : null, check.startIndex + 1);
  checkStart(check, dataFolder, log, identity);
  const { snapshots, committedIndex, faults, remarks, bytes } = check;
  const lastIndex = log.segments === 0 ? 0 : log.end.index;
  const at = options.at ?? Number.POSITIVE_INFINITY;
  const task = { dataFolder, snapshots, committedIndex, lastIndex };
  const replay = founding === null ? null : replayFolder({ ...task, founding }, check, { at });
  return {
    identity,
    log: reportOf(log),
    history: reportOf(history),
    snapshots: snapshots.map(({ index }) => index),
    bytes,
    committedIndex,
    replay,
    faults,
    faultsLeftOut: check.faultsLeftOut,
    remarks,
  };
}
