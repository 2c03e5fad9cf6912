/**
 * A simulated network between nodes: delay, loss, duplication, reordering, damage, cut links.
 *
 * Owns: which message arrives when, if at all. Messages travel as the frames of the peer protocol,
 * and a link carries them only when the receiver's production check lets the sender's disk in.
 * Never: a message's content. Used by: sim-cluster.ts.
 */
import { crc32 } from 'node:zlib';
import { type Message, MessageKind } from '../../src/core/raft/message.js';
import { OutBuffer } from '../../src/wire/out-buffer.js';
import {
  decodeMessage,
  encodeMessage,
  isPeerFrameIntact,
  PEER_HEADER_BYTES,
  peerFrameBytesAt,
} from '../../src/wire/peer.js';
import type { World } from './world.js';

const checksum = (bytes: Uint8Array): number => crc32(bytes);

/** What the network asks of the cluster. */
export interface NetworkOwner {
  /** True when the node `to` lets connections of the node `from` in, as both are now. */
  isWelcome(from: number, to: number): boolean;
  deliver(message: Message): void;
}

export class SimNetwork {
  /** Shares of messages lost, doubled and damaged on the way, 0 to 1. */
  loss = 0;
  duplication = 0;
  damage = 0;
  /** One-way delay in µs, least and most; a wide range reorders. */
  delayUs: readonly [number, number] = [50, 200];
  /** Frames that arrived damaged and were refused; frames that were refused at the hello. */
  refusedFrames = 0;
  refusedStrangers = 0;
  readonly problems: string[] = [];
  /** A vote of this node leaves. */
  onVote: (nodeId: number) => void = () => undefined;
  private readonly votes = new Map<string, number>();
  private readonly leaders = new Map<number, number>();
  private readonly cut = new Set<number>();
  private readonly out = new OutBuffer();

  constructor(
    private readonly world: World,
    private readonly owner: NetworkOwner,
  ) {}

  /** Cuts the link one way. */
  cutLink(from: number, to: number): void {
    this.cut.add(from * 64 + to);
  }

  healLink(from: number, to: number): void {
    this.cut.delete(from * 64 + to);
  }

  /** Every link carries again, as well as the network does. */
  healLinks(): void {
    this.cut.clear();
  }

  heal(): void {
    this.cut.clear();
    this.loss = 0;
    this.duplication = 0;
    this.damage = 0;
  }

  send(message: Message): void {
    const { world } = this;
    const { from, to } = message;
    this.watch(message);
    if (this.isCut(from, to) || (this.loss > 0 && world.chance(this.loss))) return;
    encodeMessage(this.out, message, checksum);
    const frame = this.out.bytes.slice(0, this.out.length);
    this.out.clear();
    const copies = this.duplication > 0 && world.chance(this.duplication) ? 2 : 1;
    for (let i = 0; i < copies; i += 1) {
      const isDamaged = this.damage > 0 && world.chance(this.damage);
      const bytes = isDamaged ? flipped(frame, world) : frame;
      world.after(world.between(...this.delayUs), () => this.arrive(message, bytes, isDamaged));
    }
  }

  /** Carries a frame of another connection one way, if the receiver lets the sender in. */
  carry(from: number, to: number, frame: Uint8Array, deliver: (frame: Uint8Array) => void): void {
    const { world } = this;
    if (this.isCut(from, to) || (this.loss > 0 && world.chance(this.loss))) return;
    const isDamaged = this.damage > 0 && world.chance(this.damage);
    const bytes = isDamaged ? flipped(frame, world) : frame;
    world.after(world.between(...this.delayUs), () => {
      if (!this.isCut(from, to) && this.owner.isWelcome(from, to)) deliver(bytes);
    });
  }

  /** Raft §5.2, Election Safety: one vote a node and term, one leader a term. */
  private watch({ kind, from, to, term, reject }: Message): void {
    if (kind === MessageKind.VoteReply && !reject) {
      const key = `${from}/${term}`;
      const earlier = this.votes.get(key) ?? to;
      this.votes.set(key, earlier);
      if (earlier !== to) {
        this.problems.push(`votes: node ${from} voted for ${earlier} and ${to} in term ${term}`);
      }
      this.onVote(from);
    } else if (kind === MessageKind.Append || kind === MessageKind.Heartbeat) {
      const earlier = this.leaders.get(term) ?? from;
      this.leaders.set(term, earlier);
      if (earlier !== from) {
        this.problems.push(`leaders: ${earlier} and ${from} lead term ${term}`);
      }
    }
  }

  private arrive(sent: Message, bytes: Uint8Array, isDamaged: boolean): void {
    const { from, to } = sent;
    if (this.isCut(from, to)) return;
    if (!this.owner.isWelcome(from, to)) {
      this.refusedStrangers += 1;
      return;
    }
    const length = peerFrameBytesAt(bytes, 0, bytes.length);
    const isWhole = length === bytes.length && isPeerFrameIntact(bytes, 0, length, checksum);
    if (isDamaged && isWhole) this.problems.push('wire: a damaged frame passed the checksum');
    if (!isWhole) {
      this.refusedFrames += 1;
      if (!isDamaged) this.problems.push('wire: a whole frame was refused');
      return;
    }
    const message = decodeMessage(bytes, PEER_HEADER_BYTES, length);
    if (message === null || !isSame(message, sent)) {
      this.problems.push('wire: a message does not decode to what was sent');
      return;
    }
    this.owner.deliver(message);
  }

  private isCut(from: number, to: number): boolean {
    return this.cut.has(from * 64 + to);
  }
}

/** The receiver reads what the sender said. */
function isSame(got: Message, sent: Message): boolean {
  const isHeadSame =
    got.kind === sent.kind &&
    got.from === sent.from &&
    got.to === sent.to &&
    got.term === sent.term &&
    got.index === sent.index &&
    got.logTerm === sent.logTerm &&
    got.commit === sent.commit &&
    got.reject === sent.reject &&
    got.hintIndex === sent.hintIndex &&
    got.hintTerm === sent.hintTerm &&
    got.context === sent.context;
  if (!isHeadSame || got.entries.length !== sent.entries.length) return false;
  return got.entries.every((entry, at) => {
    const original = sent.entries[at];
    if (original === undefined) return false;
    const { index, term, kind, data } = original;
    const isEntrySame = entry.index === index && entry.term === term && entry.kind === kind;
    return isEntrySame && entry.data.length === data.length && crc32(entry.data) === crc32(data);
  });
}

function flipped(frame: Uint8Array, world: World): Uint8Array {
  const bytes = frame.slice();
  const bit = world.prng.below(bytes.length * 8);
  bytes[bit >>> 3] = (bytes[bit >>> 3] as number) ^ (1 << (bit & 7));
  return bytes;
}
