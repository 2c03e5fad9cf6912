/**
 * A few rafts in memory, a network and disks in which nothing happens unless a test says so.
 *
 * Owns: messages in flight, cut links, disks, crashes, and the host's duties toward raft (takes its
 * effects after each input, opens a term with a NoOp, holds back what must be durable first).
 * Never: real time or chance; the same calls give the same run. An Observer sees every step.
 * Used by: the paper tests, the random schedules and the golden scripts.
 */
import {
  type Effects,
  type LogReadWish,
  type ReadState,
  Role,
} from '../../src/core/raft/effects.js';
import type { Members } from '../../src/core/raft/members.js';
import { type Entry, EntryKind, type Message } from '../../src/core/raft/message.js';
import { Raft } from '../../src/core/raft/raft.js';
import { ELECTION_TICKS_MIN } from '../../src/limits.js';
import { Disk, type Order, OrderPart } from './disk.js';

const TICKS_TO_LEADER_MAX = 5_000;
const STEPS_TO_QUIET_MAX = 100_000;
const NO_MESSAGES: readonly Message[] = [];
const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** One replica: its raft while it runs, and what outlives it. */
export class TestNode {
  raft: Raft | null = null;
  /** How often it was started, 1 for the first. */
  life = 0;
  /** How often it has begun to campaign, in all its lives. */
  campaigns = 0;
  readonly disk = new Disk();
  readonly readStates: ReadState[] = [];
  readonly readsAborted: number[] = [];
  /** Reads of the log that raft wished for and nobody has answered. */
  readonly logReads: LogReadWish[] = [];

  constructor(readonly id: number) {}
}

/** Sees what happens in a cluster, in order. */
export interface Observer {
  /** Before the effects of a turn are carried out. */
  onTurn?(node: TestNode, effects: Effects): void;
  /** A message leaves its node, or is a vote for oneself that takes effect. */
  onSent?(node: TestNode, message: Message): void;
  onDelivered?(node: TestNode, message: Message): void;
  onDropped?(message: Message): void;
  /** An order is durable; raft has not been told yet. */
  onDurable?(node: TestNode, order: Order): void;
  onStarted?(node: TestNode): void;
  onCrashed?(node: TestNode): void;
}

export interface ClusterOptions {
  /** Number of voters; their node ids are 1 … voters. */
  readonly voters: number;
  /** Number of learners, with the ids that follow. */
  readonly learners?: number;
  /** Number of nodes that are no members at first, with the ids that follow. */
  readonly spares?: number;
  readonly seed?: number;
  /** A patched raft, to show that a checker sees what is wrong with it. */
  readonly raftClass?: typeof Raft;
  readonly observer?: Observer;
  /** Entries kept in memory behind the commit index; all of them when absent. */
  readonly windowEntries?: number;
  /** False: the test plays the host that opens terms. */
  readonly opensTerms?: boolean;
}

export class Cluster {
  readonly members: Members;
  readonly nodes: readonly TestNode[];
  /** Sent and not yet delivered, oldest first. */
  readonly inFlight: Message[] = [];
  /** True: inputs pile up in a node until turn() is called for it, as in a busy host. */
  isBatching = false;
  observer: Observer;
  private readonly cutLinks = new Set<string>();
  private proposals = 0;
  private readContexts = 0;

  constructor(private readonly options: ClusterOptions) {
    const { voters, learners = 0, spares = 0 } = options;
    const ids = Array.from({ length: voters + learners + spares }, (_, at) => at + 1);
    this.members = {
      voters: ids.slice(0, voters),
      learners: ids.slice(voters, voters + learners),
    };
    this.observer = options.observer ?? {};
    this.nodes = ids.map((id) => new TestNode(id));
    for (const node of this.nodes) this.restart(node.id);
  }

  node(id: number): TestNode {
    const node = this.nodes[id - 1];
    if (node === undefined) throw new Error(`no node ${id}`);
    return node;
  }

  raft(id: number): Raft {
    const { raft } = this.node(id);
    if (raft === null) throw new Error(`node ${id} is down`);
    return raft;
  }

