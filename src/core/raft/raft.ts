/**
 * One replica's raft: the door through which time, messages, proposals and disks reach the rules.
 *
 * Owns: the order in which terms are checked and rules are called. Pure: no clock, no I/O, no
 * knowledge of locks; the same calls give the same effects. The host (replica/turn.ts) reads
 * `effects` after each turn, calls takeAppend, carries them out and clears them.
 * Shape after etcd-io/raft (Ready, async storage writes); departures are in docs/DIVERGENCE.md.
 */
import { assert } from '../../collections/assert.js';
import { Prng } from '../../collections/prng.js';
import { ELECTION_TICKS_MIN, HEARTBEAT_TICKS, MEMBERS_MAX } from '../../limits.js';
import { type Effects, type HardState, Role } from './effects.js';
import {
  becomeFollower,
  campaign,
  campaignPreVote,
  checkQuorum,
  followLeader,
  handleVoteReply,
  handleVoteRequest,
} from './election.js';
import { RaftLog } from './log.js';
import type { Members } from './members.js';
import {
  ChangeRefusal,
  leaveWhenCommitted,
  mayCampaign,
  membershipIndex,
  noteAppended,
  noteCompacted,
  refuseChange,
} from './membership.js';
import { type Entry, EntryKind, type Message, MessageKind } from './message.js';
import { ProgressState } from './progress.js';
import {
  abortOverdueReads,
  answerConfirmedRounds,
  confirmRounds,
  handleReadIndex,
  handleReadIndexReply,
  requestReadIndex,
} from './read-index.js';
import {
  commitByMajority,
  handleAppend,
  handleAppendReply,
  handleHeartbeat,
  handleSnapshotOffer,
  handleSnapshotReply,
  installSnapshot,
} from './replication.js';
import {
  appendAsLeader,
  beatInterval,
  handleEntriesRead,
  offerAgain,
  sendAppends,
  sendProbe,
} from './sending.js';
import { newMessage, progressOf, RaftState, saveHardState, sendNow } from './state.js';
import { beginTransfer } from './transfer.js';

export interface RaftOptions {
  readonly nodeId: number;
  /** Those in force at the base of the log. */
  readonly members: Members;
  /** Finds the members in the data of a membership entry. */
  readonly readMembers: (data: Uint8Array) => Members;
  /** The membership entries behind the base, the oldest first. */
  readonly membershipEntries: readonly Entry[];
  /**
   * Seed of the election time-outs and of the numbers of forwarded reads: another at each start,
   * or an answer meant for an earlier life may be taken for one of this (stale read).
   */
  readonly seed: number;
  readonly hardState: HardState;
  /** A commit index that was known before the restart, at most lastIndex; 0 when none was. */
  readonly commitIndex: number;
  /** Index and term that the log starts behind: 0, 0 without a snapshot. */
  readonly baseIndex: number;
  readonly baseTerm: number;
  readonly lastIndex: number;
  readonly termStarts: readonly { readonly index: number; readonly term: number }[];
  /** The newest entries, consecutive up to lastIndex. */
  readonly tail: readonly Entry[];
}

export class Raft {
  private readonly state: RaftState;

  constructor(options: RaftOptions) {
    assert(options.members.voters.length <= MEMBERS_MAX, 'members: at most MEMBERS_MAX voters');
    const log = new RaftLog(options.baseIndex, options.baseTerm);
    log.restore(options.termStarts, options.lastIndex, options.tail);
    // An installed snapshot may be durable before the term that came with it. In a term that is not
    // on this disk, this node cannot have voted.
    const isBehindBase = options.hardState.term < log.baseTerm;
    const { term, votedFor } = isBehindBase
      ? { term: log.baseTerm, votedFor: 0 }
      : options.hardState;
    assert(term >= log.lastTerm, 'hard state: term is not behind the log');
    this.state = new RaftState(
      options.nodeId,
      options.members,
      log,
      new Prng(options.seed),
      options.readMembers,
      term,
      votedFor,
    );
    for (const entry of options.membershipEntries) noteAppended(this.state, entry);
    if (isBehindBase) saveHardState(this.state);
    assert(options.commitIndex <= log.lastIndex, 'commit hint: not past the end of the log');
    this.state.commitIndex = Math.max(options.commitIndex, log.baseIndex);
  }

