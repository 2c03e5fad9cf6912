/**
 * Everything that `holdfast verify` asks of a running cluster, one check after the other.
 *
 * Owns: who is asked, what is left out and said to be, and the verdict. Never: a change of anything
 * but the passes that it asks for. Used by: commands/verify.ts.
 */
import { HoldfastError } from '../../client/errors.js';
import type { Endpoint } from '../../server/options.js';
import { formatDuration } from '../duration.js';
import { withAdvice } from '../explain.js';
import { type NodeStatus, readStatus, type StatusMember } from '../node-status.js';
import { compareDigests, type DigestReport } from './digests.js';
import { Check, Findings, findingLines } from './finding.js';
import { readScrubs, type ScrubReport } from './scrub-reports.js';
import {
  checkStream,
  RemoteStreamNode,
  type StreamNode,
  type StreamReport,
} from './stream-check.js';
import { BLOCK_REVISIONS, differingBlocks, type StreamModel } from './stream-model.js';

export interface ClusterCheckOptions {
  readonly endpoints: readonly Endpoint[];
  readonly timeoutMs: number;
  /** HTTP addresses of the nodes, null: their checks of their disks are not asked for. */
  readonly http: readonly Endpoint[] | null;
  /** True: every node begins a pass over its disk now, and it is waited for. */
  readonly isPassWanted: boolean;
  /** True: the stream of every node is read, and not of one alone. */
  readonly isEveryNode: boolean;
}

/** The stream of one node, or why it could not be read. */
export interface NodeStream {
  readonly nodeId: number;
  /** Null: no event is kept, or it could not be read. */
  readonly report: StreamReport | null;
  readonly reason: string;
}

export interface ClusterReport {
  readonly digests: DigestReport;
  readonly scrubs: readonly ScrubReport[] | null;
  readonly streams: readonly NodeStream[];
  readonly findings: Findings;
  /** What could not be verified, in words. */
  readonly unproven: readonly string[];
}

/** A stream that is cut while it is read is begun anew so often. */
const STREAM_ATTEMPTS = 3;
const COMPACTED = 'COMPACTED';

/**
 * Who the members are, by the first node that answers, the leader last: reading old events costs a
 * node something. Rejects with NO_QUORUM when none answers.
 */
async function findMembers(options: ClusterCheckOptions): Promise<readonly StatusMember[]> {
  const asked = options.endpoints.map((endpoint) => readStatus(endpoint, options.timeoutMs));
  try {
    const { members, leaderId } = await Promise.any(asked);
    const isLeader = ({ nodeId }: StatusMember): number => (nodeId === leaderId ? 1 : 0);
    return [...members].sort((left, right) => isLeader(left) - isLeader(right));
  } catch (error) {
    const reasons: unknown[] = error instanceof AggregateError ? error.errors : [error];
    const first = reasons.find((reason) => reason instanceof HoldfastError);
    throw first instanceof HoldfastError ? withAdvice(first) : error;
  }
}

function codeOf(error: unknown): string {
  return error instanceof HoldfastError ? error.code : '';
}

/** Reads one stream; one that was cut meanwhile is begun anew, and what was found in it dropped. */
async function readStream(
  nodeId: number,
  node: StreamNode,
  findings: Findings,
): Promise<NodeStream> {
  for (let attempt = 1; ; attempt += 1) {
    const own = new Findings();
    try {
      const report = await checkStream(node, own);
      for (const { check, where, found } of own.told) {
        findings.add(check, `node ${nodeId}, ${where}`, found);
      }
      return { nodeId, report, reason: report === null ? 'no event is kept' : '' };
    } catch (error) {
      if (!(error instanceof HoldfastError)) throw error;
      if (codeOf(error) === COMPACTED && attempt < STREAM_ATTEMPTS) continue;
      return { nodeId, report: null, reason: error.message };
    }
  }
}

async function readStreams(
  members: readonly StatusMember[],
  options: ClusterCheckOptions,
  findings: Findings,
): Promise<NodeStream[]> {
  const streams: NodeStream[] = [];
  let first: StreamModel | null = null;
  for (const { nodeId, endpoint } of members) {
    const node = new RemoteStreamNode(endpoint, options.timeoutMs);
    try {
      const stream = await readStream(nodeId, node, findings);
      streams.push(stream);
      const model = stream.report?.model ?? null;
      if (first !== null && model !== null) compareStreams(streams[0]!, stream, findings);
      first ??= model;
    } finally {
      node.close();
    }
    if (!options.isEveryNode && first !== null) break;
  }
  return streams;
}

function compareStreams(left: NodeStream, right: NodeStream, findings: Findings): void {
  if (left.report === null || right.report === null) return;
  for (const revision of differingBlocks(left.report.model, right.report.model)) {
    const where = `nodes ${left.nodeId} and ${right.nodeId}`;
    const last = revision + BLOCK_REVISIONS - 1;
    findings.add(Check.Stream, where, `they tell revisions ${revision} to ${last} differently`);
  }
}

