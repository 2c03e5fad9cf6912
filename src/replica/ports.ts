/**
 * The devices a replica needs, as types: log, peers, clock, entropy, turn scheduler, transport.
 *
 * Owns: what each device promises. Never: a device. io/ has the real ones, test/sim the simulated
 * ones; each port has one conformance suite that both pass. Used by: replica, io, server, tests.
 */
import type { LockMachine } from '../core/locks/lock-machine.js';
import type { HardState } from '../core/raft/effects.js';
import type { Entry, Message } from '../core/raft/message.js';
import type { AuditRow } from '../wire/audit.js';

/** One order to the log; orders are carried out strictly in the sequence they were given. */
export interface AppendOrder {
  /** Rises by one with each order; comes back in onDurable. */
  readonly appendId: number;
  /**
   * Index of an installed snapshot, 0 for none: everything stored is dropped, and the log goes on
   * behind it. Carried out before a cut and before the entries.
   */
  readonly resetTo: number;
  /** First index to cut before appending, 0 for none. */
  readonly truncateFrom: number;
  /** Consecutive entries; the log borrows their bytes until onDurable(appendId). */
  readonly entries: readonly Entry[];
  /** Term and vote to store before the entries, or null when unchanged. */
  readonly hardState: HardState | null;
  /** The commit index known now: stored as a hint for the next start, never trusted as more. */
  readonly commitIndex: number;
}

/** What the log found when it was opened. */
export interface LogState {
  readonly hardState: HardState;
  /** First index stored, 1 until segments are dropped; lastIndex + 1 when empty. */
  readonly firstIndex: number;
  /** Last index stored; when empty that of the snapshot before it, 0 without one. */
  readonly lastIndex: number;
  /** Pairs: an index at which a new term starts, and that term, ascending. */
  readonly termStarts: readonly { readonly index: number; readonly term: number }[];
  /** The newest entries, consecutive up to lastIndex, bounded by LOG_WINDOW_*. */
  readonly tail: readonly Entry[];
  /** Highest commit index that was stored beside an entry; 0 when none. */
  readonly commitIndex: number;
}

/** Called by a log on the main thread, never from inside append or read. */
export interface LogEvents {
  /** Everything up to this order is on disk: fdatasync has returned. */
  onDurable(appendId: number): void;
  /** Entries from `fromIndex` on, at least one, bounded by bytes; empty when cut meanwhile. */
  onRead(readId: number, entries: readonly Entry[]): void;
}

/**
 * The durable log of one replica. A failure of the device never comes back as a value: the node
 * ends (invariant I10), so no caller has to decide what a half-failed log means.
 */
export interface LogPort {
  append(order: AppendOrder): void;
  /** Reads entries fromIndex … toIndex, stopping early at `bytesMax`; answers with onRead. */
  read(readId: number, fromIndex: number, toIndex: number, bytesMax: number): void;
  close(): Promise<void>;
}

/** A snapshot that was made from the disk and does not count yet. */
export interface SnapshotDraft {
  readonly index: number;
  readonly digest: string;
  readonly bytes: number;
}

/** Another node's snapshot: verified, durable, and the newest of this node. */
export interface FetchedSnapshot {
  readonly index: number;
  readonly term: number;
  readonly bytes: number;
  /** The machine at that index, built from the snapshot; the receiver's. */
  readonly machine: LockMachine;
}

/** Called by a SnapshotPort on the main thread, never from inside its methods. */
export interface SnapshotEvents {
  /** Null: there is no draft; the reason has been told to the operator. */
  onDraft(draft: SnapshotDraft | null): void;
  /** The snapshot at `index` counts, and the log begins with `firstIndex`. */
  onKept(index: number, firstIndex: number): void;
  /** The draft is gone. */
  onDiscarded(): void;
  /** Null: nothing was fetched; the leader offers again. */
  onFetched(snapshot: FetchedSnapshot | null): void;
}

/**
 * Makes, keeps and fetches snapshots: long work on other threads, one job at a time. The caller
 * waits for a job's event before it asks for the next.
 */
export interface SnapshotPort {
  /** Another node has read chunks of the newest snapshot in the last seconds. */
  readonly isLent: boolean;
  /** Makes a draft of the state at `index`, from the snapshot before it and the log: onDraft. */
  make(index: number): void;
  /** The draft at `index` is right: it counts from now on, and the log before `logFrom` may go. */
  keep(index: number, logFrom: number): void;
  /** The draft at `index` is wrong: its digest is not `digest`. */
  discard(index: number, digest: string): void;
  /** Fetches the newest snapshot of a node, of at least `index`: onFetched. */
  fetch(nodeId: number, index: number): void;
}

/** Which part of the history is wanted. */
export interface HistoryRequest {
  readonly readId: number;
  /** First revision wanted. */
  readonly from: number;
  /** First bytes of the names. */
  readonly prefix: Uint8Array;
  /** Rows wanted at most. */
  readonly limit: number;
  /** Index and revision of the applied state: `from` is at or below. */
  readonly appliedIndex: number;
  readonly revision: number;
}

/** Events that are no longer in memory, read from disk. */
export interface HistoryPage {
  readonly rows: readonly AuditRow[];
  /** The first revision that the page does not cover; `from` when there was not time enough. */
  readonly next: number;
}

/** Called by a HistoryPort on the main thread, never from inside its methods. */
export interface HistoryEvents {
  /** Null: it is not there, and `oldestRevision` has risen above it. */
  onHistory(readId: number, page: HistoryPage | null): void;
}

/** Reads committed events from snapshots and log: long work on another thread. */
export interface HistoryPort {
  /** First revision that can be read; one that has no event yet when there is no history. */
  readonly oldestRevision: number;
  read(request: HistoryRequest): void;
}

/** Sends to the other replicas. Lossy by contract: raft repeats what matters. */
export interface PeerPort {
  send(message: Message): void;
  /** End of turn: one write for each peer that got messages. */
  flush(): void;
}

/** Elapsed time that never steps: µs since an arbitrary start, as a double. */
export interface ClockPort {
  nowUs(): number;
}

export interface EntropyPort {
  /** Writes 16 random bytes at `offset`. */
  fill16(target: Uint8Array, offset: number): void;
}

/** Asks for a turn. Several wishes before the turn runs are one. */
export interface TurnPort {
  /** After the events that are readable now have been handled. */
  soon(): void;
  /** After about this many µs, unless soon() comes first. */
  after(us: number): void;
}

/** The socket side of one client connection. */
export interface Transport {
  /** Bytes handed to flush() that the peer has not taken yet. */
  readonly backlogBytes: number;
  /** Writes what the connection's out buffer holds, in one write, and empties it. */
  flush(): void;
  /** Flushes, then closes. Idempotent. */
  close(): void;
  pauseReading(): void;
  resumeReading(): void;
}
