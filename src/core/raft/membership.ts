/**
 * Which members are in force, and which change of them may be proposed (thesis §4.1 to §4.2).
 *
 * Owns: the memberships that the log holds, from its base on. The newest is in force from the
 * moment that its entry is in the log, committed or not, and the one before it again when the entry
 * is cut: so two leaders of different terms always ask majorities that overlap. Never: the bytes of
 * a record, nor who a node is; the host reads those. Called by: raft.ts, replication.ts.
 */
import { assert } from '../../collections/assert.js';
import { Role } from './effects.js';
import { addProgress, becomeFollower } from './election.js';
import type { Members } from './members.js';
import { type Entry, EntryKind, MessageKind } from './message.js';
import { newMessage, type RaftState, sendNow } from './state.js';

/** Why a change cannot be proposed here and now. */
export const ChangeRefusal = {
  None: 0,
  /** This node does not lead, is handing over, or has not committed an entry of its term. */
  NotReady: 1,
  /** The change before it is not committed yet. */
  Pending: 2,
  /** More than one voter would come or go, or a node would be voter and learner. */
  TooMuch: 3,
  /** Nobody would vote. */
  NoVoter: 4,
} as const;
export type ChangeRefusal = (typeof ChangeRefusal)[keyof typeof ChangeRefusal];

/** Notes an entry that was appended; a membership is in force from here on. */
export function noteAppended(state: RaftState, entry: Entry): void {
  if (entry.kind !== EntryKind.Membership) return;
  state.memberships.push({ index: entry.index, members: state.readMembers(entry.data) });
  putInForce(state);
}

/** The log was cut at `index`: what its entries said is not in force any more. */
export function noteTruncated(state: RaftState, index: number): void {
  const { memberships } = state;
  let newest = memberships.length - 1;
  if ((memberships[newest] as { index: number }).index < index) return;
  while ((memberships[newest] as { index: number }).index >= index) newest -= 1;
  assert(newest >= 0, 'membership: that of the base is committed');
  memberships.length = newest + 1;
  putInForce(state);
}

/** A snapshot at `index`, whose state has these members, stands for the log. */
export function noteReset(state: RaftState, index: number, members: Members): void {
  state.memberships.length = 0;
  state.memberships.push({ index, members });
  putInForce(state);
}

/** Memberships older than the one in force at the log's base are never asked for again. */
export function noteCompacted(state: RaftState, index: number): void {
  const { memberships } = state;
  let past = 0;
  while (past + 1 < memberships.length) {
    if ((memberships[past + 1] as { index: number }).index > index) break;
    past += 1;
  }
  memberships.splice(0, past);
}

function putInForce(state: RaftState): void {
  const { members } = state.memberships[state.memberships.length - 1] as { members: Members };
  state.members = members;
  if (state.role !== Role.Leader) return;
  const { voters, learners } = members;
  state.progress = state.progress.filter(({ nodeId }) => {
    return voters.includes(nodeId) || learners.includes(nodeId);
  });
  addProgress(state, voters);
  addProgress(state, learners);
  if (!voters.includes(state.transferTarget)) state.transferTarget = 0;
  state.isLeaving = !state.isVoter;
}

/**
 * Voters campaign; so does who was one until a change that is not known to be committed: it may be
 * alone in having that change, and then nobody else can win (thesis §4.2.2). It does not count
 * itself.
 */
export function mayCampaign(state: RaftState): boolean {
  if (state.isVoter) return true;
  const before = state.memberships[state.memberships.length - 2];
  if (before === undefined || membershipIndex(state) <= state.commitIndex) return false;
  return before.members.voters.includes(state.nodeId);
}

/** Index of the entry whose membership is in force; that of the base when none came after it. */
export function membershipIndex(state: RaftState): number {
  return (state.memberships[state.memberships.length - 1] as { index: number }).index;
}

/** Whether a leader may propose `next`: one voter at a time, one change at a time. */
export function refuseChange(state: RaftState, next: Members): ChangeRefusal {
  const isReady =
    state.role === Role.Leader &&
    state.isTermOpen &&
    state.transferTarget === 0 &&
    // Without an entry of its own term it may not know of a change that another leader committed.
    state.commitIndex >= state.termStartIndex;
  if (!isReady) return ChangeRefusal.NotReady;
  if (membershipIndex(state) > state.commitIndex) return ChangeRefusal.Pending;
  const { voters, learners } = next;
  if (voters.length === 0) return ChangeRefusal.NoVoter;
  if (learners.some((nodeId) => voters.includes(nodeId))) return ChangeRefusal.TooMuch;
  const now = state.members.voters;
  const come = voters.filter((nodeId) => !now.includes(nodeId)).length;
  const gone = now.filter((nodeId) => !voters.includes(nodeId)).length;
  return come + gone > 1 ? ChangeRefusal.TooMuch : ChangeRefusal.None;
}

/**
 * A leader that is no voter any more led until its own removal was committed (thesis §4.2.2). The
 * voter that has most of the log is told to campaign, so that nobody waits for a time-out.
 */
export function leaveWhenCommitted(state: RaftState): void {
  if (state.role !== Role.Leader || membershipIndex(state) > state.commitIndex) return;
  let best = 0;
  let match = -1;
  for (const { nodeId, matchIndex } of state.progress) {
    if (matchIndex <= match || !state.members.voters.includes(nodeId)) continue;
    best = nodeId;
    match = matchIndex;
  }
  if (best !== 0) sendNow(state, newMessage(state, MessageKind.TimeoutNow, best));
  becomeFollower(state, state.term, 0);
}
