/**
 * The session of one simulated user: its sequences and what it has acknowledged.
 *
 * Owns: numbers. Never: sends. Used by: sim-worker.ts.
 */
import type { SessionKey } from './sim-call.js';
import type { World } from './world.js';

export class WorkerSession {
  key: SessionKey | null = null;
  hex = '';
  isOpening = false;
  private last = 0;
  /** Sequences whose results are known and need not be kept. */
  private done = new Set<number>();
  private mark = 0;

  get isOpen(): boolean {
    return this.key !== null;
  }

  onOpened(id: Uint8Array, secret: Uint8Array): void {
    this.key = { id: id.slice(), secret: secret.slice() };
    this.hex = Buffer.from(id).toString('hex');
    this.last = 0;
    this.mark = 0;
    this.done = new Set();
  }

  end(): void {
    this.key = null;
    this.hex = '';
  }

  nextSequence(): number {
    this.last += 1;
    return this.last;
  }

  /** The result of a sequence of this session is known for good. */
  onDone(request: unknown, key: SessionKey | null): void {
    if (typeof request !== 'number' || key === null || key !== this.key) return;
    this.done.add(request);
  }

  /** What a request numbered `sequence` acknowledges: a mark, perhaps with singles above it. */
  acknowledgements(sequence: number, world: World): unknown {
    while (this.done.has(this.mark + 1)) {
      this.mark += 1;
      this.done.delete(this.mark);
    }
    const mark = Math.min(this.mark, sequence - 1);
    if (world.chance(0.5) || mark < this.mark) return mark > 0 ? mark : null;
    const singles = [...this.done].filter((single) => single !== sequence).slice(0, 8);
    return singles.length > 0 ? [mark, ...singles] : mark > 0 ? mark : null;
  }
}
