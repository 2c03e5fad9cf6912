/**
 * A page for a browser that shows one run: latency by percentile, and every second of it.
 *
 * Owns: the page. The chart library's own file is put into it, so that nothing is fetched when it
 * is opened. The only file that knows the library. Never: a figure that the report has not.
 * Used by: main.ts.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { MEASURED, Meter, type SecondRow } from './meter.js';
import { type Report, summary } from './report.js';

const require = createRequire(import.meta.url);
/** The curve's last point is the percentile 1 - 1 / this. */
const TAIL_MAX = 100_000;
const POINTS_PER_DECADE = 24;
const DECADES = 5;

function libraryFile(name: string): string {
  return readFileSync(require.resolve(`uplot/dist/${name}`), 'utf8');
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

interface Curves {
  readonly labels: readonly string[];
  /** x, then one row a label. */
  readonly data: readonly (readonly (number | null)[])[];
}

/** Latency over 1 / (1 - percentile): 1, 10, 100 are the percentiles 0, 90, 99. */
function percentileCurves(meter: Meter): Curves {
  const tails: number[] = [];
  for (let step = 0; step <= POINTS_PER_DECADE * DECADES; step += 1) {
    tails.push(Math.min(TAIL_MAX, 10 ** (step / POINTS_PER_DECADE)));
  }
  const kinds = MEASURED.filter((kind) => meter.latencyOf(kind).count > 0);
  const rows = kinds.map((kind) => {
    const latency = meter.latencyOf(kind);
    const isKnown = (tail: number): boolean => tail <= latency.count;
    return tails.map((tail) => (isKnown(tail) ? latency.at(100 * (1 - 1 / tail)) : null));
  });
  return { labels: kinds.map(Meter.kindName), data: [tails, ...rows] };
}

function secondCurves(rows: readonly SecondRow[]): { ops: Curves; latency: Curves } {
  const seconds = rows.map((row) => row.second);
  const ops = rows.map((row) => row.ops);
  const refusals = rows.map((row) => row.refusals);
  const p50 = rows.map((row) => row.p50Ms);
  const p99 = rows.map((row) => row.p99Ms);
  const most = rows.map((row) => row.maxMs);
  return {
    ops: { labels: ['operations', 'refused'], data: [seconds, ops, refusals] },
    latency: { labels: ['p50', 'p99', 'max'], data: [seconds, p50, p99, most] },
  };
}

const SCRIPT = `
const colours = ['#1f77b4', '#d62728', '#2ca02c', '#9467bd'];
const width = Math.min(1100, document.body.clientWidth - 40);
function chart(title, curves, options) {
  const series = curves.labels.map((label, at) =>
    ({ label, stroke: colours[at % colours.length], width: 1.5, points: { show: false } }));
  const plot = { title, width, height: 320, series: [options.x, ...series],
    scales: options.scales, axes: options.axes, legend: { live: true } };
  new uPlot(plot, curves.data, document.getElementById('charts'));
}
const percentile = (tail) =>
  tail == null ? '' : Number((100 * (1 - 1 / tail)).toPrecision(6)) + ' %';
const log = { distr: 3, log: 10 };
chart('latency by percentile', curves.percentiles, {
  x: { label: 'percentile', value: (u, v) => percentile(v) },
  scales: { x: { time: false, ...log }, y: log },
  axes: [
    { label: 'percentile', values: (u, all) => all.map(percentile) },
    { label: 'ms', size: 70 },
  ],
});
const seconds = (label) => ({ x: { label: 'second' }, scales: { x: { time: false } },
  axes: [{ label: 'second' }, { label, size: 70 }] });
chart('operations in each second', curves.ops, seconds('a second'));
chart('latency in each second', curves.latency, seconds('ms'));
`;

/** The page, complete: it loads nothing. */
export function plotPage(report: Report, meter: Meter): string {
  const curves = { percentiles: percentileCurves(meter), ...secondCurves(meter.seconds) };
  const data = JSON.stringify(curves).replaceAll('<', '\\u003c');
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Holdfast: ${escaped(report.profile)}, ${report.ops_per_second} ops/s</title>
<style>${libraryFile('uPlot.min.css')}
body { font: 14px/1.5 system-ui, sans-serif; margin: 20px; }</style>
<script>${libraryFile('uPlot.iife.min.js')}</script>
</head>
<body>
<pre>${escaped(summary(report).join('\n'))}</pre>
<div id="charts"></div>
<script>
const curves = ${data};
${SCRIPT}</script>
</body>
</html>
`;
}
