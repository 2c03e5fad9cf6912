/**
 * A write or a sync that the system refused: nobody knows what the disk holds now (I10).
 *
 * Owns: how such a failure is told from every other reason to give a job up: a job that cannot be
 * done for another reason is tried again later, this one ends the node. Never: a retry. An error's
 * class is lost between threads: there `Written` carries it. Used by: the files of snapshots, the
 * jobs of the worker pool, the server's snapshot jobs.
 */

export class FailedWrite extends Error {
  override readonly name = 'FailedWrite';
}

/** What a job gave, or in words which write failed. */
export type Written<T> = { readonly value: T } | { readonly failedWrite: string };

/** Only the system's own errors name the call that failed. */
function isOfSystem(error: unknown): error is Error {
  return error instanceof Error && 'syscall' in error;
}

/** Carries out `work`, which writes. Throws FailedWrite for an error of the system. */
export function writing<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!isOfSystem(error)) throw error;
    throw new FailedWrite(error.message, { cause: error });
  }
}

/** What can go to another thread of `work`: its value or its failed write; other errors throw. */
export async function written<T>(work: () => T | Promise<T>): Promise<Written<T>> {
  try {
    return { value: await work() };
  } catch (error) {
    if (!(error instanceof FailedWrite)) throw error;
    return { failedWrite: error.message };
  }
}

/** The value that another thread sent. Throws FailedWrite when a write failed there. */
export function receivedFrom<T>(sent: Written<T>): T {
  if ('failedWrite' in sent) throw new FailedWrite(sent.failedWrite);
  return sent.value;
}
