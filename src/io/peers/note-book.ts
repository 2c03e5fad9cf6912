/**
 * Tells an operator each thing once, however often it happens, and however many strangers knock.
 *
 * Owns: the texts told lately. A text is told again after a minute; past a bounded number of
 * different ones in a minute nothing new is told. Never: a log; it is passed in.
 * Used by: peer-server.ts.
 */

const REPEAT_MS = 60_000;
const TEXTS_MAX = 32;

export class NoteBook {
  /** When each text was told, oldest first. */
  private readonly toldAtMs = new Map<string, number>();

  /** @param tell writes one line for the operator */
  constructor(private readonly tell: (text: string) => void) {}

  note(text: string): void {
    const now = performance.now();
    for (const [old, toldAtMs] of this.toldAtMs) {
      if (now - toldAtMs < REPEAT_MS) break;
      this.toldAtMs.delete(old);
    }
    if (this.toldAtMs.has(text) || this.toldAtMs.size >= TEXTS_MAX) return;
    this.toldAtMs.set(text, now);
    this.tell(text);
  }
}
