/**
 * `holdfast status`: what every node says of itself.
 *
 * Owns: asking all of them at once and showing those that do not answer. Succeeds when a leader
 * serves; a cluster without one is a failure with a status of its own. Used by: commands/table.ts.
 */
import { type Endpoint, formatEndpoint } from '../../server/options.js';
import { readClusterOptions } from '../cluster-options.js';
import { CLUSTER_OPTIONS, type CommandInput, type CommandSpec } from '../command.js';
import { formatDuration } from '../duration.js';
import { ExitCode } from '../exit-codes.js';
import { type NodeStatus, readStatus } from '../node-status.js';
import { formatTable } from '../output.js';

interface Row {
  readonly endpoint: string;
  readonly status: NodeStatus | null;
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
  'time',
  'digest',
];
/** Enough of a digest to compare by eye; --json has all of it. */
const DIGEST_SHOWN = 12;

async function ask(endpoint: Endpoint, timeoutMs: number): Promise<Row> {
  try {
    const status = await readStatus(endpoint, timeoutMs);
    return { endpoint: formatEndpoint(endpoint), status, error: '' };
  } catch (error) {
    const text = error instanceof Error ? error.message : String(error);
    return { endpoint: formatEndpoint(endpoint), status: null, error: text };
  }
}

function cells({ endpoint, status, error }: Row): string[] {
  if (status === null) return ['-', endpoint, `unreachable: ${error}`];
  return [
    String(status.nodeId),
    endpoint,
    status.role + (status.isServing ? ', serving' : ''),
    String(status.term),
    status.leaderId === 0 ? '-' : String(status.leaderId),
    String(status.appliedIndex),
    String(status.revision),
    formatDuration(status.clusterTimeMs),
    status.digest.slice(0, DIGEST_SHOWN),
  ];
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
  const { endpoints, timeoutMs } = readClusterOptions(input);
  const rows = await Promise.all(endpoints.map((endpoint) => ask(endpoint, timeoutMs)));
  const statuses = rows.flatMap((row) => (row.status === null ? [] : [row.status]));
  const leader = statuses.find((status) => status.isServing)?.nodeId ?? 0;
  const disagreeing = findDisagreement(statuses).map((status) => status.nodeId);
  const nodes = rows.map((row) =>
    row.status === null
      ? { endpoint: row.endpoint, reachable: false, error: row.error }
      : {
          endpoint: row.endpoint,
          reachable: true,
          ...row.status.fields,
          digest: row.status.digest,
        },
  );
  const lines = formatTable([HEADINGS, ...rows.map(cells)]);
  if (leader === 0) lines.push('no node serves: there is no leader with a majority');
  if (disagreeing.length > 0) {
    lines.push(`nodes ${disagreeing.join(' and ')} applied the same entries and disagree`);
  }
  input.output.result({ leader, disagreeing, nodes }, lines);
  if (disagreeing.length > 0) return ExitCode.Refused;
  return leader === 0 ? ExitCode.Unavailable : ExitCode.Ok;
}

export const statusCommand: CommandSpec = {
  path: ['status'],
  summary: 'show every node: role, term, leader, progress, digest',
  details:
    'Ends with 0 when a leader serves, 69 when none does, 1 when two nodes that applied the same ' +
    'entries have different digests.',
  arguments: [],
  options: [...CLUSTER_OPTIONS],
  examples: [
    { words: 'status', says: 'a table of the local cluster' },
    { words: 'status --json --timeout 1s', says: 'for a script' },
  ],
  run,
};
