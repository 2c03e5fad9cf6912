/**
 * What a node says of itself: role, term, leader, progress, digest, counts.
 *
 * Owns: the names of the status fields (docs/PROTOCOL.md). Never: a secret or a lock name.
 * Called by: queries.ts, the server's log lines, tests.
 */
import { Role } from '../core/raft/effects.js';
import type { PackValue } from '../wire/msgpack-writer.js';
import { isServing, leaderAddress, type ReplicaState } from './state.js';

const ROLE_NAMES = ['follower', 'pre-candidate', 'candidate', 'leader'] as const;

/** The status of one replica; the digest is that of the state at `applied_index`. */
export function statusFields(state: ReplicaState): { readonly [key: string]: PackValue } {
  const { raft, machine, counters, options } = state;
  const counts = machine.counts;
  const peers: PackValue[] = [];
  if (raft.role === Role.Leader) {
    raft.forEachProgress((nodeId, matchIndex, nextIndex, isActive) => {
      peers.push({
        node_id: nodeId,
        match_index: matchIndex,
        next_index: nextIndex,
        active: isActive,
      });
    });
  }
  return {
    node_id: options.nodeId,
    role: ROLE_NAMES[raft.role] as string,
    serving: isServing(state),
    term: raft.term,
    leader_id: raft.leaderId,
    leader_address: leaderAddress(state),
    last_index: raft.lastIndex,
    durable_index: raft.durableIndex,
    commit_index: raft.commitIndex,
    applied_index: state.appliedIndex,
    revision: machine.revision,
    cluster_time: machine.now,
    digest: machine.digest(),
    feature_level: options.featureLevel,
    connections: state.connections.size,
    locks: counts.locks,
    leases: counts.leases,
    waits: counts.waits,
    sessions: counts.sessions,
    results: counts.results,
    peers,
    counters: { ...counters },
  };
}
