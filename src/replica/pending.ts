/**
 * Who waits for which operation of which entry (invariant I5).
 *
 * Owns: the callers of each batch in order, keyed by (index, term) once it is proposed. Never: an
 * answer; apply.ts finds the outcome when the index is applied, also after a step-down.
 * Used by: admission (adds), turn (proposes), apply (resolves), deadlines.
 */
import type { Connection } from './connection.js';

/** The callers of one batch: position i belongs to operation i of its entry. */
export class PendingBatch {
  index = 0;
  term = 0;
  /** Null: nobody (the node itself, or the caller was answered already). */
  readonly connections: (Connection | null)[] = [];
  readonly correlations: number[] = [];
  /** ClockPort µs at which the caller is told UNKNOWN_OUTCOME. */
  readonly deadlinesUs: number[] = [];
  /** No caller's deadline is earlier. */
  earliestUs = Number.POSITIVE_INFINITY;

  get count(): number {
    return this.connections.length;
  }

  add(connection: Connection | null, correlation: number, deadlineUs: number): void {
    this.connections.push(connection);
    this.correlations.push(correlation);
    this.deadlinesUs.push(deadlineUs);
    if (deadlineUs < this.earliestUs) this.earliestUs = deadlineUs;
  }

  clear(): void {
    this.index = 0;
    this.term = 0;
    this.connections.length = 0;
    this.correlations.length = 0;
    this.deadlinesUs.length = 0;
    this.earliestUs = Number.POSITIVE_INFINITY;
  }
}

/** Proposed batches by rising index, and a store of used ones. */
export class PendingBatches {
  private readonly proposed: PendingBatch[] = [];
  private readonly free: PendingBatch[] = [];
  /** Operations in proposed batches. */
  operations = 0;

  get count(): number {
    return this.proposed.length;
  }

  /** An empty batch. */
  take(): PendingBatch {
    return this.free.pop() ?? new PendingBatch();
  }

  /** Gives a resolved batch back. */
  give(batch: PendingBatch): void {
    batch.clear();
    this.free.push(batch);
  }

  push(batch: PendingBatch): void {
    this.proposed.push(batch);
    this.operations += batch.count;
  }

  /** Removes and returns the batches that were proposed at or below `index`. */
  shift(index: number): PendingBatch | null {
    const first = this.proposed[0];
    if (first === undefined || first.index > index) return null;
    this.proposed.shift();
    this.operations -= first.count;
    return first;
  }

  at(position: number): PendingBatch {
    return this.proposed[position] as PendingBatch;
  }
}
