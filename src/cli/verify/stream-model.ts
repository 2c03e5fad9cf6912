/**
 * What the audit stream says of each lock, event by event, and whether it could have been so.
 *
 * Owns: the rules: revisions without a gap, tokens that rise, one holder, waiters in their order.
 * It shares no code with the lock machine. A stream that begins late does not know what was before:
 * that is left open, and never guessed. Never: asks a node. Used by: stream-check.ts.
 */
import { crc32 } from 'node:zlib';
import type { Json } from '../../wire/event-json.js';
import { Check, type Findings } from './finding.js';

/** Revisions in a block whose events two nodes are compared by. */
export const BLOCK_REVISIONS = 1_000;
const UNKNOWN = -1;

/** A lock as a node shows it. */
export interface ShownLock {
  readonly name: string;
  /** Revision of its last grant or end. */
  readonly lastRevision: number;
  /** The holder’s token, 0 for nobody. */
  readonly token: number;
  readonly waiters: number;
}

class LockTale {
  /** Token of the holder, 0 for nobody, UNKNOWN before the first event that says so. */
  holder: number;
  lastRevision = 0;
  /** Places in the queue, in their order. */
  readonly places = new Set<number>();

  /** `isWhole`: everything of the queue is known. */
  constructor(public isWhole: boolean) {
    this.holder = isWhole ? 0 : UNKNOWN;
  }
}

export class StreamModel {
  /** The revision that the next event must have. */
  next: number;
  /** CRC-32 of the events of each block that was seen whole, by its number. */
  readonly blocks = new Map<number, number>();
  events = 0;
  private readonly locks = new Map<string, LockTale>();
  private lastToken = 0;
  private blockCrc = 0;
  private isBlockWhole = false;
  /** True when nothing was held or waited for where the stream begins. */
  private isWhole: boolean;

  /** `first`: the revision that the stream begins with. */
  constructor(
    private readonly first: number,
    private readonly findings: Findings,
  ) {
    this.next = first;
    this.isWhole = first === 1;
  }

  /** Names of the locks that are held or waited for, as far as is known. */
  *activeNames(): Generator<string> {
    for (const [name, { holder, places }] of this.locks) {
      if (holder > 0 || places.size > 0) yield name;
    }
  }

  take(event: Json): void {
    const revision = Number(event['revision']);
    const name = String(event['name']);
    if (revision !== this.next) {
      const found =
        revision > this.next
          ? `revisions ${this.next} to ${revision - 1} are missing before it`
          : `it comes after revision ${this.next - 1}`;
      this.tell(revision, name, found);
    }
    this.next = revision + 1;
    this.events += 1;
    this.addToBlock(revision, event);
    if (event['type'] === 'restored') {
      this.onRestored(revision);
      return;
    }
    const tale = this.locks.get(name) ?? new LockTale(this.isWhole);
    this.locks.set(name, tale);
    const token = Number(event['fencing_token']);
    const place = Number(event['place']);
    switch (event['type']) {
      case 'granted':
        this.onGranted(tale, revision, name, token, place);
        break;
      case 'ended':
        this.onEnded(tale, revision, name, token);
        break;
      case 'queued':
        if (place !== revision) this.tell(revision, name, `queued at place ${place}`);
        tale.places.add(place);
        break;
      case 'left':
        this.leave(tale, revision, name, place);
        break;
      default:
        this.tell(revision, name, `an event of a kind that is not known: ${event['type']}`);
    }
    if (tale.isWhole && tale.holder === 0 && tale.places.size === 0) this.locks.delete(name);
  }

