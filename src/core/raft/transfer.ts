/**
 * Handing leadership to a chosen follower (thesis §3.10).
 *
 * Owns: the one transfer under way. While it runs nothing is proposed; it is given up after an
 * election time-out. Never: touches leases; terms change, the log does not.
 * Called by: raft.ts, replication.ts.
 */
import { Role } from './effects.js';
import { MessageKind } from './message.js';
import type { Progress } from './progress.js';
import { sendAppends } from './sending.js';
import { newMessage, progressOf, type RaftState, sendNow } from './state.js';

/** Starts a transfer to `target`, or passes the wish to the leader. False when it cannot begin. */
export function beginTransfer(state: RaftState, target: number): boolean {
  if (!state.members.voters.includes(target)) return false;
  if (state.role !== Role.Leader) {
    if (state.leaderId === 0 || state.leaderId === target) return state.leaderId === target;
    const message = newMessage(state, MessageKind.Transfer, state.leaderId);
    message.context = target;
    sendNow(state, message);
    return true;
  }
  if (target === state.nodeId) return true;
  const progress = progressOf(state, target);
  if (progress === undefined || !state.isTermOpen) return false;
  if (state.transferTarget === target) return true;
  // A timer of its own: who asks again and again must not put off CheckQuorum (thesis §6.2).
  state.transferTarget = target;
  state.transferElapsed = 0;
  sendAppends(state, progress);
  continueTransfer(state, progress);
  return true;
}

/** Once the target holds the whole log it is told to campaign at once. */
export function continueTransfer(state: RaftState, progress: Progress): void {
  if (state.transferTarget !== progress.nodeId) return;
  if (progress.matchIndex !== state.log.lastIndex) return;
  sendNow(state, newMessage(state, MessageKind.TimeoutNow, progress.nodeId));
}
