/**
 * Why a backup is not taken, or nothing is restored from it: an operator has to do something.
 *
 * Owns: the codes; the text says what to do. Used by: backup.ts, restore.ts, unsafe-recover.ts,
 * new-cluster.ts; the command line gives each its exit status.
 */
export type RestoreRefusal =
  /** The folder that is to be made holds something. */
  | 'FOLDER_NOT_EMPTY'
  | 'BACKUP_DAMAGED'
  /** Made by a newer release. */
  | 'BACKUP_NEWER'
  /** No node gave a snapshot in time. */
  | 'NO_SNAPSHOT'
  /** The folders are those of a majority: nothing is lost. */
  | 'MAJORITY_SURVIVES'
  /** A data folder is damaged. */
  | 'FOLDER_DAMAGED';

export class RestoreRefused extends Error {
  override readonly name = 'RestoreRefused';

  constructor(
    readonly code: RestoreRefusal,
    message: string,
  ) {
    super(message);
  }
}
