/**
 * Takes the wall clock and unseeded chance away while a simulated run lasts (I8).
 *
 * Owns: the functions that it puts in their places, which throw, and putting the real ones back.
 * A run that steps the wall clock could only show what it happens to reach; this shows that nothing
 * asks for it. Used by: chaos.ts.
 */

const GUARDED: readonly (readonly [object, string])[] = [
  [Date, 'now'],
  [performance, 'now'],
  [Math, 'random'],
];

/** Runs `work`, in which nothing may ask for the time of day, for elapsed time, or for chance. */
export function withoutWallClock<T>(work: () => T): T {
  const real = GUARDED.map(([owner, name]) => Reflect.get(owner, name) as unknown);
  for (const [owner, name] of GUARDED) {
    const refuse = (): never => {
      throw new Error(`I8: ${name} was asked for in a simulated run`);
    };
    Object.defineProperty(owner, name, { value: refuse, configurable: true, writable: true });
  }
  try {
    return work();
  } finally {
    for (const [at, [owner, name]] of GUARDED.entries()) {
      const value = real[at];
      Object.defineProperty(owner, name, { value, configurable: true, writable: true });
    }
  }
}
