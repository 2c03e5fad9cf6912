/**
 * What `holdfast audit send` says of itself to Prometheus: a file for the textfile collector.
 *
 * Owns: the names of these metrics (for ever: alerts name them). Never: a port; a delivery lives
 * beside a node exporter, which reads such files. Used by: commands/audit.ts.
 */
import { replaceFile } from './checkpoint.js';

/** How a delivery stands. */
export interface DeliveryFigures {
  readonly delivered: number;
  readonly dead: number;
  /** Revisions that the cluster has and that were neither delivered nor put aside. */
  readonly lag: number;
  readonly isSinkAway: boolean;
}

/** In the text format of Prometheus. */
export function metricsText({ delivered, dead, lag, isSinkAway }: DeliveryFigures): string {
  const rows: readonly (readonly [string, string, string, number])[] = [
    ['holdfast_audit_delivered_total', 'counter', 'Events that the sink has taken.', delivered],
    ['holdfast_audit_dead_letters_total', 'counter', 'Events that the sink refused.', dead],
    ['holdfast_audit_lag_revisions', 'gauge', 'Revisions that are not delivered yet.', lag],
    [
      'holdfast_audit_sink_away',
      'gauge',
      '1 while the sink cannot be reached.',
      isSinkAway ? 1 : 0,
    ],
  ];
  return rows
    .map(([name, kind, help, value]) => {
      return `# HELP ${name} ${help}\n# TYPE ${name} ${kind}\n${name} ${value}\n`;
    })
    .join('');
}

/** Puts the figures in the place of `file`, so that a reader never sees half of them. */
export function writeMetrics(file: string, figures: DeliveryFigures): void {
  replaceFile(file, metricsText(figures));
}
