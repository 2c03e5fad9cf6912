/**
 * The options that `restore` and `unsafe-recover` share: what the new cluster is.
 *
 * Owns: their words, checks and defaults, and how the result is told. Never: a file.
 * Used by: commands/restore.ts, commands/unsafe-recover.ts.
 */
import type { NewCluster } from '../server/new-cluster.js';
import { type MemberAddress, OptionError, parseMemberList, parseWhole } from '../server/options.js';
import type { CommandInput, OptionSpec } from './command.js';
import { formatDuration, parseDuration } from './duration.js';
import { BASE_PORT_DEFAULT, localNodes } from './local-cluster.js';

const GRACE_MS_MAX = 24 * 3_600_000;
/** Leaves room for what the program adds, in one audit event. */
const REASON_BYTES_MAX = 512;

export const NEW_CLUSTER_OPTIONS: readonly OptionSpec[] = [
  {
    name: 'to',
    kind: 'text',
    value: 'DIR',
    summary: 'folder to make, with node-ID of each member in it; absent or empty',
  },
  {
    name: 'peers',
    kind: 'text',
    value: 'ID=HOST:PORT,…',
    summary: 'peer address of every member of the new cluster',
    defaultText: 'the local cluster',
  },
  {
    name: 'clients',
    kind: 'text',
    value: 'ID=HOST:PORT,…',
    summary: 'client address of every member, as clients reach it; with --peers',
  },
  {
    name: 'grace',
    kind: 'text',
    value: 'TIME',
    summary: 'how long nothing is granted, at most 24h',
    defaultText: 'the largest TTL in the state',
  },
  {
    name: 'revision-floor',
    kind: 'text',
    value: 'N',
    summary: 'every new token is larger than this, at least',
    defaultText: '0',
  },
];

export interface NewClusterOptions {
  readonly to: string;
  readonly members: readonly MemberAddress[];
  /** ms; null: the largest TTL of the state. */
  readonly graceMs: number | null;
  readonly revisionFloor: number;
  readonly reason: string;
}

function readMembers(input: CommandInput): readonly MemberAddress[] {
  const [peersText, clientsText] = [input.text('peers'), input.text('clients')];
  if (peersText === undefined && clientsText === undefined) {
    return localNodes('', BASE_PORT_DEFAULT);
  }
  if (peersText === undefined) throw new OptionError('--peers', 'is required beside --clients');
  if (clientsText === undefined) throw new OptionError('--clients', 'is required beside --peers');
  const peers = parseMemberList('--peers', peersText);
  const clients = parseMemberList('--clients', clientsText);
  const stranger = [...clients.keys()].find((nodeId) => !peers.has(nodeId));
  if (stranger !== undefined) {
    throw new OptionError('--clients', `node ${stranger} is not in --peers`);
  }
  return [...peers].map(([nodeId, peer]) => {
    const client = clients.get(nodeId);
    if (client === undefined) throw new OptionError('--clients', `node ${nodeId} is missing`);
    return { nodeId, peer, client };
  });
}

/** Throws OptionError. */
export function readNewCluster(input: CommandInput): NewClusterOptions {
  const to = input.text('to');
  if (to === undefined || to === '') throw new OptionError('--to', 'is required');
  const grace = input.text('grace');
  const graceMs = grace === undefined ? null : parseDuration('--grace', grace);
  if (graceMs !== null && graceMs > GRACE_MS_MAX) {
    throw new OptionError('--grace', `give at most 24h, not '${grace}'`);
  }
  const floor = input.text('revision-floor') ?? '0';
  const revisionFloor = parseWhole('--revision-floor', floor, 0, Number.MAX_SAFE_INTEGER);
  const reason = input.text('reason') ?? '';
  if (Buffer.byteLength(reason) > REASON_BYTES_MAX) {
    throw new OptionError('--reason', `give at most ${REASON_BYTES_MAX} bytes`);
  }
  return { to, members: readMembers(input), graceMs, revisionFloor, reason };
}

export function newClusterJson(cluster: NewCluster): Record<string, unknown> {
  return {
    cluster_id: cluster.clusterId,
    index: cluster.index,
    revision_before: cluster.revisionBefore,
    revision: cluster.revision,
    grace_ms: cluster.graceMs,
    digest: cluster.digest,
    folders: cluster.folders,
  };
}

export function newClusterLines(cluster: NewCluster): string[] {
  const { clusterId, index, revisionBefore, revision, graceMs, folders } = cluster;
  return [
    `cluster    ${clusterId}, a new one, at index ${index}`,
    `tokens     above ${revision}; the restored state had ${revisionBefore}`,
    `grace      nothing is granted for ${formatDuration(graceMs)} after the start`,
    ...folders.map((folder) => `folder     ${folder}`),
    'Move each folder to its node, do not copy it, and start the nodes without --bootstrap.',
    'Nodes of the old cluster must never run again: what they grant is not known here.',
  ];
}
