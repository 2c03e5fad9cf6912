/**
 * How a node comes to its founding record: the cluster id, the members with their disk ids, and
 * the settings that stand at index 0 of the log.
 *
 * Owns: the decision to found, to adopt or to refuse. The bootstrapper founds only after every
 * member has answered and none of them is founded, gives the record to every other node first and
 * stores it itself last, so that a crash between stores leaves a record that anybody can adopt and
 * never a second one. Never: sockets, files (they are ports). Used by: server/node.ts.
 */
import { assert } from '../collections/assert.js';
import { OPERATION_VERSION } from '../core/locks/command.js';
import { defaultSettings, type Settings } from '../core/locks/settings.js';
import type { Logger } from '../observe/logger.js';
import type { FoundingMember, FoundingRecord } from '../wire/founding.js';
import { formatEndpoint, type MemberAddress } from './options.js';

/** A member by its id and its disk, as founding compares them. */
export interface FoundedMember {
  readonly nodeId: number;
  /** 16 random bytes that a data folder got when it was made. */
  readonly diskId: Uint8Array;
}

/** What a member says when it is asked who it is. */
export interface PeerIdentity extends FoundedMember {
  readonly record: FoundingRecord | null;
}

/** The other members, as founding needs them. */
export interface FoundingPeers {
  /** Rejects when the member cannot be reached in time. */
  ask(member: MemberAddress): Promise<PeerIdentity>;
  /** Resolves when the member has the record on disk; rejects when it is not reached or refuses. */
  offer(member: MemberAddress, record: FoundingRecord): Promise<void>;
}

/** This node's own folder. */
export interface FoundingStore {
  readonly nodeId: number;
  readonly diskId: Uint8Array;
  /** What was stored before, null when this node is not founded. */
  readonly record: FoundingRecord | null;
  /** Resolves when the record is durable. */
  store(record: FoundingRecord): Promise<void>;
}

export interface FoundingPlan {
  readonly members: readonly MemberAddress[];
  readonly bootstrap: boolean;
  readonly settings: Partial<Settings>;
  /** Draws the cluster id: 16 random bytes. */
  readonly drawClusterId: () => Uint8Array;
  /** Resolves after about `ms`; rejects when the node is told to stop. */
  readonly pause: (ms: number) => Promise<void>;
  readonly logger: Logger;
}

/** Why this node may not join: an operator has to do something. The text says what. */
export class FoundingRefused extends Error {
  override readonly name = 'FoundingRefused';
}

/** Between two rounds of questions while the cluster is not founded. */
export const FOUNDING_ROUND_MS = 250;

/** Lower-case hex of an id. */
export function hexOf(bytes: Uint8Array): string {
  let text = '';
  for (const byte of bytes) text += byte.toString(16).padStart(2, '0');
  return text;
}

function isSame(left: Uint8Array, right: Uint8Array): boolean {
  return hexOf(left) === hexOf(right);
}

function isMember(record: FoundingRecord, candidate: FoundedMember): boolean {
  return record.members.some(
    ({ nodeId, diskId }) => nodeId === candidate.nodeId && isSame(diskId, candidate.diskId),
  );
}

/** Throws FoundingRefused unless `record` names this node with this disk. */
export function checkMembership(record: FoundingRecord, nodeId: number, diskId: Uint8Array): void {
  const cluster = hexOf(record.clusterId);
  const member = record.members.find((candidate) => candidate.nodeId === nodeId);
  if (member === undefined) {
    const named = record.members.map((candidate) => candidate.nodeId).join(', ');
    throw new FoundingRefused(
      `Node ${nodeId} is not a member of cluster ${cluster} (members: ${named}). ` +
        'Check --node-id and --peers.',
    );
  }
  if (isSame(member.diskId, diskId)) return;
  throw new FoundingRefused(
    `Refusing to join cluster ${cluster} as node ${nodeId}: this data folder has disk id ` +
      `${hexOf(diskId)}, the cluster knows node ${nodeId} by disk id ${hexOf(member.diskId)}. ` +
      'The folder was wiped, swapped or belongs to another node, and its votes would not be ' +
      'remembered. Point --data at the original folder. If that is lost, leave the node stopped: ' +
      'this release cannot replace a member, and the cluster runs on while a majority does.',
  );
}

/** Brings one node to its founding record. One instance a start. */
export class Founding {
  private adopted: FoundingRecord | null;
  private storing: Promise<void> | null = null;
  private lastSaid = '';

  constructor(
    private readonly store: FoundingStore,
    private readonly peers: FoundingPeers,
    private readonly plan: FoundingPlan,
  ) {
    this.adopted = store.record;
  }

  /** The record this node has on disk, null while it has none. */
  get record(): FoundingRecord | null {
    return this.adopted;
  }

  /**
   * Resolves with the record once it is on this node's disk. Rejects with FoundingRefused when an
   * operator has to act, or with the reason of `pause` when the node is told to stop.
   */
  async run(): Promise<FoundingRecord> {
    while (this.adopted === null) {
      await this.round();
      if (this.adopted === null) await this.plan.pause(FOUNDING_ROUND_MS);
    }
    checkMembership(this.adopted, this.store.nodeId, this.store.diskId);
    return this.adopted;
  }