  isUp(id: number): boolean {
    return this.node(id).raft !== null;
  }

  // Inputs of one node.

  tick(id: number, ticks = 1): void {
    for (let i = 0; i < ticks; i += 1) {
      this.raft(id).tick();
      this.afterInput(id);
    }
  }

  /** Proposes a batch. Returns its index, 0 when the node may not propose. */
  propose(id: number, text?: string): number {
    this.proposals += 1;
    const data = encoder.encode(text ?? `p${this.proposals}`);
    const index = this.raft(id).propose(EntryKind.Batch, data);
    this.afterInput(id);
    return index;
  }

  /** Proposes other members. Returns the index of the change, 0 when it is refused. */
  change(id: number, voters: readonly number[], learners: readonly number[] = []): number {
    const index = this.raft(id).propose(EntryKind.Membership, membersData({ voters, learners }));
    this.afterInput(id);
    return index;
  }

  /** Asks for a read point. Returns the read's context, unique in this cluster. */
  read(id: number, context?: number): number {
    this.readContexts += 1;
    const wanted = context ?? this.readContexts;
    this.raft(id).readIndex(wanted);
    this.afterInput(id);
    return wanted;
  }

  transfer(id: number, target: number): boolean {
    const begun = this.raft(id).transfer(target);
    this.afterInput(id);
    return begun;
  }

  /** Hands `message` to its receiver now, whatever the network would do. */
  step(message: Message): void {
    const node = this.node(message.to);
    if (node.raft === null) return;
    this.observer.onDelivered?.(node, message);
    node.raft.step(message);
    this.afterInput(message.to);
  }

  private afterInput(id: number): void {
    if (!this.isBatching) this.turn(id);
  }

  /** Ends a turn: carries out what raft wants done. */
  turn(id: number): void {
    const node = this.node(id);
    const raft = this.raft(id);
    for (;;) {
      if (this.options.opensTerms !== false && raft.needsNoOp) {
        raft.propose(EntryKind.NoOp, encoder.encode('noop'));
      }
      const votes = this.carryOut(node, raft);
      if (votes.length === 0) break;
      for (const vote of votes) raft.step(vote);
    }
    const { windowEntries } = this.options;
    if (windowEntries !== undefined) raft.trimWindow(raft.commitIndex, windowEntries, 1 << 30);
  }

  /** Returns what was addressed to the node itself and may take effect. */
  private carryOut(node: TestNode, raft: Raft): readonly Message[] {
    const effects = raft.effects;
    this.observer.onTurn?.(node, effects);
    if (isIdle(effects)) return NO_MESSAGES;
    const isCampaign = raft.role === Role.PreCandidate || raft.role === Role.Candidate;
    if (effects.roleChanged && isCampaign) node.campaigns += 1;
    const leaving = effects.messages.slice();
    const held = effects.messagesWhenDurable.slice();
    if (effects.hasAppend) node.disk.orders.push(orderOf(raft, held));
    else if (node.disk.orders.length > 0) lastOf(node.disk.orders).held.push(...held);
    else leaving.push(...held);
    node.readStates.push(...effects.readStates);
    node.readsAborted.push(...effects.readsAborted);
    node.logReads.push(...effects.logReads);
    effects.clear();
    return this.leave(node, leaving);
  }

  private leave(node: TestNode, messages: readonly Message[]): Message[] {
    const own: Message[] = [];
    for (const message of messages) {
      this.observer.onSent?.(node, message);
      if (message.to === node.id) own.push(message);
      else if (this.isCut(message.from, message.to)) this.observer.onDropped?.(message);
      else this.inFlight.push(message);
    }
    return own;
  }

  // Disks.

  /** Makes the oldest `count` orders of a node durable and tells its raft. */
  completeDisk(id: number, count = Number.POSITIVE_INFINITY): void {
    const node = this.node(id);
    for (let i = 0; i < count && node.disk.orders.length > 0; i += 1) {
      const order = node.disk.completeOldest();
      this.observer.onDurable?.(node, order);
      this.raft(id).onAppended(order.appendId);
      for (const vote of this.leave(node, order.held)) this.raft(id).step(vote);
      this.afterInput(id);
    }
  }

