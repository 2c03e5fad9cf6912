/**
 * Waits that ended in the entry being applied: each with the final answer its caller is owed.
 *
 * Owns: copies of those answers, since the stored result may be acknowledged in the same entry.
 * Never: who is told; the replica knows the connection. Filled by: ownership.ts.
 */
import { Outcome } from './outcome.js';

export class Completion {
  /** The wait's number: the revision at which it was queued. */
  place = 0;
  readonly outcome = new Outcome();
}

/** Records kept for the next entry after one that had very many. */
const COMPLETIONS_KEPT = 4_096;

/** The completions of one entry, in the order in which the waits ended. */
export class CompletionBatch {
  private readonly items: Completion[] = [];
  count = 0;

  clear(): void {
    this.count = 0;
    if (this.items.length > COMPLETIONS_KEPT) this.items.length = COMPLETIONS_KEPT;
  }

  /** The next record to fill; its outcome is reset. */
  add(place: number): Completion {
    if (this.count === this.items.length) this.items.push(new Completion());
    const completion = this.items[this.count] as Completion;
    this.count += 1;
    completion.place = place;
    completion.outcome.reset();
    return completion;
  }

  at(position: number): Completion {
    return this.items[position] as Completion;
  }
}
