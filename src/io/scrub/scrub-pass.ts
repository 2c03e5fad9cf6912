/**
 * One pass over the data folder of a node that serves: whatever is not being written.
 *
 * Owns: what is passed over (the newest segment), and that nothing is called damaged because it was
 * cut, dropped or replaced while it was read: a fault counts when it is found twice in files that
 * have not changed and are still there. Never: writes, locks, or LMDB, whose reader a bad page may
 * take down together with the node. Used by: workers/scrub-thread.ts.
 */
import fs from 'node:fs';
import { isSameFault, type ScrubFault } from './fault.js';
import {
  listHistory,
  listLog,
  listStates,
  type SegmentPlace,
  type SnapshotPlace,
} from './places.js';
import {
  type ChainPoint,
  CRC_UNKNOWN,
  checkSegment,
  FOUNDING_POINT,
  missingWords,
} from './segment-check.js';
import { checkSnapshot } from './snapshot-check.js';

/** A value of a pass that asks its caller to wait a while: something looked wrong. */
export const SCRUB_REST = -1;

/** What a pass has read and found. */
export interface ScrubResult {
  readonly segments: number;
  readonly snapshots: number;
  readonly faults: readonly ScrubFault[];
}

interface Look {
  readonly faults: readonly ScrubFault[];
  /** Where the row of records has come to, null when that is not known. */
  readonly end: ChainPoint | null;
  /** False: what was read has changed meanwhile, or is gone. */
  readonly counts: boolean;
}

/** Segments that are written no more, ascending. */
function sealedSegments(dataFolder: string): SegmentPlace[] {
  return [...listHistory(dataFolder), ...listLog(dataFolder).slice(0, -1)];
}

function startPoint(first: number): ChainPoint {
  return first === 1 ? FOUNDING_POINT : { index: first - 1, term: 0, crc: CRC_UNKNOWN };
}

/** True when both lists have the same segments in the same places. */
function isUnchanged(dataFolder: string, place: SegmentPlace): boolean {
  return sealedSegments(dataFolder).some(
    ({ first, folder }) => first === place.first && folder === place.folder,
  );
}

/** Looks at one segment, which follows `before` (null: not known). */
function* lookAt(
  dataFolder: string,
  place: SegmentPlace,
  before: ChainPoint | null,
): Generator<number, Look> {
  const faults: ScrubFault[] = [];
  const { first, folder, kind } = place;
  const tell = (index: number, found: string) => faults.push({ kind, file: folder, index, found });
  if (before !== null && first > before.index + 1) {
    tell(before.index + 1, `${missingWords(before.index + 1, first - 1)} before this segment`);
  }
  const isNext = before !== null && first === before.index + 1;
  const point = isNext ? before : startPoint(first);
  const reading = yield* checkSegment(folder, point, { onFault: tell });
  const { records, hasChanged, isEndHidden } = reading;
  if (records === 0 && faults.length === 0) tell(first, 'the segment is empty');
  const end = isEndHidden ? null : reading.end;
  return { faults, end, counts: !hasChanged && isUnchanged(dataFolder, place) };
}

/** Looks again at a segment in which something is wrong, and at the one before it. */
function* lookAgain(
  dataFolder: string,
  place: SegmentPlace,
  previous: SegmentPlace | null,
): Generator<number, Look> {
  let before: ChainPoint | null = null;
  if (previous !== null) {
    const look = yield* lookAt(dataFolder, previous, null);
    if (look.counts) before = look.end;
  }
  return yield* lookAt(dataFolder, place, before);
}

function* passSegments(
  dataFolder: string,
  tell: (fault: ScrubFault) => void,
): Generator<number, number> {
  let previous: SegmentPlace | null = null;
  let before: ChainPoint | null = null;
  let count = 0;
  for (;;) {
    const after: number = previous?.first ?? 0;
    const place = sealedSegments(dataFolder).find(({ first }) => first > after);
    if (place === undefined) return count;
    const look: Look = yield* lookAt(dataFolder, place, before);
    before = look.end;
    count += 1;
    if (look.faults.length > 0) {
      yield SCRUB_REST;
      const again: Look = yield* lookAgain(dataFolder, place, previous);
      const isTold = (fault: ScrubFault) => look.faults.some((each) => isSameFault(each, fault));
      if (again.counts) again.faults.filter(isTold).forEach(tell);
      before = again.end;
    }
    if (!look.counts) before = null;
    previous = place;
  }
}

function* lookAtSnapshot(place: SnapshotPlace): Generator<number, ScrubFault[]> {
  const faults: ScrubFault[] = [];
  const { kind, index, folder } = place;
  yield* checkSnapshot(folder, index, {
    onFault: (file, found) => faults.push({ kind, file, index, found }),
  });
  return faults;
}

function* passSnapshots(
  dataFolder: string,
  tell: (fault: ScrubFault) => void,
): Generator<number, number> {
  const places = listStates(dataFolder);
  for (const place of places) {
    const first = yield* lookAtSnapshot(place);
    if (first.length === 0) continue;
    yield SCRUB_REST;
    const again = yield* lookAtSnapshot(place);
    // One that goes loses its manifest first, and then its folder.
    if (!fs.existsSync(place.folder)) continue;
    for (const fault of again) if (first.some((each) => isSameFault(each, fault))) tell(fault);
  }
  return places.length;
}

/**
 * Reads everything that is not being written. A value is the bytes read since the last one, or
 * SCRUB_REST. `onFault` hears of each fault once it is certain.
 */
export function* scrubPass(
  dataFolder: string,
  onFault: (fault: ScrubFault) => void,
): Generator<number, ScrubResult> {
  const faults: ScrubFault[] = [];
  const tell = (fault: ScrubFault): void => {
    faults.push(fault);
    onFault(fault);
  };
  const snapshots = yield* passSnapshots(dataFolder, tell);
  const segments = yield* passSegments(dataFolder, tell);
  return { segments, snapshots, faults };
}
