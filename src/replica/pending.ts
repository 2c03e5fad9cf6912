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
  /** ClockPort µs of the turn that saw its first operation, 0 before. */
  openedUs = 0;
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

  /** Removes the callers whose deadline is not after `nowUs`. */
  dropOverdue(nowUs: number): void {
    let kept = 0;
    this.earliestUs = Number.POSITIVE_INFINITY;
    for (let i = 0; i < this.count; i += 1) {
      const deadlineUs = this.deadlinesUs[i] as number;
      if (deadlineUs <= nowUs) continue;
      this.connections[kept] = this.connections[i] as Connection | null;
      this.correlations[kept] = this.correlations[i] as number;
      this.deadlinesUs[kept] = deadlineUs;
      this.earliestUs = Math.min(this.earliestUs, deadlineUs);
      kept += 1;
    }
    this.connections.length = kept;
    this.correlations.length = kept;
    this.deadlinesUs.length = kept;
  }

  clear(): void {
    this.index = 0;
    this.term = 0;
    this.openedUs = 0;
    this.connections.length = 0;
    this.correlations.length = 0;
    this.deadlinesUs.length = 0;
    this.earliestUs = Number.POSITIVE_INFINITY;
  }
}

/**
 * Proposed batches in the order of their proposal, and a store of used ones. Their indices need not
 * rise: a node that lost and won leadership proposes below what its earlier term had proposed.
 */
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

  /** Batches of `term` that are not resolved; those of earlier terms hold nobody up. */
  countOfTerm(term: number): number {
    let count = 0;
    for (let i = 0; i < this.proposed.length; i += 1) {
      if ((this.proposed[i] as PendingBatch).term === term) count += 1;
    }
    return count;
  }

  /** Removes and returns a batch that was proposed at or below `index`; null when there is none. */
  takeUpTo(index: number): PendingBatch | null {
    for (let i = 0; i < this.proposed.length; i += 1) {
      const batch = this.proposed[i] as PendingBatch;
      if (batch.index > index) continue;
      this.removeAt(i);
      return batch;
    }
    return null;
  }

  /** ClockPort µs at which the oldest batch that is not resolved was opened, 0 for none. */
  get oldestUs(): number {
    return this.proposed[0]?.openedUs ?? 0;
  }

  at(position: number): PendingBatch {
    return this.proposed[position] as PendingBatch;
  }

  removeAt(position: number): void {
    this.operations -= this.at(position).count;
    this.proposed.splice(position, 1);
  }
}
