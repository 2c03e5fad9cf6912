/**
 * Watches a cluster from outside and throws at the first broken promise of Raft (Figure 3).
 *
 * Owns: what it has seen so far: leaders, votes, entries, commits, reads. Knows nothing of raft's
 * rules, only of their results: Election Safety, Log Matching, Leader Completeness, State Machine
 * Safety, votes and acknowledgements on disk before they are sent, commits on a majority of disks,
 * linearizable reads. Used by: random-schedule.ts.
 */
import { type Effects, Role } from '../../src/core/raft/effects.js';
import type { Members } from '../../src/core/raft/members.js';
import { type Entry, EntryKind, type Message, MessageKind } from '../../src/core/raft/message.js';
import type { Raft } from '../../src/core/raft/raft.js';
import { type Observer, readMembers, type TestNode } from './cluster.js';

/** A promise of Raft was broken. */
export class Violation extends Error {
  override readonly name = 'Violation';
}

interface SeenEntry {
  readonly data: Uint8Array;
  readonly previousTerm: number;
}

function demand(holds: boolean, rule: string, detail: () => string): void {
  if (!holds) throw new Violation(`${rule}: ${detail()}`);
}

/** Index and term as one key. */
function keyOf(index: number, term: number): number {
  return term * 1_000_000 + index;
}

export class SafetyChecker implements Observer {
  /** What was ever known to be committed, by index - 1. */
  readonly committed: Entry[] = [];
  elections = 0;
  readsAnswered = 0;
  private readonly committedInTerm: number[] = [];
  private readonly leaders = new Map<number, string>();
  private readonly votes = new Map<number, number>();
  private readonly seen = new Map<number, SeenEntry>();
  private readonly commitOfNode = new Map<number, number>();
  /** Entries that were committed when a read was asked for, by its context. */
  private readonly readFloors = new Map<number, number>();

  constructor(
    private readonly nodes: () => readonly TestNode[],
    private readonly base: () => Members,
  ) {}

  onStarted(node: TestNode): void {
    this.commitOfNode.set(node.id, 0);
  }

  /** A client asks for a linearizable read: it must see everything that is committed by now. */
  onReadAsked(context: number): void {
    this.readFloors.set(context, this.committed.length);
  }

  onTurn(node: TestNode, effects: Effects): void {
    const raft = node.raft as Raft;
    for (const entry of effects.entries) this.checkLogMatching(node, raft, entry);
    if (raft.role === Role.Leader) this.checkLeader(node, raft);
    this.checkCommit(node, raft, effects.commitIndex);
    for (const { context, index } of effects.readStates) this.checkRead(node, context, index);
  }

  onSent(node: TestNode, message: Message): void {
    if (message.reject) return;
    if (message.kind === MessageKind.VoteReply) this.checkVote(node, message);
    if (message.kind === MessageKind.AppendReply) checkAcknowledgement(node, message);
  }

  /** Figure 3: same index and term, then same entry and same predecessor; so all before agrees. */
  private checkLogMatching(node: TestNode, raft: Raft, entry: Entry): void {
    const key = keyOf(entry.index, entry.term);
    const previousTerm = raft.termAt(entry.index - 1);
    const known = this.seen.get(key);
    if (known === undefined) {
      this.seen.set(key, { data: entry.data, previousTerm });
      return;
    }
    demand(
      known.data === entry.data && known.previousTerm === previousTerm,
      'Log Matching',
      () => `node ${node.id} has another entry at ${entry.index} of term ${entry.term}`,
    );
  }

  private checkLeader(node: TestNode, raft: Raft): void {
    const self = `${node.id} in life ${node.life}`;
    const known = this.leaders.get(raft.term);
    if (known === self) return;
    demand(
      known === undefined,
      'Election Safety',
      () => `term ${raft.term} is led by ${known} and by ${self}`,
    );
    this.leaders.set(raft.term, self);
    this.elections += 1;
    for (let index = 1; index <= this.committed.length; index += 1) {
      if ((this.committedInTerm[index - 1] as number) >= raft.term) continue;
      demand(
        entryIn(node, index)?.data === this.committed[index - 1]?.data,
        'Leader Completeness',
        () => `node ${self} leads term ${raft.term} without the committed entry ${index}`,
      );
    }
  }

