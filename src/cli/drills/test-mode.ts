/**
 * What a test takes away from a drill, to see that the drill fails without it.
 *
 * Owns: the variable HOLDFAST_DRILL_TEST and its two values; docs/TESTING.md says what each is for.
 * Never: set by anybody but tests; the record says when it was. Used by: commands/drill.ts.
 */
import { OptionError } from '../../server/options.js';

/** '': nothing is taken away. */
export type TestMode = '' | 'unprotected' | 'gap';

const NAME = 'HOLDFAST_DRILL_TEST';

/** Throws OptionError for a value that is none of the two. */
export function readTestMode(environment: NodeJS.ProcessEnv = process.env): TestMode {
  const value = environment[NAME] ?? '';
  if (value === '' || value === 'unprotected' || value === 'gap') return value;
  throw new OptionError(NAME, `give unprotected or gap, not '${value}'`);
}

/** In the words of a record. */
export const TEST_WORDS: Readonly<Record<TestMode, string>> = {
  '': '',
  unprotected: 'what the drill relies on was left out',
  gap: 'one event was hidden from verify',
};
