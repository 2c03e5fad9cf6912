/**
 * Everything one replica's raft knows: the state that the rules in this folder read and change.
 *
 * Owns: the fields. Never: a rule; those are free functions in election, replication, sending,
 * read-index and transfer, which take this state first. Made and driven by: raft.ts.
 */
import type { Prng } from '../../collections/prng.js';
import { ELECTION_TICKS_MAX, ELECTION_TICKS_MIN, MEMBERS_MAX } from '../../limits.js';
import { Effects, Role } from './effects.js';
import type { RaftLog } from './log.js';
import type { Members, MembersAt } from './members.js';
import { Message, type MessageKind } from './message.js';
import type { Progress } from './progress.js';

/** Numbers of forwarded reads that one life draws from a random start; all stay below 2^53. */
const FORWARDED_PER_LIFE = 2 ** 20;

/** A read round that waits for a majority to confirm the leader (thesis §6.4). */
export interface ReadRound {
  /** Number of the round in this process; heartbeats carry it and bring it back. */
  readonly round: number;
  /** Commit index when the round began. */
  readonly index: number;
  /** Who asked: this node's id, or the follower's. */
  readonly from: number;
  /** The asker's own number for its reads. */
  readonly context: number;
  /** Node ids that have confirmed, this one included. */
  readonly confirmed: Set<number>;
}

/** A read that was passed on to the leader. */
export interface ForwardedRead {
  /** Names it on the wire: unlike `context` not used again by a later life of this node. */
  readonly number: number;
  readonly context: number;
  /** Value of `ticks` at which it is given up. */
  readonly deadline: number;
}

/** An append handed to the log and not yet durable: entries up to lastIndex. */
export interface PendingAppend {
  readonly appendId: number;
  lastIndex: number;
}

export class RaftState {
  readonly effects = new Effects();

  term: number;
  votedFor: number;
  role: Role = Role.Follower;
  /** Node id of the known leader of `term`, 0 for none. */
  leaderId = 0;
  commitIndex: number;
  /** Last index known to be on this node's disk. */
  durableIndex: number;

  /** Ticks since the last sign of a leader, or since the own election or quorum check began. */
  electionElapsed = 0;
  electionTimeout = ELECTION_TICKS_MIN;
  heartbeatElapsed = 0;

  /** Granted (true) and refused votes of the running campaign, by node id. */
  readonly votes = new Map<number, boolean>();
  /** Leader only: one for each other member. */
  progress: Progress[] = [];
  /** Leader only: its first entry of this term is in the log; until then nothing is proposed. */
  isTermOpen = false;
  /** Leader only: index of that first entry. */
  termStartIndex = 0;
  /** Leader only: node id that leadership is being handed to, 0 for none, and ticks since then. */
  transferTarget = 0;
  transferElapsed = 0;

  /** Leader only: rounds in the order they began. */
  readonly readRounds: ReadRound[] = [];
  /** Leader only: reads that wait for the first commit of this term (thesis §6.4, step 1). */
  readonly readsHeld: { readonly from: number; readonly context: number }[] = [];
  /** Follower: sent to the leader and not yet answered, oldest first. */
  readonly readsForwarded: ForwardedRead[] = [];
  lastForwarded: number;
  lastRound = 0;
  /** Ticks since the start. */
  ticks = 0;

  readonly pendingAppends: PendingAppend[] = [];
  lastAppendId = 0;
  /** Last index that was handed to the log, durable or not. */
  handedIndex: number;

  /** Scratch for quorum arithmetic. */
  readonly scratch = new Float64Array(MEMBERS_MAX);

  /** The members in force: those of the newest element. */
  members: Members;
  /** Memberships of the log, from that of its base on; never empty (membership.ts). */
  readonly memberships: MembersAt[];
  /** Leader that is no voter any more: it leads until that is committed. */
  isLeaving = false;

  /** `members`: those at the base of the log. `readMembers`: finds them in a membership entry. */
  constructor(
    readonly nodeId: number,
    members: Members,
    readonly log: RaftLog,
    readonly prng: Prng,
    readonly readMembers: (data: Uint8Array) => Members,
    term: number,
    votedFor: number,
  ) {
    this.members = members;
    this.memberships = [{ index: log.baseIndex, members }];
    this.term = term;
    this.votedFor = votedFor;
    this.commitIndex = log.baseIndex;
    this.durableIndex = log.lastIndex;
    this.handedIndex = log.lastIndex;
    this.lastForwarded = prng.nextU32() * FORWARDED_PER_LIFE;
    resetElectionTimer(this);
  }

  get isVoter(): boolean {
    return this.members.voters.includes(this.nodeId);
  }
}

/** Starts the election timer anew with a fresh random time-out (Raft §5.2). */
export function resetElectionTimer(state: RaftState): void {
  state.electionElapsed = 0;
  state.electionTimeout =
    ELECTION_TICKS_MIN + state.prng.below(ELECTION_TICKS_MAX - ELECTION_TICKS_MIN);
}

/** Marks term and vote for storage; they go out as one record. */
export function saveHardState(state: RaftState): void {
  state.effects.hardState = { term: state.term, votedFor: state.votedFor };
}

/** A message in the current term, for the caller to fill and send. */
export function newMessage(state: RaftState, kind: MessageKind, to: number): Message {
  const message = new Message(kind, state.nodeId, to);
  message.term = state.term;
  return message;
}

/** Sends a message that promises nothing that is not on disk already. */
export function sendNow(state: RaftState, message: Message): void {
  state.effects.messages.push(message);
}

/** Sends a message that must not leave before everything handed to the log so far is durable. */
export function sendWhenDurable(state: RaftState, message: Message): void {
  state.effects.messagesWhenDurable.push(message);
}

/** The leader's progress for `nodeId`, or undefined for itself and strangers. */
export function progressOf(state: RaftState, nodeId: number): Progress | undefined {
  for (let i = 0; i < state.progress.length; i += 1) {
    const progress = state.progress[i] as Progress;
    if (progress.nodeId === nodeId) return progress;
  }
  return undefined;
}

/** Gives up every read that a leader was asked to confirm; their callers are told to ask anew. */
export function abortReads(state: RaftState): void {
  for (let i = 0; i < state.readRounds.length; i += 1) {
    const round = state.readRounds[i] as ReadRound;
    if (round.from === state.nodeId) state.effects.readsAborted.push(round.context);
  }
  for (let i = 0; i < state.readsHeld.length; i += 1) {
    const held = state.readsHeld[i] as { from: number; context: number };
    if (held.from === state.nodeId) state.effects.readsAborted.push(held.context);
  }
  for (let i = 0; i < state.readsForwarded.length; i += 1) {
    state.effects.readsAborted.push((state.readsForwarded[i] as ForwardedRead).context);
  }
  state.readRounds.length = 0;
  state.readsHeld.length = 0;
  state.readsForwarded.length = 0;
}
