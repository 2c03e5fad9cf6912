/**
 * Linearizable reads without a log entry (Raft §8, thesis §6.4).
 *
 * Owns: read rounds. A round takes the commit index, then needs one heartbeat exchange with a
 * majority that began after it: only then was this node surely the leader when the read arrived.
 * Never: trusts a clock (no leader leases). Called by: raft.ts, replication.ts.
 */
import { ELECTION_TICKS_MIN, LEADER_READ_ROUNDS_MAX } from '../../limits.js';
import { Role } from './effects.js';
import { majorityOf } from './members.js';
import { type Message, MessageKind } from './message.js';
import { broadcastHeartbeat } from './sending.js';
import {
  type ForwardedRead,
  newMessage,
  type RaftState,
  type ReadRound,
  sendNow,
} from './state.js';

/** Asks for the index that reads numbered `context` must wait for. */
export function requestReadIndex(state: RaftState, context: number): void {
  if (state.role === Role.Leader) {
    beginRound(state, state.nodeId, context);
    return;
  }
  if (state.leaderId === 0) {
    state.effects.readsAborted.push(context);
    return;
  }
  state.lastForwarded += 1;
  const deadline = state.ticks + ELECTION_TICKS_MIN;
  state.readsForwarded.push({ number: state.lastForwarded, context, deadline });
  const message = newMessage(state, MessageKind.ReadIndex, state.leaderId);
  message.context = state.lastForwarded;
  sendNow(state, message);
}

/** Follower: gives up the reads whose question or answer was lost on the way. */
export function abortOverdueReads(state: RaftState): void {
  let overdue = 0;
  while (overdue < state.readsForwarded.length) {
    const read = state.readsForwarded[overdue] as ForwardedRead;
    if (read.deadline > state.ticks) break;
    state.effects.readsAborted.push(read.context);
    overdue += 1;
  }
  state.readsForwarded.splice(0, overdue);
}

/** Leader: a follower asks on behalf of its clients. */
export function handleReadIndex(state: RaftState, message: Message): void {
  if (state.role === Role.Leader) beginRound(state, message.from, message.context);
}

/** Follower: the leader confirmed the round. */
export function handleReadIndexReply(state: RaftState, message: Message): void {
  for (let i = 0; i < state.readsForwarded.length; i += 1) {
    const read = state.readsForwarded[i] as ForwardedRead;
    if (read.number !== message.context) continue;
    state.readsForwarded.splice(i, 1);
    state.effects.readStates.push({ context: read.context, index: message.index });
    return;
  }
}

function beginRound(state: RaftState, from: number, context: number): void {
  if (state.readRounds.length + state.readsHeld.length >= LEADER_READ_ROUNDS_MAX) {
    if (from === state.nodeId) state.effects.readsAborted.push(context);
    return;
  }
  if (!state.isTermOpen || state.commitIndex < state.termStartIndex) {
    // The commit index is surely current only once an entry of this term is committed.
    state.readsHeld.push({ from, context });
    return;
  }
  state.lastRound += 1;
  const round: ReadRound = {
    round: state.lastRound,
    index: state.commitIndex,
    from,
    context,
    confirmed: new Set([state.nodeId]),
  };
  state.readRounds.push(round);
  if (isConfirmed(state, round)) answerConfirmedRounds(state);
  else broadcastHeartbeat(state);
}

/** The first entry of the term is committed: the reads that waited for it begin their round. */
export function releaseHeldReads(state: RaftState): void {
  const held = state.readsHeld.splice(0);
  for (const read of held) beginRound(state, read.from, read.context);
}

/** Leader: `nodeId` confirmed every round up to `round`. */
export function confirmRounds(state: RaftState, nodeId: number, round: number): void {
  if (round === 0 || !state.members.voters.includes(nodeId)) return;
  for (let i = 0; i < state.readRounds.length; i += 1) {
    const waiting = state.readRounds[i] as ReadRound;
    if (waiting.round > round) break;
    waiting.confirmed.add(nodeId);
  }
  answerConfirmedRounds(state);
}

/** A majority of the voters in force has confirmed; the leader itself may be none of them. */
function isConfirmed(state: RaftState, round: ReadRound): boolean {
  let confirmed = 0;
  for (const voter of state.members.voters) if (round.confirmed.has(voter)) confirmed += 1;
  return confirmed >= majorityOf(state.members.voters.length);
}

/** Leader: answers the rounds that a majority has confirmed, and those before them. */
export function answerConfirmedRounds(state: RaftState): void {
  let finished = 0;
  for (let i = 0; i < state.readRounds.length; i += 1) {
    // Who confirms a later round confirms the earlier ones: all up to the last full one are done.
    if (isConfirmed(state, state.readRounds[i] as ReadRound)) finished = i + 1;
  }
  const done = state.readRounds.splice(0, finished);
  for (const waiting of done) finishRound(state, waiting);
}

function finishRound(state: RaftState, round: ReadRound): void {
  if (round.from === state.nodeId) {
    state.effects.readStates.push({ context: round.context, index: round.index });
    return;
  }
  const reply = newMessage(state, MessageKind.ReadIndexReply, round.from);
  reply.index = round.index;
  reply.context = round.context;
  sendNow(state, reply);
}