  /** Answers the oldest wish for entries that memory no longer holds, at most `entriesMax`. */
  completeLogRead(id: number, entriesMax = 64): void {
    const node = this.node(id);
    const wish = node.logReads.shift();
    if (wish === undefined) return;
    const first = wish.fromIndex - 1;
    const entries = node.disk
      .entriesHanded()
      .slice(first, Math.min(wish.toIndex, first + entriesMax));
    this.raft(id).onEntriesRead(wish.peer, entries);
    this.afterInput(id);
  }

  /** Stops a node. `whole` orders and `part` of the next reached the disk, unknown to raft. */
  crash(id: number, whole = 0, part: OrderPart = OrderPart.None): void {
    const node = this.node(id);
    node.disk.crash(whole, part);
    node.raft = null;
    node.logReads.length = 0;
    this.observer.onCrashed?.(node);
  }

  /** Starts a node from what its disk holds. */
  restart(id: number): void {
    const node = this.node(id);
    node.life += 1;
    const { entries, hardState, commitIndex } = node.disk;
    const termStarts = entries
      .filter((entry, at) => at === 0 || (entries[at - 1] as Entry).term !== entry.term)
      .map(({ index, term }) => ({ index, term }));
    const kept = this.options.windowEntries ?? entries.length;
    node.raft = new (this.options.raftClass ?? Raft)({
      nodeId: id,
      members: this.members,
      readMembers,
      membershipEntries: entries.filter(({ kind }) => kind === EntryKind.Membership),
      seed: (this.options.seed ?? 1) * 1_000_003 + id * 1_009 + node.life,
      hardState,
      // A host may keep the hint or not: every other life begins without it.
      commitIndex: node.life % 2 === 0 ? commitIndex : 0,
      baseIndex: 0,
      baseTerm: 0,
      lastIndex: entries.length,
      termStarts,
      tail: entries.slice(Math.max(0, entries.length - kept)),
    });
    this.observer.onStarted?.(node);
  }

  // Network.

  isCut(from: number, to: number): boolean {
    return this.cutLinks.has(`${from}>${to}`);
  }

  /** Nothing passes from `from` to `to` any more; what is under way is lost, or only late. */
  cut(from: number, to: number, losesInFlight = true): void {
    this.cutLinks.add(`${from}>${to}`);
    if (losesInFlight) this.drop((message) => message.from === from && message.to === to);
  }

  isolate(id: number): void {
    for (const node of this.nodes) {
      if (node.id === id) continue;
      this.cut(id, node.id);
      this.cut(node.id, id);
    }
  }

  heal(): void {
    this.cutLinks.clear();
  }

  drop(isDropped: (message: Message) => boolean = () => true): Message[] {
    const dropped = this.inFlight.filter(isDropped);
    const kept = this.inFlight.filter((message) => !dropped.includes(message));
    this.inFlight.length = 0;
    this.inFlight.push(...kept);
    for (const message of dropped) this.observer.onDropped?.(message);
    return dropped;
  }

  /** Delivers what is in flight now and passes the filter; answers stay in flight. */
  deliver(isWanted: (message: Message) => boolean = () => true): number {
    const wanted = this.inFlight.filter(isWanted);
    for (const message of wanted) {
      const at = this.inFlight.indexOf(message);
      if (at >= 0) this.deliverAt(at);
    }
    return wanted.length;
  }

  deliverAt(at: number): void {
    const message = this.inFlight[at] as Message;
    this.inFlight.splice(at, 1);
    if (this.isUp(message.to)) this.step(message);
    else this.observer.onDropped?.(message);
  }

  // Longer runs.

  /** Delivers, completes disks and log reads until nothing is under way. Time stands still. */
  stabilize(): void {
    for (let steps = 0; steps < STEPS_TO_QUIET_MAX; steps += 1) {
      if (this.inFlight.length > 0) {
        this.deliverAt(0);
        continue;
      }
      const busy = this.nodes.find(
        ({ raft, disk, logReads }) => raft !== null && disk.orders.length + logReads.length > 0,
      );
      if (busy === undefined) return;
      this.completeLogRead(busy.id);
      this.completeDisk(busy.id);
    }
    throw new Error('the cluster does not come to rest');
  }