  /** Null when a lock is shown as the stream has left it, else how they differ. */
  compare(shown: ShownLock): string | null {
    const { name, token, waiters, lastRevision } = shown;
    const tale = this.locks.get(name);
    if (tale === undefined) {
      const isOld = token < this.first && lastRevision < this.first && this.first > 1;
      const isIdle = token === 0 && waiters === 0;
      return isOld || isIdle ? null : `shown with token ${token}, the stream says it is free`;
    }
    const { holder, places, isWhole } = tale;
    const isFree = holder <= 0 && places.size === 0;
    if (isFree && token === 0 && waiters === 0) return null;
    if (holder !== UNKNOWN && holder !== token) {
      return `shown with token ${token}, by the stream it is ${holder}`;
    }
    if (tale.lastRevision > 0 && tale.lastRevision !== lastRevision) {
      return `shown with last revision ${lastRevision}, by the stream it is ${tale.lastRevision}`;
    }
    const isRight = isWhole ? places.size === waiters : places.size <= waiters;
    return isRight ? null : `shown with ${waiters} waiters, by the stream it has ${places.size}`;
  }

  /** A restored state holds nothing; its event is the first of the new cluster. */
  private onRestored(revision: number): void {
    if (revision === this.first) this.isWhole = true;
    else this.tell(revision, 'the cluster', 'restored in the middle of its stream');
  }

  private onGranted(
    tale: LockTale,
    revision: number,
    name: string,
    token: number,
    place: number,
  ): void {
    if (token !== revision) this.tell(revision, name, `granted with token ${token}`);
    if (token <= this.lastToken) {
      this.tell(revision, name, `token ${token} is not above token ${this.lastToken}`);
    }
    this.lastToken = Math.max(this.lastToken, token);
    if (tale.holder > 0) {
      this.tell(revision, name, `granted while token ${tale.holder} has not ended`);
    }
    if (place > 0) this.serve(tale, revision, name, place);
    else if (tale.places.size > 0) this.tell(revision, name, 'granted past those who wait');
    if (place === 0) tale.isWhole = true;
    tale.holder = token;
    tale.lastRevision = revision;
  }

  private onEnded(tale: LockTale, revision: number, name: string, token: number): void {
    const isOld = tale.holder === UNKNOWN && token < this.first;
    if (tale.holder !== token && !isOld) {
      const holder = tale.holder > 0 ? `token ${tale.holder} holds it` : 'nobody holds it';
      this.tell(revision, name, `token ${token} ended, and ${holder}`);
    }
    tale.holder = 0;
    tale.lastRevision = revision;
  }

  /** A waiter is granted: it must be the first. */
  private serve(tale: LockTale, revision: number, name: string, place: number): void {
    const [first] = tale.places;
    const isOld = !tale.isWhole && place < this.first;
    if (first !== place && !isOld) {
      this.tell(revision, name, `place ${place} is granted, first is ${first ?? 'nobody'}`);
    }
    tale.places.delete(place);
  }

  private leave(tale: LockTale, revision: number, name: string, place: number): void {
    const isOld = !tale.isWhole && place < this.first;
    if (!tale.places.delete(place) && !isOld) {
      this.tell(revision, name, `place ${place} leaves, and is not in the queue`);
    }
  }

  private tell(revision: number, name: string, found: string): void {
    this.findings.add(Check.Stream, `revision ${revision} of ${name}`, found);
  }

  private addToBlock(revision: number, event: Json): void {
    const at = revision % BLOCK_REVISIONS;
    if (at === 0) {
      this.blockCrc = 0;
      this.isBlockWhole = true;
    }
    this.blockCrc = crc32(JSON.stringify(event), this.blockCrc);
    if (at !== BLOCK_REVISIONS - 1 || !this.isBlockWhole) return;
    this.blocks.set((revision - at) / BLOCK_REVISIONS, this.blockCrc);
  }
}

/** Blocks that both have seen and whose events differ: their first revisions. */
export function differingBlocks(left: StreamModel, right: StreamModel): number[] {
  const differing: number[] = [];
  for (const [block, crc] of left.blocks) {
    const other = right.blocks.get(block);
    if (other !== undefined && other !== crc) differing.push(block * BLOCK_REVISIONS);
  }
  return differing;
}
