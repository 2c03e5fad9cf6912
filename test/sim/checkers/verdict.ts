/**
 * What a checker says: one line for each thing that must not be.
 *
 * Owns: the form of a problem: the name of the checker, then words. A checker takes a history, or
 * the events of a committed log, and reports; it never throws for what it finds, never shares a
 * rule with src, and stops at a handful of lines, since one fault makes many.
 * Used by: every checker, check-run.ts, the chaos command.
 */

const LINES_MAX = 5;

export class Verdict {
  readonly problems: string[] = [];
  /** Everything that was looked at, so that a checker that saw nothing is noticed. */
  seen = 0;

  constructor(readonly checker: string) {}

  demand(holds: boolean, say: () => string): void {
    this.seen += 1;
    if (holds || this.problems.length >= LINES_MAX) return;
    this.problems.push(`${this.checker}: ${say()}`);
  }
}
