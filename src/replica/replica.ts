/**
 * One shard's replica on one node: the door through which connections, peers, disk and time come.
 *
 * Owns: the state and who may change it. Handlers enqueue and ask for a turn; the turn does the
 * work. Never: I/O; devices are ports. Made by: server/node.ts, and by tests with simulated ports.
 */
import { type Entry, type Message, MessageKind } from '../core/raft/message.js';
import type { StatusReply } from '../wire/query-reply.js';
import { admitFrame } from './admission.js';
import { applyRead } from './apply.js';
import { onHistory } from './audit.js';
import { isDiskBehind } from './batching.js';
import { onDiscarded, onDraft, onKept } from './compaction.js';
import type { Connection } from './connection.js';
import { onFetched } from './install.js';
import type { Meters } from './meters.js';
import type {
  FetchedSnapshot,
  HistoryEvents,
  HistoryPage,
  LogEvents,
  SnapshotDraft,
  SnapshotEvents,
} from './ports.js';
import {
  APPLY_READ,
  isServing,
  leaderAddress,
  type ReplicaOptions,
  ReplicaState,
} from './state.js';
import { type Health, pendingAgeMs, readHealth, readStatus } from './status.js';
import { onLogDurable, runTurn } from './turn.js';
import { handOver, onTick } from './upkeep.js';

export class Replica implements LogEvents, SnapshotEvents, HistoryEvents {
  private readonly state: ReplicaState;

  constructor(options: ReplicaOptions) {
    this.state = new ReplicaState(options);
  }

  /** Node id of the leader this node knows, 0 for none. */
  get leaderId(): number {
    return this.state.raft.leaderId;
  }

  /** True when this node takes operations: leader, ready, not leaving. */
  get isServing(): boolean {
    return isServing(this.state);
  }

  /** `host:port` of the leader's client port, '' when no leader is known. */
  get leaderAddress(): string {
    return leaderAddress(this.state);
  }

  /** Whether requests that are sent here can succeed, and what speaks against it. */
  health(): Health {
    return readHealth(this.state);
  }

  /** What Status answers. */
  status(): StatusReply {
    return readStatus(this.state);
  }

  /** What was measured; the caller reads it and changes nothing. */
  get meters(): Meters {
    return this.state.meters;
  }

  /** For how long the oldest operation of the log has not been decided, ms. */
  get pendingAgeMs(): number {
    return pendingAgeMs(this.state);
  }

  connectionOpened(connection: Connection): void {
    this.state.connections.add(connection);
  }

  connectionClosed(connection: Connection): void {
    this.state.connections.delete(connection);
    this.state.attachments.detach(connection);
    this.state.watches.removeAll(connection);
  }

  /**
   * One frame's body; the bytes are the caller's again when this returns. False: the connection
   * broke the protocol; what it is told lies in its out buffer.
   */
  receive(connection: Connection, bytes: Uint8Array, start: number, end: number): boolean {
    const isSound = admitFrame(this.state, connection, bytes, start, end);
    this.state.options.turn.soon();
    return isSound;
  }

  /** A message of another replica. */
  onMessage(message: Message): void {
    const { state } = this;
    // A disk that hangs takes no more: the leader's entries count as lost and come again.
    if (message.entries.length > 0 && isDiskBehind(state)) {
      state.counters.appends_dropped += 1;
      return;
    }
    const tellsCommit =
      message.kind === MessageKind.Append || message.kind === MessageKind.Heartbeat;
    state.raft.step(message);
    if (tellsCommit && message.term === state.raft.term) {
      state.lastCommitUs = state.options.clock.nowUs();
    }
    state.options.turn.soon();
  }

  onDurable(appendId: number): void {
    onLogDurable(this.state, appendId);
    this.state.options.turn.soon();
  }

  onRead(readId: number, entries: readonly Entry[]): void {
    const { state } = this;
    const purpose = state.logReads.get(readId);
    state.logReads.delete(readId);
    if (purpose === undefined) return;
    if (purpose === APPLY_READ) applyRead(state, entries);
    else state.raft.onEntriesRead(purpose, entries);
    state.options.turn.soon();
  }

  onDraft(draft: SnapshotDraft | null): void {
    onDraft(this.state, draft);
    this.state.options.turn.soon();
  }

  onKept(index: number, firstIndex: number): void {
    onKept(this.state, index, firstIndex);
    this.state.options.turn.soon();
  }

  onDiscarded(): void {
    onDiscarded(this.state);
    this.state.options.turn.soon();
  }

  onFetched(snapshot: FetchedSnapshot | null): void {
    onFetched(this.state, snapshot);
    this.state.options.turn.soon();
  }

  onHistory(readId: number, page: HistoryPage | null): void {
    onHistory(this.state, readId, page);
    this.state.options.turn.soon();
  }

  /** The tick timer fired; it need not be punctual. */
  onTick(): void {
    const { state } = this;
    onTick(state, state.options.clock.nowUs());
    this.turn();
  }

  /** Makes a snapshot of `leastIndex` or later as soon as that is applied, for a backup. */
  wantSnapshot(leastIndex: number): void {
    const { compaction, options } = this.state;
    // Who waits asks again and again: the last one counts, so that nobody's mistake stays.
    compaction.wantedIndex = leastIndex;
    options.turn.soon();
  }

  /** TurnPort's run. */
  turn(): void {
    runTurn(this.state);
  }

  /**
   * Takes no new operations and hands leadership over when this node has it, so that a stop is
   * not an election. What was taken goes on.
   */
  beginShutdown(): void {
    const { state } = this;
    state.isShuttingDown = true;
    handOver(state);
    state.options.turn.soon();
  }
}
