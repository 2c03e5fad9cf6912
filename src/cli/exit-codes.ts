/**
 * What the exit status of `holdfast` means: one table, repeated in docs/CLI.md (a test compares).
 *
 * Owns: the numbers, which scripts rely on. Where sysexits.h has a name for the case, its number
 * is taken. `lock` passes the command's own status on, so its failures keep clear of 1 to 63.
 * Never: 0 for anything but success. Used by: every command, docs/CLI.md.
 */

export const ExitCode = {
  /** The command did what it says. */
  Ok: 0,
  /** The cluster refused, for a reason without a number of its own. */
  Refused: 1,
  /** The command line cannot be understood (EX_USAGE). */
  Usage: 64,
  /** No leader with a majority answered in time, or no node at all (EX_UNAVAILABLE). */
  Unavailable: 69,
  /** The lease was lost: `lock` ended its command (EX_SOFTWARE's number, another sense). */
  Lost: 70,
  /** A program fault: report it. */
  Fault: 71,
  /** The node's disk or log failed (EX_IOERR). */
  Disk: 74,
  /** Somebody else holds the lock, or the wait ran out: try again later (EX_TEMPFAIL). */
  Busy: 75,
  /** The request may have taken effect: look before trying again (EX_PROTOCOL). */
  Unknown: 76,
  /** Not allowed (EX_NOPERM). */
  Forbidden: 77,
  /** The node may not join: wrong folder, wrong members, port taken (EX_CONFIG). */
  Configuration: 78,
  /** `lock`: the command was found and could not be started. */
  NotExecutable: 126,
  /** `lock`: the command was not found. */
  NotFound: 127,
} as const;
export type ExitCode = (typeof ExitCode)[keyof typeof ExitCode];

/** Ended by a signal: 128 plus its number. */
export const EXIT_SIGNAL_BASE = 128;

/** Error codes of the cluster and the client that have an exit code of their own. */
const BY_ERROR: Readonly<Record<string, ExitCode>> = {
  USAGE: ExitCode.Usage,
  BAD_REQUEST: ExitCode.Usage,
  NO_QUORUM: ExitCode.Unavailable,
  NOT_LEADER: ExitCode.Unavailable,
  OVERLOADED: ExitCode.Unavailable,
  SHUTTING_DOWN: ExitCode.Unavailable,
  DEADLINE_PASSED: ExitCode.Unavailable,
  CONNECTION_LOST: ExitCode.Unavailable,
  LEASE_EXPIRED: ExitCode.Lost,
  STALE_LEASE: ExitCode.Lost,
  SESSION_EXPIRED: ExitCode.Lost,
  LOCK_BUSY: ExitCode.Busy,
  WAIT_TIMEOUT: ExitCode.Busy,
  LIMIT: ExitCode.Busy,
  UNKNOWN_OUTCOME: ExitCode.Unknown,
  UNAUTHENTICATED: ExitCode.Forbidden,
  FORBIDDEN: ExitCode.Forbidden,
};

/** The exit code for an error code such as LOCK_BUSY; Refused for one without its own. */
export function exitCodeOf(errorCode: string): ExitCode {
  return BY_ERROR[errorCode] ?? ExitCode.Refused;
}
