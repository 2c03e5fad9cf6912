/**
 * The replicated log as raft sees it: the term of every index, and the newest entries themselves.
 *
 * Owns: term runs from the base to the last index, and a window of entries in memory. Never: a
 * disk. Entries that left the window are still in the log; they are read through Effects.logReads.
 * Used by: the rules in this folder; the replica reads committed entries from the window.
 */
import { assert } from '../../collections/assert.js';
import { Entry, EntryKind } from './message.js';

/** Stands where a forgotten entry stood, so that its bytes are not kept alive. */
const FORGOTTEN = new Entry(0, 0, EntryKind.NoOp, new Uint8Array(0));

/** Where a conflict may begin, as found by findConflictByTerm. */
export interface LogPosition {
  readonly index: number;
  /** 0 when the term at `index` is not known here. */
  readonly term: number;
}

export class RaftLog {
  /** Ascending indices at which a new term starts, and those terms. */
  private readonly runStarts: number[] = [];
  private readonly runTerms: number[] = [];
  /** Entries windowFirst … lastIndex live in window[windowHead …]. */
  private window: Entry[] = [];
  private windowHead = 0;
  private windowBytes = 0;
  private last: number;
  private base: number;
  private termOfBase: number;

  /** Index and term that the log starts behind: 0, 0, or an index that a snapshot covers. */
  constructor(baseIndex: number, baseTerm: number) {
    this.base = baseIndex;
    this.termOfBase = baseTerm;
    this.last = baseIndex;
  }

  /** What lies at or before this index is in a snapshot; only the term at the index is known. */
  get baseIndex(): number {
    return this.base;
  }

  get baseTerm(): number {
    return this.termOfBase;
  }

  /** Fills an empty log with what a disk holds: term runs, last index, newest entries. */
  restore(
    termStarts: readonly { readonly index: number; readonly term: number }[],
    lastIndex: number,
    tail: readonly Entry[],
  ): void {
    assert(this.last === this.base, 'restore: the log is empty');
    for (let i = 0; i < termStarts.length; i += 1) {
      const start = termStarts[i] as { index: number; term: number };
      assert(start.term >= this.lastTerm, 'restore: terms never fall');
      this.runStarts.push(start.index);
      this.runTerms.push(start.term);
    }
    this.last = lastIndex;
    for (let i = 0; i < tail.length; i += 1) {
      const entry = tail[i] as Entry;
      assert(entry.index === lastIndex - tail.length + 1 + i, 'restore: tail ends at lastIndex');
      this.window.push(entry);
      this.windowBytes += entry.data.length;
    }
  }

  get lastIndex(): number {
    return this.last;
  }

  get lastTerm(): number {
    const runs = this.runTerms.length;
    return runs === 0 ? this.termOfBase : (this.runTerms[runs - 1] as number);
  }

  /** First index whose entry is in memory; lastIndex + 1 when none is. */
  get windowFirst(): number {
    return this.last - (this.window.length - this.windowHead) + 1;
  }

