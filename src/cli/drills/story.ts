/**
 * What happened in a drill, in order, as it is told afterwards.
 *
 * Owns: the steps with their times, and the checks that a scenario makes on its way. Never: what
 * the cluster says of itself; that is read from the audit stream when all is over. Times are of the
 * system's monotonic clock, which all processes of one machine share. Used by: the scenarios.
 */
import type { Check } from './check.js';

/** What a step is about; a field is absent where it does not apply. */
export interface StepFacts {
  readonly revision?: number;
  readonly token?: number;
}

export interface Step extends StepFacts {
  /** Since the drill began. */
  readonly atMs: number;
  readonly what: string;
}

/** The monotonic clock in ms, the same in every process of this machine. */
export function monotonicMs(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

export class Story {
  readonly steps: Step[] = [];
  readonly checks: Check[] = [];
  private readonly startedMs = monotonicMs();

  /** Milliseconds since the drill began. */
  get elapsedMs(): number {
    return monotonicMs() - this.startedMs;
  }

  /** Tells a step; `atMs` of the monotonic clock when another process saw it happen. */
  tell(what: string, facts: StepFacts = {}, atMs = monotonicMs()): void {
    this.steps.push({ atMs: Math.max(0, atMs - this.startedMs), what, ...facts });
  }

  /** Notes that something had to hold, whether it did, and what was found. */
  demand(what: string, isKept: boolean, found: string): void {
    this.checks.push({ what, isKept, found });
  }
}