  /** What has to be done since the last clear(); valid until then. */
  get effects(): Effects {
    this.state.effects.commitIndex = this.state.commitIndex;
    return this.state.effects;
  }

  get nodeId(): number {
    return this.state.nodeId;
  }
  get role(): Role {
    return this.state.role;
  }
  get term(): number {
    return this.state.term;
  }
  /** Node id of the known leader, 0 for none. */
  get leaderId(): number {
    return this.state.leaderId;
  }
  get commitIndex(): number {
    return this.state.commitIndex;
  }
  get durableIndex(): number {
    return this.state.durableIndex;
  }
  get lastIndex(): number {
    return this.state.log.lastIndex;
  }
  /** Those in force: of the newest membership in the log, committed or not. */
  get members(): Members {
    return this.state.members;
  }
  /** Index of the entry that put them in force, 0 or that of the base when none is in the log. */
  get membershipIndex(): number {
    return membershipIndex(this.state);
  }
  /** Leader whose first entry of this term is in the log: it may propose. */
  get isProposing(): boolean {
    return (
      this.state.role === Role.Leader && this.state.isTermOpen && this.state.transferTarget === 0
    );
  }
  /** Leader that has not yet opened its term with a NoOp. */
  get needsNoOp(): boolean {
    return this.state.role === Role.Leader && !this.state.isTermOpen;
  }
  /** Leader with an entry of its own term committed: what it knows is current (thesis §6.4). */
  get isTermCommitted(): boolean {
    return this.state.isTermOpen && this.state.commitIndex >= this.state.termStartIndex;
  }
  /** Leader: index of the first entry of its term; entries before it are its predecessors'. */
  get termStartIndex(): number {
    return this.state.termStartIndex;
  }
  get isTransferring(): boolean {
    return this.state.transferTarget !== 0;
  }

  termAt(index: number): number {
    return this.state.log.termAt(index);
  }

  /** The entry when it is in memory, else undefined: read it from the disk. */
  entryAt(index: number): Entry | undefined {
    return this.state.log.entryAt(index);
  }

  /** Lets memory go of entries up to `upTo` beyond the given bounds. */
  trimWindow(upTo: number, entriesMax: number, bytesMax: number): void {
    this.state.log.trimWindow(Math.min(upTo, this.state.durableIndex), entriesMax, bytesMax);
  }

  /** Index that the log starts behind: older entries are in a snapshot. */
  get baseIndex(): number {
    return this.state.log.baseIndex;
  }

  /**
   * The host has a durable snapshot that covers `index`, and may have dropped the entries up to it:
   * a follower that needs one of them is offered the snapshot. `index`: at most what is applied.
   */
  compact(index: number): void {
    assert(index <= this.state.commitIndex, 'compact: only what is committed');
    this.state.log.compactTo(index);
    noteCompacted(this.state, index);
  }

  /**
   * The host has a durable snapshot of (index, term) from another node, whose state has `members`.
   * True: it stands for the whole log from now on, and effects.resetTo says so to the log; the host
   * continues from it. False: the log holds what it covers.
   */
  installSnapshot(index: number, term: number, members: Members): boolean {
    return installSnapshot(this.state, index, term, members);
  }

  /** For status: what the leader knows of each other member. */
  forEachProgress(
    visit: (nodeId: number, matchIndex: number, nextIndex: number, isActive: boolean) => void,
  ): void {
    for (const progress of this.state.progress) {
      visit(progress.nodeId, progress.matchIndex, progress.nextIndex, progress.isActive);
    }
  }