  /** Lets `ticks` pass on every running node, with a fast network and fast disks. */
  run(ticks: number): void {
    for (let i = 0; i < ticks; i += 1) {
      for (const { id } of this.nodes) if (this.isUp(id)) this.tick(id);
      this.stabilize();
    }
  }

  /** Runs until `isDone`, at most `ticksMax`. Returns the ticks that it took. */
  runUntil(isDone: () => boolean, ticksMax = TICKS_TO_LEADER_MAX): number {
    for (let ticks = 0; ticks <= ticksMax; ticks += 1) {
      if (isDone()) return ticks;
      this.run(1);
    }
    throw new Error(`not reached within ${ticksMax} ticks`);
  }

  /** Makes `id` the leader, whoever led before, and settles. */
  elect(id: number): void {
    if (this.raft(id).role === Role.Leader) return;
    // Nobody hears from a leader for a while, so everybody is free to vote.
    for (const node of this.nodes) {
      if (node.id !== id && this.isUp(node.id)) this.tick(node.id, ELECTION_TICKS_MIN);
      this.drop();
    }
    this.campaign(id);
    this.stabilize();
    if (this.raft(id).role !== Role.Leader) throw new Error(`node ${id} was not elected`);
  }

  /** Ticks `id` until its election timer fires once more. */
  campaign(id: number): void {
    const node = this.node(id);
    const { campaigns } = node;
    for (let ticks = 0; ticks < TICKS_TO_LEADER_MAX; ticks += 1) {
      this.tick(id);
      if (node.campaigns > campaigns) return;
    }
    throw new Error(`node ${id} does not campaign`);
  }

  // What a test asks.

  /** The running leader of the highest term, or 0. */
  leaderId(): number {
    let found = 0;
    let term = 0;
    for (const { id, raft } of this.nodes) {
      if (raft === null || raft.role !== Role.Leader || raft.term <= term) continue;
      found = id;
      term = raft.term;
    }
    return found;
  }

  /** The entries that a node's raft has, durable or not. */
  entries(id: number): Entry[] {
    const raft = this.raft(id);
    return this.node(id).disk.entriesHanded().slice(0, raft.lastIndex);
  }

  /** A node's log as words: `1:noop 1:p1 2:noop`, each with its term. */
  logText(id: number): string {
    return logWords(this.entries(id));
  }

  diskText(id: number): string {
    return logWords(this.node(id).disk.entries);
  }
}

/** The data of a membership entry, as the harness writes it: `members 1,2,3 learners 4`. */
export function membersData({ voters, learners }: Members): Uint8Array {
  return encoder.encode(`members ${voters.join(',')} learners ${learners.join(',')}`);
}

/** The members that such data names. */
export function readMembers(data: Uint8Array): Members {
  const [, voters = '', , learners = ''] = decoder.decode(data).split(' ');
  const idsIn = (text: string): number[] => text.split(',').filter(Boolean).map(Number);
  return { voters: idsIn(voters), learners: idsIn(learners) };
}

export function logWords(entries: readonly Entry[]): string {
  return entries.map(({ term, data }) => `${term}:${decoder.decode(data)}`).join(' ');
}

function orderOf(raft: Raft, held: Message[]): Order {
  const { truncateFrom, hardState, commitIndex } = raft.effects;
  const entries = raft.effects.entries.slice();
  return { appendId: raft.takeAppend(), truncateFrom, entries, hardState, commitIndex, held };
}

/** Most ticks ask for nothing; long runs should not pay for them. */
function isIdle(effects: Effects): boolean {
  const messages = effects.messages.length + effects.messagesWhenDurable.length;
  const reads = effects.readStates.length + effects.readsAborted.length + effects.logReads.length;
  return messages + reads === 0 && !effects.hasAppend && !effects.roleChanged;
}

function lastOf<T>(items: readonly T[]): T {
  return items[items.length - 1] as T;
}
