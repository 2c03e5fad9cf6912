/**
 * Random histories of a small cluster: first chaos, then a healed network that must make progress.
 *
 * Owns: what may happen (messages delivered, lost, doubled, overtaken; slow disks, crashes that
 * tear an order, one-way cuts, pauses, proposals, transfers, reads) and how often, drawn anew for
 * each seed. Never: judges; SafetyChecker does. The same seed gives the same history.
 * Used by: random-safety.test.ts, planted-bugs.test.ts.
 */

import { AssertionError } from '../../src/collections/assert.js';
import { Prng } from '../../src/collections/prng.js';
import { Role } from '../../src/core/raft/effects.js';
import type { Raft } from '../../src/core/raft/raft.js';
import { ELECTION_TICKS_MIN } from '../../src/limits.js';
import { Cluster, type TestNode } from './cluster.js';
import { OrderPart } from './disk.js';
import { SafetyChecker, Violation } from './safety-checker.js';

/** Ticks in which a healed cluster must have a leader and serve: 5 s. */
const HEALED_TICKS_MAX = 500;
const IN_FLIGHT_MAX = 150;

export interface ScheduleOptions {
  readonly seed: number;
  readonly steps: number;
  readonly raftClass?: typeof Raft;
}

export interface ScheduleResult {
  /** What went wrong, or null. */
  readonly violation: string | null;
  readonly committed: number;
  readonly elections: number;
  readonly reads: number;
}

const ACTIONS = [
  ['deliver', 160],
  ['tick', 3],
  ['tickAll', 1],
  ['coup', 20],
  ['disk', 60],
  ['logRead', 8],
  ['propose', 16],
  ['read', 8],
  ['lose', 4],
  ['double', 6],
  ['crash', 4],
  ['restart', 12],
  ['cut', 1],
  ['split', 2],
  ['heal', 8],
  ['transfer', 2],
  ['turn', 6],
  ['change', 4],
] as const;
type ActionName = (typeof ACTIONS)[number][0];

export class RandomSchedule {
  readonly cluster: Cluster;
  readonly checker: SafetyChecker;
  private readonly prng: Prng;
  private readonly weights: number[] = [];
  private weightSum = 0;
  private readonly ticksMax: number;
  private readonly isOrdered: boolean;
  private readonly batchesOneIn: number;
  /** Half of the histories change the members; the others are as if that did not exist. */
  private readonly changesMembers: boolean;
  private readonly membersPrng: Prng;
  /** A node whose disk lags far behind, or 0. */
  private readonly slowDiskId: number;

  constructor(private readonly options: ScheduleOptions) {
    this.prng = new Prng(options.seed);
    this.membersPrng = new Prng(options.seed + 0x5eed);
    this.changesMembers = this.membersPrng.below(2) === 0;
    const size = this.prng.below(3) === 0 ? 5 : 3;
    const voters = this.changesMembers ? 3 + this.membersPrng.below(3) : size;
    const learners = this.prng.below(4) === 0 ? 1 : 0;
    const spares = this.changesMembers ? 1 + this.membersPrng.below(2) : 0;
    this.ticksMax = [10, 30, 90][this.prng.below(3)] as number;
    this.isOrdered = this.prng.below(2) === 0;
    this.batchesOneIn = [1_000_000, 8, 2][this.prng.below(3)] as number;
    this.slowDiskId = this.prng.below(voters + 1);
    for (const [name, base] of ACTIONS) {
      const weight = name === 'change' ? this.changeWeight(base) : base * 2 ** this.prng.below(5);
      this.weights.push(weight);
      this.weightSum += weight;
    }
    this.checker = new SafetyChecker(
      () => this.cluster?.nodes ?? [],
      () => this.cluster.members,
    );
    this.cluster = new Cluster({
      voters,
      learners,
      spares,
      seed: options.seed,
      observer: this.checker,
      ...(options.raftClass === undefined ? {} : { raftClass: options.raftClass }),
      ...(this.prng.below(2) === 0 ? { windowEntries: 2 } : {}),
    });
  }

  run(): ScheduleResult {
    let violation: string | null = null;
    let step = 0;
    try {
      for (; step < this.options.steps; step += 1) this.act();
      this.healAndProgress();
    } catch (error) {
      // A raft that asserts has seen by itself what the checker would have seen.
      if (!(error instanceof Error)) throw error;
      const isFinding = error instanceof Violation || error.name === AssertionError.name;
      if (!isFinding && !/^(disk:|the cluster does not)/.test(error.message)) throw error;
      violation = `seed ${this.options.seed}, step ${step}: ${error.name} ${error.message}`;
    }
    const { committed, elections, readsAnswered } = this.checker;
    return { violation, committed: committed.length, elections, reads: readsAnswered };
  }

