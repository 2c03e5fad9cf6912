/**
 * One write at a time for each lock, in the order in which they came.
 *
 * Owns: who waits for whom. Bounded: past WAITING_MAX for one lock a write is refused, since a
 * queue that grows behind a slow upstream helps nobody. Never: tokens. Used by: write-proxy.ts.
 */

/** Writes that wait for one lock. */
export const WAITING_MAX = 64;

export class LockQueue {
  readonly #tails = new Map<string, { waiting: number; last: Promise<void> }>();

  /** Runs `work` after those before it, or gives false: too many wait. */
  run(lock: string, work: () => Promise<void>): Promise<void> | false {
    const tail = this.#tails.get(lock) ?? { waiting: 0, last: Promise.resolve() };
    if (tail.waiting > WAITING_MAX) return false;
    tail.waiting += 1;
    const done = tail.last.then(work).finally(() => {
      tail.waiting -= 1;
      if (tail.waiting === 0) this.#tails.delete(lock);
    });
    // The next one does not care how this one ended; who called run() does.
    tail.last = done.catch(() => undefined);
    this.#tails.set(lock, tail);
    return done;
  }
}
