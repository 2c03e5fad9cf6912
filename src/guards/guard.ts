/**
 * What every guard has in common: its marks can be looked at and raised.
 *
 * Owns: the shape. How a write is handed over differs from store to store (a transaction, a list of
 * commands, a body), so each guard has a method of its own for it. Never: an implementation.
 * Used by: the guards, `holdfast guard`, test/guards.
 */
import type { Mark } from './fence.js';
import type { Tally } from './tally.js';

export interface Guard {
  readonly tally: Tally;
  /**
   * Raises the mark of a lock to a barrier token; lower marks only rise. From then on every token
   * below it is refused, without a new holder having to write first.
   */
  raise(lock: string, token: number): Promise<Mark>;
  /** The mark of a lock; token 0 when nothing was seen yet. */
  mark(lock: string): Promise<Mark>;
}
