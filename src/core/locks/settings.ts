/**
 * The replicated settings: every bound that `apply` consults (invariant I11).
 *
 * Owns: their numbers (on disk for ever), defaults and ranges. A founding entry copies the defaults
 * into the state; from then on only a Settings command changes them, so a newer build with other
 * defaults applies an old log to the same result. Read by: the lock machine, wire (founding
 * record).
 */

/** Number of each setting, in the Settings command and in the founding record. */
export const SettingNumber = {
  leaseTtlMsDefault: 1,
  leaseTtlMsLeast: 2,
  leaseTtlMsGreatest: 3,
  sessionTtlMsDefault: 4,
  sessionTtlMsLeast: 5,
  sessionTtlMsGreatest: 6,
  waitMsGreatest: 7,
  waitersPerLockMax: 8,
  leasesPerPrincipalMax: 9,
  sessionsPerPrincipalMax: 10,
  sessionWindow: 11,
  resultRetentionMs: 12,
  freeResultsMax: 13,
  notAfterMsAhead: 14,
  endedLeasesMax: 15,
  idleLocksMax: 16,
  expiriesPerEntryMax: 17,
  implicitLapseMs: 18,
} as const;
export type SettingName = keyof typeof SettingNumber;

/** Least and greatest value that a setting may take. */
export interface SettingRange {
  readonly least: number;
  readonly greatest: number;
}

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** Ranges that keep arithmetic exact and memory bounded whatever an operator asks for. */
export const SETTING_RANGES: Readonly<Record<SettingName, SettingRange>> = {
  leaseTtlMsDefault: { least: 100, greatest: DAY_MS },
  leaseTtlMsLeast: { least: 100, greatest: DAY_MS },
  leaseTtlMsGreatest: { least: 100, greatest: DAY_MS },
  sessionTtlMsDefault: { least: 100, greatest: DAY_MS },
  sessionTtlMsLeast: { least: 100, greatest: DAY_MS },
  sessionTtlMsGreatest: { least: 100, greatest: DAY_MS },
  waitMsGreatest: { least: 1, greatest: DAY_MS },
  waitersPerLockMax: { least: 1, greatest: 1_000_000 },
  leasesPerPrincipalMax: { least: 1, greatest: 10_000_000 },
  sessionsPerPrincipalMax: { least: 1, greatest: 1_000_000 },
  sessionWindow: { least: 1, greatest: 1 << 16 },
  resultRetentionMs: { least: 1_000, greatest: DAY_MS },
  freeResultsMax: { least: 1, greatest: 4_000_000 },
  notAfterMsAhead: { least: 1_000, greatest: DAY_MS },
  endedLeasesMax: { least: 16, greatest: 1 << 22 },
  idleLocksMax: { least: 0, greatest: 4_000_000 },
  expiriesPerEntryMax: { least: 1, greatest: 100_000 },
  implicitLapseMs: { least: 1_000, greatest: HOUR_MS },
};

/** The settings as the machine reads them: plain numbers, ms or counts as named. */
export type Settings = { -readonly [name in SettingName]: number };

/** What a founding record holds unless the operator says otherwise. */
export function defaultSettings(): Settings {
  return {
    leaseTtlMsDefault: 30_000,
    leaseTtlMsLeast: 1_000,
    leaseTtlMsGreatest: DAY_MS,
    sessionTtlMsDefault: 30_000,
    sessionTtlMsLeast: 1_000,
    sessionTtlMsGreatest: DAY_MS,
    waitMsGreatest: HOUR_MS,
    waitersPerLockMax: 100_000,
    leasesPerPrincipalMax: 2_000_000,
    sessionsPerPrincipalMax: 100_000,
    sessionWindow: 1_024,
    resultRetentionMs: 60_000,
    freeResultsMax: 1_000_000,
    notAfterMsAhead: HOUR_MS,
    endedLeasesMax: 1 << 18,
    idleLocksMax: 200_000,
    expiriesPerEntryMax: 1_000,
    implicitLapseMs: 10_000,
  };
}

/** True when `value` is a whole number in the range of `name`. */
export function isSettingValid(name: SettingName, value: number): boolean {
  const range = SETTING_RANGES[name];
  return Number.isInteger(value) && value >= range.least && value <= range.greatest;
}

const NAMES = Object.keys(SettingNumber) as SettingName[];

/** The setting with this number, or undefined. */
export function settingNameOf(number: number): SettingName | undefined {
  for (const name of NAMES) if (SettingNumber[name] === number) return name;
  return undefined;
}

/** True when every setting is in its range and least ≤ default ≤ greatest holds. */
export function areSettingsValid(settings: Settings): boolean {
  for (const name of NAMES) if (!isSettingValid(name, settings[name])) return false;
  const { leaseTtlMsLeast, leaseTtlMsDefault, leaseTtlMsGreatest } = settings;
  if (leaseTtlMsLeast > leaseTtlMsDefault || leaseTtlMsDefault > leaseTtlMsGreatest) return false;
  const { sessionTtlMsLeast, sessionTtlMsDefault, sessionTtlMsGreatest } = settings;
  return sessionTtlMsLeast <= sessionTtlMsDefault && sessionTtlMsDefault <= sessionTtlMsGreatest;
}
