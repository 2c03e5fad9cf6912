/**
 * Linearizable reads without a log entry (Raft §8, thesis §6.4).
 *
 * Owns: read rounds. A round takes the commit index, then needs one heartbeat exchange with a
 * majority that began after it: only then was this node surely the leader when the read arrived.
 * Never: trusts a clock (no leader leases). Called by: raft.ts, replication.ts.
 */
import { Role } from './effects.js';
import { majorityOf } from './members.js';
import { type Message, MessageKind } from './message.js';
import { broadcastHeartbeat } from './sending.js';
import { newMessage, type RaftState, type ReadRound, sendNow } from './state.js';

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
  state.readsForwarded.push(context);
  const message = newMessage(state, MessageKind.ReadIndex, state.leaderId);
  message.context = context;
  sendNow(state, message);
}

/** Leader: a follower asks on behalf of its clients. */
export function handleReadIndex(state: RaftState, message: Message): void {
  if (state.role === Role.Leader) beginRound(state, message.from, message.context);
}

/** Follower: the leader confirmed the round. */
export function handleReadIndexReply(state: RaftState, message: Message): void {
  const at = state.readsForwarded.indexOf(message.context);
  if (at < 0) return;
  state.readsForwarded.splice(at, 1);
  state.effects.readStates.push({ context: message.context, index: message.index });
}

function beginRound(state: RaftState, from: number, context: number): void {
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
  if (majorityOf(state.members.voters.length) === 1) {
    finishRound(state, round);
    return;
  }
  state.readRounds.push(round);
  broadcastHeartbeat(state);
}

/** The first entry of the term is committed: the reads that waited for it begin their round. */
export function releaseHeldReads(state: RaftState): void {
  const held = state.readsHeld.splice(0);
  for (const read of held) beginRound(state, read.from, read.context);
}

/** Leader: `nodeId` confirmed every round up to `round`. */
export function confirmRounds(state: RaftState, nodeId: number, round: number): void {
  if (round === 0 || !state.members.voters.includes(nodeId)) return;
  const majority = majorityOf(state.members.voters.length);
  let finished = 0;
  for (let i = 0; i < state.readRounds.length; i += 1) {
    const waiting = state.readRounds[i] as ReadRound;
    if (waiting.round > round) break;
    waiting.confirmed.add(nodeId);
    // Who confirms a later round confirms the earlier ones: all up to the last full one are done.
    if (waiting.confirmed.size >= majority) finished = i + 1;
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
