/**
 * The two sizes of the acceptance tests: quick for the gate, full for `npm run acceptance`.
 *
 * Owns: the variable that chooses, HOLDFAST_ACCEPTANCE=full. Never: what a test asserts; both sizes
 * hold a promise to the same words, the full one more often and for longer.
 * Used by: every test in this folder.
 */
export const isFull = process.env['HOLDFAST_ACCEPTANCE'] === 'full';

/** The value for the size that runs. */
export function sized<T>(quick: T, full: T): T {
  return isFull ? full : quick;
}

/** Lets time pass between two disturbances, or while a state has to last. Never to wait for one. */
export function pass(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
