/**
 * Rates and percentiles between two scrapes of /metrics.
 *
 * Owns: the arithmetic. Percentiles come from the buckets of the request histogram, so they are the
 * upper edge of a bucket. Never: a request. Used by: app.ts.
 */

/** One moment of the plots. */
export interface Figure {
  /** Seconds since the epoch of the browser's clock: only for the axis. */
  readonly atS: number;
  readonly opsPerSecond: number;
  /** ms; null when no request was answered in between. */
  readonly p50Ms: number | null;
  readonly p99Ms: number | null;
}

const BUCKET = /^holdfast_http_request_duration_seconds_bucket\{le="([^"]+)"/;
const APPLIED = 'holdfast_applied_operations_total';
const MS_PER_S = 1_000;

type Samples = ReadonlyMap<string, number>;

/** Requests by the upper edge of their bucket, in seconds, answered between two scrapes. */
function bucketsBetween(before: Samples, after: Samples): [number, number][] {
  const sums = new Map<number, number>();
  for (const [series, value] of after) {
    const edge = BUCKET.exec(series)?.[1];
    if (edge === undefined) continue;
    const seconds = edge === '+Inf' ? Number.POSITIVE_INFINITY : Number(edge);
    sums.set(seconds, (sums.get(seconds) ?? 0) + value - (before.get(series) ?? 0));
  }
  return [...sums].sort((left, right) => left[0] - right[0]);
}

/** Upper edge, in ms, of the bucket in which the share `of` of the requests lies. */
function percentileMs(buckets: readonly [number, number][], of: number): number | null {
  const total = buckets.at(-1)?.[1] ?? 0;
  if (total <= 0) return null;
  const finite = buckets.filter(([edge]) => Number.isFinite(edge));
  const found = finite.find(([, count]) => count >= total * of) ?? finite.at(-1);
  return found === undefined ? null : found[0] * MS_PER_S;
}

export function figureBetween(
  before: Samples,
  after: Samples,
  seconds: number,
  atS: number,
): Figure {
  const buckets = bucketsBetween(before, after);
  const applied = (after.get(APPLIED) ?? 0) - (before.get(APPLIED) ?? 0);
  return {
    atS,
    opsPerSecond: Math.max(0, applied) / Math.max(seconds, 0.001),
    p50Ms: percentileMs(buckets, 0.5),
    p99Ms: percentileMs(buckets, 0.99),
  };
}
