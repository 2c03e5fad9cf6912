/**
 * Every drill by its name.
 *
 * Owns: the table. Never: a drill; each has a file in scenarios/.
 * Used by: commands/drill.ts.
 */
import type { Drill } from './drill.js';
import type { DrillName } from './names.js';
import { forcedRelease } from './scenarios/forced-release.js';
import { fullDisk } from './scenarios/full-disk.js';
import { leaderChange } from './scenarios/leader-change.js';
import { lostLease } from './scenarios/lost-lease.js';
import { lostMajority } from './scenarios/lost-majority.js';
import { lostZone } from './scenarios/lost-zone.js';
import { pausedOwner } from './scenarios/paused-owner.js';
import { watchCompacted } from './scenarios/watch-compacted.js';

export const DRILLS: Readonly<Record<DrillName, Drill>> = {
  'paused-owner': pausedOwner,
  'leader-change': leaderChange,
  'lost-lease': lostLease,
  'watch-compacted': watchCompacted,
  'forced-release': forcedRelease,
  'lost-majority': lostMajority,
  'lost-zone': lostZone,
  'full-disk': fullDisk,
};
