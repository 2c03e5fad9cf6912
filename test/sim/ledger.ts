/**
 * What the nodes of one run applied, entry by entry, as each production machine said it.
 *
 * Owns: the first node's word on every index, and the comparison of all others with it, in every
 * life of every node: entry, outcomes, events, state digest (I5). Also where each entry is durable,
 * so that what is applied anywhere is known to be on a majority of disks (I10). Never: a rule of
 * the product. Filled by: sim-cluster.ts. Read by: the checkers.
 */
import { crc32 } from 'node:zlib';
import type { Command } from '../../src/core/locks/command.js';
import type { LockMachine } from '../../src/core/locks/lock-machine.js';
import type { Outcome } from '../../src/core/locks/outcome.js';
import type { Entry } from '../../src/core/raft/message.js';

/** One committed event, as a watcher would be told of it. */
export interface SeenEvent {
  readonly kind: number;
  readonly revision: number;
  readonly token: number;
  readonly place: number;
  readonly cause: number;
  readonly lock: string;
  /** Stamp of its entry, ms of cluster time. */
  readonly stampMs: number;
}

/** A plain copy of an outcome. */
export interface SeenOutcome {
  readonly code: number;
  readonly kind: number;
  readonly replay: boolean;
  readonly entryTime: number;
  readonly id: string;
  readonly token: number;
  readonly revision: number;
  readonly deadline: number;
  readonly ttlMs: number;
  readonly ahead: number;
  readonly cause: number;
  readonly holderSince: number;
  readonly holderPrincipal: number;
  readonly blob: Uint8Array;
}

export interface SeenCompletion {
  readonly place: number;
  readonly outcome: SeenOutcome;
}

/** One applied entry. */
export interface LedgerEntry {
  readonly index: number;
  readonly term: number;
  readonly stampMs: number;
  /** The entry's bytes, as the nodes have them. */
  readonly data: Uint8Array;
  /** When it was first applied anywhere, and when its leader made it, µs of true time. */
  readonly appliedUs: number;
  readonly madeUs: number;
  readonly makerId: number;
  readonly outcomes: readonly SeenOutcome[];
  readonly completions: readonly SeenCompletion[];
  readonly events: readonly SeenEvent[];
  /** One number over all of it, to compare other nodes with. */
  readonly sum: number;
  /** State digest after it, and the last revision. */
  readonly digest: string;
  readonly revision: number;
  /** After it something waits for cluster time. */
  readonly hasDeadlines: boolean;
}

/** What one node gathers while it applies an entry. */
class Draft {
  sum = 0;
  stampMs = 0;
  outcomes: SeenOutcome[] = [];
}

const text = new TextDecoder();

function hex(id0: number, id1: number, id2: number, id3: number): string {
  if ((id0 | id1 | id2 | id3) === 0) return '';
  const word = (value: number): string => (value >>> 0).toString(16).padStart(8, '0');
  return word(id0) + word(id1) + word(id2) + word(id3);
}

export function copyOutcome(outcome: Outcome): SeenOutcome {
  return {
    code: outcome.code,
    kind: outcome.kind,
    replay: outcome.replay,
    entryTime: outcome.entryTime,
    id: hex(outcome.id0, outcome.id1, outcome.id2, outcome.id3),
    token: outcome.token,
    revision: outcome.revision,
    deadline: outcome.deadline,
    ttlMs: outcome.ttlMs,
    ahead: outcome.ahead,
    cause: outcome.cause,
    holderSince: outcome.holderSince,
    holderPrincipal: outcome.holderPrincipal,
    blob: outcome.blob.slice(),
  };
}

function mix(sum: number, value: number): number {
  const mixed = Math.imul(sum ^ (value | 0), 0x01000193) ^ Math.floor(value / 2 ** 32);
  return (mixed ^ (mixed >>> 15)) | 0;
}

function mixOutcome(sum: number, outcome: Outcome): number {
  let mixed = mix(sum, outcome.code);
  mixed = mix(mixed, outcome.replay ? 1 : 0);
  mixed = mix(mixed, outcome.entryTime);
  mixed = mix(mixed, outcome.id0);
  mixed = mix(mixed, outcome.id3);
  mixed = mix(mixed, outcome.token);
  mixed = mix(mixed, outcome.revision);
  mixed = mix(mixed, outcome.deadline);
  mixed = mix(mixed, outcome.cause);
  return mix(mixed, outcome.ahead);
}

export class Ledger {
  /** Position is index - 1. */
  readonly entries: LedgerEntry[] = [];
  readonly problems: string[] = [];
  /** Snapshots that a node went on from. */
  snapshots = 0;
  /** A node was the first to apply an entry. */
  onFirst: (nodeId: number, entry: LedgerEntry) => void = () => undefined;
  /** Nodes, as bits, that had entry `index/term` on their disk at some time. */
  private readonly stored = new Map<string, number>();
  private readonly made = new Map<string, { atUs: number; nodeId: number }>();
  private readonly drafts = new Map<number, Draft>();

  constructor(
    private readonly majority: number,
    private readonly nowUs: () => number,
  ) {}

  /** A node handed an entry to its log for the first time: if it is its leader, it made it now. */
  noteMade(nodeId: number, entries: readonly Entry[]): void {
    for (const entry of entries) {
      const key = `${entry.index}/${entry.term}`;
      if (!this.made.has(key)) this.made.set(key, { atUs: this.nowUs(), nodeId });
    }
  }

