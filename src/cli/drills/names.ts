/**
 * The words by which the command line knows the drills, in the order in which `all` plays them.
 *
 * Owns: the names, which scripts and records have; apart from the drills themselves, so that other
 * commands do not load clients, guards and databases. Used by: commands/drill.ts, drill.ts.
 */
export const DRILL_NAMES = [
  'paused-owner',
  'leader-change',
  'lost-lease',
  'watch-compacted',
  'forced-release',
  'lost-majority',
  'lost-zone',
  'full-disk',
] as const;
export type DrillName = (typeof DRILL_NAMES)[number];
