/**
 * The JSON of /v1/cluster/status.
 *
 * Owns: its names. Never: a number of its own.
 * Used by: http-door.ts.
 */
import type { Json } from '../../wire/event-json.js';
import type { StatusReply } from '../../wire/query-reply.js';

export function statusJson(status: StatusReply): Json {
  const members = status.members.map(({ nodeId, address, role }) => {
    return { node_id: nodeId, address, role };
  });
  const leader = members.find((member) => member.node_id === status.leaderId);
  return {
    node: status.nodeId,
    role: status.role,
    term: status.term,
    leader: leader === undefined ? null : { node_id: leader.node_id, address: leader.address },
    serving: status.counters['serving'] === 1,
    applied_index: status.appliedIndex,
    commit_index: status.commitIndex,
    revision: status.revision,
    cluster_time: status.clusterTime,
    digest: { value: status.digest, index: status.appliedIndex },
    feature_level: status.featureLevel,
    members,
    counters: status.counters,
  };
}
