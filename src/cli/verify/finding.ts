/**
 * What `holdfast verify` finds in a running cluster: what, where, what it means, what to do.
 *
 * Owns: the kinds and their words, and how many findings are told at most. Never: a check.
 * Used by: the files of this folder.
 */

export const Check = {
  /** Nodes that applied the same entries have the same state. */
  Digests: 'digests',
  /** What the nodes’ own checks of their disks have found. */
  Scrub: 'scrub',
  /** The audit stream is whole and could have happened. */
  Stream: 'stream',
  /** The stream’s last word on each lock is what the state shows. */
  State: 'state',
} as const;
export type Check = (typeof Check)[keyof typeof Check];

export interface Finding {
  readonly check: Check;
  readonly where: string;
  readonly found: string;
  readonly means: string;
  readonly remedy: string;
}

const WORDS: Readonly<Record<Check, { readonly means: string; readonly remedy: string }>> = {
  [Check.Digests]: {
    means: 'nodes have applied the same entries and do not agree on the result',
    remedy: 'docs/OPERATIONS.md, a snapshot does not agree with the live state',
  },
  [Check.Scrub]: {
    means: 'the node serves, and what it has on disk is damaged',
    remedy: 'docs/OPERATIONS.md, A damaged data folder',
  },
  [Check.Stream]: {
    means: 'what this node tells of the past is not what was committed',
    remedy: 'ask another node for the same revisions; report it with both',
  },
  [Check.State]: {
    means: 'what is told of the past and what is so do not fit',
    remedy: 'ask another node; report it with the events of the lock',
  },
};

export function findingOf(check: Check, where: string, found: string): Finding {
  return { check, where, found, ...WORDS[check] };
}

export function findingLines({ check, where, found, means, remedy }: Finding): string[] {
  return [`${check}: ${where}: ${found}`, `  means: ${means}`, `  do: ${remedy}`];
}

/** A list of findings with a bound: what is beyond it is only counted. */
export class Findings {
  static readonly MAX = 64;
  readonly told: Finding[] = [];
  leftOut = 0;

  add(check: Check, where: string, found: string): void {
    if (this.told.length < Findings.MAX) this.told.push(findingOf(check, where, found));
    else this.leftOut += 1;
  }

  get isFull(): boolean {
    return this.told.length >= Findings.MAX;
  }
}
