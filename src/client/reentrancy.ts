/**
 * Which locks the running async context holds: what makes an acquire reentrant when asked for.
 *
 * Owns: the table that follows the async context of withLock. Never: guesses; a context holds a
 * lock only inside the work of its withLock, and only `reentrant: true` looks here. One a client,
 * so two clients never share a hold. Used by: client.ts.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Ownership } from './ownership.js';

type Holds = ReadonlyMap<string, Ownership>;

export class Reentrancy {
  readonly #storage = new AsyncLocalStorage<Holds>();

  /**
   * What the running context holds of `name`, or undefined. A hold that was lost is still found, so
   * that entering again fails instead of hiding the loss; one that was released is not.
   */
  held(name: string): Ownership | undefined {
    const ownership = this.#storage.getStore()?.get(name);
    return ownership?.hold.state === 'released' ? undefined : ownership;
  }

  /** Runs `work` in a context that holds `ownership` too. */
  run<Result>(ownership: Ownership, work: () => Result): Result {
    const holds = new Map(this.#storage.getStore());
    holds.set(ownership.name, ownership);
    return this.#storage.run(holds, work);
  }
}
