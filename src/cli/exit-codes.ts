/**
 * What the exit status of `holdfast` means: one table, repeated in docs/CLI.md (a test compares).
 *
 * Owns: the numbers, which scripts rely on. Where sysexits.h has a name for the case, its number
 * is taken. `lock` passes the command's own status on, so its failures keep clear of 1 to 63.
 * Never: 0 for anything but success. Used by: every command, docs/CLI.md.
 */

export const ExitCode = {
  Ok: 0,
  Refused: 1,
  Usage: 64,
  Unavailable: 69,
  Lost: 70,
  Fault: 71,
  Disk: 74,
  Busy: 75,
  Unknown: 76,
  Forbidden: 77,
  Configuration: 78,
  NotExecutable: 126,
  NotFound: 127,
} as const;
export type ExitCode = (typeof ExitCode)[keyof typeof ExitCode];

/** What each status means, in the words of docs/CLI.md. */
export const EXIT_MEANINGS: Readonly<Record<ExitCode, string>> = {
  [ExitCode.Ok]: 'The command did what it says.',
  [ExitCode.Refused]:
    'Refused, for a reason without a status of its own; the message has the code.',
  [ExitCode.Usage]: 'The command line or a value cannot be understood; nothing was done.',
  [ExitCode.Unavailable]: 'No leader with a majority answered in time, or no node at all.',
  [ExitCode.Lost]:
    'The lease or session was lost; `lock` has ended its command, not started it, or found the ' +
    'lease ended behind it.',
  [ExitCode.Fault]: 'A fault of the program, or its watchdog was killed. Please report it.',
  [ExitCode.Disk]: 'The data folder of the node is damaged; the message says what to do.',
  [ExitCode.Busy]:
    'Somebody else holds the lock, it is disabled, or the wait ran out. Try again later.',
  [ExitCode.Unknown]: 'The request may have taken effect. Look before trying again.',
  [ExitCode.Forbidden]: 'Not allowed.',
  [ExitCode.Configuration]:
    'The node may not start: wrong folder or members, or its port is taken.',
  [ExitCode.NotExecutable]: '`lock`: the command was found and could not be started.',
  [ExitCode.NotFound]: '`lock`: the command was not found.',
};

/** Ended by a signal: 128 plus its number. */
export const EXIT_SIGNAL_BASE = 128;

interface CliCodeRow {
  readonly status: ExitCode;
  /** In the words of docs/CLI.md. */
  readonly meaning: string;
}

/** Codes that this program gives by itself; all others are those of docs/ERRORS.md. */
export const CLI_CODES = {
  USAGE: {
    status: ExitCode.Usage,
    meaning: 'The command line or a value cannot be understood; `option` names it.',
  },
  PORT_TAKEN: {
    status: ExitCode.Configuration,
    meaning: '`dev`: something listens on a port that a node needs.',
  },
  FOLDER_UNUSABLE: {
    status: ExitCode.Configuration,
    meaning: 'The data folder cannot be made or written.',
  },
  FOLDER_IN_USE: {
    status: ExitCode.Configuration,
    meaning: '`dev`, `verify`, `repair`, `unsafe-recover`: a running node has a data folder open.',
  },
  FOLDER_WIPED: {
    status: ExitCode.Configuration,
    meaning: '`dev`: too many of the five data folders are empty to serve without them.',
  },
  NODE_ENDED: {
    status: ExitCode.Refused,
    meaning: '`dev`: a node ended, or was not started, and nobody told it to end.',
  },
  NODE_UNREACHABLE: {
    status: ExitCode.Refused,
    meaning: '`transfer`: the node that is to lead does not answer.',
  },
  TRANSFER_FAILED: {
    status: ExitCode.Refused,
    meaning: '`transfer`: the node that is to lead has not taken over in time.',
  },
  BEYOND_REPAIR: {
    status: ExitCode.Disk,
    meaning: '`repair`: the folder’s term, vote or identity is damaged; the node stays down.',
  },
  NO_SNAPSHOT: {
    status: ExitCode.Unavailable,
    meaning: '`repair`, `backup`: no member had a snapshot that is new enough in time.',
  },
  FOLDER_NOT_EMPTY: {
    status: ExitCode.Configuration,
    meaning: '`backup`, `restore`, `unsafe-recover`: the folder to make holds something already.',
  },
  FOLDER_DAMAGED: {
    status: ExitCode.Disk,
    meaning: '`unsafe-recover`: a data folder is damaged; the message has the file.',
  },
  BACKUP_DAMAGED: {
    status: ExitCode.Disk,
    meaning: '`backup`, `restore`: the backup is not whole; the message has the file.',
  },
  BACKUP_NEWER: {
    status: ExitCode.Configuration,
    meaning: '`restore`, `verify`: the backup was made by a newer release.',
  },
  MAJORITY_SURVIVES: {
    status: ExitCode.Refused,
    meaning: '`unsafe-recover`: the folders are those of a majority, with which nothing is lost.',
  },
  GUARD_FAILED: {
    status: ExitCode.Unavailable,
    meaning: '`guard`: the guarded resource did not answer, or refused; the message has its words.',
  },
  DRILL_FAILED: {
    status: ExitCode.Refused,
    meaning: '`drill`: something that was to hold did not, or the service is not as it was.',
  },
  DRILL_NOT_PERMITTED: {
    status: ExitCode.Forbidden,
    meaning: '`drill`: the machine does not permit this drill; the message says what it wants.',
  },
  COMMAND_NOT_FOUND: {
    status: ExitCode.NotFound,
    meaning: '`lock`: the command was not found.',
  },
  COMMAND_NOT_STARTED: {
    status: ExitCode.NotExecutable,
    meaning: '`lock`: the command was found and could not be started.',
  },
  WATCHDOG_KILLED: {
    status: ExitCode.Fault,
    meaning: '`lock`: its watchdog was killed, so it ended the command.',
  },
  SYSTEM: {
    status: ExitCode.Refused,
    meaning: 'The operating system refused something; the message has its words.',
  },
  FAULT: {
    status: ExitCode.Fault,
    meaning: 'A fault of the program, with its stack. Please report it.',
  },
} as const satisfies Readonly<Record<string, CliCodeRow>>;
export type CliCode = keyof typeof CLI_CODES;

/** A failure that the program itself finds. */
export class CliError extends Error {
  override readonly name = 'CliError';

  /** `details` stand beside code and message in JSON. */
  constructor(
    readonly code: CliCode,
    message: string,
    readonly details: Readonly<Record<string, unknown>> = {},
  ) {
    super(message);
  }
}

function isCliCode(code: string): code is CliCode {
  return Object.hasOwn(CLI_CODES, code);
}

/** Error codes of the cluster and the client that have an exit code of their own. */
const BY_ERROR: Readonly<Record<string, ExitCode>> = {
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
  DISABLED: ExitCode.Busy,
  LIMIT: ExitCode.Busy,
  UNKNOWN_OUTCOME: ExitCode.Unknown,
  UNAUTHENTICATED: ExitCode.Forbidden,
  FORBIDDEN: ExitCode.Forbidden,
};

/** The exit code for an error code such as LOCK_BUSY; Refused for one without its own. */
export function exitCodeOf(errorCode: string): ExitCode {
  if (isCliCode(errorCode)) return CLI_CODES[errorCode].status;
  return BY_ERROR[errorCode] ?? ExitCode.Refused;
}
