/**
 * npm run bench: drives a cluster with real lock operations and reports what it did.
 *
 *     npm run bench -- --profile headline --duration 60
 *
 * Owns: runs and repeats, where the report goes, the exit status. Starts its own five nodes in a
 * scratch folder unless --endpoints is given. The durability setting is the product's only one and
 * is printed. Called by package.json.
 */
import { writeFileSync } from 'node:fs';
import { measureBaseline } from './baseline.js';
import { keep, writePage } from './history.js';
import { readLoad } from './machine.js';
import type { Meter } from './meter.js';
import { type BenchOptions, helpText, parseBench, UsageError } from './options.js';
import { comparePeers, peerLines } from './peers/compare.js';
import { plotPage } from './plot.js';
import { isSound, percentileTable, type Report, reportOf, summary } from './report.js';
import { RUNNERS } from './runs.js';
import { Target } from './target.js';
import { judge, type Verdict } from './verdict.js';
import { say, type Window } from './window.js';

/** Of a cluster of our own. */
const NODES = 5;

/** One run, judged. */
interface Finished {
  readonly report: Report;
  readonly meter: Meter;
}

/** What a run hands over to the report. */
interface Judged {
  readonly window: Window;
  readonly verdict: Verdict;
  readonly nodes: number;
  readonly extra: Readonly<Record<string, unknown>>;
}

async function runProfile(options: BenchOptions): Promise<Judged> {
  const runner = RUNNERS[options.profile];
  if (runner === undefined) throw new UsageError(`profile ${options.profile}: nothing runs it`);
  const { endpoints } = options;
  const target = endpoints === null ? await Target.start() : Target.at(endpoints);
  try {
    const run = await runner(target, options);
    const verdict = await judge(target, run.meters, run.isRepeating);
    return {
      window: run.window,
      verdict: { ...verdict, checks: [...verdict.checks, ...run.checks] },
      nodes: target.nodes,
      extra: { ...run.extra, renewals_logged: verdict.renewalsLogged },
    };
  } finally {
    await target.close();
  }
}

async function runPeers(options: BenchOptions): Promise<Judged> {
  const { window, verdict, comparison, peers, losses } = await comparePeers(options);
  for (const line of peerLines(comparison, losses)) say(line);
  return { window, verdict, nodes: NODES, extra: { peers, comparison, losses } };
}

async function runOnce(options: BenchOptions): Promise<Finished> {
  const baseline = measureBaseline();
  const load = readLoad();
  const run = options.profile === 'peers' ? await runPeers(options) : await runProfile(options);
  const { window } = run;
  const shape = {
    connections: options.connections,
    inflight: options.inflight,
    rate: options.rate,
    duration_s: Number(window.seconds.toFixed(1)),
  };
  const rate = window.ops / window.seconds;
  const ratio = Number((rate / baseline.append_fdatasync_per_second).toFixed(2));
  const extra = { ...run.extra, baseline, ratio_to_baseline: ratio };
  const { profile } = options;
  const report = reportOf(profile, load, run.nodes, shape, window, run.verdict, extra);
  return { report, meter: window.meter };
}

function spreadOf(values: readonly number[]) {
  const sorted = [...values].sort((left, right) => left - right);
  const median = sorted[Math.floor((sorted.length - 1) / 2)] ?? 0;
  return { median, min: sorted[0] ?? 0, max: sorted[sorted.length - 1] ?? 0 };
}

/** The run with the median rate, with the spread of all. Unsound runs count as errors. */
function middleOf(runs: readonly Finished[]): Finished {
  const byRate = [...runs].sort(
    (left, right) => left.report.ops_per_second - right.report.ops_per_second,
  );
  const middle = byRate[Math.floor((byRate.length - 1) / 2)] as Finished;
  const pick = (value: (report: Report) => number) =>
    spreadOf(runs.map(({ report }) => value(report)));
  const repeats = {
    count: runs.length,
    sound: runs.filter(({ report }) => isSound(report)).length,
    ops_per_second: pick((report) => report.ops_per_second),
    p50_ms: pick((report) => report.latency_ms.p50),
    p99_ms: pick((report) => report.latency_ms.p99),
    cpu_us_per_op: pick((report) => report.cpu_us_per_op.total ?? 0),
  };
  return { report: { ...middle.report, repeats }, meter: middle.meter };
}

function publish(options: BenchOptions, { report, meter }: Finished): void {
  for (const line of percentileTable(meter)) say(line);
  say('');
  for (const line of summary(report)) say(line);
  const text = `${JSON.stringify(report, null, 2)}\n`;
  process.stdout.write(text);
  if (options.json !== null) writeFileSync(options.json, text);
  if (options.hgrm !== null) writeFileSync(options.hgrm, meter.total().hgrm());
  if (options.plot !== null) writeFileSync(options.plot, plotPage(report, meter));
}

async function bench(options: BenchOptions): Promise<number> {
  const runs: Finished[] = [];
  for (let run = 1; run <= options.repeats; run += 1) {
    if (options.repeats > 1) say(`run ${run} of ${options.repeats}`);
    runs.push(await runOnce(options));
  }
  const finished = middleOf(runs);
  publish(options, finished);
  const isEverySound = runs.every(({ report }) => isSound(report));
  if (options.keep !== null && isEverySound) {
    keep(finished.report, options.keep);
    writePage();
  } else if (options.keep !== null) {
    say('not kept: the figure may not be believed');
  }
  return isEverySound ? 0 : 1;
}

async function main(words: readonly string[]): Promise<number> {
  const wish = parseBench(words);
  if (wish.kind === 'help') process.stdout.write(`${helpText()}\n`);
  else if (wish.kind === 'report') writePage();
  else return bench(wish.options);
  return 0;
}

try {
  process.exitCode = await main(process.argv.slice(2));
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  process.stderr.write(`${error.message}\n`);
  process.exitCode = error.status;
}