  /** One unit of time (TICK_MS) has passed. */
  tick(): void {
    const state = this.state;
    state.ticks += 1;
    if (state.role !== Role.Leader) {
      abortOverdueReads(state);
      state.electionElapsed += 1;
      const isOverdue = state.electionElapsed >= state.electionTimeout;
      if (isOverdue && mayCampaign(state)) campaignPreVote(state);
      return;
    }
    state.electionElapsed += 1;
    if (state.electionElapsed >= ELECTION_TICKS_MIN) {
      state.electionElapsed = 0;
      checkQuorum(state);
      if (state.role !== Role.Leader) return;
    }
    state.transferElapsed += 1;
    if (state.transferElapsed >= ELECTION_TICKS_MIN) state.transferTarget = 0;
    state.heartbeatElapsed += 1;
    if (state.heartbeatElapsed >= HEARTBEAT_TICKS) beatInterval(state);
  }

  /**
   * Appends an entry as leader. The first of a term must be a NoOp (Raft §8), later ones must not.
   * Returns its index, or 0 when this node may not propose.
   */
  propose(kind: EntryKind, data: Uint8Array): number {
    const state = this.state;
    if (kind === EntryKind.NoOp) {
      if (!this.needsNoOp) return 0;
      state.isTermOpen = true;
      state.termStartIndex = state.log.lastIndex + 1;
      return appendAsLeader(state, kind, data);
    }
    if (!this.isProposing) return 0;
    if (kind === EntryKind.Membership) return this.proposeMembers(data);
    return appendAsLeader(state, kind, data);
  }

  /** Whether `members` may be proposed now, and why not. */
  refuseChange(members: Members): ChangeRefusal {
    return refuseChange(this.state, members);
  }

  /** Who leaves is sent the entry that says so, and nothing after it. */
  private proposeMembers(data: Uint8Array): number {
    const { state } = this;
    if (refuseChange(state, state.readMembers(data)) !== ChangeRefusal.None) return 0;
    const index = appendAsLeader(state, EntryKind.Membership, data);
    noteAppended(state, state.log.entryAt(index) as Entry);
    commitByMajority(state);
    answerConfirmedRounds(state);
    return index;
  }

  /**
   * Numbers the append that `effects` describes, before it is handed to the log. The log answers
   * with onAppended(appendId). Ids rise by one.
   */
  takeAppend(): number {
    const state = this.state;
    state.lastAppendId += 1;
    const entries = state.effects.entries;
    const last = entries[entries.length - 1];
    if (last !== undefined) state.handedIndex = last.index;
    state.pendingAppends.push({ appendId: state.lastAppendId, lastIndex: state.handedIndex });
    return state.lastAppendId;
  }

  /** Everything up to this append is on disk: the leader counts itself (thesis §10.2.1). */
  onAppended(appendId: number): void {
    const state = this.state;
    while (state.pendingAppends.length > 0) {
      const pending = state.pendingAppends[0] as { appendId: number; lastIndex: number };
      if (pending.appendId > appendId) break;
      state.pendingAppends.shift();
      if (pending.lastIndex > state.durableIndex) state.durableIndex = pending.lastIndex;
    }
    assert(state.durableIndex <= state.log.lastIndex, 'durable: not past the end of the log');
    commitByMajority(state);
    if (state.isLeaving) leaveWhenCommitted(state);
  }

  /** The log read what a LogReadWish for `peer` asked; empty when it was cut meanwhile. */
  onEntriesRead(peer: number, entries: readonly Entry[]): void {
    handleEntriesRead(this.state, peer, entries);
  }

  /** Asks for a linearizable read point; answered in effects.readStates or readsAborted. */
  readIndex(context: number): void {
    requestReadIndex(this.state, context);
  }

  /** Hands leadership to `target`. False when that cannot begin here and now. */
  transfer(target: number): boolean {
    return beginTransfer(this.state, target);
  }

