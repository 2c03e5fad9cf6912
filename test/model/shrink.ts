/**
 * Makes a failing log short: fewer entries, fewer commands, smaller steps of the stamp.
 *
 * Owns: the order of attempts and their bound. fast-check's own shrinking also changes each pick,
 * which takes minutes on logs of this size and rarely shortens them. Used by: the property test.
 */

import type { DraftEntry } from './drafts.js';

const ATTEMPTS_MAX = 4_000;

/** Removes chunks of `items`, large ones first, while `fails` holds for what is left. */
function removeChunks<T>(items: readonly T[], fails: (rest: readonly T[]) => boolean): T[] {
  let kept = [...items];
  for (
    let size = Math.ceil(kept.length / 2);
    size >= 1;
    size = size > 1 ? Math.ceil(size / 2) : 0
  ) {
    for (let start = 0; start < kept.length; ) {
      const rest = [...kept.slice(0, start), ...kept.slice(start + size)];
      if (fails(rest)) kept = rest;
      else start += size;
    }
  }
  return kept;
}

/** The shortest entries found that still fails. `fails` is called a bounded number of times. */
export function shrinkLog(
  entries: readonly DraftEntry[],
  fails: (entries: readonly DraftEntry[]) => boolean,
): DraftEntry[] {
  let attempts = 0;
  const isWorthwhile = (candidate: readonly DraftEntry[]): boolean => {
    attempts += 1;
    return attempts <= ATTEMPTS_MAX && fails(candidate);
  };
  let current = removeChunks(entries, isWorthwhile);
  for (let round = 0; round < 3; round += 1) {
    for (const [index, entry] of [...current.entries()]) {
      const replaced = (next: DraftEntry): DraftEntry[] => current.with(index, next);
      const drafts = removeChunks(entry.drafts, (rest) =>
        isWorthwhile(replaced({ ...entry, drafts: rest })),
      );
      current = replaced({ ...entry, drafts });
      const still = { advanceMs: 0, drafts };
      if (isWorthwhile(replaced(still))) current = replaced(still);
    }
    current = removeChunks(current, isWorthwhile);
  }
  return current;
}