  private act(): void {
    let drawn = this.prng.below(this.weightSum);
    let at = 0;
    while (drawn >= (this.weights[at] as number)) {
      drawn -= this.weights[at] as number;
      at += 1;
    }
    this.cluster.isBatching = this.prng.below(this.batchesOneIn) === 0;
    this.actions[(ACTIONS[at] as (typeof ACTIONS)[number])[0]]();
    while (this.cluster.inFlight.length > IN_FLIGHT_MAX) this.takeMessage();
  }

  private readonly actions: Record<ActionName, () => void> = {
    deliver: () => this.deliver(),
    tick: () => this.withUpNode(({ id }) => this.cluster.tick(id, 1 + this.below(this.ticksMax))),
    tickAll: () => this.tickAll(),
    coup: () => this.withUpNode(({ id }) => this.coup(id)),
    disk: () => this.disk(),
    logRead: () => this.withUpNode(({ id }) => this.cluster.completeLogRead(id, 1 + this.below(3))),
    propose: () => this.propose(),
    read: () => this.read(),
    lose: () => this.takeMessage(),
    double: () => this.double(),
    crash: () => this.crash(),
    restart: () => this.restart(),
    cut: () => this.cluster.cut(this.anyId(), this.anyId()),
    split: () => this.split(),
    heal: () => this.cluster.heal(),
    transfer: () => this.withUpNode(({ id }) => this.cluster.transfer(id, this.anyId())),
    change: () => this.change(),
    turn: () => this.withUpNode(({ id }) => this.cluster.turn(id)),
  };

  private below(n: number): number {
    return this.prng.below(n);
  }

  private anyId(): number {
    return 1 + this.below(this.cluster.nodes.length);
  }

  private withUpNode(act: (node: TestNode) => void): void {
    const node = this.cluster.node(this.anyId());
    if (node.raft !== null) act(node);
  }

  private tickAll(): void {
    const ticks = 1 + this.below(this.ticksMax);
    for (const { id, raft } of this.cluster.nodes) if (raft !== null) this.cluster.tick(id, ticks);
  }

  /** A majority loses its leader and `id` is the first to notice: a fast way to new terms. */
  private coup(id: number): void {
    const { cluster } = this;
    const { voters } = cluster.raft(id).members;
    if (!voters.includes(id) || cluster.raft(id).role === Role.Leader) return;
    const group = new Set([id]);
    const size = Math.min(voters.length, (voters.length >>> 1) + 1 + this.below(2));
    while (group.size < size) {
      const other = voters[this.below(voters.length)] as number;
      const isLeader = cluster.node(other).raft?.role === Role.Leader;
      if (!isLeader || this.below(8) === 0) group.add(other);
    }
    cluster.isBatching = false;
    cluster.heal();
    this.splitBy((nodeId) => group.has(nodeId));
    for (const other of group) {
      if (other === id) continue;
      if (!cluster.isUp(other)) cluster.restart(other);
      cluster.tick(other, ELECTION_TICKS_MIN);
    }
    cluster.campaign(id);
    const stalledId = this.below(3) === 0 ? id : 0;
    for (let steps = this.below(60); steps > 0; steps -= 1) {
      const at = cluster.inFlight.findIndex(({ from, to }) => group.has(from) && group.has(to));
      if (at >= 0 && this.below(3) > 0) cluster.deliverAt(at);
      else this.disk(stalledId);
    }
    if (this.below(2) === 0) cluster.heal();
    if (this.below(4) > 0) return;
    cluster.crash(id);
    cluster.restart(id);
  }

  /** Two groups that do not hear each other. */
  private split(): void {
    const groups = this.cluster.nodes.map(() => this.below(2) === 0);
    this.splitBy((nodeId) => groups[nodeId - 1] === true);
  }

  private splitBy(isInside: (nodeId: number) => boolean): void {
    const losesInFlight = this.below(2) === 0;
    for (const from of this.cluster.nodes) {
      for (const to of this.cluster.nodes) {
        if (isInside(from.id) === isInside(to.id)) continue;
        this.cluster.cut(from.id, to.id, losesInFlight);
      }
    }
  }

  private messageAt(): number {
    const count = this.cluster.inFlight.length;
    return this.isOrdered && this.below(8) > 0 ? 0 : this.below(count);
  }

