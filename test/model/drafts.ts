/**
 * Random logs for the lock machine, as drafts that fast-check makes and shrinks.
 *
 * Owns: how often what is tried, and the small settings under which it is. A draft holds picks, not
 * ids; resolve-draft.ts turns it into a command. Never: what a command answers. Used by: the
 * property tests.
 */

import fc from 'fast-check';
import { defaultSettings, type Settings } from '../../src/core/locks/settings.js';

/** Names that are prefixes of one another, not ASCII, and long: all unrelated. */
export const NAMES: readonly string[] = ['a', 'a/', 'a/b', 'a//b', 'ä€😀', 'x'.repeat(80)];

/** A second principal, above what a signed 32-bit number holds. */
export const OTHER_PRINCIPAL = 4_000_000_000;
/** A mark that acknowledges everything for ever. */
export const HUGE = Number.MAX_SAFE_INTEGER;

/** Settings so small that every limit is met within a few entries. */
export function smallSettings(): Settings {
  return {
    ...defaultSettings(),
    leaseTtlMsDefault: 300,
    leaseTtlMsLeast: 100,
    leaseTtlMsGreatest: 3_000,
    sessionTtlMsDefault: 1_000,
    sessionTtlMsLeast: 100,
    sessionTtlMsGreatest: 9_000,
    waitMsGreatest: 2_000,
    waitersPerLockMax: 3,
    leasesPerPrincipalMax: 9,
    sessionsPerPrincipalMax: 4,
    sessionWindow: 4,
    resultRetentionMs: 1_000,
    freeResultsMax: 24,
    notAfterMsAhead: 1_000,
    endedLeasesMax: 16,
    idleLocksMax: 2,
    expiriesPerEntryMax: 1,
    implicitLapseMs: 1_000,
  };
}

const OPERATIONS = [
  { op: 'acquire', weight: 30 },
  { op: 'acquireFresh', weight: 12 },
  { op: 'open', weight: 8 },
  { op: 'renewSession', weight: 6 },
  { op: 'closeSession', weight: 2 },
  { op: 'renew', weight: 7 },
  { op: 'release', weight: 10 },
  { op: 'cancel', weight: 8 },
  { op: 'keepWaits', weight: 4 },
  { op: 'settings', weight: 1 },
  { op: 'repeat', weight: 10 },
  { op: 'repeatAltered', weight: 3 },
  { op: 'touchDead', weight: 14 },
  { op: 'forceRelease', weight: 6 },
  { op: 'disable', weight: 2 },
  { op: 'enable', weight: 4 },
  { op: 'expireSession', weight: 2 },
  { op: 'reportRefusal', weight: 2 },
] as const;
type Operation = (typeof OPERATIONS)[number]['op'];

/** One command as picks. Numbers named `back` count from the newest. */
export interface Draft {
  readonly op: Operation;
  readonly principal: number;
  readonly name: number;
  readonly style: 'none' | 'free' | 'sequence';
  readonly freeId: number;
  readonly sessionBack: number | undefined;
  readonly leaseBack: number;
  readonly sequenceAhead: number;
  readonly markBack: number | undefined;
  readonly singles: readonly number[] | undefined;
  readonly ttlMs: number | undefined;
  readonly waitMs: number | undefined;
  readonly metadata: string | undefined;
  readonly expectedAhead: number | undefined;
  readonly notAfterAhead: number | undefined;
  readonly oddField: number;
  readonly historyBack: number;
}

/** One entry: how far the stamp advances, and its commands. */
export interface DraftEntry {
  readonly advanceMs: number;
  readonly drafts: readonly Draft[];
}

function weighted<T>(...choices: [weight: number, arbitrary: fc.Arbitrary<T>][]): fc.Arbitrary<T> {
  return fc.oneof(...choices.map(([weight, arbitrary]) => ({ weight, arbitrary })));
}

function integer(min: number, max: number): fc.Arbitrary<number> {
  return fc.integer({ min, max });
}

const absent = fc.constant(undefined);

