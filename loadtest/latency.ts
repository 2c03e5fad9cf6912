/**
 * Latencies as HdrHistograms: recorded in µs, read in ms.
 *
 * Owns: the range and precision of every histogram of the load generator and the fields that a
 * report has of one. The only file of the load generator that imports the library. Never: a
 * correction; an open loop measures from the intended send, and nothing is corrected twice.
 * Used by: meter.ts, the loads, reports.
 */
import { build, type Histogram } from 'hdr-histogram-js';

const US_PER_MS = 1_000;
/** Longer ones count as this much: ten minutes. */
const LATENCY_US_MAX = 600_000_000;
const DIGITS = 3;
/** Values between two steps of a written distribution, by the convention of .hgrm files. */
const HGRM_STEPS = 5;

/** What a report has of a distribution, in ms. */
export interface LatencyFigures {
  readonly p50: number;
  readonly p90: number;
  readonly p99: number;
  readonly p999: number;
  readonly max: number;
}

/** One distribution. Recording allocates nothing. */
export class Latency {
  private readonly histogram: Histogram = build({
    lowestDiscernibleValue: 1,
    highestTrackableValue: LATENCY_US_MAX,
    numberOfSignificantValueDigits: DIGITS,
    bitBucketSize: 32,
    useWebAssembly: false,
  });

  get count(): number {
    return this.histogram.totalCount;
  }

  /** Records one latency in ms; below 1 µs counts as 1 µs. */
  record(ms: number): void {
    const us = Math.round(ms * US_PER_MS);
    this.histogram.recordValue(Math.min(Math.max(us, 1), LATENCY_US_MAX));
  }

  /** Adds everything that `other` has recorded. */
  add(other: Latency): void {
    this.histogram.add(other.histogram);
  }

  reset(): void {
    this.histogram.reset();
  }

  /** Latency in ms at or below which `percent` of all lie; 0 when nothing was recorded. */
  at(percent: number): number {
    return this.count === 0 ? 0 : this.histogram.getValueAtPercentile(percent) / US_PER_MS;
  }

  get maxMs(): number {
    return this.histogram.maxValue / US_PER_MS;
  }

  figures(): LatencyFigures {
    return {
      p50: this.at(50),
      p90: this.at(90),
      p99: this.at(99),
      p999: this.at(99.9),
      max: this.maxMs,
    };
  }

  /** The whole distribution as text, in ms: what plotters of .hgrm files read. */
  hgrm(): string {
    return this.histogram.outputPercentileDistribution(HGRM_STEPS, US_PER_MS);
  }
}
