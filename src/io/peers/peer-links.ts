/**
 * The links between this node and every other member: the PeerPort of the replica.
 *
 * Owns: one dialer for each other member and the gate of the peer server. Each node sends on the
 * connections that it dialled and receives on those it accepted, so the two directions fail apart
 * and a message's sender was always checked by its receiver. Never: a promise that a message
 * arrives. Made by: server, once the node is founded.
 */
import type { Message } from '../../core/raft/message.js';
import { PEER_PROBE_MS } from '../../limits.js';
import type { PeerPort } from '../../replica/ports.js';
import { PEER_VERSION, type PeerHello, type PeerHelloReply } from '../../wire/peer.js';
import { judgeBackup, judgeHello, type Membership, type PeerMember } from './membership.js';
import { PeerDialer } from './peer-dialer.js';
import type { PeerGate, PeerServer } from './peer-server.js';

export interface PeerLinksOptions {
  readonly nodeId: number;
  readonly diskId: Uint8Array;
  readonly clusterId: Uint8Array;
  /** The highest feature level that this node can apply. */
  readonly featureLevel: number;
  /** The level that every member must be able to apply, 1 by default. */
  readonly clusterFeatureLevel?: number;
  /** Every member, this node included. */
  readonly members: readonly PeerMember[];
  /** The listening peer port of this node. */
  readonly server: PeerServer;
  /** A message for this node, from a member; the receiver keeps it. */
  onMessage(message: Message): void;
  /** The link on which this node sends to `nodeId` came up or went down. */
  onPeerState?(nodeId: number, isUp: boolean): void;
  /** What an operator should read. */
  onNote?(text: string): void;
}

export class PeerLinks implements PeerPort, PeerGate {
  readonly hello: PeerHello;
  private readonly membership: Membership;
  private readonly dialers: PeerDialer[] = [];
  private readonly dialerOf = new Map<number, PeerDialer>();
  private probeTimer: NodeJS.Timeout | null = null;

  constructor(private readonly options: PeerLinksOptions) {
    const { nodeId, diskId, clusterId, featureLevel, members } = options;
    const clusterFeatureLevel = options.clusterFeatureLevel ?? 1;
    this.hello = { version: PEER_VERSION, featureLevel, nodeId, clusterId, diskId };
    this.membership = { nodeId, clusterId, members, clusterFeatureLevel };
    const events = {
      onLink: (peer: number, isUp: boolean) => options.onPeerState?.(peer, isUp),
      onNote: (text: string) => options.onNote?.(text),
    };
    for (const member of members) {
      if (member.nodeId === nodeId) continue;
      const dialer = new PeerDialer(member, this.hello, this.membership, events);
      this.dialers.push(dialer);
      this.dialerOf.set(member.nodeId, dialer);
    }
  }

  /** Opens the gate and dials every other member, again and again until close. */
  start(): void {
    this.options.server.setGate(this);
    for (const dialer of this.dialers) dialer.dial();
    this.probeTimer = setInterval(() => this.probe(), PEER_PROBE_MS);
    this.probeTimer.unref();
  }

  /** Ends every link; the server stays open for others. */
  close(): void {
    if (this.probeTimer !== null) clearInterval(this.probeTimer);
    this.options.server.setGate(null);
    for (const dialer of this.dialers) dialer.close();
  }

  send(message: Message): void {
    this.dialerOf.get(message.to)?.send(message);
  }

  flush(): void {
    for (let i = 0; i < this.dialers.length; i++) this.dialers[i]!.flush();
  }

  /** Messages not sent since the start, over all peers. */
  get droppedMessages(): number {
    return this.dialers.reduce((sum, dialer) => sum + dialer.droppedMessages, 0);
  }

  judge(hello: PeerHello, isBackup: boolean): PeerHelloReply {
    return isBackup ? judgeBackup(hello, this.membership) : judgeHello(hello, this.membership);
  }

  onMessage(message: Message): void {
    this.options.onMessage(message);
  }

  private probe(): void {
    for (const dialer of this.dialers) dialer.probe();
  }
}
