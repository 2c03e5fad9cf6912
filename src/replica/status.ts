/**
 * What a node says of itself: role, term, leader, progress, digest, counts.
 *
 * Owns: the names of the counters and gauges. Never: a secret or a lock name.
 * Called by: queries.ts, the server's log lines, tests.
 */
import { Role } from '../core/raft/effects.js';
import type { MemberRow, StatusReply } from '../wire/query-reply.js';
import { oldestAudited } from './audit.js';
import { isServing, type ReplicaState } from './state.js';

const ROLE_NAMES = ['follower', 'pre-candidate', 'candidate', 'leader'] as const;

/** The members as clients are told of them. */
export function memberRows(state: ReplicaState): MemberRow[] {
  return state.options.members.map(({ nodeId, client, isLearner }) => ({
    nodeId,
    address: client,
    role: isLearner === true ? 'learner' : 'voter',
  }));
}

/** The status of one replica; the digest is that of the state at `appliedIndex`. */
export function readStatus(state: ReplicaState): StatusReply {
  const { raft, machine, options } = state;
  return {
    nodeId: options.nodeId,
    role: ROLE_NAMES[raft.role] ?? 'follower',
    term: raft.term,
    leaderId: raft.leaderId,
    appliedIndex: state.appliedIndex,
    commitIndex: raft.commitIndex,
    revision: machine.revision,
    clusterTime: machine.now,
    digest: machine.digest(),
    featureLevel: options.featureLevel,
    members: memberRows(state),
    counters: readCounters(state),
  };
}

/** How a replica stands, for readiness. */
export interface Health {
  readonly role: StatusReply['role'];
  readonly leaderId: number;
  readonly isServing: boolean;
  readonly isShuttingDown: boolean;
  /** Ms since this node last learnt a commit index. */
  readonly ageMs: number;
}

export function readHealth(state: ReplicaState): Health {
  const sinceUs = state.options.clock.nowUs() - state.lastCommitUs;
  return {
    role: ROLE_NAMES[state.raft.role] ?? 'follower',
    leaderId: state.raft.leaderId,
    isServing: isServing(state),
    isShuttingDown: state.isShuttingDown,
    ageMs: Math.max(0, Math.round(sinceUs / 1_000)),
  };
}

/** For how long the oldest operation of the log has not been decided. */
export function pendingAgeMs(state: ReplicaState): number {
  const { oldestUs } = state.pending;
  if (oldestUs === 0) return 0;
  return Math.max(0, Math.round((state.options.clock.nowUs() - oldestUs) / 1_000));
}

/** Everything countable, by the name it has in metrics. */
function readCounters(state: ReplicaState): { [name: string]: number } {
  const { raft, machine, counters } = state;
  const gauges: { [name: string]: number } = {
    ...counters,
    ...machine.counts,
    serving: isServing(state) ? 1 : 0,
    last_index: raft.lastIndex,
    durable_index: raft.durableIndex,
    connections: state.connections.size,
    watches: state.watches.count,
    watches_behind: state.watches.behind.length,
    oldest_revision: state.events.oldest,
    oldest_audited_revision: oldestAudited(state),
    audit_reads: state.audits.count,
    pending_operations: state.pending.operations + state.open.count,
    pending_reads: state.reads.count,
    snapshot_index: state.compaction.snapshotIndex,
    log_base_index: raft.baseIndex,
  };
  if (raft.role === Role.Leader) {
    raft.forEachProgress((nodeId, matchIndex) => {
      gauges[`match_index_${nodeId}`] = matchIndex;
    });
  }
  return gauges;
}
