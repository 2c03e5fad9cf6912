/**
 * What clients of one run asked and were told, in virtual time: the input of the checkers.
 *
 * Owns: records, append only. Never: judges. Filled by: sim-worker.ts. Read by: checkers.ts.
 */

/** One answer to one request id; several for the same id when it was asked again. */
export interface Answer {
  readonly client: number;
  readonly requestId: string;
  readonly command: number;
  readonly code: number;
  readonly token: number;
  readonly leaseId: string;
  readonly lock: string;
  readonly atUs: number;
}

/** A span of true time in which a client took itself for the holder. */
export interface Belief {
  readonly client: number;
  readonly lock: string;
  readonly token: number;
  readonly fromUs: number;
  untilUs: number;
}

export class History {
  readonly answers: Answer[] = [];
  readonly beliefs: Belief[] = [];
  operations = 0;
}
