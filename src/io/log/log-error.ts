/**
 * The errors with which a log refuses to open.
 *
 * Owns: their codes. Each message names the folder, what was found, what was wanted and the way
 * back. Never: errors of a running log; those end the node (invariant I10).
 * Thrown by: the files of this folder. Read by: server.
 */

export const LogErrorCode = {
  /** Another process has the data folder open. */
  FolderLocked: 'FOLDER_LOCKED',
  /** The folder belongs to another node id. */
  FolderForeign: 'FOLDER_FOREIGN',
  /** A file was written by a build with another format. */
  FormatUnknown: 'FORMAT_UNKNOWN',
  /** The record of term, vote and identity is damaged. */
  StateCorrupt: 'STATE_CORRUPT',
  /** A segment is damaged or missing. */
  LogCorrupt: 'LOG_CORRUPT',
  /** The data folder cannot be made. */
  FolderUnusable: 'FOLDER_UNUSABLE',
  /** The thread that owns the log ended before it had opened it. */
  ThreadFailed: 'THREAD_FAILED',
} as const;
export type LogErrorCode = (typeof LogErrorCode)[keyof typeof LogErrorCode];

/** Why a data folder was not opened. */
export class LogError extends Error {
  override readonly name = 'LogError';

  constructor(
    readonly code: LogErrorCode,
    message: string,
  ) {
    super(message);
  }
}

const REPAIR =
  'Leave this node stopped and keep its data folder: this release cannot replace a member. ' +
  'The others hold what it acknowledged, and the cluster runs on while a majority of it does.';

/** A damaged log: names the place and the way back. */
export function corruptLog(place: string, found: string): LogError {
  return new LogError(LogErrorCode.LogCorrupt, `${place}: ${found}. ${REPAIR}`);
}

/** A damaged state record: names the place and the way back. */
export function corruptState(place: string, found: string): LogError {
  return new LogError(LogErrorCode.StateCorrupt, `${place}: ${found}. ${REPAIR}`);
}