const draftArbitrary: fc.Arbitrary<Draft> = fc.record({
  op: weighted<Operation>(
    ...OPERATIONS.map(({ op, weight }): [number, fc.Arbitrary<Operation>] => [
      weight,
      fc.constant(op),
    ]),
  ),
  principal: weighted([9, fc.constant(1)], [1, fc.constant(OTHER_PRINCIPAL)]),
  name: weighted([6, fc.constant(0)], [6, integer(0, NAMES.length - 1)]),
  style: fc.constantFrom('none', 'free', 'free', 'sequence', 'sequence', 'sequence'),
  freeId: integer(0, 15),
  sessionBack: weighted<number | undefined>([2, absent], [11, integer(0, 2)], [1, integer(3, 9)]),
  leaseBack: weighted([8, integer(0, 4)], [3, integer(0, 30)]),
  sequenceAhead: weighted([10, fc.constant(1)], [3, integer(-6, 0)], [2, integer(2, 7)]),
  markBack: weighted<number | undefined>(
    [28, absent],
    [12, integer(-1, 4)],
    [4, integer(-9, -2)],
    [1, fc.constant(-HUGE)],
  ),
  singles: weighted<readonly number[] | undefined>(
    [7, absent],
    [3, fc.array(integer(-4, 7), { minLength: 1, maxLength: 3 })],
  ),
  ttlMs: weighted<number | undefined>(
    [2, absent],
    [5, fc.constantFrom(100, 200, 300, 1_000, 3_000)],
    [4, integer(100, 1_000)],
    [1, fc.constantFrom(0, 1, 33, 99, 3_001, 2 ** 31, 2 ** 51)],
  ),
  waitMs: weighted<number | undefined>(
    [2, absent],
    [1, fc.constant(0)],
    [4, fc.constantFrom(100, 100, 200, 300, 2_000)],
    [4, integer(1, 2_000)],
    [1, fc.constantFrom(2_001, Number.MAX_SAFE_INTEGER)],
  ),
  metadata: weighted<string | undefined>([4, absent], [1, fc.constantFrom('', 'm', 'µ')]),
  expectedAhead: weighted<number | undefined>([9, absent], [1, integer(-3, 3)]),
  notAfterAhead: weighted<number | undefined>(
    [9, absent],
    [1, integer(-200, 1_300)],
    [1, fc.constantFrom(0, 1, 1_000, 1_001)],
  ),
  oddField: weighted([24, fc.constant(0)], [1, integer(1, 7)]),
  historyBack: weighted([5, integer(0, 4)], [2, integer(0, 40)]),
});

const advanceArbitrary = weighted(
  [8, fc.constant(0)],
  [6, fc.constantFrom(50, 100)],
  [5, integer(1, 40)],
  [2, integer(40, 250)],
  [2, fc.constantFrom(300, 500, 1_000)],
  [1, integer(250, 2_500)],
);

/** A whole random log and the settings it begins with. */
export interface DraftLog {
  readonly settings: Settings;
  /** Stamps and durations are multiples of this, so that deadlines fall together; 1 for none. */
  readonly gridMs: number;
  /** Stamp before the first entry. */
  readonly startMs: number;
  readonly entries: readonly DraftEntry[];
}

/** Small stamps, ones that cross 32 bits, and ones beside the largest exact number. */
const startArbitrary = fc.constantFrom(0, 2 ** 32 - 300, 2 ** 41, 2 ** 52);

const gridArbitrary = fc.constantFrom(1, 50, 100);

const settingsArbitrary: fc.Arbitrary<Settings> = fc
  .record({
    expiriesPerEntryMax: fc.constantFrom(1, 1, 2, 5),
    freeResultsMax: fc.constantFrom(16, 60),
    leasesPerPrincipalMax: fc.constantFrom(5, 9, 100),
    idleLocksMax: fc.constantFrom(0, 2, 2),
    sessionWindow: fc.constantFrom(3, 4, 8),
  })
  .map((chosen) => ({ ...smallSettings(), ...chosen }));

/** A random log of up to `entriesMax` entries. */
export function logArbitrary(entriesMax: number): fc.Arbitrary<DraftLog> {
  const entry: fc.Arbitrary<DraftEntry> = fc.record({
    advanceMs: advanceArbitrary,
    drafts: fc.array(draftArbitrary, { maxLength: 6, size: 'max' }),
  });
  const entries = fc.array(entry, { minLength: 1, maxLength: entriesMax, size: 'max' });
  return fc.record({
    settings: settingsArbitrary,
    gridMs: gridArbitrary,
    startMs: startArbitrary,
    entries,
  });
}
