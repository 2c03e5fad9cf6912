/**
 * What can be wrong with a data folder: the kinds, what each means, and what to do.
 *
 * Owns: the words, which docs/OPERATIONS.md repeats (a test compares). Never: a finding itself.
 * Used by: the checks of this folder, server/scrub.ts, cli/verify.
 */

export const FaultKind = {
  /** The record of term, vote and identity. */
  Identity: 'identity',
  /** An entry that the node needs, or a segment of them. */
  Log: 'log',
  /** A snapshot that the node may start from. */
  Snapshot: 'snapshot',
  /** What is kept for the audit stream alone. */
  History: 'history',
  /** What is stored is whole, and does not give the state that it should. */
  State: 'state',
} as const;
export type FaultKind = (typeof FaultKind)[keyof typeof FaultKind];

export interface FaultRow {
  /** What follows for the node. */
  readonly means: string;
  /** The way back. */
  readonly remedy: string;
  /** Heading of docs/OPERATIONS.md. */
  readonly section: string;
}

export const FAULT_ROWS: Readonly<Record<FaultKind, FaultRow>> = {
  [FaultKind.Identity]: {
    means: 'the node cannot prove who it is and for whom it voted: it refuses to start',
    remedy: 'leave it stopped and keep its folder: this release cannot replace a member',
    section: 'A damaged data folder',
  },
  [FaultKind.Log]: {
    means: 'an entry that it may have acknowledged is lost here: its next start is refused',
    remedy: 'bring it back from another node’s snapshot',
    section: 'A damaged data folder',
  },
  [FaultKind.Snapshot]: {
    means: 'the node cannot start from it, nor make the next one',
    remedy: 'bring it back from another node’s snapshot',
    section: 'A damaged data folder',
  },
  [FaultKind.History]: {
    means: 'older pages of the audit stream are lost here; locks are not touched',
    remedy: 'delete `history/` while the node is down, or leave it: other nodes have the events',
    section: 'A damaged data folder',
  },
  [FaultKind.State]: {
    means: 'disk, memory or program is wrong: the checksums hold and the state does not',
    remedy: 'keep a copy of the folder, compare the digest with the other nodes’, report it',
    section: 'a snapshot does not agree with the live state',
  },
};

/** One place that is not as it should be. */
export interface ScrubFault {
  readonly kind: FaultKind;
  /** File or folder, as a path. */
  readonly file: string;
  /** Index of the entry, or of the snapshot; 0 where the fault has none. */
  readonly index: number;
  readonly found: string;
}

/** The table in Markdown, as docs/OPERATIONS.md has it. */
export function faultTable(): string {
  const lines = ['| kind | what it means | what to do |', '|---|---|---|'];
  for (const [kind, { means, remedy }] of Object.entries(FAULT_ROWS)) {
    lines.push(`| \`${kind}\` | ${means} | ${remedy} |`);
  }
  return lines.join('\n');
}

/** True when both tell of the same place and the same damage. */
export function isSameFault(left: ScrubFault, right: ScrubFault): boolean {
  return left.file === right.file && left.index === right.index && left.found === right.found;
}