  /** The term at `index`, or 0 when it lies before the base or past the end. */
  termAt(index: number): number {
    if (index === this.base) return this.termOfBase;
    if (index < this.base || index > this.last) return 0;
    let low = 0;
    let high = this.runStarts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      if ((this.runStarts[middle] as number) <= index) low = middle;
      else high = middle - 1;
    }
    return this.runTerms[low] as number;
  }

  /** Raft §5.3: the entry at `index` has `term` (index 0 with term 0 always matches). */
  isMatch(index: number, term: number): boolean {
    if (index > this.last || index < this.base) return false;
    return this.termAt(index) === term;
  }

  /** Raft §5.4.1: a log ending in (index, term) is at least as up to date as this one. */
  isUpToDate(index: number, term: number): boolean {
    const ownTerm = this.lastTerm;
    return term > ownTerm || (term === ownTerm && index >= this.last);
  }

  /** The entry when it is in memory, else undefined. */
  entryAt(index: number): Entry | undefined {
    const first = this.windowFirst;
    if (index < first || index > this.last) return undefined;
    return this.window[this.windowHead + index - first];
  }

  append(entry: Entry): void {
    assert(entry.index === this.last + 1, 'append: indices are consecutive');
    const lastTerm = this.lastTerm;
    assert(entry.term >= lastTerm, 'append: terms never fall');
    if (entry.term > lastTerm || this.runStarts.length === 0) {
      this.runStarts.push(entry.index);
      this.runTerms.push(entry.term);
    }
    this.window.push(entry);
    this.windowBytes += entry.data.length;
    this.last = entry.index;
  }

  /** Removes `index` and everything after it. */
  truncateFrom(index: number): void {
    assert(index > this.base, 'truncate: never behind the base');
    const first = this.windowFirst;
    const keep = Math.max(0, index - first);
    for (let i = this.windowHead + keep; i < this.window.length; i += 1) {
      this.windowBytes -= (this.window[i] as Entry).data.length;
    }
    this.window.length = this.windowHead + keep;
    while (
      this.runStarts.length > 0 &&
      (this.runStarts[this.runStarts.length - 1] as number) >= index
    ) {
      this.runStarts.pop();
      this.runTerms.pop();
    }
    this.last = index - 1;
  }

  /** Forgets that there were entries up to `index`: a snapshot covers them. */
  compactTo(index: number): void {
    assert(index <= this.last, 'compact: not past the end of the log');
    if (index <= this.base) return;
    this.termOfBase = this.termAt(index);
    this.base = index;
    let past = 0;
    while (past + 1 < this.runStarts.length && (this.runStarts[past + 1] as number) <= index + 1) {
      past += 1;
    }
    this.runStarts.splice(0, past);
    this.runTerms.splice(0, past);
    if (index === this.last) {
      this.runStarts.length = 0;
      this.runTerms.length = 0;
    } else {
      this.runStarts[0] = Math.max(this.runStarts[0] as number, index + 1);
    }
  }

  /** Forgets everything: a snapshot at (index, term) stands for it (Raft §7). */
  resetTo(index: number, term: number): void {
    this.base = index;
    this.termOfBase = term;
    this.last = index;
    this.runStarts.length = 0;
    this.runTerms.length = 0;
    this.window.length = 0;
    this.windowHead = 0;
    this.windowBytes = 0;
  }

  /**
   * Forgets the oldest entries in memory up to `upTo` while more than `entriesMax` or `bytesMax`
   * are held; they stay in the log.
   */
  trimWindow(upTo: number, entriesMax: number, bytesMax: number): void {
    let first = this.windowFirst;
    while (
      first <= upTo &&
      (this.window.length - this.windowHead > entriesMax || this.windowBytes > bytesMax)
    ) {
      this.windowBytes -= (this.window[this.windowHead] as Entry).data.length;
      this.window[this.windowHead] = FORGOTTEN;
      this.windowHead += 1;
      first += 1;
    }
    if (this.windowHead > 1_024 && this.windowHead * 2 > this.window.length) {
      this.window = this.window.slice(this.windowHead);
      this.windowHead = 0;
    }
  }

  /**
   * Fast back-up (Raft §5.3, end; etcd raft's findConflictByTerm): the greatest index ≤ `index`
   * whose term is ≤ `term`. Only there can two logs that disagree at `index` agree.
   */
  findConflictByTerm(index: number, term: number): LogPosition {
    let candidate = Math.min(index, this.last);
    for (let run = this.runStarts.length - 1; run >= 0; run -= 1) {
      const start = this.runStarts[run] as number;
      if (start > candidate) continue;
      if ((this.runTerms[run] as number) <= term) {
        return { index: candidate, term: this.runTerms[run] as number };
      }
      candidate = start - 1;
    }
    return { index: Math.max(candidate, 0), term: this.termAt(candidate) };
  }
}