  /** Takes one message of another replica, or this node's own vote once it is durable. */
  step(message: Message): void {
    const state = this.state;
    assert(message.to === state.nodeId, 'step: the message is for this node');
    if (message.term > state.term) {
      if (!this.adoptTerm(message)) return;
    } else if (message.term < state.term) {
      this.answerStale(message);
      return;
    }
    switch (message.kind) {
      case MessageKind.PreVote:
      case MessageKind.Vote:
        handleVoteRequest(state, message);
        return;
      case MessageKind.PreVoteReply:
      case MessageKind.VoteReply:
        handleVoteReply(state, message);
        return;
      case MessageKind.Append:
        followLeader(state, message.from);
        handleAppend(state, message);
        return;
      case MessageKind.Heartbeat:
        followLeader(state, message.from);
        handleHeartbeat(state, message);
        return;
      case MessageKind.SnapshotOffer:
        followLeader(state, message.from);
        handleSnapshotOffer(state, message);
        return;
      default:
        this.stepOwnTerm(message);
    }
  }

  /** A later term (Raft §5.1). False when the message must not move this node. */
  private adoptTerm(message: Message): boolean {
    const state = this.state;
    const isVote = message.kind === MessageKind.Vote || message.kind === MessageKind.PreVote;
    if (isVote && message.context !== 1) {
      // Thesis §4.2.3, §6.2: who hears a leader does not help to depose it.
      const hearsLeader = state.leaderId !== 0 && state.electionElapsed < ELECTION_TICKS_MIN;
      if (hearsLeader) return false;
    }
    if (message.kind === MessageKind.PreVote) return true;
    if (message.kind === MessageKind.PreVoteReply && !message.reject) return true;
    const isFromLeader =
      message.kind === MessageKind.Append ||
      message.kind === MessageKind.Heartbeat ||
      message.kind === MessageKind.SnapshotOffer;
    becomeFollower(state, message.term, isFromLeader ? message.from : 0);
    return true;
  }

  /** An earlier term: tell its leader or candidate so that it catches up, drop the rest. */
  private answerStale(message: Message): void {
    const state = this.state;
    if (message.kind === MessageKind.Append || message.kind === MessageKind.Heartbeat) {
      // A node that PreVote kept from campaigning must still be able to depose a stale leader. Not
      // by a refusal: its sender may lead this very term by now, and would go back without a hint.
      sendNow(state, newMessage(state, MessageKind.HeartbeatReply, message.from));
    } else if (message.kind === MessageKind.PreVote) {
      const reply = newMessage(state, MessageKind.PreVoteReply, message.from);
      reply.reject = true;
      sendNow(state, reply);
    }
  }

  private stepOwnTerm(message: Message): void {
    const state = this.state;
    if (message.kind === MessageKind.ReadIndexReply) {
      handleReadIndexReply(state, message);
    } else if (message.kind === MessageKind.TimeoutNow) {
      if (mayCampaign(state) && state.role !== Role.Leader) campaign(state, true);
    } else if (state.role === Role.Leader) {
      this.stepLeader(message);
      if (state.isLeaving) leaveWhenCommitted(state);
    }
  }

  private stepLeader(message: Message): void {
    const state = this.state;
    if (message.kind === MessageKind.AppendReply) {
      handleAppendReply(state, message);
    } else if (message.kind === MessageKind.ReadIndex) {
      handleReadIndex(state, message);
    } else if (message.kind === MessageKind.Transfer) {
      beginTransfer(state, message.context);
    } else if (message.kind === MessageKind.HeartbeatReply) {
      this.stepHeartbeatReply(message);
    } else if (message.kind === MessageKind.SnapshotReply) {
      handleSnapshotReply(state, message);
    }
  }

  private stepHeartbeatReply(message: Message): void {
    const state = this.state;
    const progress = progressOf(state, message.from);
    if (progress === undefined) return;
    const mayResend = progress.onHeartbeatReply();
    if (mayResend && progress.state === ProgressState.Snapshot) {
      offerAgain(state, progress);
    } else if (mayResend && progress.matchIndex < state.log.lastIndex) {
      if (progress.nextIndex <= state.log.lastIndex) sendAppends(state, progress);
      else sendProbe(state, progress);
    }
    confirmRounds(state, message.from, message.context);
  }
}
