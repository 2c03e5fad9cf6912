/**
 * How well a cluster served before a drill and serves after it, and whether that is the same.
 *
 * Owns: the three figures (success rate, p99, lag), how a window of operations becomes them, and
 * the rule of 10 %. Two times closer than GRAIN_MS count as the same: on a machine that does other
 * things, timers and scheduling blur as much. Never: measures. Used by: steady-load.ts, record.ts.
 */

/** One acquire or release of the load. Times of performance.now(). */
export interface Operation {
  readonly sentMs: number;
  readonly answeredMs: number;
  readonly isSuccess: boolean;
  /** Until the slowest node has told the event to readers of the audit stream; null: none came. */
  readonly lagMs: number | null;
}

/** The service in one window of time. */
export interface Service {
  readonly operations: number;
  /** Share of operations that succeeded, 0 to 1. */
  readonly success: number;
  /** 99th percentile of the time to an answer. */
  readonly p99Ms: number;
  /** Middle time from the answer until every node has told the event. */
  readonly lagMs: number;
}

/** Within this share of the figure before. */
export const BACK_SHARE = 0.1;
/** Times that differ by less are the same. */
export const GRAIN_MS = 10;

/** The value below which `share` of the values are; 0 for none. */
function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((left, right) => left - right);
  const at = Math.min(sorted.length - 1, Math.floor(sorted.length * share));
  return sorted[Math.max(0, at)] ?? 0;
}

/** The figures of some operations. Without any, nothing succeeded. */
export function serviceOf(operations: readonly Operation[]): Service {
  const succeeded = operations.filter((operation) => operation.isSuccess);
  const lags = succeeded.map(({ lagMs }) => lagMs ?? Number.POSITIVE_INFINITY);
  const times = operations.map(({ sentMs, answeredMs }) => answeredMs - sentMs);
  return {
    operations: operations.length,
    success: operations.length === 0 ? 0 : succeeded.length / operations.length,
    p99Ms: quantile(times, 0.99),
    lagMs: quantile(lags, 0.5),
  };
}

/** What the service was at its least in some windows, each figure by itself. */
export function leastOf(windows: readonly Service[]): Service {
  return {
    operations: Math.min(...windows.map((window) => window.operations)),
    success: Math.min(...windows.map((window) => window.success)),
    p99Ms: Math.max(...windows.map((window) => window.p99Ms)),
    lagMs: Math.max(...windows.map((window) => window.lagMs)),
  };
}

function isTimeBack(before: number, after: number): boolean {
  return after <= Math.max(before * (1 + BACK_SHARE), before + GRAIN_MS);
}

/** The figures that are not back within 10 % of before; empty when the service is as it was. */
export function missingOf(before: Service, after: Service): string[] {
  const missing: string[] = [];
  if (after.operations === 0 || after.success < before.success * (1 - BACK_SHARE)) {
    missing.push('success');
  }
  if (!isTimeBack(before.p99Ms, after.p99Ms)) missing.push('p99');
  if (!isTimeBack(before.lagMs, after.lagMs)) missing.push('lag');
  return missing;
}

/** One line for people. */
export function serviceWords({ success, p99Ms, lagMs, operations }: Service): string {
  const share = `${(success * 100).toFixed(1)} % of ${operations}`;
  const lag = Number.isFinite(lagMs) ? `${lagMs.toFixed(1)} ms` : 'unknown';
  return `success ${share}, p99 ${p99Ms.toFixed(1)} ms, lag ${lag}`;
}
