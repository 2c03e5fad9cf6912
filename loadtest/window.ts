/**
 * One measured stretch of time: a load runs, and what machine and nodes count is read before and
 * after it.
 *
 * Owns: the warm-up, the live line of every second, the readings and their differences. Never:
 * what a load does, whether a figure may be believed. Used by: the profiles.
 */
import {
  bytesBetween,
  type CpuTime,
  cpuOf,
  cpuSince,
  cpuSum,
  flushesUnder,
  ownCpu,
} from './gauges.js';
import type { Load } from './load.js';
import type { Meter } from './meter.js';
import type { HeardStatus, Target } from './target.js';

export const WARM_UP_MS = 3_000;
const MS_PER_S = 1_000;

interface Reading {
  readonly atMs: number;
  readonly leaderId: number;
  readonly appliedIndex: number;
  readonly appliedOperations: number;
  /** Cluster time at the leader, and when its answer came. */
  readonly clusterTimeMs: number;
  readonly heardAtMs: number;
  readonly nodes: ReadonlyMap<number, CpuTime>;
  readonly own: CpuTime;
  readonly clientBytes: number;
  readonly peerBytes: number | null;
  readonly flushes: number | null;
}

/** The differences between two readings. */
export interface Window {
  readonly meter: Meter;
  /** How long operations were recorded. */
  readonly seconds: number;
  readonly ops: number;
  /** Between the two readings; a little longer, since the load goes on while they are taken. */
  readonly readingSeconds: number;
  readonly leader: CpuTime | null;
  /** All followers together, and how many. */
  readonly followers: CpuTime | null;
  readonly followerCount: number;
  readonly client: CpuTime;
  readonly clientBytes: number;
  readonly peerBytes: number | null;
  readonly flushes: number | null;
  /** Log entries that the leader applied, and the operations in them. */
  readonly commits: number;
  readonly appliedOperations: number;
  /** Cluster time that passed for each ms of real time. */
  readonly clusterTimeRate: number;
}

function leaderOf(statuses: readonly HeardStatus[]): HeardStatus {
  const leaders = statuses.filter((status) => status.role === 'leader');
  leaders.sort((left, right) => right.term - left.term);
  const leader = leaders[0];
  if (leader === undefined) throw new Error('no node says that it leads');
  return leader;
}

async function read(target: Target, load: Load): Promise<Reading> {
  const { cluster } = target;
  const leader = leaderOf(await target.statuses());
  const nodes = new Map<number, CpuTime>();
  const ports: number[] = [];
  for (const nodeId of cluster?.runningIds ?? []) {
    if (cluster === null) continue;
    nodes.set(nodeId, cpuOf(cluster.pid(nodeId)));
    ports.push(Number(cluster.peerEndpoint(nodeId).split(':')[1]));
  }
  return {
    leaderId: leader.nodeId,
    appliedIndex: leader.appliedIndex,
    appliedOperations: leader.counters['applied_operations'] ?? 0,
    clusterTimeMs: leader.clusterTimeMs,
    heardAtMs: leader.heardAtMs,
    nodes,
    peerBytes: cluster === null ? null : bytesBetween(ports),
    flushes: cluster === null ? null : flushesUnder(cluster.folder),
    own: ownCpu(),
    clientBytes: load.bytes,
    atMs: performance.now(),
  };
}

function difference(meter: Meter, before: Reading, after: Reading): Window {
  let leader: CpuTime | null = null;
  const followers: CpuTime[] = [];
  for (const [nodeId, now] of after.nodes) {
    const then = before.nodes.get(nodeId);
    if (then === undefined) continue;
    const spent = cpuSince(now, then);
    if (nodeId === after.leaderId) leader = spent;
    else followers.push(spent);
  }
  const since = (now: number | null, then: number | null): number | null =>
    now === null || then === null ? null : now - then;
  const elapsedMs = after.atMs - before.atMs;
  return {
    meter,
    seconds: elapsedMs / MS_PER_S,
    readingSeconds: elapsedMs / MS_PER_S,
    ops: meter.operations,
    leader,
    followers: followers.length === 0 ? null : cpuSum(followers),
    followerCount: followers.length,
    client: cpuSince(after.own, before.own),
    clientBytes: after.clientBytes - before.clientBytes,
    peerBytes: since(after.peerBytes, before.peerBytes),
    flushes: since(after.flushes, before.flushes),
    commits: after.appliedIndex - before.appliedIndex,
    appliedOperations: after.appliedOperations - before.appliedOperations,
    clusterTimeRate:
      (after.clusterTimeMs - before.clusterTimeMs) / (after.heardAtMs - before.heardAtMs),
  };
}

export function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

export function say(text: string): void {
  process.stderr.write(`${text}\n`);
}

/** Prints a line for every second of a meter until stopped. */
export class Progress {
  private readonly timer: NodeJS.Timeout;

  constructor(
    private readonly meter: Meter,
    private readonly label: string,
  ) {
    this.timer = setInterval(() => this.tick(), MS_PER_S);
  }

  stop(): void {
    clearInterval(this.timer);
  }

  private tick(): void {
    const row = this.meter.endSecond();
    const { errors } = this.meter;
    const faults = errors > 0 ? `  ${errors} ERRORS` : '';
    const refusals = row.refusals > 0 ? `  ${row.refusals} refused` : '';
    const p99 = row.p99Ms.toFixed(2).padStart(8);
    const ops = String(row.ops).padStart(7);
    const second = String(row.second).padStart(4);
    say(`${this.label} ${second} s ${ops} ops/s  p99 ${p99} ms${refusals}${faults}`);
  }
}

/** Records a load that runs for `seconds`, doing `during` meanwhile; returns what was counted. */
export async function record(
  target: Target,
  load: Load,
  seconds: number,
  label: string,
  during: () => Promise<void> = () => sleep(seconds * MS_PER_S),
): Promise<Window> {
  const before = await read(target, load);
  load.meter.isRecording = true;
  const progress = new Progress(load.meter, label);
  try {
    await during();
  } finally {
    progress.stop();
    load.meter.isRecording = false;
  }
  const endedMs = performance.now();
  const after = await read(target, load);
  const window = difference(load.meter, before, after);
  return { ...window, seconds: (endedMs - before.atMs) / MS_PER_S };
}

/** The whole life of a load: open, warm up, record, stop, close. */
export async function runLoad(
  target: Target,
  load: Load,
  seconds: number,
  label: string,
  warmUpMs = WARM_UP_MS,
): Promise<Window> {
  await load.open();
  load.start();
  await sleep(warmUpMs);
  const window = await record(target, load, seconds, label);
  await load.stop();
  await load.close();
  return window;
}