  private checkCommit(node: TestNode, raft: Raft, commitIndex: number): void {
    const before = this.commitOfNode.get(node.id) ?? 0;
    demand(commitIndex >= before, 'Commit rises', () => `node ${node.id} from ${before}`);
    for (let index = before + 1; index <= commitIndex; index += 1) {
      const entry = entryIn(node, index);
      demand(entry !== undefined, 'Commit', () => `node ${node.id} lacks its entry ${index}`);
      this.checkCommitted(node, raft, entry as Entry);
    }
    this.commitOfNode.set(node.id, commitIndex);
  }

  private checkCommitted(node: TestNode, raft: Raft, entry: Entry): void {
    const known = this.committed[entry.index - 1];
    if (known !== undefined) {
      demand(
        known.data === entry.data && known.term === entry.term,
        'State Machine Safety',
        () => `node ${node.id} commits another entry ${entry.index}`,
      );
      return;
    }
    // In a turn with several inputs it may have committed first and changed the members then.
    const [newest, before] = this.membershipsOf(node);
    demand(
      this.isOnMajority(entry, newest) || this.isOnMajority(entry, before),
      'Durability',
      () => `node ${node.id} commits ${entry.index}, not on most disks of ${newest.voters}`,
    );
    this.committed.push(entry);
    this.committedInTerm.push(raft.term);
  }

  private isOnMajority(entry: Entry, { voters }: Members): boolean {
    let disks = 0;
    for (const { id, disk } of this.nodes()) {
      if (voters.includes(id) && disk.entries[entry.index - 1]?.data === entry.data) disks += 1;
    }
    return disks * 2 > voters.length;
  }

  /** Thesis §4.1: those of the newest change in the node's log, committed or not; those before. */
  private membershipsOf(node: TestNode): [Members, Members] {
    const raft = node.raft as Raft;
    // What is appended in this turn goes to the disk after it.
    const entries = [...node.disk.entriesHanded(), ...raft.effects.entries];
    const changes = entries.filter(
      ({ kind, index }) => kind === EntryKind.Membership && index <= raft.lastIndex,
    );
    const [newest, before] = changes.reverse().map(({ data }) => readMembers(data));
    return [newest ?? this.base(), before ?? this.base()];
  }

  private checkRead(node: TestNode, context: number, index: number): void {
    const floor = this.readFloors.get(context);
    demand(floor !== undefined, 'Reads', () => `node ${node.id} answers a read nobody asked`);
    this.readFloors.delete(context);
    this.readsAnswered += 1;
    demand(
      index >= (floor as number),
      'Linearizable reads',
      () => `node ${node.id} answers a read at ${index}, though ${floor} was committed before it`,
    );
    demand(
      index <= this.committed.length,
      'Linearizable reads',
      () => `node ${node.id} answers a read at ${index}, which is not committed`,
    );
  }

  /** Raft §5.2: one vote a term, in every life, and on disk before it is heard. */
  private checkVote(node: TestNode, message: Message): void {
    const key = keyOf(node.id, message.term);
    const known = this.votes.get(key);
    demand(
      known === undefined || known === message.to,
      'One vote a term',
      () => `node ${node.id} votes for ${known} and ${message.to} in term ${message.term}`,
    );
    this.votes.set(key, message.to);
    const { term, votedFor } = node.disk.hardState;
    demand(
      term > message.term || (term === message.term && votedFor === message.to),
      'Vote on disk',
      () => `node ${node.id} votes in term ${message.term}, its disk says ${term}, ${votedFor}`,
    );
  }
}

/** Thesis §10.2.1: what is acknowledged is on disk. In a later term the promise is void. */
function checkAcknowledgement(node: TestNode, message: Message): void {
  const raft = node.raft as Raft;
  if (raft.term > message.term) return;
  demand(
    node.disk.lastIndex >= message.index,
    'Acknowledgement on disk',
    () => `node ${node.id} acknowledges ${message.index}, its disk ends at ${node.disk.lastIndex}`,
  );
}

/** The entry that a node's raft has at `index`, in memory or on disk. */
function entryIn(node: TestNode, index: number): Entry | undefined {
  const raft = node.raft as Raft;
  if (index > raft.lastIndex) return undefined;
  return raft.entryAt(index) ?? node.disk.entriesHanded()[index - 1];
}
