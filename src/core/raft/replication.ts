/**
 * Followers take entries, leaders count answers and commit (Raft §5.3, §5.4.2; thesis §10.2).
 *
 * Owns: both sides' handling of appends, heartbeats and their answers, and the commit rule. Never:
 * disks; a follower's acknowledgement waits for its log in Effects.messagesWhenDurable.
 * Called by: raft.ts.
 */
import { assert } from '../../collections/assert.js';
import { Role } from './effects.js';
import { type Members, majorityValue } from './members.js';
import { noteAppended, noteReset, noteTruncated } from './membership.js';
import { type Entry, type Message, MessageKind } from './message.js';
import { type Progress, ProgressState } from './progress.js';
import { releaseHeldReads } from './read-index.js';
import { sendAppends, sendProbe } from './sending.js';
import { newMessage, progressOf, type RaftState, sendNow, sendWhenDurable } from './state.js';
import { continueTransfer } from './transfer.js';

/** Follower: takes the leader's entries (Raft §5.3), answers when they are durable. */
export function handleAppend(state: RaftState, message: Message): void {
  const log = state.log;
  if (message.index < state.commitIndex) {
    // What is committed matches by definition: tell the leader where to go on.
    acknowledge(state, message.from, state.commitIndex);
    return;
  }
  if (!log.isMatch(message.index, message.logTerm)) {
    const reply = newMessage(state, MessageKind.AppendReply, message.from);
    reply.reject = true;
    reply.index = message.index;
    const hint = log.findConflictByTerm(Math.min(message.index, log.lastIndex), message.logTerm);
    reply.hintIndex = hint.index;
    reply.hintTerm = hint.term;
    sendNow(state, reply);
    return;
  }
  const lastNew = message.index + message.entries.length;
  takeEntries(state, message.entries);
  advanceCommit(state, Math.min(message.commit, lastNew));
  acknowledge(state, message.from, lastNew);
}

function takeEntries(state: RaftState, entries: readonly Entry[]): void {
  const log = state.log;
  for (let i = 0; i < entries.length; i += 1) {
    const entry = entries[i] as Entry;
    if (entry.index <= log.lastIndex) {
      if (log.termAt(entry.index) === entry.term) continue;
      truncate(state, entry.index);
    }
    log.append(entry);
    state.effects.entries.push(entry);
    noteAppended(state, entry);
  }
}

/**
 * Cuts a conflicting suffix. What is committed never conflicts (Raft §5.4, State Machine Safety).
 */
function truncate(state: RaftState, from: number): void {
  assert(from > state.commitIndex, 'truncate: a committed entry is for ever');
  state.log.truncateFrom(from);
  noteTruncated(state, from);
  const effects = state.effects;
  while (
    effects.entries.length > 0 &&
    (effects.entries[effects.entries.length - 1] as Entry).index >= from
  ) {
    effects.entries.pop();
  }
  if (from <= state.handedIndex) {
    effects.truncateFrom = effects.truncateFrom === 0 ? from : Math.min(effects.truncateFrom, from);
    state.handedIndex = from - 1;
  }
  if (state.durableIndex >= from) state.durableIndex = from - 1;
  // An order still on its way to the disk wrote entries that are no longer the log's.
  for (let i = 0; i < state.pendingAppends.length; i += 1) {
    const pending = state.pendingAppends[i] as { lastIndex: number };
    if (pending.lastIndex >= from) pending.lastIndex = from - 1;
  }
}

function acknowledge(state: RaftState, to: number, index: number): void {
  const reply = newMessage(state, MessageKind.AppendReply, to);
  reply.index = index;
  sendWhenDurable(state, reply);
}

/**
 * Follower: the leader has no entries as old as this node needs, but a snapshot (Raft §7). What the
 * log already holds is not fetched again; else the host fetches it, and calls installSnapshot.
 */
export function handleSnapshotOffer(state: RaftState, message: Message): void {
  if (message.index <= state.commitIndex) {
    acknowledge(state, message.from, state.commitIndex);
  } else if (state.log.isMatch(message.index, message.logTerm)) {
    // The leader's base is committed, and the log matches up to it (Raft §5.3).
    advanceCommit(state, message.index);
    acknowledge(state, message.from, message.index);
  } else {
    state.effects.snapshotIndex = message.index;
    state.effects.snapshotFrom = message.from;
  }
}

