/**
 * Who watches what, and how far each watch has been told (invariant I9).
 *
 * Owns: the watches of a node. A watch is *live* when it has been told everything that was applied;
 * live watches of one name or prefix share one encoding of each event. One that is behind (resumed,
 * taking a snapshot, or slow) is caught up from the ring, a bounded amount a turn, and is told
 * COMPACTED when the ring has passed it. Never: waited for, never without a bound. Used by: turn.
 */

import { OutBuffer } from '../wire/out-buffer.js';
import type { Connection } from './connection.js';
import type { EventRing } from './event-ring.js';

/** A part of a snapshot: names up to `end` were told as they were at `revision`. */
export interface SnapshotPage {
  /** Last name of the page, a character a byte; null on the last page: all that follow. */
  readonly end: string | null;
  readonly revision: number;
}

export class Watch {
  /** The next revision to look at. */
  next: number;
  /** ClockPort µs of the last part that it was given. */
  toldUs = 0;
  isLive = false;
  isEnded = false;
  /** True while its connection reads too slowly to be told anything. */
  isBlocked = false;
  /** True while its snapshot is being told; `cursor` is the last name that was looked at. */
  isTakingSnapshot = false;
  cursor: Uint8Array | null = null;
  /** The pages of its snapshot, until the events have passed them all. */
  pages: SnapshotPage[] = [];
  /** Where live watches of the same name or prefix are listed. */
  readonly topic: Topic;

  constructor(
    readonly connection: Connection,
    readonly correlation: number,
    topic: Topic,
    next: number,
  ) {
    this.topic = topic;
    this.next = next;
  }
}

/** A name or prefix that somebody watches. */
export class Topic {
  readonly live = new Set<Watch>();
  /** Watches of it, live or not. */
  count = 0;
  /** Rows that its live watches have not been given yet, the first and last of their revisions. */
  readonly rows = new OutBuffer();
  rowCount = 0;
  firstRevision = 0;
  lastRevision = 0;

  constructor(
    readonly name: Uint8Array,
    readonly isPrefix: boolean,
    readonly key: string,
  ) {}

  /** True when an event of this lock is one of its. */
  matches(name: Uint8Array): boolean {
    const own = this.name;
    if (this.isPrefix ? name.length < own.length : name.length !== own.length) return false;
    for (let at = 0; at < own.length; at += 1) if (name[at] !== own[at]) return false;
    return true;
  }
}

/** A character a byte, so that texts compare as the bytes do. */
export function keyOf(bytes: Uint8Array): string {
  return String.fromCharCode(...bytes);
}

export class Watches {
  /** Every revision below has been given to the live watches. */
  seen = 1;
  /** Topics with rows that have not been given out. */
  readonly touched: Topic[] = [];
  /** Watches that are not live, in the order in which they are served. */
  behind: Watch[] = [];
  /** ClockPort µs of the last look for watches that want a mark of progress. */
  markedUs = 0;
  private readonly exact = new Map<string, Topic>();
  private readonly prefixes = new Map<number, Map<string, Topic>>();
  private readonly byConnection = new Map<Connection, Map<number, Watch>>();
  count = 0;

  countOf(connection: Connection): number {
    return this.byConnection.get(connection)?.size ?? 0;
  }

  /** Adds a watch that is behind; `next` is the first revision it wants. */
  add(
    connection: Connection,
    correlation: number,
    name: Uint8Array,
    isPrefix: boolean,
    next: number,
  ): Watch {
    this.remove(connection, correlation);
    const topic = this.topicOf(name, isPrefix);
    const watch = new Watch(connection, correlation, topic, next);
    topic.count += 1;
    this.count += 1;
    this.behind.push(watch);
    const own = this.byConnection.get(connection);
    if (own === undefined) this.byConnection.set(connection, new Map([[correlation, watch]]));
    else own.set(correlation, watch);
    return watch;
  }

  /** Ends a watch. False when the connection has none of this correlation. */
  remove(connection: Connection, correlation: number): boolean {
    const own = this.byConnection.get(connection);
    const watch = own?.get(correlation);
    if (own === undefined || watch === undefined) return false;
    own.delete(correlation);
    if (own.size === 0) this.byConnection.delete(connection);
    this.leave(watch);
    if (!watch.isLive) this.behind = this.behind.filter((each) => each !== watch);
    return true;
  }

  /** Ends the watches of a connection that has closed. */
  removeAll(connection: Connection): void {
    const own = this.byConnection.get(connection);
    if (own === undefined) return;
    this.byConnection.delete(connection);
    for (const watch of own.values()) this.leave(watch);
    this.behind = this.behind.filter((each) => each.connection !== connection);
  }

  /** This watch has been told everything below `seen`. */
  makeLive(watch: Watch): void {
    watch.isLive = true;
    watch.isBlocked = false;
    watch.pages = [];
    watch.topic.live.add(watch);
  }

  /** This watch is to be caught up from `next` on. */
  makeBehind(watch: Watch, next: number): void {
    watch.isLive = false;
    watch.next = next;
    watch.topic.live.delete(watch);
    this.behind.push(watch);
  }

  /** Calls `visit` with each topic that an event of the lock `name` is one of. */
  forEachTopic(name: Uint8Array, visit: (topic: Topic) => void): void {
    const key = keyOf(name);
    const exact = this.exact.get(key);
    if (exact !== undefined) visit(exact);
    for (const [length, topics] of this.prefixes) {
      if (length > key.length) continue;
      const topic = topics.get(key.slice(0, length));
      if (topic !== undefined) visit(topic);
    }
  }

  /** Calls `visit` with each live watch. */
  forEachLive(visit: (watch: Watch) => void): void {
    for (const topic of this.exact.values()) topic.live.forEach(visit);
    for (const topics of this.prefixes.values()) {
      for (const topic of topics.values()) topic.live.forEach(visit);
    }
  }

  private leave(watch: Watch): void {
    const { topic } = watch;
    topic.live.delete(watch);
    topic.count -= 1;
    this.count -= 1;
    if (topic.count > 0) return;
    if (!topic.isPrefix) {
      this.exact.delete(topic.key);
      return;
    }
    const topics = this.prefixes.get(topic.name.length);
    topics?.delete(topic.key);
    if (topics?.size === 0) this.prefixes.delete(topic.name.length);
  }

  private topicOf(name: Uint8Array, isPrefix: boolean): Topic {
    let topics = this.exact;
    if (isPrefix) {
      topics = this.prefixes.get(name.length) ?? new Map<string, Topic>();
      this.prefixes.set(name.length, topics);
    }
    const key = keyOf(name);
    const known = topics.get(key);
    if (known !== undefined) return known;
    const topic = new Topic(name, isPrefix, key);
    topics.set(key, topic);
    return topic;
  }
}

/** True when a snapshot page has told the lock as it was at `revision` or later. */
export function isInSnapshot(watch: Watch, name: Uint8Array, revision: number): boolean {
  if (watch.pages.length === 0) return false;
  const key = keyOf(name);
  for (const page of watch.pages) {
    if (page.end === null || key <= page.end) return revision <= page.revision;
  }
  return false;
}

/** True when the ring no longer has what the watch needs next. */
export function isPassed(watch: Watch, ring: EventRing): boolean {
  return watch.next < ring.oldest;
}