  private deliver(): void {
    // With nothing under way only time can go on.
    if (this.cluster.inFlight.length > 0) this.cluster.deliverAt(this.messageAt());
    else this.tickAll();
  }

  private disk(stalledId = 0): void {
    const busy = this.cluster.nodes.filter(
      ({ id, raft, disk }) => id !== stalledId && raft !== null && disk.orders.length > 0,
    );
    const node = busy[this.below(Math.max(1, busy.length))];
    if (node === undefined || (node.id === this.slowDiskId && this.below(16) > 0)) return;
    this.cluster.completeDisk(node.id, 1);
  }

  private takeMessage(): void {
    const { inFlight } = this.cluster;
    if (inFlight.length > 0) inFlight.splice(this.below(inFlight.length), 1);
  }

  private double(): void {
    const { inFlight } = this.cluster;
    const message = inFlight.length === 0 ? undefined : inFlight[this.below(inFlight.length)];
    if (message !== undefined) inFlight.push(message);
  }

  private propose(): void {
    const proposing = this.cluster.nodes.filter(({ raft }) => raft?.isProposing);
    const node = proposing[this.below(Math.max(1, proposing.length))];
    if (node !== undefined) this.cluster.propose(node.id);
  }

  private changeWeight(base: number): number {
    return this.changesMembers ? base * 2 ** (1 + this.membersPrng.below(5)) : 0;
  }

  /** A leader is asked for any change, allowed or not: somebody comes, goes, or is promoted. */
  private change(): void {
    const leaders = this.cluster.nodes.filter(({ raft }) => raft?.role === Role.Leader);
    const leader = leaders[this.below(Math.max(1, leaders.length))];
    if (leader === undefined) return;
    const { members } = leader.raft as Raft;
    let { voters, learners } = members;
    for (let changes = this.below(6) === 0 ? 2 : 1; changes > 0; changes -= 1) {
      const subject = this.anyId();
      const isOther = (nodeId: number): boolean => nodeId !== subject;
      const wasVoter = voters.includes(subject);
      voters = voters.filter(isOther);
      learners = learners.filter(isOther);
      const place = this.below(4);
      if (place === 0) learners = [...learners, subject];
      else if (!wasVoter) voters = [...voters, subject];
    }
    this.cluster.change(leader.id, voters, learners);
  }

  private contexts = 0;

  private read(): void {
    this.withUpNode(({ id }) => {
      this.contexts += 1;
      this.checker.onReadAsked(this.contexts);
      this.cluster.read(id, this.contexts);
    });
  }

  private crash(): void {
    this.withUpNode(({ id, disk }) => {
      const isClean = this.below(2) === 0;
      const whole = isClean ? 0 : this.below(disk.orders.length + 1);
      this.cluster.crash(id, whole, isClean ? OrderPart.None : (this.below(4) as OrderPart));
      if (this.below(2) === 0) this.cluster.restart(id);
    });
  }

  private restart(): void {
    const down = this.cluster.nodes.filter(({ raft }) => raft === null);
    const node = down[this.below(Math.max(1, down.length))];
    if (node !== undefined) this.cluster.restart(node.id);
  }

  /** After the chaos: everybody is back, nothing is lost, and the cluster must serve within 5 s. */
  private healAndProgress(): void {
    const { cluster } = this;
    cluster.isBatching = false;
    cluster.heal();
    for (const { id, raft } of cluster.nodes) {
      if (raft === null) cluster.restart(id);
      else cluster.turn(id);
    }
    cluster.stabilize();
    let index = 0;
    /** Who has left hears nothing any more. */
    const present = (): TestNode[] => {
      const leader = cluster.leaderId();
      if (leader === 0) return [];
      const { voters, learners } = cluster.raft(leader).members;
      return cluster.nodes.filter(({ id }) => voters.includes(id) || learners.includes(id));
    };
    const isServed = (): boolean => {
      const leader = cluster.leaderId();
      const isLost = leader !== 0 && cluster.raft(leader).lastIndex < index;
      if (index === 0 || isLost) index = leader === 0 ? 0 : cluster.propose(leader);
      const there = present();
      if (index === 0 || there.length === 0) return false;
      return there.every(({ raft }) => (raft?.commitIndex ?? 0) >= index);
    };
    try {
      cluster.runUntil(isServed, HEALED_TICKS_MAX);
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith('not reached')) throw error;
      throw new Violation(`Progress: ${error.message} after the chaos`);
    }
    const texts = new Set(present().map(({ id }) => cluster.diskText(id)));
    if (texts.size !== 1) throw new Violation(`Progress: ${texts.size} different logs at the end`);
  }
}
