/**
 * A counter in a file behind a guard: whoever reads or writes it shows the token of its lease.
 *
 * Owns: the highest token that was shown, and the file. A token below it is refused (I3), for reads
 * too: else a reader with a new token could be overwritten by a writer with an old one that came
 * in between. Never: a lock. Used by: paused-clients.ts.
 */
import { readFileSync, writeFileSync } from 'node:fs';

export class FencedFile {
  accepted = 0;
  refused = 0;
  /** Writes that did not follow from what was in the file: an update was lost. */
  lost = 0;
  private mark = 0;

  constructor(private readonly file: string) {
    writeFileSync(file, '0');
  }

  get count(): number {
    return Number(readFileSync(this.file, 'utf8'));
  }

  /** The counter, or null: the token is stale. */
  read(token: number): number | null {
    return this.passes(token) ? this.count : null;
  }

  /** True when written, false when the token is stale. */
  write(token: number, count: number): boolean {
    if (!this.passes(token)) return false;
    if (count !== this.count + 1) this.lost += 1;
    writeFileSync(this.file, String(count));
    this.accepted += 1;
    return true;
  }

  private passes(token: number): boolean {
    if (token < this.mark) {
      this.refused += 1;
      return false;
    }
    this.mark = token;
    return true;
  }
}
