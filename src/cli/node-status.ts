/**
 * What a node says of itself, by name and type.
 *
 * Owns: reading the status reply. Never: a cluster-wide verdict beyond who leads.
 * Used by: commands/status.ts, commands/dev.ts, test/cluster/harness.ts, load tests.
 */

import { ErrorCode, HoldfastError } from '../client/errors.js';
import { type Endpoint, parseEndpoint } from '../server/options.js';
import { CommandKind } from '../wire/request.js';
import { NodeCall } from './node-call.js';

export type NodeRole = 'follower' | 'pre-candidate' | 'candidate' | 'leader';

/** A member as a node names it. */
export interface StatusMember {
  readonly nodeId: number;
  readonly endpoint: Endpoint;
}

export interface NodeStatus {
  readonly nodeId: number;
  readonly role: NodeRole;
  /** True for a leader that takes operations. */
  readonly isServing: boolean;
  readonly term: number;
  /** 0 when the node knows no leader. */
  readonly leaderId: number;
  readonly commitIndex: number;
  readonly appliedIndex: number;
  readonly revision: number;
  /** Cluster time at the applied index, ms. */
  readonly clusterTimeMs: number;
  /** Digest of the state at the applied index, hexadecimal. */
  readonly digest: string;
  readonly featureLevel: number;
  /** Every node of the cluster with its client address. */
  readonly members: readonly StatusMember[];
  /** Counters and gauges by the names they have in metrics. */
  readonly counters: Readonly<Record<string, number>>;
  /** Every field as the node sent it. */
  readonly fields: Readonly<Record<string, unknown>>;
}

const LEADER_TIMEOUT_MS = 1_000;

/** Asks one node. Rejects with a HoldfastError when it does not answer in time. */
export async function readStatus(endpoint: Endpoint, timeoutMs: number): Promise<NodeStatus> {
  const call = await NodeCall.open(endpoint, timeoutMs);
  try {
    const reply = await call.request([CommandKind.Status]);
    return statusOf(reply.fields[0]);
  } finally {
    call.close();
  }
}

function statusOf(value: unknown): NodeStatus {
  const fields = value as Readonly<Record<string, unknown>> | null;
  if (typeof fields !== 'object' || fields === null) throw unreadable('no fields');
  const number = (name: string): number => {
    const found = fields[name];
    if (typeof found !== 'number') throw unreadable(name);
    return found;
  };
  const counters = countersOf(fields['counters']);
  return {
    nodeId: number('node_id'),
    role: String(fields['role']) as NodeRole,
    isServing: counters['serving'] === 1,
    term: number('term'),
    leaderId: number('leader_id'),
    commitIndex: number('commit_index'),
    appliedIndex: number('applied_index'),
    revision: number('revision'),
    clusterTimeMs: number('cluster_time'),
    digest: textOf(fields['digest']),
    featureLevel: number('feature_level'),
    members: membersOf(fields['members']),
    counters,
    fields,
  };
}

function membersOf(value: unknown): StatusMember[] {
  const rows: readonly unknown[] = Array.isArray(value) ? value : [];
  return rows.map((row) => {
    const [nodeId, address] = Array.isArray(row) ? (row as readonly unknown[]) : [];
    if (typeof nodeId !== 'number') throw unreadable('members');
    return { nodeId, endpoint: parseEndpoint('members', String(address)) };
  });
}

function countersOf(value: unknown): Record<string, number> {
  const counters: Record<string, number> = {};
  if (typeof value !== 'object' || value === null) throw unreadable('counters');
  for (const [name, count] of Object.entries(value)) {
    if (typeof count === 'number') counters[name] = count;
  }
  return counters;
}

function textOf(value: unknown): string {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('hex');
  return String(value);
}

function unreadable(name: string): HoldfastError {
  const message = `status: field ${name} is missing or of another type`;
  return new HoldfastError(ErrorCode.BadRequest, { message, outcome: 'none' });
}

/** The id of a leader that takes operations, null when none of the nodes says that it is one. */
export async function findLeader(endpoints: readonly Endpoint[]): Promise<number | null> {
  const asked = endpoints.map((endpoint) => readStatus(endpoint, LEADER_TIMEOUT_MS));
  for (const answer of await Promise.allSettled(asked)) {
    if (answer.status === 'fulfilled' && answer.value.isServing) return answer.value.nodeId;
  }
  return null;
}
