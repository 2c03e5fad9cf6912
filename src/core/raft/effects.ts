/**
 * What raft wants done: one record, reused, that the replica reads after each turn and clears.
 *
 * Owns: the order of obligations. `messages` may leave now. `append` (hard state, reset, cut,
 * entries) goes to the log in this order, and `messagesWhenDurable` leave only after that append is
 * durable: votes and acknowledgements promise what is on disk (Raft §5.2, §5.3; thesis §10.2.1).
 * Never: I/O. Written by: raft. Carried out by: replica/turn.ts.
 */
import type { Entry, Message } from './message.js';

/** Who a replica is in its shard at this moment. */
export const Role = { Follower: 0, PreCandidate: 1, Candidate: 2, Leader: 3 } as const;
export type Role = (typeof Role)[keyof typeof Role];

/** Term and vote: one record, written at once (hashicorp/raft#661 shows what two would do). */
export interface HardState {
  readonly term: number;
  /** Node id voted for in `term`, 0 for none. */
  readonly votedFor: number;
}

/** A follower needs entries that memory no longer holds: the log thread reads them. */
export interface LogReadWish {
  readonly peer: number;
  readonly fromIndex: number;
  readonly toIndex: number;
}

/** The reads of one round may be answered once `index` is applied. */
export interface ReadState {
  readonly context: number;
  readonly index: number;
}

export class Effects {
  readonly messages: Message[] = [];
  /** Leave once the append below, and all handed over before it, is durable. */
  readonly messagesWhenDurable: Message[] = [];
  /** Index of a snapshot that stands for all that the log holds, 0 for none; before the cut. */
  resetTo = 0;
  /** First index to cut from the log before appending, 0 for none. */
  truncateFrom = 0;
  readonly entries: Entry[] = [];
  /** Set when term or vote changed since the last turn. */
  hardState: HardState | null = null;
  commitIndex = 0;
  readonly readStates: ReadState[] = [];
  /** Contexts of read rounds that will never be confirmed: the role or the leader changed. */
  readonly readsAborted: number[] = [];
  readonly logReads: LogReadWish[] = [];
  /** The leader offers a snapshot of at least this index, 0 for none; and the leader's node id. */
  snapshotIndex = 0;
  snapshotFrom = 0;
  /** Role, term or known leader changed since the last turn. */
  roleChanged = false;

  /** True when the log has to do something before messagesWhenDurable may leave. */
  get hasAppend(): boolean {
    const hasEntries = this.truncateFrom !== 0 || this.entries.length !== 0;
    return hasEntries || this.resetTo !== 0 || this.hardState !== null;
  }

  clear(): void {
    this.messages.length = 0;
    this.messagesWhenDurable.length = 0;
    this.resetTo = 0;
    this.truncateFrom = 0;
    this.entries.length = 0;
    this.hardState = null;
    this.readStates.length = 0;
    this.readsAborted.length = 0;
    this.logReads.length = 0;
    this.snapshotIndex = 0;
    this.snapshotFrom = 0;
    this.roleChanged = false;
  }
}
