/**
 * From windows and verdicts to what is written: the JSON report, and a table for a person.
 *
 * Owns: the fields of the report, which scripts rely on, and their rounding. A figure that a
 * machine does not give is null. Never: a measurement. Used by: main.ts, the profiles.
 */
import { CommandKind } from '../src/core/locks/command.js';
import type { CpuTime } from './gauges.js';
import type { Latency, LatencyFigures } from './latency.js';
import { type Machine, nodeSettings, readCommit, readMachine } from './machine.js';
import { MEASURED, Meter } from './meter.js';
import { DURABILITY } from './target.js';
import type { Check, Verdict } from './verdict.js';
import type { Window } from './window.js';

/** Latency of one client alone is never below one flush: used to hold the disk to its counter. */
const MS_PER_S = 1_000;

export interface PerProcess {
  readonly leader: number | null;
  /** Of one follower, the mean of all. */
  readonly follower: number | null;
  readonly client: number;
  /** All nodes and the client. */
  readonly total: number | null;
}

export interface LoadShape {
  readonly connections: number;
  readonly inflight: number | null;
  /** Operations a second that the schedule asks for; null in a closed loop. */
  readonly rate: number | null;
  readonly duration_s: number;
}

/** What every report has; profiles add their own fields. */
export interface Report {
  readonly profile: string;
  readonly commit: string;
  readonly at: string;
  readonly machine: Machine;
  /** Load averages before the run. */
  readonly machine_load: string;
  readonly cluster: {
    readonly nodes: number;
    readonly durable: true;
    readonly durability: string;
    readonly settings: string;
    readonly compaction: boolean;
  };
  readonly load: LoadShape;
  readonly ops: number;
  readonly ops_per_second: number;
  readonly errors: number;
  readonly refusals: number;
  readonly answers_by_code: Readonly<Record<string, number>>;
  /** Share of the requests that were answered well within a second. */
  readonly served_within_1s: number;
  readonly latency_ms: LatencyFigures;
  readonly latency_ms_by_operation: Readonly<Record<string, LatencyFigures>>;
  readonly cpu_us_per_op: PerProcess & { readonly user: PerProcess; readonly system: PerProcess };
  readonly bytes_per_op: { readonly client: number; readonly peer: number | null };
  readonly commits_per_second: number;
  readonly ops_per_commit: number;
  readonly flushes_per_second: number | null;
  readonly cluster_time_rate: number;
  readonly verified: readonly Check[];
  readonly [field: string]: unknown;
}

function rounded(value: number, digits = 2): number {
  return Number(value.toFixed(digits));
}

function perProcess(window: Window, us: (time: CpuTime) => number): PerProcess {
  const rate = window.ops / window.seconds;
  const perOp = (time: CpuTime, share = 1): number =>
    rounded(us(time) / share / window.readingSeconds / rate);
  const { leader, followers, client } = window;
  const isWhole = leader !== null && followers !== null;
  return {
    leader: leader === null ? null : perOp(leader),
    follower: followers === null ? null : perOp(followers, window.followerCount),
    client: perOp(client),
    total: isWhole
      ? rounded((us(leader) + us(followers) + us(client)) / window.readingSeconds / rate)
      : null,
  };
}

export function cpuPerOp(window: Window): Report['cpu_us_per_op'] {
  return {
    ...perProcess(window, (time) => time.userUs + time.systemUs),
    user: perProcess(window, (time) => time.userUs),
    system: perProcess(window, (time) => time.systemUs),
  };
}

function byOperation(meter: Meter): Record<string, LatencyFigures> {
  const found: Record<string, LatencyFigures> = {};
  for (const kind of MEASURED) {
    const latency = meter.latencyOf(kind);
    if (latency.count > 0) found[Meter.kindName(kind)] = latency.figures();
  }
  return found;
}

/**
 * The least number of flushes that the acknowledged operations needed. Operations of one seat
 * follow one another, and each needs a flush that began after it was sent.
 */
function flushesLeast(window: Window, load: LoadShape, latency: Latency): number {
  if (load.inflight !== null) return Math.floor(window.ops / load.inflight);
  return latency.maxMs === 0 ? 0 : Math.floor((window.seconds * MS_PER_S) / latency.maxMs);
}

function flushCheck(window: Window, load: LoadShape, latency: Latency): Check {
  const name = 'flushes';
  const { flushes } = window;
  if (flushes === null) {
    return {
      name,
      isKept: null,
      detail: 'SKIPPED: no counter of flushes for the disk of the nodes',
    };
  }
  const least = flushesLeast(window, load, latency);
  const perCommit = (flushes / Math.max(1, window.commits)).toFixed(2);
  return {
    name,
    isKept: flushes >= least,
    detail: `${flushes} of the disk, at least ${least} were needed; ${perCommit} a commit`,
  };
}

