/**
 * What a node knows of its disk, and the JSON of /v1/cluster/scrub.
 *
 * Owns: the names in both, which programs rely on. Never: a check, or when one begins.
 * Used by: server/scrub.ts, server/figures.ts, io/http.
 */
import type { Json } from '../../wire/event-json.js';
import { FAULT_ROWS, type ScrubFault } from './fault.js';

export interface ScrubStatus {
  readonly isEnabled: boolean;
  readonly isRunning: boolean;
  /** A pass stands still, since the node is behind. */
  readonly isPaused: boolean;
  /** Passes that have ended, the failed ones included. */
  readonly passes: number;
  readonly passesFailed: number;
  /** Why the last pass failed, '' when it did not. */
  readonly failure: string;
  readonly bytes: number;
  /** Since the last whole pass has ended; since the start before the first. */
  readonly ageMs: number;
  /** Files of the last whole pass. */
  readonly segments: number;
  readonly snapshots: number;
  /** Damage that stands: found by the last pass, or by the one that runs. */
  readonly faults: readonly ScrubFault[];
}

/** The check as the HTTP door sees it. */
export interface ScrubDesk {
  readonly status: ScrubStatus;
  /** Begins a pass; gives the number that `passes` has when it is through, 0 for none. */
  begin(): number;
}

/** `askedPass`: the pass that was asked for, null when none was. */
export function scrubJson(nodeId: number, status: ScrubStatus, askedPass: number | null): Json {
  return {
    node: nodeId,
    enabled: status.isEnabled,
    running: status.isRunning,
    paused: status.isPaused,
    passes: status.passes,
    passes_failed: status.passesFailed,
    failure: status.failure === '' ? null : status.failure,
    bytes: status.bytes,
    age_ms: Math.round(status.ageMs),
    segments: status.segments,
    snapshots: status.snapshots,
    faults: status.faults.map((fault) => ({ ...fault, ...wordsFor(fault) })),
    asked_pass: askedPass,
  };
}

function wordsFor({ kind }: ScrubFault): Json {
  const { means, remedy } = FAULT_ROWS[kind];
  return { means, remedy };
}
