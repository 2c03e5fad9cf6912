/**
 * Whether a figure may be believed: what the cluster did is held against what clients were told.
 *
 * Owns: the checks after a run. Every node has the same digest; every acknowledged operation is in
 * the log and, but for what was refused before it, nothing else is; a disk that flushed less often
 * than one client alone needed would have lied. Never: the figure. Used by: runner.ts.
 */
import { CommandKind } from '../src/core/locks/command.js';
import { CLIENT_COMMANDS, countLog, type LogCount } from './log-count.js';
import type { Meter } from './meter.js';
import type { Target } from './target.js';

export interface Check {
  readonly name: string;
  /** Null: could not be looked at here, and `detail` says why. */
  readonly isKept: boolean | null;
  readonly detail: string;
}

export interface Verdict {
  readonly checks: readonly Check[];
  readonly digests: readonly string[];
  /** Renewals found in the log, null when it was not read. */
  readonly renewalsLogged: number | null;
}

/**
 * Holds a cluster that has come to rest against the meters of every load that ran on it. Ends the
 * nodes of a cluster of our own, since a log is read when its node has stopped.
 *
 * @param isRepeating clients asked again by the same request id: the log may hold a request twice
 */
export async function judge(
  target: Target,
  meters: readonly Meter[],
  isRepeating: boolean,
): Promise<Verdict> {
  const settled = await target.settled();
  const digests = [...new Set(settled.map((status) => `${status.appliedIndex} ${status.digest}`))];
  const running = target.cluster === null ? target.nodes : target.cluster.runningIds.length;
  const checks: Check[] = [
    {
      name: 'digests',
      isKept: digests.length === 1 && settled.length === running,
      detail: `${settled.length} of ${running} running nodes answered, ${digests.length} digests`,
    },
    answersCheck(meters),
  ];
  const { cluster } = target;
  if (cluster === null) {
    const detail = 'SKIPPED: the log of a cluster that somebody else runs is not read';
    checks.push({ name: 'log', isKept: null, detail });
    return { checks, digests, renewalsLogged: null };
  }
  const nodes = cluster.runningIds;
  await Promise.all(nodes.map((nodeId) => cluster.kill(nodeId)));
  const counts = nodes.map((nodeId) => countLog(cluster.dataFolder(nodeId)));
  for (const [at, count] of counts.entries()) {
    checks.push(logCheck(nodes[at] as number, count, meters, isRepeating));
  }
  const isWhole = counts.every((count) => count.firstIndex === 1);
  const renewals = Math.min(...counts.map((count) => count.operations[CommandKind.Renew] ?? 0));
  return { checks, digests, renewalsLogged: isWhole ? renewals : null };
}

function answersCheck(meters: readonly Meter[]): Check {
  let wrong = 0;
  let missing = 0;
  let first = '';
  for (const meter of meters) {
    wrong += meter.wrong;
    missing += meter.missing;
    if (first === '') first = meter.firstWrong;
  }
  const words = first === '' ? '' : `, the first: ${first}`;
  return {
    name: 'replies',
    isKept: wrong + missing === 0,
    detail: `${wrong} wrong, ${missing} missing${words}`,
  };
}

function sumOf(meters: readonly Meter[], pick: (meter: Meter) => Float64Array, kind: number) {
  return meters.reduce((sum, meter) => sum + (pick(meter)[kind] ?? 0), 0);
}

/** Holds one log against the meters, by command. */
export function logCheck(
  nodeId: number,
  count: LogCount,
  meters: readonly Meter[],
  isRepeating: boolean,
): Check {
  const name = `log of node ${nodeId}`;
  if (count.firstIndex > 1) {
    const detail = `SKIPPED: it begins at index ${count.firstIndex}, older entries were compacted`;
    return { name, isKept: null, detail };
  }
  const faults: string[] = [];
  let logged = 0;
  let acknowledged = 0;
  for (const kind of CLIENT_COMMANDS) {
    const inLog = count.operations[kind] as number;
    const answered = sumOf(meters, (meter) => meter.answered, kind);
    const unlogged = sumOf(meters, (meter) => meter.unlogged, kind);
    const doubtful = sumOf(meters, (meter) => meter.doubtful, kind);
    const most = isRepeating ? sumOf(meters, (meter) => meter.sent, kind) : answered - unlogged;
    const least = answered - unlogged - doubtful;
    if (inLog < least || inLog > most) {
      faults.push(`command ${kind}: ${inLog} logged, wanted ${least} to ${most}`);
    }
    logged += inLog;
    acknowledged += answered - unlogged;
  }
  const detail =
    faults.length === 0
      ? `${logged} operations in ${count.entries} entries, ${acknowledged} answered from it`
      : faults.join('; ');
  return { name, isKept: faults.length === 0, detail };
}