/**
 * A snapshot at (index, term), which is on this node's disk and whose state has `members`, stands
 * for the log (Raft §7). False when the log has it all: nothing was changed but the commit index,
 * and apply goes on by itself.
 */
export function installSnapshot(
  state: RaftState,
  index: number,
  term: number,
  members: Members,
): boolean {
  if (index <= state.commitIndex) return false;
  if (state.log.isMatch(index, term)) {
    advanceCommit(state, index);
    return false;
  }
  assert(state.role !== Role.Leader, 'install: a leader has every committed entry (Raft §5.4)');
  state.log.resetTo(index, term);
  noteReset(state, index, members);
  state.commitIndex = index;
  state.durableIndex = index;
  state.handedIndex = index;
  // Orders on their way wrote entries that are the log's no longer.
  for (let i = 0; i < state.pendingAppends.length; i += 1) {
    const pending = state.pendingAppends[i] as { lastIndex: number };
    pending.lastIndex = Math.min(pending.lastIndex, index);
  }
  const { effects } = state;
  effects.entries.length = 0;
  effects.truncateFrom = 0;
  // An acknowledgement that waits for entries which will not be written promises nothing.
  const kept = effects.messagesWhenDurable.filter(({ kind }) => kind !== MessageKind.AppendReply);
  effects.messagesWhenDurable.length = 0;
  effects.messagesWhenDurable.push(...kept);
  effects.resetTo = index;
  effects.snapshotIndex = 0;
  if (state.leaderId === 0) return true;
  const reply = newMessage(state, MessageKind.SnapshotReply, state.leaderId);
  reply.index = index;
  sendWhenDurable(state, reply);
  return true;
}

/** Leader: a follower's answer to an append. */
export function handleAppendReply(state: RaftState, message: Message): void {
  const progress = progressOf(state, message.from);
  if (progress === undefined) return;
  progress.isActive = true;
  if (message.reject) {
    const hint =
      message.hintTerm > 0
        ? state.log.findConflictByTerm(message.hintIndex, message.hintTerm).index
        : message.hintIndex;
    if (progress.onRefused(message.index, hint)) sendProbe(state, progress);
    return;
  }
  handleMatch(state, progress, message.index);
}

/** Leader: a follower has installed a snapshot, which is as good as the entries it stands for. */
export function handleSnapshotReply(state: RaftState, message: Message): void {
  const progress = progressOf(state, message.from);
  if (progress === undefined) return;
  progress.isActive = true;
  handleMatch(state, progress, message.index);
}

function handleMatch(state: RaftState, progress: Progress, matchIndex: number): void {
  const index = Math.min(matchIndex, state.log.lastIndex);
  const isNews = progress.onMatched(index);
  const isCaughtUp =
    progress.state === ProgressState.Probe ||
    (progress.state === ProgressState.Snapshot && progress.matchIndex >= state.log.baseIndex);
  if (isCaughtUp) progress.becomeReplicate();
  if (isNews) {
    commitByMajority(state);
    continueTransfer(state, progress);
  }
  sendAppends(state, progress);
}

/** Follower: a heartbeat tells who leads, what is committed, and asks to confirm a read round. */
export function handleHeartbeat(state: RaftState, message: Message): void {
  advanceCommit(state, Math.min(message.commit, state.log.lastIndex));
  const reply = newMessage(state, MessageKind.HeartbeatReply, message.from);
  reply.context = message.context;
  sendNow(state, reply);
}

/** Raft §5.3, §5.4.2 and Figure 8: only an entry of the own term is committed by counting. */
export function commitByMajority(state: RaftState): void {
  if (state.role !== Role.Leader) return;
  const voters = state.members.voters;
  for (let i = 0; i < voters.length; i += 1) {
    const voter = voters[i] as number;
    const progress = progressOf(state, voter);
    state.scratch[i] =
      voter === state.nodeId
        ? state.durableIndex
        : progress === undefined
          ? 0
          : progress.matchIndex;
  }
  const index = majorityValue(state.scratch, voters.length);
  if (index <= state.commitIndex || state.log.termAt(index) !== state.term) return;
  const wasTermCommitted = state.commitIndex >= state.termStartIndex;
  advanceCommit(state, index);
  if (!wasTermCommitted) releaseHeldReads(state);
}

function advanceCommit(state: RaftState, index: number): void {
  if (index <= state.commitIndex) return;
  assert(index <= state.log.lastIndex, 'commit: not past the end of the log');
  state.commitIndex = index;
}
