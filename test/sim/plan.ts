/**
 * What kind of run a seed is: settings, clocks, network, disks, users.
 *
 * Owns: the draw. Each seed mixes its own classes, so that rare combinations come by often enough.
 * Never: when a fault strikes; faults.ts draws that. Used by: chaos.ts.
 */
import { defaultSettings, type Settings } from '../../src/core/locks/settings.js';
import type { CompactionPolicy } from '../../src/replica/compaction-state.js';
import type { World } from './world.js';

export interface Plan {
  readonly settings: Settings;
  /** Clocks outside of the assumed rates: only what needs no clock is asserted. */
  readonly areClocksWild: boolean;
  /** Least and greatest rate of a clock. */
  readonly rates: readonly [number, number];
  readonly loss: number;
  readonly duplication: number;
  readonly damage: number;
  readonly delayUs: readonly [number, number];
  readonly clientDelayUs: readonly [number, number];
  readonly fsyncUs: readonly [number, number];
  readonly segmentBytesMax: number;
  readonly compaction: CompactionPolicy;
  readonly chunkBytes: number;
  /** Nodes are struck in the middle of making and fetching snapshots. */
  readonly huntsSnapshots: boolean;
  readonly workers: number;
  readonly chaosMs: number;
  /** µs between two faults, least and most. */
  readonly faultGapUs: readonly [number, number];
  /** Leaders are hunted from the beginning to the end. */
  readonly huntsLeaders: boolean;
  /** Least and greatest TTL that users ask for, ms. */
  readonly ttlMs: readonly [number, number];
  readonly waitMsMax: number;
  readonly paceUs: readonly [number, number];
  /** Share of users with sessions, in tenths. */
  readonly sessionTenths: number;
  /** Principals among whom the users are divided; those of two use the same request ids. */
  readonly principals: number;
  readonly notAfter: NotAfterPlan;
  /** An operator forces, disables and expels, and a guard reports. */
  readonly hasOperator: boolean;
}

/** How users name a moment after which a first arrival is void, and how late they ask again. */
export interface NotAfterPlan {
  /** Share of acquires with one, and how far ahead it is, ms. */
  readonly share: number;
  readonly aheadMs: readonly [number, number];
  /** Share of free-form ids that are asked again after so long, µs. */
  readonly lateShare: number;
  readonly lateUs: readonly [number, number];
}

/** Further ahead than results are retained: it alone decides how long an id is kept. */
const FAR_NOT_AFTER: NotAfterPlan = {
  share: 0.5,
  aheadMs: [1_050, 3_000],
  lateShare: 0.3,
  lateUs: [900_000, 2_400_000],
};
const NEAR_NOT_AFTER: NotAfterPlan = {
  share: 0.03,
  aheadMs: [1, 200],
  lateShare: 0,
  lateUs: [0, 0],
};
const FAR_RETENTION_MS = 1_000;

const WILD_EVERY = 10;
const HUNT_EVERY = 4;
/** Not drawn: seeds without an operator go as they would if there were none. */
const OPERATOR_EVERY = 3;

function pick<T>(world: World, of: readonly T[]): T {
  return of[world.prng.below(of.length)] as T;
}

/** Small bounds, so that limits and expiries are met in a short run. */
function drawSettings(world: World, isNotAfterFar: boolean): Settings {
  const resultRetentionMs = pick(world, [2_000, 60_000, 60_000]);
  return {
    ...defaultSettings(),
    leaseTtlMsLeast: 100,
    leaseTtlMsDefault: 500,
    sessionTtlMsLeast: 100,
    idleLocksMax: pick(world, [0, 2, 200_000]),
    expiriesPerEntryMax: pick(world, [1, 3, 1_000]),
    endedLeasesMax: pick(world, [16, 64, 4_096]),
    implicitLapseMs: pick(world, [1_000, 3_000, 10_000]),
    sessionWindow: pick(world, [4, 32, 1_024]),
    waitersPerLockMax: pick(world, [2, 100_000]),
    leasesPerPrincipalMax: pick(world, [6, 2_000_000]),
    sessionsPerPrincipalMax: pick(world, [8, 100_000]),
    resultRetentionMs: isNotAfterFar ? FAR_RETENTION_MS : resultRetentionMs,
    freeResultsMax: pick(world, [400, 1_000_000, 1_000_000]),
  };
}

/** Draws the plan of `seed`. */
export function drawPlan(seed: number, world: World): Plan {
  const areClocksWild = seed % WILD_EVERY === WILD_EVERY - 1;
  const isFar = world.chance(0.15);
  const isSlow = world.chance(0.2);
  const hasShortTtl = world.chance(0.25);
  const isNotAfterFar = world.chance(0.3);
  return {
    settings: drawSettings(world, isNotAfterFar),
    areClocksWild,
    rates: areClocksWild ? [0.95, 1.05] : [0.99, 1.01],
    loss: world.chance(0.5) ? world.prng.nextDouble() * 0.05 : 0,
    duplication: world.chance(0.5) ? world.prng.nextDouble() * 0.05 : 0,
    damage: world.chance(0.2) ? world.prng.nextDouble() * 0.01 : 0,
    delayUs: isFar ? [10_000, hasShortTtl ? 90_000 : 40_000] : [50, world.between(200, 5_000)],
    clientDelayUs: world.chance(0.7) ? [60, 60] : [60, world.between(200, 30_000)],
    fsyncUs: isSlow ? [2_000, 20_000] : [100, 500],
    segmentBytesMax: pick(world, [700, 4_000, 64 << 20]),
    compaction: {
      entries: pick(world, [12, 40, 100, 250, 1_000_000]),
      logBytes: pick(world, [5_000, 1 << 20]),
      tailEntries: pick(world, [1, 1, 4, 20]),
    },
    chunkBytes: pick(world, [100, 400, 10_000]),
    huntsSnapshots: world.chance(0.5),
    workers: world.between(5, 10),
    chaosMs: world.between(2_000, 5_500),
    faultGapUs: [50_000, world.between(300_000, 2_500_000)],
    huntsLeaders: seed % HUNT_EVERY === HUNT_EVERY - 2,
    ttlMs: hasShortTtl ? [100, 180] : [100, 1_500],
    waitMsMax: pick(world, [100, 2_000]),
    paceUs: [2_000, world.between(6_000, 30_000)],
    sessionTenths: world.prng.below(isNotAfterFar ? 5 : 11),
    principals: world.chance(0.5) ? 2 : 1,
    notAfter: isNotAfterFar ? FAR_NOT_AFTER : NEAR_NOT_AFTER,
    hasOperator: seed % OPERATOR_EVERY === 0,
  };
}
