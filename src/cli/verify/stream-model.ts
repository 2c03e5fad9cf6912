/**
 * What the audit stream says of each lock, event by event, and whether it could have been so.
 *
 * Owns: the rules: revisions without a gap, tokens that rise, one holder, waiters in their order,
 * no new acquire where an operator has disabled them. It shares no code with the lock machine. A
 * stream that begins late does not know what was before: that is left open, and never guessed.
 * Never: asks a node. Used by: stream-check.ts, drills/stream-rules.ts.
 */
import { crc32 } from 'node:zlib';
import type { Json } from '../../wire/event-json.js';

/** Revisions in a block whose events two nodes are compared by. */
export const BLOCK_REVISIONS = 1_000;
const UNKNOWN = -1;

/** What an event can break. */
export const StreamRule = {
  /** Every revision once, in order; only kinds that are known. */
  Order: 0,
  /** Tokens rise, each the revision of its grant. */
  Tokens: 1,
  /** One holder at a time. */
  Holders: 2,
  /** Waiters are granted in the order of their places. */
  Queues: 3,
  /** Nobody is granted or queued anew where that is disabled. */
  Disabled: 4,
} as const;
export type StreamRule = (typeof StreamRule)[keyof typeof StreamRule];

/** Told of each event that breaks a rule. */
export interface StreamFaults {
  add(rule: StreamRule, revision: number, name: string, found: string): void;
}

/** What operators and guards say: no lock changes hands by it. */
const SAID: ReadonlySet<unknown> = new Set(['refused', 'fenced', 'expelled']);

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
  /** Names and prefixes that are disabled; a prefix is true. */
  private readonly disabled = new Map<
    string,
    { readonly name: string; readonly isPrefix: boolean }
  >();
  private lastToken = 0;
  private blockCrc = 0;
  private isBlockWhole = false;

  /**
   * @param first the revision that the stream begins with.
   * @param isWhole false: only locks under a prefix are told, so revisions of others lie between.
   */
  constructor(
    private readonly first: number,
    private readonly faults: StreamFaults,
    private readonly isWhole = true,
  ) {
    this.next = first;
  }

  /** Names of the locks that are held or waited for, as far as is known. */
  *activeNames(): Generator<string> {
    for (const [name, { holder, places }] of this.locks) {
      if (holder > 0 || places.size > 0) yield name;
    }
  }

  /** Token of the holder of each lock that is held, as far as is known. */
  *holders(): Generator<readonly [string, number]> {
    for (const [name, { holder }] of this.locks) if (holder > 0) yield [name, holder];
  }

  take(event: Json): void {
    const revision = Number(event['revision']);
    const name = String(event['name']);
    this.countUp(revision, name);
    this.events += 1;
    this.addToBlock(revision, event);
    const { type } = event;
    if (SAID.has(type)) return;
    if (type === 'disabled' || type === 'enabled') this.onRule(revision, name, event);
    else this.onLock(revision, name, event);
  }

  private countUp(revision: number, name: string): void {
    const { Order } = StreamRule;
    if (revision < this.next) {
      this.tell(Order, revision, name, `it comes after revision ${this.next - 1}`);
    } else if (revision > this.next && this.isWhole) {
      const [first, last] = [this.next, revision - 1];
      const gap = first === last ? `revision ${first} is` : `revisions ${first} to ${last} are`;
      this.tell(Order, revision, name, `${gap} missing before it`);
    }
    this.next = Math.max(this.next, revision + 1);
  }

  private onRule(revision: number, name: string, event: Json): void {
    const isPrefix = event['place'] === 1;
    const key = `${isPrefix ? 'p' : 'n'}${name}`;
    const isOn = this.disabled.has(key);
    const { Disabled } = StreamRule;
    if (event['type'] === 'disabled') {
      if (isOn) this.tell(Disabled, revision, name, 'disabled, which it was already');
      this.disabled.set(key, { name, isPrefix });
    } else {
      const isNews = !isOn && this.first === 1 && this.isWhole;
      if (isNews) this.tell(Disabled, revision, name, 'enabled, and was not disabled');
      this.disabled.delete(key);
    }
  }

  private onLock(revision: number, name: string, event: Json): void {
    const tale = this.locks.get(name) ?? new LockTale(this.first === 1);
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
        if (place !== revision) {
          this.tell(StreamRule.Queues, revision, name, `queued at place ${place}`);
        }
        this.checkEnabled(revision, name, 'queued');
        tale.places.add(place);
        break;
      case 'left':
        this.leave(tale, revision, name, place);
        break;
      default:
        this.tell(
          StreamRule.Order,
          revision,
          name,
          `an event of a kind that is not known: ${event['type']}`,
        );
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

  private onGranted(
    tale: LockTale,
    revision: number,
    name: string,
    token: number,
    place: number,
  ): void {
    if (token !== revision) {
      this.tell(StreamRule.Tokens, revision, name, `granted with token ${token}`);
    }
    if (token <= this.lastToken) {
      const found = `token ${token} is not above token ${this.lastToken}`;
      this.tell(StreamRule.Tokens, revision, name, found);
    }
    this.lastToken = Math.max(this.lastToken, token);
    if (tale.holder > 0) {
      const found = `granted while token ${tale.holder} has not ended`;
      this.tell(StreamRule.Holders, revision, name, found);
    }
    if (place > 0) this.serve(tale, revision, name, place);
    else this.onGrantedAtOnce(tale, revision, name);
    tale.holder = token;
    tale.lastRevision = revision;
  }

  private onEnded(tale: LockTale, revision: number, name: string, token: number): void {
    const isOld = tale.holder === UNKNOWN && token < this.first;
    if (tale.holder !== token && !isOld) {
      const holder = tale.holder > 0 ? `token ${tale.holder} holds it` : 'nobody holds it';
      this.tell(StreamRule.Holders, revision, name, `token ${token} ended, and ${holder}`);
    }
    tale.holder = 0;
    tale.lastRevision = revision;
  }

  /** A waiter is granted: it must be the first. */
  private serve(tale: LockTale, revision: number, name: string, place: number): void {
    const [first] = tale.places;
    const isOld = !tale.isWhole && place < this.first;
    if (first !== place && !isOld) {
      const found = `place ${place} is granted, first is ${first ?? 'nobody'}`;
      this.tell(StreamRule.Queues, revision, name, found);
    }
    tale.places.delete(place);
  }

  private leave(tale: LockTale, revision: number, name: string, place: number): void {
    const isOld = !tale.isWhole && place < this.first;
    if (!tale.places.delete(place) && !isOld) {
      const found = `place ${place} leaves, and is not in the queue`;
      this.tell(StreamRule.Queues, revision, name, found);
    }
  }

  /** Granted without a wait: nobody may have stood there, and acquires must have been taken. */
  private onGrantedAtOnce(tale: LockTale, revision: number, name: string): void {
    if (tale.places.size > 0) {
      this.tell(StreamRule.Queues, revision, name, 'granted past those who wait');
    }
    this.checkEnabled(revision, name, 'granted');
    tale.isWhole = true;
  }

  private checkEnabled(revision: number, name: string, what: string): void {
    for (const rule of this.disabled.values()) {
      const isCovered = rule.isPrefix ? name.startsWith(rule.name) : name === rule.name;
      if (!isCovered) continue;
      const words = `${what} while ${rule.name}${rule.isPrefix ? '*' : ''} is disabled`;
      this.tell(StreamRule.Disabled, revision, name, words);
    }
  }

  private tell(rule: StreamRule, revision: number, name: string, found: string): void {
    this.faults.add(rule, revision, name, found);
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
