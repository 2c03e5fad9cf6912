/**
 * One raft by itself, fed by hand: for rules that one node keeps whatever the others do.
 *
 * Owns: building a raft with a given log, messages to it, and taking what it wants done.
 * Never: a network. Used by: the paper tests and the unit tests of raft.
 */
import {
  type HardState,
  type LogReadWish,
  type ReadState,
  Role,
} from '../../src/core/raft/effects.js';
import { Entry, EntryKind, Message, MessageKind } from '../../src/core/raft/message.js';
import { Raft } from '../../src/core/raft/raft.js';
import { ELECTION_TICKS_MAX, HEARTBEAT_TICKS } from '../../src/limits.js';
import { readMembers } from './cluster.js';

const EMPTY = new Uint8Array(0);

export interface SingleOptions {
  /** Node id, 1 when absent. */
  readonly id?: number;
  /** 1, 2, 3 when absent. */
  readonly voters?: readonly number[];
  readonly learners?: readonly number[];
  /** Term of each entry on disk. */
  readonly log?: readonly number[];
  /** Bytes of each of those entries, 0 when absent. */
  readonly entryBytes?: number;
  /** Stored term; that of the last entry when absent. */
  readonly term?: number;
  readonly votedFor?: number;
  readonly seed?: number;
  /** Stored commit hint. */
  readonly commitIndex?: number;
  /** Index of a snapshot that the log starts behind, of its first entry's term. */
  readonly baseIndex?: number;
  readonly baseTerm?: number;
}

/** Entries of the given terms, from `firstIndex` on. */
export function entriesOf(terms: readonly number[], firstIndex = 1, data = EMPTY): Entry[] {
  return terms.map((term, at) => new Entry(firstIndex + at, term, EntryKind.Batch, data));
}

/** Where terms start in a log, as a disk reports it. */
export function termStartsOf(entries: readonly Entry[]): { index: number; term: number }[] {
  return entries
    .filter((entry, at) => at === 0 || (entries[at - 1] as Entry).term !== entry.term)
    .map(({ index, term }) => ({ index, term }));
}

/** A raft that was just started from a disk. */
export function raftWith(options: SingleOptions = {}): Raft {
  const baseIndex = options.baseIndex ?? 0;
  const data = new Uint8Array(options.entryBytes ?? 0);
  const tail = entriesOf(options.log ?? [], baseIndex + 1, data);
  const lastTerm = tail[tail.length - 1]?.term ?? options.baseTerm ?? 0;
  return new Raft({
    nodeId: options.id ?? 1,
    members: { voters: options.voters ?? [1, 2, 3], learners: options.learners ?? [] },
    readMembers,
    membershipEntries: [],
    seed: options.seed ?? 1,
    hardState: { term: options.term ?? lastTerm, votedFor: options.votedFor ?? 0 },
    commitIndex: options.commitIndex ?? baseIndex,
    baseIndex,
    baseTerm: options.baseTerm ?? 0,
    lastIndex: baseIndex + tail.length,
    termStarts: termStartsOf(tail),
    tail,
  });
}

/** Fields that a test sets on a message. */
export type MessageFields = Partial<Omit<Message, 'kind' | 'from' | 'to'>>;

export function messageOf(
  kind: MessageKind,
  from: number,
  to: number,
  fields: MessageFields = {},
): Message {
  return Object.assign(new Message(kind, from, to), fields);
}

/** What one turn wanted done. */
export interface Taken {
  readonly now: readonly Message[];
  readonly later: readonly Message[];
  readonly entries: readonly Entry[];
  readonly truncateFrom: number;
  readonly hardState: HardState | null;
  readonly commitIndex: number;
  readonly readStates: readonly ReadState[];
  readonly readsAborted: readonly number[];
  readonly logReads: readonly LogReadWish[];
  readonly snapshotIndex: number;
  readonly resetTo: number;
  readonly roleChanged: boolean;
  /** 0 when nothing goes to the disk. */
  readonly appendId: number;
}

/** Ends a turn: takes the effects, handing the append over; the disk has not answered. */
export function take(raft: Raft): Taken {
  const { effects } = raft;
  const hasAppend = effects.hasAppend;
  const taken = {
    now: effects.messages.slice(),
    later: effects.messagesWhenDurable.slice(),
    entries: effects.entries.slice(),
    truncateFrom: effects.truncateFrom,
    hardState: effects.hardState,
    commitIndex: effects.commitIndex,
    readStates: effects.readStates.slice(),
    readsAborted: effects.readsAborted.slice(),
    logReads: effects.logReads.slice(),
    snapshotIndex: effects.snapshotIndex,
    resetTo: effects.resetTo,
    roleChanged: effects.roleChanged,
    appendId: hasAppend ? raft.takeAppend() : 0,
  };
  effects.clear();
  return taken;
}

/** Ends a turn with a disk that answers at once: what waited for it may leave. */
export function takeDurable(raft: Raft): readonly Message[] {
  const sent: Message[] = [];
  for (;;) {
    const taken = take(raft);
    sent.push(...taken.now);
    if (taken.appendId !== 0) raft.onAppended(taken.appendId);
    const own = taken.later.filter((message) => message.to === raft.nodeId);
    sent.push(...taken.later.filter((message) => message.to !== raft.nodeId));
    for (const message of own) raft.step(message);
    if (taken.appendId === 0 && own.length === 0) return sent;
  }
}

/** Ticks until the election timer fires. Returns how many ticks it took. */
export function tickToCampaign(raft: Raft): number {
  for (let ticks = 1; ticks <= ELECTION_TICKS_MAX; ticks += 1) {
    raft.tick();
    if (raft.effects.messages.some(({ kind }) => kind === MessageKind.PreVote)) return ticks;
    if (raft.role === Role.Candidate) return ticks;
  }
  throw new Error('the election timer does not fire');
}

/** Ticks a leader through one heartbeat interval. */
export function tickInterval(raft: Raft): void {
  for (let ticks = 0; ticks < HEARTBEAT_TICKS; ticks += 1) raft.tick();
}

/** Lets a raft win an election: every other voter grants. Its term is not opened. */
export function win(raft: Raft): void {
  tickToCampaign(raft);
  const others = raft.members.voters.filter((id) => id !== raft.nodeId);
  takeDurable(raft);
  for (const kind of [MessageKind.PreVoteReply, MessageKind.VoteReply]) {
    const term = kind === MessageKind.PreVoteReply ? raft.term + 1 : raft.term;
    for (const from of others) {
      if (raft.role !== Role.Leader) raft.step(messageOf(kind, from, raft.nodeId, { term }));
      takeDurable(raft);
    }
  }
  if (raft.role !== Role.Leader) throw new Error('the election was not won');
}

/** A leader whose NoOp is on its own disk; nothing that it sent has been answered. */
export function leaderWith(options: SingleOptions = {}): Raft {
  const raft = raftWith(options);
  win(raft);
  raft.propose(EntryKind.NoOp, EMPTY);
  takeDurable(raft);
  return raft;
}
