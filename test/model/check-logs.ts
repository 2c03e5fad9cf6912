/**
 * Examines random logs until one fails, and reports the shortest that still does.
 *
 * Owns: seed and number of runs (HOLDFAST_MODEL_SEED, HOLDFAST_MODEL_RUNS) and the report. Never:
 * what is examined. Used by: the property tests beside it.
 */

import fc from 'fast-check';
import { type DraftLog, logArbitrary } from './drafts.js';
import { shrinkLog } from './shrink.js';

/** The slice of a tap test that is needed here. */
interface Reporter {
  comment(line: string): void;
  fail(message: string): void;
  equal(got: unknown, wanted: unknown, message: string): void;
}

/** Throws when the log shows what must not be. */
export type Examine = (log: DraftLog) => void;

const SEED = Number(process.env.HOLDFAST_MODEL_SEED ?? 20_261_129);

/** How many logs to examine: `smoke` unless the environment asks for another number. */
export function runsOr(smoke: number): number {
  return Number(process.env.HOLDFAST_MODEL_RUNS ?? smoke);
}

/** The reason for which a log fails, or an empty string. */
function failureOf(examine: Examine, log: DraftLog): string {
  try {
    examine(log);
    return '';
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

function shortestFailure(examine: Examine, log: DraftLog): string {
  const shortest = shrinkLog(log.entries, (rest) => {
    return failureOf(examine, { ...log, entries: rest }) !== '';
  });
  const report = failureOf(examine, { ...log, entries: shortest });
  return `${report}\nsettings ${JSON.stringify(log.settings)}`;
}

/**
 * Examines `runs` random logs of up to `entriesMax` entries; fails `t` at the first that throws,
 * with seed, path and the shortened log.
 */
export function checkLogs(t: Reporter, runs: number, entriesMax: number, examine: Examine): void {
  const property = fc.property(logArbitrary(entriesMax), examine);
  const result = fc.check(property, { numRuns: runs, seed: SEED, endOnFailure: true });
  if (!result.failed) {
    t.equal(result.numRuns, runs, 'every log was examined');
    return;
  }
  const [log] = result.counterexample ?? [];
  const report = log === undefined ? 'no counterexample' : shortestFailure(examine, log);
  for (const line of report.split('\n')) t.comment(line);
  t.fail(`seed ${result.seed}, path ${result.counterexamplePath}`);
}
