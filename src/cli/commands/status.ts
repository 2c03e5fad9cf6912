/**
 * `holdfast status`: what every node says of itself.
 *
 * Owns: asking all members at once, those too that --endpoints does not name, and showing those
 * that do not answer. Succeeds when a leader serves; a cluster without one is a failure with a
 * status of its own. Used by: commands/table.ts.
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
    const status = await readStatus(endpoint, timeoutMs);
    return { endpoint, nodeId: status.nodeId, status, reason: '', error: '' };
  } catch (error) {
    const details = error instanceof HoldfastError ? error.details : {};
    const text = error instanceof Error ? error.message : String(error);
    const reason = details.silent?.[0]?.reason ?? text;
    return { endpoint, nodeId, status: null, reason, error: text };
  }
}

/** Members that `first`, a node that answered, names beside the endpoints that are asked anyway. */
export function unaskedMembers(
  first: NodeStatus | null,
  endpoints: readonly Endpoint[],
): StatusMember[] {
  const addresses = new Set(endpoints.map(formatEndpoint));
  const members = first?.members ?? [];
  return members.filter(
    ({ nodeId, endpoint }) => nodeId !== first?.nodeId && !addresses.has(formatEndpoint(endpoint)),
  );
}

/** One row for each node, the one that answered: an address may have two names. */
export function withoutTwins(rows: readonly Row[]): Row[] {
  const answered = new Map<number, Row>();
  for (const row of rows) {
    if (row.nodeId !== null && row.status !== null && !answered.has(row.nodeId)) {
      answered.set(row.nodeId, row);
    }
  }
  return rows.filter((row) => {
    const twin = row.nodeId === null ? undefined : answered.get(row.nodeId);
    return twin === undefined || twin === row;
  });
}

/** Status of the node that answers first, null when none does. */
async function firstToAnswer(asked: readonly Promise<Row>[]): Promise<NodeStatus | null> {
  const answers = asked.map(async (row) => {
    const { status } = await row;
    if (status === null) throw new Error('it did not answer');
    return status;
  });
  return Promise.any(answers).catch(() => null);
}

/** Asks the endpoints, and with the first answer every member that it names beside them. */
async function askEveryone(options: ClusterOptions): Promise<Row[]> {
  const { endpoints, timeoutMs } = options;
  const asked = endpoints.map((endpoint) => ask(endpoint, null, timeoutMs));
  const more = unaskedMembers(await firstToAnswer(asked), endpoints).map(({ nodeId, endpoint }) =>
    ask(endpoint, nodeId, timeoutMs),
  );
  const rows = withoutTwins(await Promise.all([...asked, ...more]));
  return rows.sort((left, right) => (left.nodeId ?? 0) - (right.nodeId ?? 0));
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
    'digests. Revision: the number of the last event of any lock. Cluster time: the clock of ' +
    'leases and waits, which stands still while there is nothing to count.',
  arguments: [],
  options: [...CLUSTER_OPTIONS],
  examples: [
    { words: 'status', says: 'a table of the local cluster' },
    { words: 'status --json --timeout 1s', says: 'for a script' },
  ],
  run,
};
