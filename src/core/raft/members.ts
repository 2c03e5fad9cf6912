/**
 * Who votes and who only listens, and what a majority of the voters has.
 *
 * Owns: quorum arithmetic over one voter set (membership changes one server at a time, thesis §4.1,
 * so two sets are never in force together). Never: deciding a change.
 * Used by: election, commit and read-index rules.
 */
/** Node ids; a learner receives the log and does not count (thesis §4.2.1). */
export interface Members {
  readonly voters: readonly number[];
  readonly learners: readonly number[];
}

/** The membership that an entry of the log, or its base, put in force. */
export interface MembersAt {
  readonly index: number;
  readonly members: Members;
}

/** Votes, acknowledgements or matches that decide. */
export function majorityOf(voters: number): number {
  return (voters >>> 1) + 1;
}

/**
 * The greatest value that a majority of the first `count` values reaches (Raft §5.3: commit).
 * Sorts `values` in place; the caller owns them and fills them anew each time.
 */
export function majorityValue(values: Float64Array, count: number): number {
  if (count === 0) return 0;
  for (let i = 1; i < count; i += 1) {
    const value = values[i] as number;
    let j = i;
    while (j > 0 && (values[j - 1] as number) < value) {
      values[j] = values[j - 1] as number;
      j -= 1;
    }
    values[j] = value;
  }
  return values[majorityOf(count) - 1] as number;
}
