/**
 * The leader's sending side: appends, probes, heartbeats (Raft §5.2, §5.3; thesis §10.2.1).
 *
 * Owns: what goes to a follower, and when its window says no. Never: answers; replication.ts,
 * read-index.ts and transfer.ts take those and call back here.
 */
import { APPEND_BYTES_MAX, APPEND_ENTRIES_MAX, ELECTION_TICKS_MIN } from '../../limits.js';
import { Entry, type EntryKind, MessageKind } from './message.js';
import type { Progress } from './progress.js';
import { newMessage, progressOf, type RaftState, sendNow } from './state.js';

/** Appends one entry of the leader's term and sends it on. Returns its index. */
export function appendAsLeader(state: RaftState, kind: EntryKind, data: Uint8Array): number {
  const entry = new Entry(state.log.lastIndex + 1, state.term, kind, data);
  state.log.append(entry);
  state.effects.entries.push(entry);
  for (let i = 0; i < state.progress.length; i += 1) {
    sendAppends(state, state.progress[i] as Progress);
  }
  return entry.index;
}

/** Sends what the follower lacks, as far as its window allows. */
export function sendAppends(state: RaftState, progress: Progress): void {
  while (!progress.isPaused && progress.nextIndex <= state.log.lastIndex) {
    if (!sendAppend(state, progress)) return;
  }
}

/** Sends an append even without entries, to learn where the follower stands. */
export function sendProbe(state: RaftState, progress: Progress): void {
  if (!progress.isPaused) sendAppend(state, progress);
}

function sendAppend(state: RaftState, progress: Progress): boolean {
  const log = state.log;
  const previous = progress.nextIndex - 1;
  if (previous < log.baseIndex) {
    offerSnapshot(state, progress);
    return false;
  }
  if (progress.nextIndex <= log.lastIndex && progress.nextIndex < log.windowFirst) {
    wishForEntries(state, progress);
    return false;
  }
  const entries: Entry[] = [];
  let bytes = 0;
  let index = progress.nextIndex;
  while (index <= log.lastIndex && entries.length < APPEND_ENTRIES_MAX) {
    const entry = log.entryAt(index) as Entry;
    if (entries.length > 0 && bytes + entry.data.length > APPEND_BYTES_MAX) break;
    entries.push(entry);
    bytes += entry.data.length;
    index += 1;
  }
  sendEntries(state, progress, entries, bytes);
  return true;
}

function sendEntries(
  state: RaftState,
  progress: Progress,
  entries: readonly Entry[],
  bytes: number,
): void {
  const message = newMessage(state, MessageKind.Append, progress.nodeId);
  message.index = progress.nextIndex - 1;
  message.logTerm = state.log.termAt(message.index);
  message.commit = state.commitIndex;
  message.entries = entries;
  sendNow(state, message);
  progress.onSent(message.index + entries.length, entries.length, bytes);
}

function wishForEntries(state: RaftState, progress: Progress): void {
  progress.isReading = true;
  state.effects.logReads.push({
    peer: progress.nodeId,
    fromIndex: progress.nextIndex,
    // What is read goes into one append: a follower refuses one with more entries than the bound.
    toIndex: Math.min(state.log.windowFirst, progress.nextIndex + APPEND_ENTRIES_MAX) - 1,
  });
}

/** The log thread brought the entries that `wishForEntries` asked for. */
export function handleEntriesRead(state: RaftState, peer: number, entries: readonly Entry[]): void {
  const progress = progressOf(state, peer);
  if (progress === undefined || !progress.isReading) return;
  progress.isReading = false;
  const first = entries[0];
  const isWanted = first !== undefined && first.index === progress.nextIndex;
  const last = entries[entries.length - 1];
  if (!isWanted || last === undefined || state.log.termAt(last.index) !== last.term) return;
  let bytes = 0;
  for (let i = 0; i < entries.length; i += 1) bytes += (entries[i] as Entry).data.length;
  sendEntries(state, progress, entries, bytes);
  sendAppends(state, progress);
}

/**
 * Tells the follower to fetch a snapshot from this node, which has one of the log's base at least.
 * The offer may be lost, and so may the follower's work: it is repeated until it is answered.
 */
function offerSnapshot(state: RaftState, progress: Progress): void {
  if (!progress.isActive) return;
  const message = newMessage(state, MessageKind.SnapshotOffer, progress.nodeId);
  message.index = state.log.baseIndex;
  message.logTerm = state.log.baseTerm;
  sendNow(state, message);
  progress.becomeSnapshot(state.ticks);
}

/** Leader: a follower that was offered a snapshot is there and does not have it. */
export function offerAgain(state: RaftState, progress: Progress): void {
  if (state.ticks - progress.offeredAtTick >= ELECTION_TICKS_MIN) offerSnapshot(state, progress);
}

/** Leader: the heartbeat interval has passed. */
export function beatInterval(state: RaftState): void {
  state.heartbeatElapsed = 0;
  for (let i = 0; i < state.progress.length; i += 1) {
    (state.progress[i] as Progress).mayResend = true;
  }
  broadcastHeartbeat(state);
}

/** Leader: tells every follower that it still leads, and asks it to confirm the newest round. */
export function broadcastHeartbeat(state: RaftState): void {
  const rounds = state.readRounds;
  const newest = rounds[rounds.length - 1];
  for (let i = 0; i < state.progress.length; i += 1) {
    const progress = state.progress[i] as Progress;
    const message = newMessage(state, MessageKind.Heartbeat, progress.nodeId);
    // Not past what the follower is known to hold: its own tail may be another leader's.
    message.commit = Math.min(progress.matchIndex, state.commitIndex);
    message.context = newest === undefined ? 0 : newest.round;
    sendNow(state, message);
  }
}
