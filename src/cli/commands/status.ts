/**
 * `holdfast status`: what every node says of itself.
 *
 * Owns: asking all members at once, those too that --endpoints does not name, and showing those that do not answer. Succeeds when a leader
 * serves; a cluster without one is a failure with a status of its own. Used by: commands/table.ts.
 */
import { HoldfastError } from '../../client/errors.js';
import { type Endpoint, formatEndpoint } from '../../server/options.js';
import { type ClusterOptions, readClusterOptions } from '../cluster-options.js';
import { CLUSTER_OPTIONS, type CommandInput, type CommandSpec } from '../command.js';
import { formatDuration } from '../duration.js';
import { ExitCode } from '../exit-codes.js';
import { type NodeStatus, readStatus, type StatusMember } from '../node-status.js';
import { formatTable } from '../output.js';

interface Row {
  readonly endpoint: Endpoint;
  /** null when the node is known by its address alone. */
  readonly nodeId: number | null;
  readonly status: NodeStatus | null;
  /** Why it did not answer; '' when it did. */
  readonly reason: string;
  readonly error: string;
}

const HEADINGS = [
  'node',
  'endpoint',
  'role',
  'term',
  'leader',
  'applied',
  'revision',
  'cluster time',
  'digest',
];
/** Enough of a digest to compare by eye; --json has all of it. */
const DIGEST_SHOWN = 12;

async function ask(endpoint: Endpoint, nodeId: number | null, timeoutMs: number): Promise<Row> {
  try {
    const status = await readStatus(endpoint, Math.max(1, timeoutMs));
    return { endpoint, nodeId: status.nodeId, status, reason: '', error: '' };
  } catch (error) {
    const details = error instanceof HoldfastError ? error.details : {};
    const text = error instanceof Error ? error.message : String(error);
    const reason = details.silent?.[0]?.reason ?? text;
    return { endpoint, nodeId, status: null, reason, error: text };
  }
}

/** Members that the rows name and that nobody has asked yet. */
export function unaskedMembers(rows: readonly Row[]): StatusMember[] {
  const addresses = new Set(rows.map((row) => formatEndpoint(row.endpoint)));
  const nodes = new Set(rows.map((row) => row.nodeId));
  const found = new Map<number, StatusMember>();
  for (const { status } of rows) {
    for (const member of status?.members ?? []) {
      const isAsked = nodes.has(member.nodeId) || addresses.has(formatEndpoint(member.endpoint));
      if (!isAsked) found.set(member.nodeId, member);
    }
  }
  return [...found.values()].sort((left, right) => left.nodeId - right.nodeId);
}

/** Asks the endpoints, and then every member that a node names beside them. */
async function askEveryone(options: ClusterOptions): Promise<Row[]> {
  const { endpoints, timeoutMs } = options;
  const started = performance.now();
  const rows = await Promise.all(endpoints.map((endpoint) => ask(endpoint, null, timeoutMs)));
  const leftMs = timeoutMs - (performance.now() - started);
  const more = unaskedMembers(rows).map(({ nodeId, endpoint }) => ask(endpoint, nodeId, leftMs));
  return [...rows, ...(await Promise.all(more))];
}

function cells({ endpoint, nodeId, status, reason }: Row): string[] {
  const address = formatEndpoint(endpoint);
  const id = nodeId === null ? '-' : String(nodeId);
  if (status === null) return [id, address, `unreachable (${reason})`];
  return [
    id,
    address,
    status.role + (status.isServing ? ', serving' : ''),
    String(status.term),
    status.leaderId === 0 ? '-' : String(status.leaderId),
    String(status.appliedIndex),
    String(status.revision),
    formatDuration(status.clusterTimeMs),
    status.digest.slice(0, DIGEST_SHOWN),
  ];
}

function nodeJson({ endpoint, nodeId, status, error }: Row): Record<string, unknown> {
  const address = formatEndpoint(endpoint);
  if (status !== null) {
    return { endpoint: address, reachable: true, ...status.fields, digest: status.digest };
  }
  const node = nodeId === null ? {} : { node_id: nodeId };
  return { endpoint: address, reachable: false, ...node, error };
}

/** Why no node serves, as far as those that answered know. */
export function explainLeaderless(statuses: readonly NodeStatus[]): string {
  if (statuses.length === 0) return 'no node answers: is the cluster running?';
  const witness = statuses.find((status) => status.leaderId !== 0);
  if (witness === undefined) return 'no node serves: there is no leader with a majority';
  const { leaderId, nodeId } = witness;
  const known = `node ${leaderId} leads, by what node ${nodeId} knows`;
  return leaderId === nodeId
    ? `no node serves: ${known}, but it reaches no majority`
    : `no node serves: ${known}, but it does not answer`;
}

/** Nodes that applied the same entries and do not agree on the result. */
export function findDisagreement(statuses: readonly NodeStatus[]): readonly NodeStatus[] {
  const seen = new Map<number, NodeStatus>();
  for (const status of statuses) {
    const other = seen.get(status.appliedIndex);
    if (other === undefined) seen.set(status.appliedIndex, status);
    else if (other.digest !== status.digest) return [other, status];
  }
  return [];
}

async function run(input: CommandInput): Promise<number> {
  const rows = await askEveryone(readClusterOptions(input));
  const statuses = rows.flatMap((row) => (row.status === null ? [] : [row.status]));
  const leader = statuses.find((status) => status.isServing)?.nodeId ?? 0;
  const disagreeing = findDisagreement(statuses).map((status) => status.nodeId);
  const lines = formatTable([HEADINGS, ...rows.map(cells)]);
  if (leader === 0) lines.push(explainLeaderless(statuses));
  if (disagreeing.length > 0) {
    lines.push(`nodes ${disagreeing.join(' and ')} applied the same entries and disagree`);
  }
  input.output.result({ leader, disagreeing, nodes: rows.map(nodeJson) }, lines);
  if (disagreeing.length > 0) return ExitCode.Refused;
  return leader === 0 ? ExitCode.Unavailable : ExitCode.Ok;
}

export const statusCommand: CommandSpec = {
  path: ['status'],
  summary: 'show every node: role, term, leader, progress, digest',
  details:
    'Asks the endpoints and every member that one of them names. Ends with 0 when a leader ' +
    'serves, 69 when none does, 1 when two nodes that applied the same entries have different ' +
    'digests. Revision: the number of the last event of any lock. Cluster time: the age of the ' +
    'cluster by its own clock, which stands still without a leader.',
  arguments: [],
  options: [...CLUSTER_OPTIONS],
  examples: [
    { words: 'status', says: 'a table of the local cluster' },
    { words: 'status --json --timeout 1s', says: 'for a script' },
  ],
  run,
};