  noteStored(nodeId: number, index: number, term: number): void {
    const key = `${index}/${term}`;
    this.stored.set(key, (this.stored.get(key) ?? 0) | (1 << nodeId));
  }

  /** A node goes on from a snapshot: it is the state at its index, as all others had it (I5). */
  checkSnapshot(nodeId: number, machine: LockMachine): void {
    const index = machine.appliedIndex;
    this.snapshots += 1;
    const entry = this.entries[index - 1];
    // Its head has what no digest covers.
    const isHeadSame = entry?.stampMs === machine.now && entry.revision === machine.revision;
    if (entry?.digest === machine.digest() && isHeadSame) return;
    this.problems.push(`snapshots: node ${nodeId} goes on from another state at ${index}`);
  }

  /** Listens to one life of a node's machine. */
  attach(nodeId: number, machine: LockMachine, entryAt: (index: number) => Entry | undefined) {
    const { beginEntry, apply, endEntry } = machine;
    const draft = new Draft();
    this.drafts.set(nodeId, draft);
    machine.beginEntry = (index, stampMs, ...entropy): void => {
      draft.sum = mix(stampMs, entropy[0]);
      draft.stampMs = stampMs;
      draft.outcomes = [];
      beginEntry.call(machine, index, stampMs, ...entropy);
    };
    machine.apply = (command: Command, outcome: Outcome): void => {
      apply.call(machine, command, outcome);
      draft.sum = mixOutcome(draft.sum, outcome);
      if (machine.appliedIndex > this.entries.length) draft.outcomes.push(copyOutcome(outcome));
    };
    machine.endEntry = (): void => {
      endEntry.call(machine);
      this.onApplied(nodeId, machine, draft, entryAt(machine.appliedIndex));
    };
  }

  private onApplied(
    nodeId: number,
    machine: LockMachine,
    draft: Draft,
    entry: Entry | undefined,
  ): void {
    const index = machine.appliedIndex;
    const { events, completions } = machine;
    let { sum } = draft;
    if (entry !== undefined) sum = mix(sum, crc32(entry.data));
    for (let i = 0; i < events.count; i += 1) {
      const event = events.at(i);
      sum = mix(mix(mix(sum, event.kind), event.revision), event.cause);
      sum = mix(mix(sum, event.token), event.place);
    }
    for (let i = 0; i < completions.count; i += 1) {
      sum = mixOutcome(mix(sum, completions.at(i).place), completions.at(i).outcome);
    }
    const known = this.entries[index - 1];
    const digest = machine.digest();
    if (known === undefined) {
      this.add(machine, draft, entry, sum, digest, nodeId);
      return;
    }
    if (entry !== undefined && entry.term !== known.term) {
      this.problems.push(
        `I5: node ${nodeId} applied term ${entry.term} at ${index}, another term ${known.term}`,
      );
    } else if (sum !== known.sum) {
      this.problems.push(`I5: node ${nodeId} applied another entry or result at ${index}`);
    }
    if (digest !== known.digest) {
      this.problems.push(`digest: node ${nodeId} differs after entry ${index}`);
    }
  }

  private add(
    machine: LockMachine,
    draft: Draft,
    entry: Entry | undefined,
    sum: number,
    digest: string,
    nodeId: number,
  ): void {
    const index = machine.appliedIndex;
    if (entry === undefined || index !== this.entries.length + 1) {
      this.problems.push(`I5: node ${nodeId} applied ${index} after ${this.entries.length}`);
      return;
    }
    const { term, data } = entry;
    const made = this.made.get(`${index}/${term}`);
    this.entries.push({
      index,
      term,
      stampMs: draft.stampMs,
      data: data.slice(),
      appliedUs: this.nowUs(),
      madeUs: made?.atUs ?? this.nowUs(),
      makerId: made?.nodeId ?? 0,
      outcomes: draft.outcomes,
      completions: copyCompletions(machine),
      events: copyEvents(machine, draft.stampMs),
      sum,
      digest,
      revision: machine.revision,
      hasDeadlines: machine.hasDeadlines,
    });
    this.checkStored(nodeId, index, term);
    this.onFirst(nodeId, this.entries[index - 1] as LedgerEntry);
  }

  /** I5, I10: what is applied anywhere is durable on a majority. */
  private checkStored(nodeId: number, index: number, term: number): void {
    const nodes = this.stored.get(`${index}/${term}`) ?? 0;
    let count = 0;
    for (let bits = nodes; bits !== 0; bits &= bits - 1) count += 1;
    if (count >= this.majority) return;
    this.problems.push(
      `I10: node ${nodeId} applied ${index} of term ${term}, which ${count} disks have`,
    );
  }
}

function copyCompletions(machine: LockMachine): SeenCompletion[] {
  const copies: SeenCompletion[] = [];
  for (let i = 0; i < machine.completions.count; i += 1) {
    const { place, outcome } = machine.completions.at(i);
    copies.push({ place, outcome: copyOutcome(outcome) });
  }
  return copies;
}

function copyEvents(machine: LockMachine, stampMs: number): SeenEvent[] {
  const copies: SeenEvent[] = [];
  for (let i = 0; i < machine.events.count; i += 1) {
    const event = machine.events.at(i);
    const { kind, revision, token, place, cause } = event;
    const lock = text.decode(machine.eventName(event));
    copies.push({ kind, revision, token, place, cause, lock, stampMs });
  }
  return copies;
}
