/**
 * The plain-object forms in which the model and the harness speak of the lock machine.
 *
 * Owns: commands, outcomes, completions and events with symbolic ids: a lease is named by its
 * token, a session by its number in the order of opening. Never: rules. Used by: naive machine,
 * production adapter, generator.
 */

/** How a command names itself. A mark and singles acknowledge earlier sequences. */
export type ModelRequest =
  | { readonly kind: 'none' }
  | { readonly kind: 'free'; readonly id: string }
  | {
      readonly kind: 'sequence';
      readonly sequence: number;
      readonly mark?: number | undefined;
      readonly singles?: readonly number[] | undefined;
    };

/** What a Cancel names. */
export type ModelTarget =
  | { readonly kind: 'free'; readonly id: string }
  | { readonly kind: 'sequence'; readonly sequence: number };

/** One operation. What is absent is undefined. */
export interface ModelCommand {
  /** CommandKind. */
  readonly kind: number;
  readonly principal: number;
  readonly request: ModelRequest;
  /** A session by its number; one that was never issued stands for an unknown id. */
  readonly session?: number | undefined;
  /** A lease by its token; one that was never issued stands for an unknown id. */
  readonly lease?: number | undefined;
  readonly name?: string | undefined;
  readonly ttlMs?: number | undefined;
  readonly waitMs?: number | undefined;
  readonly mode?: number | undefined;
  readonly permits?: number | undefined;
  readonly capacity?: number | undefined;
  readonly expectedRevision?: number | undefined;
  readonly owner?: string | undefined;
  readonly metadata?: string | undefined;
  readonly notAfter?: number | undefined;
  readonly lockDelayMs?: number | undefined;
  readonly holdMsMax?: number | undefined;
  readonly target?: ModelTarget | undefined;
  /** Disable, Enable: the name is a prefix. */
  readonly isPrefix?: boolean | undefined;
  /** ForceRelease: the token that is meant. ReportRefusal: the one that was refused. */
  readonly token?: number | undefined;
  readonly mark?: number | undefined;
  readonly refusals?: number | undefined;
  /** ExpireSession: the session to end, by its number. */
  readonly targetSession?: number | undefined;
  /** KeepWaits: places. Settings: pairs of number and value. */
  readonly numbers?: readonly number[] | undefined;
}

/** The answer to a command or to a wait; what does not apply is 0, false or empty. */
export interface ModelOutcome {
  readonly code: number;
  readonly kind: number;
  readonly replay: boolean;
  readonly entryTime: number;
  /** `lease 17` or `session 3`, empty when the outcome names neither. */
  readonly subject: string;
  readonly token: number;
  readonly revision: number;
  readonly deadline: number;
  readonly ttlMs: number;
  readonly ahead: number;
  readonly cause: number;
  readonly holderSince: number;
  readonly holderPrincipal: number;
  readonly blob: string;
}

/** The final result of the wait that stood at `place`. */
export interface ModelCompletion {
  readonly place: number;
  readonly outcome: ModelOutcome;
}

export interface ModelEvent {
  readonly kind: number;
  readonly revision: number;
  readonly name: string;
  /** Token of the lease concerned, or the one that a guard refused; else 0. */
  readonly token: number;
  /**
   * Place of the wait concerned: Queued, Left, and a grant to a waiter; 1 for a prefix that was
   * disabled or enabled; the mark that a guard's resource had seen; else 0.
   */
  readonly place: number;
  /** LeaseEnd of an Ended or Expelled, OutcomeCode of a Left, Refused or Fenced, else 0. */
  readonly cause: number;
  readonly principal: number;
}

/** What one entry gave. */
export interface ModelStep {
  readonly outcomes: ModelOutcome[];
  readonly completions: ModelCompletion[];
  readonly events: ModelEvent[];
}

/** What a read of one lock shows. */
export interface ModelLock {
  /** Token of the holder, 0 when nobody holds. */
  readonly token: number;
  readonly since: number;
  readonly deadline: number;
  /** Places of the waiters, first in the queue first. */
  readonly places: readonly number[];
}

/** What a lookup of a request id says; the outcome of one that is done or queued. */
export interface ModelLookup {
  readonly state: 'done' | 'queued' | 'unknown' | 'forgotten';
  readonly outcome: ModelOutcome;
}

const NOTHING: ModelOutcome = {
  code: 0,
  kind: 0,
  replay: false,
  entryTime: 0,
  subject: '',
  token: 0,
  revision: 0,
  deadline: 0,
  ttlMs: 0,
  ahead: 0,
  cause: 0,
  holderSince: 0,
  holderPrincipal: 0,
  blob: '',
};

/** An outcome with the named fields, every other one empty. */
export function outcomeOf(fields: Partial<ModelOutcome>): ModelOutcome {
  return { ...NOTHING, ...fields };
}