/** Why nothing is known of a node's disk, '' when something is. */
function doubtOf({ address, answer, reason }: ScrubReport): string {
  if (answer === null) return `${address}: its disk is not known: ${reason}`;
  const { node, enabled, passes } = answer;
  if (!enabled) return `node ${node} does not check its disk`;
  if (reason !== '') return `node ${node} could not check its disk: ${reason}`;
  return passes === 0 ? `node ${node} has not checked its disk yet` : '';
}

/** What could not be verified, in words. */
export function unprovenOf(
  digests: DigestReport,
  scrubs: readonly ScrubReport[] | null,
  streams: readonly NodeStream[],
): string[] {
  const unproven: string[] = [];
  for (const nodeId of digests.silent) unproven.push(`node ${nodeId} does not answer`);
  for (const nodeId of digests.alone) {
    unproven.push(`node ${nodeId} was never seen at an index of another: not compared`);
  }
  for (const report of scrubs ?? []) {
    const doubt = doubtOf(report);
    if (doubt !== '') unproven.push(doubt);
  }
  for (const { nodeId, report, reason } of streams) {
    if (report === null && reason !== '') unproven.push(`node ${nodeId}, audit stream: ${reason}`);
  }
  return unproven;
}

/** Runs every check. Rejects when no node answers at all. */
export async function checkCluster(options: ClusterCheckOptions): Promise<ClusterReport> {
  const members = await findMembers(options);
  const findings = new Findings();
  const endpointOf = new Map(members.map(({ nodeId, endpoint }) => [nodeId, endpoint]));
  const read = (nodeId: number): Promise<NodeStatus> => {
    return readStatus(endpointOf.get(nodeId)!, options.timeoutMs);
  };
  const nodeIds = [...endpointOf.keys()].sort((left, right) => left - right);
  const digests = await compareDigests(nodeIds, read, options.timeoutMs, findings);
  const { http, isPassWanted, timeoutMs } = options;
  const scrubs = http === null ? null : await readScrubs(http, isPassWanted, timeoutMs, findings);
  const answering = members.filter(({ nodeId }) => !digests.silent.includes(nodeId));
  const streams = await readStreams(answering, options, findings);
  return { digests, scrubs, streams, findings, unproven: unprovenOf(digests, scrubs, streams) };
}

function digestLine({ compared, index, digest }: DigestReport): string {
  if (compared.length === 0) return 'digests    none could be compared';
  return `digests    nodes ${compared.join(' ')}, at index ${index}: ${digest}`;
}

function scrubLines(scrubs: readonly ScrubReport[] | null): string[] {
  if (scrubs === null) return ['disks      not asked: name the HTTP ports with --http'];
  const lines: string[] = [];
  for (const { answer } of scrubs) {
    if (answer === null || answer.passes === 0) continue;
    const { node, segments, snapshots, age_ms: ageMs, faults } = answer;
    const what = `${segments} segments, ${snapshots} snapshots, ${formatDuration(ageMs)} ago`;
    lines.push(`disks      node ${node}: ${what}, ${faults.length} faults`);
  }
  return lines;
}

function streamLines(streams: readonly NodeStream[]): string[] {
  return streams.flatMap(({ nodeId, report }) => {
    if (report === null) return [];
    const { from, to, locks } = report;
    return [`events     node ${nodeId}: revisions ${from} to ${to}; ${locks} locks compared`];
  });
}

/** The report for people. */
export function clusterLines(report: ClusterReport): string[] {
  const { digests, scrubs, streams, findings, unproven } = report;
  const lines = [digestLine(digests), ...scrubLines(scrubs), ...streamLines(streams)];
  for (const finding of findings.told) lines.push(...findingLines(finding));
  if (findings.leftOut > 0) lines.push(`and ${findings.leftOut} more`);
  for (const text of unproven) lines.push(`not verified: ${text}`);
  const count = findings.told.length + findings.leftOut;
  if (count > 0) lines.push(`${count} faults`);
  else lines.push(unproven.length === 0 ? 'no fault' : 'no fault in what could be verified');
  return lines;
}

/** The same for programs. */
export function clusterJson(report: ClusterReport): Record<string, unknown> {
  const { digests, scrubs, streams, findings, unproven } = report;
  const { compared, alone, silent, index, digest } = digests;
  return {
    sound: findings.told.length === 0 && unproven.length === 0,
    digests: { compared, not_compared: alone, unreachable: silent, index, digest },
    scrubs: scrubs?.map(({ address, answer, reason }) => ({ address, reason, ...answer })) ?? null,
    streams: streams.map(({ nodeId, report: found, reason }) => ({
      node: nodeId,
      from: found?.from ?? null,
      to: found?.to ?? null,
      events: found?.events ?? 0,
      locks: found?.locks ?? 0,
      reason,
    })),
    findings: findings.told,
    findings_left_out: findings.leftOut,
    unproven,
  };
}
