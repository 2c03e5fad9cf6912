/**
 * What a drill holds to be true, and whether it was found so.
 *
 * Owns: the shape of one finding and how several faults become its words. Never: how anything is
 * found; verify.ts and the scenarios do that. Used by: every file of the drills.
 */

/** One thing that had to hold. */
export interface Check {
  /** The rule, in the present tense: `tokens only rise`. */
  readonly what: string;
  readonly isKept: boolean;
  /** What was looked at, or what contradicts the rule. */
  readonly found: string;
}

/** Faults of one rule that are told; the rest is counted. */
const FAULTS_TOLD = 3;

/** A rule that is kept when there is no fault; `looked` says what was gone through. */
export function checkOf(what: string, faults: readonly string[], looked: string): Check {
  if (faults.length === 0) return { what, isKept: true, found: looked };
  const rest = faults.length - FAULTS_TOLD;
  const told = faults.slice(0, FAULTS_TOLD).join('; ');
  return { what, isKept: false, found: rest > 0 ? `${told}; and ${rest} more` : told };
}

/** The checks that were not kept. */
export function brokenOf(checks: readonly Check[]): Check[] {
  return checks.filter((check) => !check.isKept);
}
