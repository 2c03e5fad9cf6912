/**
 * Listens to the abort signals of callers: one listener a signal, however many calls share it.
 *
 * Owns: who wants to hear of which signal. Never: keeps a signal alive, or leaves a listener
 * behind. Without it fifty acquires under one signal would make Node warn of a leak in the caller's
 * program. Used by: acquire.ts, sequence-wait.ts, within-deadline.ts.
 */

interface Watched {
  readonly callbacks: Set<() => void>;
  readonly listener: () => void;
}

export class AbortWatch {
  readonly #watched = new WeakMap<AbortSignal, Watched>();

  /** Calls `onAbort` once when `signal` fires. Returns how to stop that; undefined: never fires. */
  watch(signal: AbortSignal | undefined, onAbort: () => void): () => void {
    if (signal === undefined) return nothing;
    const { callbacks, listener } = this.#watched.get(signal) ?? this.#listen(signal);
    callbacks.add(onAbort);
    return () => {
      callbacks.delete(onAbort);
      if (callbacks.size > 0) return;
      signal.removeEventListener('abort', listener);
      this.#watched.delete(signal);
    };
  }

  #listen(signal: AbortSignal): Watched {
    const callbacks = new Set<() => void>();
    const listener = (): void => {
      for (const callback of [...callbacks]) callback();
    };
    const watched = { callbacks, listener };
    this.#watched.set(signal, watched);
    signal.addEventListener('abort', listener, { once: true });
    return watched;
  }
}

function nothing(): void {
  // There is no signal to stop listening to.
}
