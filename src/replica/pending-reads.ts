/**
 * Linearizable reads on their way: gathered, in a round, or waiting for an index to be applied.
 *
 * Owns: which read is at which stage. All reads that arrive in one turn share one round. Never: an
 * answer; reads.ts gives those. Used by: queries (adds), turn, reads, upkeep (deadlines).
 */
import { READ_ROUNDS_MAX } from '../limits.js';
import type { Query } from '../wire/query.js';
import type { Connection } from './connection.js';

/** One read that has not been answered. */
export interface PendingRead {
  readonly connection: Connection;
  readonly correlation: number;
  readonly query: Query;
  /** ClockPort µs. */
  readonly deadlineUs: number;
}

interface ReadBatch {
  reads: PendingRead[];
  /** When its round was asked for, µs. */
  readonly startedUs: number;
  /** The index that must be applied first, once it is known. */
  index: number;
}

export class PendingReads {
  /** Reads that have not been given a round. */
  gathered: PendingRead[] = [];
  private readonly rounds = new Map<number, ReadBatch>();
  private confirmed: ReadBatch[] = [];
  /** Reads that wait for a revision which is not there yet. */
  private early: PendingRead[] = [];
  /** Reads that may be answered now, from readyHead on. */
  private ready: PendingRead[] = [];
  private readyHead = 0;
  private lastContext = 0;

  get count(): number {
    let count = this.gathered.length + this.early.length + this.readyCount;
    for (const batch of this.rounds.values()) count += batch.reads.length;
    for (const batch of this.confirmed) count += batch.reads.length;
    return count;
  }

  /** True when as many rounds are out as may be: reads go on gathering. */
  get isFull(): boolean {
    return this.rounds.size >= READ_ROUNDS_MAX;
  }

  /** Puts the gathered reads into a new round and returns its context. */
  begin(nowUs: number): number {
    this.lastContext += 1;
    this.rounds.set(this.lastContext, { reads: this.gathered, startedUs: nowUs, index: 0 });
    this.gathered = [];
    return this.lastContext;
  }

  confirm(context: number, index: number): void {
    const batch = this.rounds.get(context);
    if (batch === undefined) return;
    this.rounds.delete(context);
    batch.index = index;
    this.confirmed.push(batch);
  }

  /** The round will not be confirmed: its reads are gathered again. */
  abort(context: number): void {
    const batch = this.rounds.get(context);
    if (batch === undefined) return;
    this.rounds.delete(context);
    this.gathered.push(...batch.reads);
  }

  /** Aborts the rounds that were asked for before `beforeUs`. */
  abortOlder(beforeUs: number): void {
    for (const [context, batch] of this.rounds) {
      if (batch.startedUs < beforeUs) this.abort(context);
    }
  }

  get readyCount(): number {
    return this.ready.length - this.readyHead;
  }

  /** This read needs no read point: it is answered when its turn comes. */
  addReady(read: PendingRead): void {
    this.ready.push(read);
  }

  /** Makes ready what waited for an index or a revision that is there now. */
  promote(appliedIndex: number, revision: number): void {
    if (this.confirmed.length > 0) {
      const later: ReadBatch[] = [];
      for (const batch of this.confirmed) {
        if (batch.index <= appliedIndex) this.ready.push(...batch.reads);
        else later.push(batch);
      }
      this.confirmed = later;
    }
    if (this.early.length === 0) return;
    const early = this.early;
    this.early = [];
    for (const read of early) {
      if (read.query.atLeastRevision <= revision) this.ready.push(read);
      else this.early.push(read);
    }
  }

  /** Removes and returns the next ready read. */
  shiftReady(): PendingRead | undefined {
    const read = this.ready[this.readyHead];
    if (read === undefined) return undefined;
    this.readyHead += 1;
    if (this.readyHead === this.ready.length) {
      this.ready = [];
      this.readyHead = 0;
    }
    return read;
  }

  /** The revision this read wants has not come yet: it waits for it. */
  postpone(read: PendingRead): void {
    this.early.push(read);
  }

  /** Removes and returns the reads that got no read point by their deadline. */
  takeUnconfirmed(nowUs: number): PendingRead[] {
    const overdue: PendingRead[] = [];
    this.gathered = sift(this.gathered, nowUs, overdue);
    for (const batch of this.rounds.values()) batch.reads = sift(batch.reads, nowUs, overdue);
    return overdue;
  }

  /** Removes and returns the reads that had a read point and were not answered in time. */
  takeLate(nowUs: number): PendingRead[] {
    const overdue: PendingRead[] = [];
    this.early = sift(this.early, nowUs, overdue);
    this.ready = sift(this.ready.slice(this.readyHead), nowUs, overdue);
    this.readyHead = 0;
    for (const batch of this.confirmed) batch.reads = sift(batch.reads, nowUs, overdue);
    return overdue;
  }
}

/** The reads that go on; those whose time or connection is over are added to `overdue`. */
function sift(reads: readonly PendingRead[], nowUs: number, overdue: PendingRead[]): PendingRead[] {
  return reads.filter((read) => {
    if (read.deadlineUs > nowUs && !read.connection.closed) return true;
    overdue.push(read);
    return false;
  });
}