  /**
   * Takes a record that the bootstrapper offers; resolves when it is durable. Rejects with
   * FoundingRefused when it does not name this node and disk, or when another record stands.
   */
  async accept(record: FoundingRecord): Promise<void> {
    checkMembership(record, this.store.nodeId, this.store.diskId);
    if (this.adopted === null) this.storing ??= this.keep(record);
    await this.storing;
    const kept = this.adopted;
    assert(kept !== null, 'a record that was stored is kept');
    if (isSame(kept.clusterId, record.clusterId)) return;
    throw new FoundingRefused(
      `Node ${this.store.nodeId} belongs to cluster ${hexOf(kept.clusterId)} and was offered ` +
        `cluster ${hexOf(record.clusterId)}: only one node may bootstrap.`,
    );
  }

  private async keep(record: FoundingRecord): Promise<void> {
    await this.store.store(record);
    this.adopted = record;
  }

  private get others(): MemberAddress[] {
    return this.plan.members.filter((member) => member.nodeId !== this.store.nodeId);
  }

  /** One round of questions, and what follows from the answers. */
  private async round(): Promise<void> {
    const answers = new Map<number, PeerIdentity>();
    const asked = this.others.map(async (member) => {
      const answer = await this.ask(member);
      if (answer !== null) answers.set(member.nodeId, answer);
    });
    await Promise.all(asked);
    if (this.adopted !== null) return;
    for (const member of this.others) this.checkAnswer(member, answers.get(member.nodeId));
    const standing = this.standingRecord(answers);
    if (standing !== null) return this.adopt(standing, answers);
    if (!this.plan.bootstrap) {
      return this.say('waiting to be founded: start one member with --bootstrap');
    }
    const missing = this.others.filter((member) => !answers.has(member.nodeId));
    if (missing.length > 0) {
      const names = missing.map((member) => member.nodeId).join(', ');
      return this.say(`founding waits for every member; not reached yet: ${names}`);
    }
    await this.adopt(this.draw(answers), answers);
  }

  /** Null when the member is not reached, which is no news while others start. */
  private async ask(member: MemberAddress): Promise<PeerIdentity | null> {
    try {
      return await this.peers.ask(member);
    } catch (error) {
      if (error instanceof FoundingRefused) throw error;
      this.plan.logger.debug({ peer: member.nodeId, reason: String(error) }, 'member not reached');
      return null;
    }
  }

  private checkAnswer(member: MemberAddress, answer: PeerIdentity | undefined): void {
    if (answer === undefined) return;
    const address = formatEndpoint(member.peer);
    if (answer.nodeId !== member.nodeId) {
      throw new FoundingRefused(
        `The node at ${address} says it is node ${answer.nodeId}, --peers says ${member.nodeId}.`,
      );
    }
    if (isSame(answer.diskId, this.store.diskId)) {
      throw new FoundingRefused(
        `Node ${answer.nodeId} at ${address} has the disk id of this node: the data folder was ` +
          'copied. Every node needs a folder of its own.',
      );
    }
  }

  /** The record that some member already has, null when nobody is founded. */
  private standingRecord(answers: ReadonlyMap<number, PeerIdentity>): FoundingRecord | null {
    let standing: FoundingRecord | null = null;
    for (const { record, nodeId } of answers.values()) {
      if (record === null) continue;
      if (standing !== null && !isSame(standing.clusterId, record.clusterId)) {
        throw new FoundingRefused(
          `Node ${nodeId} belongs to cluster ${hexOf(record.clusterId)}, another member to ` +
            `${hexOf(standing.clusterId)}. Check --peers; wipe the nodes that were founded twice.`,
        );
      }
      standing = record;
    }
    return standing;
  }

  private draw(answers: ReadonlyMap<number, PeerIdentity>): FoundingRecord {
    const members = this.plan.members.map((member): FoundingMember => {
      const isSelf = member.nodeId === this.store.nodeId;
      const diskId = isSelf ? this.store.diskId : answers.get(member.nodeId)?.diskId;
      assert(diskId !== undefined, 'a cluster is founded when every member has answered');
      const peer = formatEndpoint(member.peer);
      const client = formatEndpoint(member.client);
      return { nodeId: member.nodeId, diskId, peer, client, zone: null };
    });
    members.sort((left, right) => left.nodeId - right.nodeId);
    return {
      clusterId: this.plan.drawClusterId(),
      members,
      settings: { ...defaultSettings(), ...this.plan.settings },
      featureLevel: OPERATION_VERSION,
    };
  }

  /**
   * Gives the record to every member without one (bootstrapper only), then keeps it. A member that
   * is not reached ends the round: the next one finds the record standing and goes on from there.
   */
  private async adopt(
    record: FoundingRecord,
    answers: ReadonlyMap<number, PeerIdentity>,
  ): Promise<void> {
    checkMembership(record, this.store.nodeId, this.store.diskId);
    if (this.plan.bootstrap) {
      for (const member of this.others) {
        const answer = answers.get(member.nodeId);
        if (answer === undefined || answer.record !== null) continue;
        // A member with another disk is told so by its own check; here it only cannot be founded.
        if (!isMember(record, answer)) continue;
        const failure = await this.peers.offer(member, record).catch((error: unknown) => error);
        if (failure === undefined) continue;
        return this.say(`node ${member.nodeId} has not stored the founding record: ${failure}`);
      }
    }
    await this.accept(record);
    this.plan.logger.info({ cluster: hexOf(record.clusterId) }, 'founding record stored');
  }

  /** Once for each thing to say, however many rounds it stays true. */
  private say(text: string): void {
    if (text === this.lastSaid) return;
    this.lastSaid = text;
    this.plan.logger.info({}, text);
  }
}
