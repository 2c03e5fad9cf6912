/**
 * What replicas of one shard say to each other, and the entries they talk about.
 *
 * Owns: message and entry kinds (on the peer wire and on disk for ever) and their one shape.
 * Never: bytes; wire/peer.ts encodes them. Read by: raft, wire, replica, io (log, peer links).
 */

export const EntryKind = {
  /** A leader's first entry of its term (Raft §8, thesis §6.4). */
  NoOp: 1,
  /** A batch of lock operations, possibly empty (a pulse). */
  Batch: 2,
  /** A change of the members: the host finds the record of them in its body. */
  Membership: 3,
} as const;
export type EntryKind = (typeof EntryKind)[keyof typeof EntryKind];

/** One entry of the replicated log. `data` starts with the stamped header (wire/entry.ts). */
export class Entry {
  constructor(
    /** Position in the log, from 1. */
    readonly index: number,
    readonly term: number,
    readonly kind: EntryKind,
    /** Owned by the entry and never written again once it is here. */
    readonly data: Uint8Array,
  ) {}
}

export const MessageKind = {
  PreVote: 1,
  PreVoteReply: 2,
  Vote: 3,
  VoteReply: 4,
  Append: 5,
  AppendReply: 6,
  Heartbeat: 7,
  HeartbeatReply: 8,
  ReadIndex: 9,
  ReadIndexReply: 10,
  /** The leader tells the target of a transfer to campaign at once (thesis §3.10). */
  TimeoutNow: 11,
  /** A follower passes on a wish to transfer leadership to `context`. */
  Transfer: 12,
  /** The leader offers a snapshot of `index` or later; it travels on a connection of its own. */
  SnapshotOffer: 13,
  /** The follower has installed one, of `index`. */
  SnapshotReply: 14,
} as const;
export type MessageKind = (typeof MessageKind)[keyof typeof MessageKind];

const NO_ENTRIES: readonly Entry[] = [];

/**
 * One message, whatever its kind: every kind has every field, so that the engine sees one shape.
 * A field that a kind does not use is 0, false or empty.
 */
export class Message {
  /** Sender's term; for PreVote the term it would campaign in. */
  term = 0;
  /**
   * Append: index before the first entry (prevLogIndex). AppendReply: the last index known to
   * match, or the refused prevLogIndex. Vote, PreVote: lastLogIndex. ReadIndexReply: the index.
   */
  index = 0;
  /** Term of the entry at `index` (prevLogTerm, lastLogTerm). */
  logTerm = 0;
  /** Leader's commit index, as far as this follower may know it. */
  commit = 0;
  reject = false;
  /** AppendReply that rejects: the highest index that may match, and the term there. */
  hintIndex = 0;
  hintTerm = 0;
  /** Heartbeat, ReadIndex: number of the read round. Vote: 1 when it comes from a transfer. */
  context = 0;
  entries: readonly Entry[] = NO_ENTRIES;
  /** Free bytes on the sender's log disk, in MiB, for acks (LOG LIFE); 0 when not said. */
  freeMiB = 0;

  constructor(
    readonly kind: MessageKind,
    /** Node id of the sender, 1 … */
    readonly from: number,
    /** Node id of the receiver. */
    readonly to: number,
  ) {}
}
