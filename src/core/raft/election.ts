/**
 * Who leads: terms, campaigns, votes (Raft §5.2, §5.4.1; PreVote and CheckQuorum, thesis §9.6,
 * §6.2).
 *
 * Owns: every change of role and term. Never: entries.
 * Called by: raft.ts for ticks and messages, transfer.ts to campaign at once.
 */
import { assert } from '../../collections/assert.js';
import { Role } from './effects.js';
import { majorityOf } from './members.js';
import { type Message, MessageKind } from './message.js';
import { Progress } from './progress.js';
import {
  abortReads,
  newMessage,
  type RaftState,
  resetElectionTimer,
  saveHardState,
  sendNow,
  sendWhenDurable,
} from './state.js';

/** Follows `leaderId` (0: unknown) in `term`; a new term forgets the vote of the old. */
export function becomeFollower(state: RaftState, term: number, leaderId: number): void {
  assert(term >= state.term, 'becomeFollower: a term never falls');
  if (term > state.term) {
    state.term = term;
    state.votedFor = 0;
    saveHardState(state);
  }
  leaveRole(state);
  state.role = Role.Follower;
  state.leaderId = leaderId;
  resetElectionTimer(state);
}

/** Notes the leader of the current term, as a follower of it. */
export function followLeader(state: RaftState, leaderId: number): void {
  if (state.role !== Role.Follower || state.leaderId !== leaderId) {
    assert(state.role !== Role.Leader, 'followLeader: a term has one leader (Raft §5.2)');
    becomeFollower(state, state.term, leaderId);
  }
  state.electionElapsed = 0;
}

function leaveRole(state: RaftState): void {
  abortReads(state);
  state.progress = [];
  state.votes.clear();
  state.isTermOpen = false;
  state.isLeaving = false;
  state.transferTarget = 0;
  state.effects.roleChanged = true;
}

/** Asks whether an election could be won, without disturbing anybody's term (thesis §9.6). */
export function campaignPreVote(state: RaftState): void {
  leaveRole(state);
  state.role = Role.PreCandidate;
  state.leaderId = 0;
  resetElectionTimer(state);
  state.votes.set(state.nodeId, true);
  if (hasMajority(state)) {
    campaign(state, false);
    return;
  }
  requestVotes(state, MessageKind.PreVote, state.term + 1, false);
}

/**
 * Starts an election in the next term (Raft §5.2). The own vote counts once it is durable: it is
 * a VoteReply to oneself that waits for the disk like any other. The requests wait for it too:
 * 1. had they left at once, others could elect this node while its term was not on disk, 2. a crash
 * would take term and entries back, 3. the same voters, who may repeat their vote, could elect it
 * in the same term again, with other entries or with a shorter log than they voted for.
 */
export function campaign(state: RaftState, isTransfer: boolean): void {
  leaveRole(state);
  state.role = Role.Candidate;
  state.leaderId = 0;
  state.term += 1;
  state.votedFor = state.nodeId;
  saveHardState(state);
  resetElectionTimer(state);
  sendWhenDurable(state, newMessage(state, MessageKind.VoteReply, state.nodeId));
  requestVotes(state, MessageKind.Vote, state.term, isTransfer);
}

function requestVotes(
  state: RaftState,
  kind: MessageKind,
  term: number,
  isTransfer: boolean,
): void {
  for (const voter of state.members.voters) {
    if (voter === state.nodeId) continue;
    const message = newMessage(state, kind, voter);
    message.term = term;
    message.index = state.log.lastIndex;
    message.logTerm = state.log.lastTerm;
    message.context = isTransfer ? 1 : 0;
    if (kind === MessageKind.Vote) sendWhenDurable(state, message);
    else sendNow(state, message);
  }
}

/**
 * Answers Vote and PreVote. The term rules (step in raft.ts) have run: for Vote the terms are
 * equal; a PreVote may name a later term, which is not adopted.
 */
export function handleVoteRequest(state: RaftState, message: Message): void {
  const isPreVote = message.kind === MessageKind.PreVote;
  const mayVote =
    state.votedFor === message.from ||
    (state.votedFor === 0 && state.leaderId === 0) ||
    (isPreVote && message.term > state.term);
  const granted = mayVote && state.log.isUpToDate(message.index, message.logTerm);
  const kind = isPreVote ? MessageKind.PreVoteReply : MessageKind.VoteReply;
  const reply = newMessage(state, kind, message.from);
  reply.reject = !granted;
  if (granted) reply.term = message.term;
  if (!granted || isPreVote) {
    sendNow(state, reply);
    return;
  }
  state.electionElapsed = 0;
  if (state.votedFor !== message.from) {
    state.votedFor = message.from;
    saveHardState(state);
  }
  sendWhenDurable(state, reply);
}

/** Counts an answer to the running campaign; the terms have been checked. */
export function handleVoteReply(state: RaftState, message: Message): void {
  const isPreVote = message.kind === MessageKind.PreVoteReply;
  if (state.role !== (isPreVote ? Role.PreCandidate : Role.Candidate)) return;
  if (!state.members.voters.includes(message.from)) return;
  const isOldRound = isPreVote && !message.reject && message.term !== state.term + 1;
  if (isOldRound) return;
  if (!state.votes.has(message.from)) state.votes.set(message.from, !message.reject);
  if (hasMajority(state)) {
    if (isPreVote) campaign(state, false);
    else becomeLeader(state);
    return;
  }
  let refused = 0;
  for (const voter of state.members.voters) if (state.votes.get(voter) === false) refused += 1;
  const voters = state.members.voters.length;
  if (refused > voters - majorityOf(voters)) becomeFollower(state, state.term, 0);
}

function hasMajority(state: RaftState): boolean {
  let granted = 0;
  for (const voter of state.members.voters) if (state.votes.get(voter) === true) granted += 1;
  return granted >= majorityOf(state.members.voters.length);
}

/** Leads `term`. The host sees needsNoOp and proposes the NoOp that opens it (Raft §8). */
function becomeLeader(state: RaftState): void {
  assert(state.role === Role.Candidate, 'becomeLeader: only a candidate wins an election');
  assert(state.durableIndex <= state.log.lastIndex, 'becomeLeader: disk is not ahead of the log');
  leaveRole(state);
  state.role = Role.Leader;
  state.leaderId = state.nodeId;
  state.electionElapsed = 0;
  state.heartbeatElapsed = 0;
  state.progress = [];
  state.isLeaving = !state.isVoter;
  addProgress(state, state.members.voters);
  addProgress(state, state.members.learners);
}

/** Starts to track the members that are not tracked yet, from the end of the log. */
export function addProgress(state: RaftState, nodeIds: readonly number[]): void {
  for (const nodeId of nodeIds) {
    if (nodeId === state.nodeId) continue;
    if (state.progress.some((known) => known.nodeId === nodeId)) continue;
    const progress = new Progress(nodeId);
    progress.nextIndex = state.log.lastIndex + 1;
    progress.isActive = true;
    state.progress.push(progress);
  }
}

/** CheckQuorum (thesis §6.2): a leader that no majority has answered lately steps down. */
export function checkQuorum(state: RaftState): void {
  let active = state.isVoter ? 1 : 0;
  for (const progress of state.progress) {
    if (progress.isActive && state.members.voters.includes(progress.nodeId)) active += 1;
    progress.isActive = false;
  }
  if (active < majorityOf(state.members.voters.length)) becomeFollower(state, state.term, 0);
}
