/**
 * What a long run over the guards says at the end, and whether it has shown anything.
 *
 * Owns: the rule for the exit status: every guard refused at least one stale write and lost no
 * update; and the table. Used by: main.ts.
 */
import type { Kind } from './resource.js';

/** What came of one guard. */
export interface GuardRow {
  readonly kind: Kind;
  /** Name and version of what holds the mark. */
  readonly server: string;
  /** How many times a client was stopped, or its write held in the network. */
  readonly pauses: number;
  /** Writes that were accepted. */
  readonly writes: number;
  /** Stale writes that were refused. */
  readonly refused: number;
  /** Writes of which nobody knows whether they were done. */
  readonly unknown: number;
  /** Accepted writes that are not in what the resource has at the end. */
  readonly lost: number;
  /** Everything else that must not be, one sentence each. */
  readonly faults: readonly string[];
}

/** A guard whose run did not come to its end. */
export function failedRow(kind: Kind, server: string, error: unknown): GuardRow {
  const why = error instanceof Error ? error.message : String(error);
  const none = { pauses: 0, writes: 0, refused: 0, unknown: 0, lost: 0 };
  return { kind, server, ...none, faults: [`the run failed: ${why}`] };
}

/** What of a row must not be, one sentence each; empty when the guard has shown what it should. */
export function violationsOf(row: GuardRow): string[] {
  const violations = [...row.faults];
  if (row.lost > 0) violations.push(`${row.lost} updates were lost`);
  if (row.writes === 0) violations.push('nothing was written');
  if (row.refused === 0) violations.push('no stale write was refused: the run has shown nothing');
  return violations.map((each) => `${row.kind}: ${each}`);
}

const COLUMNS = ['guard', 'writes', 'refused stale', 'lost', 'unknown', 'pauses', 'server'];

/** The table, a line each, and below it a line for each violation. */
export function reportOf(rows: readonly GuardRow[]): string[] {
  const cells = rows.map((row) => {
    const counts = [row.writes, row.refused, row.lost, row.unknown, row.pauses];
    return [row.kind, ...counts.map(String), row.server];
  });
  const widths = COLUMNS.map((name, at) =>
    Math.max(name.length, ...cells.map((row) => row[at]?.length ?? 0)),
  );
  const lineOf = (row: readonly string[]): string =>
    row
      .map((cell, at) => cell.padEnd(widths[at] ?? 0))
      .join('  ')
      .trimEnd();
  const violations = rows.flatMap(violationsOf);
  const last = violations.length === 0 ? 'no violation' : `${violations.length} violations`;
  const told = violations.map((violation) => `VIOLATION ${violation}`);
  return [lineOf(COLUMNS), ...cells.map(lineOf), ...told, last];
}
