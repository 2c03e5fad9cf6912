/**
 * Who may speak on the peer port: the check of a hello against the founding record.
 *
 * Owns: the order of the checks and the words of each refusal, which both ends log. Never: sockets.
 * Every connection is checked by the node that receives on it, so a vote or an acknowledgement is
 * always known to come from the disk that the record names.
 * Used by: the peer server and the peer links.
 */
import { PEER_VERSION, type PeerHello, type PeerHelloReply, PeerVerdict } from '../../wire/peer.js';

/** A member as the founding record and the options together name it. */
export interface PeerMember {
  readonly nodeId: number;
  readonly host: string;
  readonly port: number;
  readonly diskId: Uint8Array;
}

/** What a hello is held against. */
export interface Membership {
  readonly nodeId: number;
  readonly clusterId: Uint8Array;
  readonly members: readonly PeerMember[];
  /** The level that every member must be able to apply. */
  readonly clusterFeatureLevel: number;
}

/** True when both have the same bytes. */
export function isSameId(left: Uint8Array, right: Uint8Array): boolean {
  return left.length === right.length && left.every((byte, at) => byte === right[at]);
}

function hex(id: Uint8Array): string {
  return Array.from(id, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

function refusal(verdict: PeerVerdict, text: string): PeerHelloReply {
  return { verdict, text };
}

/** Judges who takes a backup: it need not be a member, and means this cluster. */
export function judgeBackup(hello: PeerHello, { clusterId }: Membership): PeerHelloReply {
  if (hello.version !== PEER_VERSION) {
    const text = `peer protocol ${hello.version} of node ${hello.nodeId}, wanted ${PEER_VERSION}`;
    return refusal(PeerVerdict.UnsupportedVersion, text);
  }
  if (!isSameId(hello.clusterId, clusterId)) {
    const ids = `${hex(hello.clusterId)}, wanted ${hex(clusterId)}`;
    return refusal(PeerVerdict.OtherCluster, `node ${hello.nodeId} is of cluster ${ids}`);
  }
  return refusal(PeerVerdict.Welcome, '');
}

/** Judges the caller that sent `hello`; the verdict is Welcome or says what does not fit. */
export function judgeHello(hello: PeerHello, membership: Membership): PeerHelloReply {
  const { nodeId } = hello;
  const general = judgeBackup(hello, membership);
  if (general.verdict !== PeerVerdict.Welcome) return general;
  const member = membership.members.find((candidate) => candidate.nodeId === nodeId);
  if (member === undefined || nodeId === membership.nodeId) {
    return refusal(PeerVerdict.UnknownNode, `node ${nodeId} is no other member of this cluster`);
  }
  if (!isSameId(hello.diskId, member.diskId)) {
    const ids = `${hex(hello.diskId)}, wanted ${hex(member.diskId)}`;
    return refusal(
      PeerVerdict.OtherDisk,
      `node ${nodeId} has disk ${ids}: not the one it was founded with`,
    );
  }
  if (hello.featureLevel < membership.clusterFeatureLevel) {
    const levels = `${hello.featureLevel}, wanted at least ${membership.clusterFeatureLevel}`;
    return refusal(PeerVerdict.FeatureLevel, `node ${nodeId} has feature level ${levels}`);
  }
  return refusal(PeerVerdict.Welcome, '');
}
