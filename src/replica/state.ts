/**
 * Everything one replica keeps in memory beside its log: the state of the rules in this folder.
 *
 * Owns: the fields. Never: a rule; admission, turn, apply, reads and upkeep take this state first.
 * Made by: replica.ts.
 */
import { assert } from '../collections/assert.js';
import { Command } from '../core/locks/command.js';
import { LockMachine } from '../core/locks/lock-machine.js';
import { Outcome } from '../core/locks/outcome.js';
import type { Settings } from '../core/locks/settings.js';
import type { LogPosition } from '../core/raft/log.js';
import type { Message } from '../core/raft/message.js';
import { Raft } from '../core/raft/raft.js';
import { ENTROPY_BYTES, EntryReader, EntryWriter } from '../wire/entry.js';
import { FrameReader } from '../wire/frame.js';
import { Attachments } from './attachments.js';
import { AuditReads } from './audit-reads.js';
import { ClusterClock } from './cluster-clock.js';
import { Compaction, type CompactionPolicy, DEFAULT_POLICY } from './compaction-state.js';
import type { Connection } from './connection.js';
import { Counters } from './counters.js';
import { EventRing } from './event-ring.js';
import { Meters } from './meters.js';
import { Pacer } from './pacer.js';
import { type PendingBatch, PendingBatches } from './pending.js';
import { PendingReads } from './pending-reads.js';
import type {
  ClockPort,
  EntropyPort,
  FetchedSnapshot,
  HistoryPort,
  LogPort,
  LogState,
  PeerPort,
  SnapshotPort,
  TurnPort,
} from './ports.js';
import { Watches } from './watches.js';

/** A member of the shard, as the membership record knows it. */
export interface MemberOptions {
  readonly nodeId: number;
  /** Where clients reach the node: host:port. */
  readonly client: string;
  readonly isLearner?: boolean;
}

export interface ReplicaOptions {
  readonly shard: 0;
  readonly nodeId: number;
  /** 16 random bytes, drawn at founding. */
  readonly clusterId: Uint8Array;
  readonly members: readonly MemberOptions[];
  readonly settings: Settings;
  readonly featureLevel: number;
  /** Seed of election time-outs and read numbers: another one at each start (see raft.ts). */
  readonly seed: number;
  readonly log: LogPort;
  readonly logState: LogState;
  /** Makes and fetches snapshots; without one the log grows, and nobody can be re-seeded. */
  readonly snapshots?: SnapshotPort | null;
  /** Reads events that are no longer in memory; without one they cannot be shown. */
  readonly history?: HistoryPort | null;
  /** When a snapshot is made and what of the log stays; the limits by default. */
  readonly compaction?: CompactionPolicy;
  /** The snapshot that this node starts from, null for index 0. */
  readonly start?: FetchedSnapshot | null;
  readonly peers: PeerPort;
  readonly clock: ClockPort;
  readonly entropy: EntropyPort;
  readonly turn: TurnPort;
}

/** Messages that leave once the append with this id is durable. */
export interface HeldMessages {
  readonly appendId: number;
  readonly messages: readonly Message[];
}

export class ReplicaState {
  readonly raft: Raft;
  /** The state at `appliedIndex`. Another one after an install: never kept in a local field. */
  machine: LockMachine;
  readonly compaction: Compaction;
  readonly counters = new Counters();
  readonly meters = new Meters();
  readonly attachments = new Attachments();
  readonly connections = new Set<Connection>();

  /** Reused records of the hot path. */
  readonly frame = new FrameReader();
  readonly command = new Command();
  readonly outcome = new Outcome();
  readonly entryReader = new EntryReader();
  readonly entropy = new Uint8Array(ENTROPY_BYTES);

  /** The open batch and its callers, position by position. */
  readonly writer = new EntryWriter();
  open: PendingBatch;
  readonly pending = new PendingBatches();
  readonly pacer = new Pacer();
  readonly clusterClock = new ClusterClock();
  readonly reads = new PendingReads();
  /** The newest events, and who is told of them. */
  readonly events = new EventRing();
  readonly watches = new Watches();
  /** Pages of the audit stream that are owed. */
  readonly audits = new AuditReads();

  /** Connections with replies of this turn. */
  readonly dirty: Connection[] = [];
  readonly held: HeldMessages[] = [];
  /** The last append that the log reported durable. */
  durableAppendId = 0;
  lastAppendId = 0;

