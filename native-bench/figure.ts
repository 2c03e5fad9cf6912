/**
 * One measured ceiling, and the two ways in which they are measured.
 *
 * Owns: the shape of a figure, timing loops, CPU of this process (all its threads). Never: a
 * verdict. A bench warms up first and measures for about as long as it is told.
 * Used by: every bench of this folder, main.ts.
 */

export interface Figure {
  readonly name: string;
  readonly unit: string;
  readonly value: number;
  /** What is counted: which way is better depends on it. */
  readonly isRate: boolean;
}

export function cost(name: string, unit: string, value: number): Figure {
  return { name, unit, value, isRate: false };
}

export function rate(name: string, unit: string, value: number): Figure {
  return { name, unit, value, isRate: true };
}

const MS_PER_S = 1_000;
const NS_PER_MS = 1_000_000;
/** Calls between two looks at the clock. */
const CHUNK = 1_000;

/** Nanoseconds of one call, called again and again for `forMs` after as long a warm-up. */
export function nsOfCall(work: () => void, forMs: number): number {
  timed(work, forMs / 2);
  return timed(work, forMs);
}

function timed(work: () => void, forMs: number): number {
  const startedMs = performance.now();
  let calls = 0;
  for (;;) {
    for (let i = 0; i < CHUNK; i += 1) work();
    calls += CHUNK;
    const elapsedMs = performance.now() - startedMs;
    if (elapsedMs >= forMs) return (elapsedMs * NS_PER_MS) / calls;
  }
}

/** What a slow thing costs: how many a second one after another, and the process's CPU for each. */
export interface Paced {
  readonly perSecond: number;
  readonly p50Us: number;
  readonly cpuUs: number;
}

const US_PER_MS = 1_000;

/** Awaits `work` again and again, the next when the last is done. */
export async function paced(work: () => void | Promise<void>, forMs: number): Promise<Paced> {
  const warmUntilMs = performance.now() + forMs / 4;
  while (performance.now() < warmUntilMs) await work();
  const latenciesUs: number[] = [];
  const cpu = process.cpuUsage();
  const startedMs = performance.now();
  let nowMs = startedMs;
  while (nowMs - startedMs < forMs) {
    await work();
    const doneMs = performance.now();
    latenciesUs.push((doneMs - nowMs) * US_PER_MS);
    nowMs = doneMs;
  }
  const { user, system } = process.cpuUsage(cpu);
  latenciesUs.sort((left, right) => left - right);
  const count = latenciesUs.length;
  return {
    perSecond: (count * MS_PER_S) / (nowMs - startedMs),
    p50Us: latenciesUs[count >> 1] ?? 0,
    cpuUs: (user + system) / count,
  };
}
