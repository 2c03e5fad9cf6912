/**
 * Followers take entries, leaders count answers and commit (Raft §5.3, §5.4.2; thesis §10.2).
 *
 * Owns: both sides' handling of appends, heartbeats and their answers, and the commit rule. Never:
 * disks; a follower's acknowledgement waits for its log in Effects.messagesWhenDurable.
 * Called by: raft.ts.
 */
import { assert } from '../../collections/assert.js';
import { Role } from './effects.js';
import { majorityValue } from './members.js';
import { type Entry, type Message, MessageKind } from './message.js';
import { ProgressState } from './progress.js';
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
  }
}

/**
 * Cuts a conflicting suffix. What is committed never conflicts (Raft §5.4, State Machine Safety).
 */
function truncate(state: RaftState, from: number): void {
  assert(from > state.commitIndex, 'truncate: a committed entry is for ever');
  state.log.truncateFrom(from);
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
  const index = Math.min(message.index, state.log.lastIndex);
  const isNews = progress.onMatched(index);
  const isCaughtUp =
    progress.state === ProgressState.Probe ||
    (progress.state === ProgressState.Snapshot && index >= progress.snapshotIndex);
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