/** What every profile reports of its window. `machineLoad`: readLoad() before the run. */
export function reportOf(
  profile: string,
  machineLoad: string,
  nodes: number,
  load: LoadShape,
  window: Window,
  verdict: Verdict,
  extra: Readonly<Record<string, unknown>> = {},
): Report {
  const { meter } = window;
  const latency = meter.total();
  const rate = window.ops / window.seconds;
  const perOp = (bytes: number): number => rounded(bytes / window.readingSeconds / rate, 1);
  const commits = window.commits / window.readingSeconds;
  return {
    profile,
    commit: readCommit(),
    at: new Date().toISOString(),
    machine: readMachine(),
    machine_load: machineLoad,
    cluster: {
      nodes,
      durable: true,
      durability: DURABILITY,
      settings: nodeSettings(),
      compaction: false,
    },
    load,
    ops: window.ops,
    ops_per_second: Math.round(rate),
    errors: meter.errors,
    refusals: meter.refusals,
    answers_by_code: meter.answersByCode(),
    served_within_1s: rounded(meter.served, 6),
    latency_ms: latency.figures(),
    latency_ms_by_operation: byOperation(meter),
    cpu_us_per_op: cpuPerOp(window),
    bytes_per_op: {
      client: perOp(window.clientBytes),
      peer: window.peerBytes === null ? null : perOp(window.peerBytes),
    },
    commits_per_second: Math.round(commits),
    ops_per_commit: rounded(rate / commits, 1),
    flushes_per_second:
      window.flushes === null ? null : Math.round(window.flushes / window.readingSeconds),
    cluster_time_rate: rounded(window.clusterTimeRate, 4),
    ...extra,
    verified: [...verdict.checks, flushCheck(window, load, latency)],
  };
}

/** True when nothing speaks against the figure. */
export function isSound(report: Report): boolean {
  return report.errors === 0 && report.verified.every((check) => check.isKept !== false);
}

const TABLE_PERCENTS = [50, 75, 90, 95, 99, 99.9, 99.99, 100];

/** Percentiles of each kind of operation, as lines for a person. */
export function percentileTable(meter: Meter): string[] {
  const kinds = MEASURED.filter((kind) => meter.latencyOf(kind).count > 0);
  const columns: [string, Latency][] = kinds.map((kind) => [
    Meter.kindName(kind),
    meter.latencyOf(kind),
  ]);
  columns.push(['all', meter.total()]);
  const head = columns.map(([name]) => name.padStart(11)).join('');
  const lines = [`percentile ${head}   (ms)`];
  for (const percent of TABLE_PERCENTS) {
    const cells = columns.map(([, latency]) => latency.at(percent).toFixed(3).padStart(11));
    lines.push(`${String(percent).padStart(10)} ${cells.join('')}`);
  }
  const counts = columns.map(([, latency]) => String(latency.count).padStart(11));
  lines.push(`     count ${counts.join('')}`);
  return lines;
}

function processes(figures: PerProcess): string {
  const cell = (value: number | null): string => (value === null ? '-' : value.toFixed(2));
  const nodes = `leader ${cell(figures.leader)}, follower ${cell(figures.follower)}`;
  return `${nodes}, client ${cell(figures.client)}, all ${cell(figures.total)}`;
}

/** The report in words, for a person. */
export function summary(report: Report): string[] {
  const { machine, cluster, load, cpu_us_per_op: cpu, bytes_per_op: bytes } = report;
  const asked = load.rate === null ? `${load.inflight} in flight` : `${load.rate}/s asked for`;
  const system = `Linux ${machine.kernel}, Node ${machine.node}`;
  const lines = [
    `${report.profile}: ${report.ops_per_second} ops/s over ${load.duration_s} s`,
    `machine     ${machine.cpu}, ${machine.cores} cores, ${system}`,
    `            load before ${report.machine_load}; commit ${report.commit}`,
    `cluster     ${cluster.nodes} nodes, ${cluster.durability}`,
    `            ${cluster.settings}`,
    `load        ${load.connections} connections, ${asked}`,
    `answers     ${report.ops} good, ${report.refusals} refused, ${report.errors} errors`,
    `            ${(100 * report.served_within_1s).toFixed(4)} % served well within 1 s`,
    `CPU µs/op   ${processes(cpu)}`,
    `  user      ${processes(cpu.user)}`,
    `  kernel    ${processes(cpu.system)}`,
    `bytes/op    client ${bytes.client}, between nodes ${bytes.peer ?? 'not counted'}`,
    `commits     ${report.commits_per_second}/s, ${report.ops_per_commit} ops each`,
    `time        cluster time ran at ${report.cluster_time_rate} of real time`,
  ];
  for (const check of report.verified) {
    const verdict = check.isKept === null ? '??' : check.isKept ? 'ok' : 'NO';
    lines.push(`${verdict} ${check.name.padEnd(15)}${check.detail}`);
  }
  return lines;
}

/** Acquires alone: what the interview's floor is about. */
export function acquireP99(meter: Meter): number {
  return meter.latencyOf(CommandKind.Acquire).at(99);
}
