/**
 * Metrics that were counted elsewhere, in the form in which the registry writes them.
 *
 * Owns: how labelled numbers and histograms become samples. Never: a count of its own.
 * Used by: metrics.ts.
 */

export interface Labels {
  readonly [label: string]: string;
}

/** A number under labels. */
export interface Sample {
  readonly labels: Labels;
  readonly value: number;
}

/** Values in each bucket by itself, the last above every bound; in seconds. */
export interface CountedBuckets {
  readonly labels: Labels;
  readonly bounds: readonly number[];
  readonly counts: ArrayLike<number>;
  readonly sum: number;
}

/** One metric, by the whole name that it has. */
export type Family =
  | {
      readonly name: string;
      readonly help: string;
      readonly kind: 'counter' | 'gauge';
      readonly samples: readonly Sample[];
    }
  | {
      readonly name: string;
      readonly help: string;
      readonly kind: 'histogram';
      readonly buckets: readonly CountedBuckets[];
    };

interface Value {
  readonly metricName: string;
  readonly labels: { readonly [label: string]: string | number };
  readonly value: number;
}

/** What the registry asks of a metric. */
export class FamilyMetric {
  readonly name: string;

  constructor(private family: Family) {
    this.name = family.name;
  }

  take(family: Family): void {
    this.family = family;
  }

  get() {
    const { name, help, kind } = this.family;
    return { name, help, type: kind, values: this.values(), aggregator: 'sum' };
  }

  private values(): Value[] {
    const { family } = this;
    if (family.kind !== 'histogram') {
      return family.samples.map(({ labels, value }) => ({
        metricName: family.name,
        labels,
        value,
      }));
    }
    return family.buckets.flatMap((buckets) => bucketValues(family.name, buckets));
  }
}

/** Cumulated, as the text format has them. */
function bucketValues(name: string, { labels, bounds, counts, sum }: CountedBuckets): Value[] {
  const values: Value[] = [];
  let count = 0;
  for (const [at, bound] of bounds.entries()) {
    count += counts[at] ?? 0;
    values.push({ metricName: `${name}_bucket`, labels: { ...labels, le: bound }, value: count });
  }
  count += counts[bounds.length] ?? 0;
  values.push({ metricName: `${name}_bucket`, labels: { ...labels, le: '+Inf' }, value: count });
  values.push({ metricName: `${name}_sum`, labels, value: sum });
  values.push({ metricName: `${name}_count`, labels, value: count });
  return values;
}
