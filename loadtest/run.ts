/**
 * What the run of a profile hands back.
 *
 * Owns: the shape. Never: a run. Used by: runs.ts and the profiles with files of their own.
 */
import type { Meter } from './meter.js';
import type { BenchOptions } from './options.js';
import type { Target } from './target.js';
import type { Check } from './verdict.js';
import type { Window } from './window.js';

export interface Run {
  /** The stretch that the report is about. */
  readonly window: Window;
  /** Of every load that ran on the cluster. */
  readonly meters: readonly Meter[];
  /** Further fields of the report. */
  readonly extra: Readonly<Record<string, unknown>>;
  readonly checks: readonly Check[];
  /** Clients asked again by the same request id, or went away from one that was out. */
  readonly isRepeating: boolean;
}

export type Runner = (target: Target, options: BenchOptions) => Promise<Run>;
