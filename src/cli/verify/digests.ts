/**
 * Holds the states of all nodes against each other, while they go on.
 *
 * Owns: digests by index until every node was seen at an index of another; two states are compared
 * at one index or not at all. Never: an opinion who is right. Used by: cluster-check.ts.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { NodeStatus } from '../node-status.js';
import { Check, type Findings } from './finding.js';

const LOOK_MS = 40;
/** Samples of one node that are kept; more than it is asked for in the greatest time-out. */
const SAMPLES_MAX = 4_096;
const DIGEST_SHOWN = 12;
/** A node that has not answered so often in a row is not waited for. */
const MISSES_MAX = 3;

/** What is asked of a node; rejects when it does not answer. */
export type StatusReader = (nodeId: number) => Promise<NodeStatus>;

export interface DigestReport {
  /** Nodes that were compared with another, ascending. */
  readonly compared: readonly number[];
  /** Nodes that answered and were never seen at an index of another. */
  readonly alone: readonly number[];
  readonly silent: readonly number[];
  /** The highest index at which two were compared, and the digest there; 0 and '' for none. */
  readonly index: number;
  readonly digest: string;
}

class Samples {
  private readonly byIndex = new Map<number, Map<number, string>>();
  private readonly indexes = new Map<number, number[]>();
  readonly compared = new Set<number>();
  index = 0;
  digest = '';
  private readonly told = new Set<string>();

  constructor(private readonly findings: Findings) {}

  add({ nodeId, appliedIndex, digest }: NodeStatus): void {
    const there = this.byIndex.get(appliedIndex) ?? new Map<number, string>();
    this.byIndex.set(appliedIndex, there);
    for (const [other, found] of there) {
      if (other !== nodeId) this.compare(appliedIndex, [other, found], [nodeId, digest]);
    }
    there.set(nodeId, digest);
    const indexes = this.indexes.get(nodeId) ?? [];
    this.indexes.set(nodeId, indexes);
    indexes.push(appliedIndex);
    if (indexes.length > SAMPLES_MAX) this.byIndex.get(indexes.shift()!)?.delete(nodeId);
  }

  private compare(
    index: number,
    [left, leftDigest]: readonly [number, string],
    [right, rightDigest]: readonly [number, string],
  ): void {
    this.compared.add(left).add(right);
    if (leftDigest === rightDigest) {
      if (index < this.index) return;
      this.index = index;
      this.digest = leftDigest;
      return;
    }
    const pair = [left, right].sort((a, b) => a - b).join(' and ');
    if (this.told.has(pair)) return;
    this.told.add(pair);
    const [here, there] = [leftDigest.slice(0, DIGEST_SHOWN), rightDigest.slice(0, DIGEST_SHOWN)];
    const found = `at index ${index} node ${left} has ${here}, node ${right} has ${there}`;
    this.findings.add(Check.Digests, `nodes ${pair}`, found);
  }
}

/** Asks until every node was compared with another, or the time is up. */
export async function compareDigests(
  nodeIds: readonly number[],
  read: StatusReader,
  timeoutMs: number,
  findings: Findings,
): Promise<DigestReport> {
  const samples = new Samples(findings);
  const answered = new Set<number>();
  const misses = new Map<number, number>();
  const untilMs = performance.now() + timeoutMs;
  for (;;) {
    const answers = await Promise.allSettled(nodeIds.map(read));
    for (const [at, answer] of answers.entries()) {
      const nodeId = nodeIds[at]!;
      misses.set(nodeId, answer.status === 'rejected' ? (misses.get(nodeId) ?? 0) + 1 : 0);
      if (answer.status === 'rejected') continue;
      answered.add(nodeId);
      samples.add(answer.value);
    }
    const isThrough = nodeIds.every(
      (nodeId) => samples.compared.has(nodeId) || misses.get(nodeId)! >= MISSES_MAX,
    );
    if (isThrough || performance.now() >= untilMs) break;
    await delay(LOOK_MS);
  }
  return {
    compared: nodeIds.filter((nodeId) => samples.compared.has(nodeId)),
    alone: nodeIds.filter((nodeId) => answered.has(nodeId) && !samples.compared.has(nodeId)),
    silent: nodeIds.filter((nodeId) => !answered.has(nodeId)),
    index: samples.index,
    digest: samples.digest,
  };
}