  /** Highest index that apply has been through. */
  appliedIndex = 0;
  /** Set while the log thread reads entries that apply needs and memory no longer holds. */
  isApplyReading = false;
  lastReadId = 0;
  /** What each outstanding log read is for: a follower's node id, or APPLY_READ. */
  readonly logReads = new Map<number, number>();

  /** ClockPort µs of this turn's start, of the last proposal, the last upkeep, the last tick. */
  nowUs = 0;
  lastProposedUs = 0;
  lastKeptUs = 0;
  lastTickUs = 0;
  /** When this node last learnt a commit index: the age of a stale read. */
  lastCommitUs = 0;
  lastCommitIndex = 0;

  /** The term that this node leads, as the last turn saw it; 0 when it leads none. */
  ledTerm = 0;
  isShuttingDown = false;

  constructor(readonly options: ReplicaOptions) {
    const { logState, members } = options;
    const start = options.start ?? null;
    const base = findBase(logState, start);
    const voters = members.filter((member) => member.isLearner !== true);
    const learners = members.filter((member) => member.isLearner === true);
    this.raft = new Raft({
      nodeId: options.nodeId,
      members: {
        voters: voters.map((member) => member.nodeId),
        learners: learners.map((member) => member.nodeId),
      },
      readMembers: refuseMembership,
      membershipEntries: [],
      seed: options.seed,
      hardState: logState.hardState,
      commitIndex: Math.max(start?.index ?? 0, Math.min(logState.commitIndex, logState.lastIndex)),
      baseIndex: base.index,
      baseTerm: base.term,
      lastIndex: logState.lastIndex,
      termStarts: logState.termStarts,
      tail: logState.tail,
    });
    options.entropy.fill16(this.entropy, 0);
    const seeds = words(this.entropy).subarray(0, 2);
    this.machine =
      start?.machine ?? new LockMachine(options.settings, words(options.clusterId), seeds);
    this.appliedIndex = this.machine.appliedIndex;
    this.events.begin(this.machine.revision + 1);
    this.watches.seen = this.events.next;
    this.compaction = new Compaction(options.compaction ?? DEFAULT_POLICY);
    if (start !== null) this.compaction.onSnapshot(start.index, start.bytes);
    this.open = this.pending.take();
    this.writer.open();
    this.nowUs = options.clock.nowUs();
    this.lastTickUs = this.nowUs;
  }
}

/**
 * Where raft's log begins: the newest index before what is stored whose term is known. A log that
 * begins with index 1 begins at 0, 0. One that was cut begins behind its first entry, whose term it
 * tells, or behind the snapshot itself.
 */
function findBase(logState: LogState, start: FetchedSnapshot | null): LogPosition {
  const { firstIndex, lastIndex, termStarts } = logState;
  if (firstIndex === 1) return { index: 0, term: 0 };
  assert(start !== null && firstIndex <= start.index + 1, 'start: no gap behind the snapshot');
  assert(lastIndex >= start.index, 'start: the log reaches the snapshot');
  if (firstIndex > start.index) return { index: start.index, term: start.term };
  return { index: firstIndex, term: (termStarts[0] as LogPosition).term };
}

/** Raft can change its members; no node proposes it yet: a log that does is of a later release. */
function refuseMembership(): never {
  throw new Error('the log changes the members of the cluster, which this release does not know');
}

/** Reads for apply are told from reads for followers by this in place of a node id. */
export const APPLY_READ = 0;

/** 16 bytes as four big-endian u32. */
function words(bytes: Uint8Array): Uint32Array {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const result = new Uint32Array(4);
  for (let i = 0; i < 4; i += 1) result[i] = view.getUint32(i * 4);
  return result;
}

/** Where clients reach the leader that this node knows, '' for none. */
export function leaderAddress(state: ReplicaState): string {
  const { leaderId } = state.raft;
  for (const member of state.options.members) {
    if (member.nodeId === leaderId) return member.client;
  }
  return '';
}

/** True when this node may take operations: leader, its term committed and applied up to there. */
export function isServing(state: ReplicaState): boolean {
  const { raft } = state;
  return (
    !state.isShuttingDown &&
    raft.isProposing &&
    raft.isTermCommitted &&
    state.appliedIndex >= raft.termStartIndex
  );
}
