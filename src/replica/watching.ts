/**
 * Tells watches what has been applied: the live ones at once, those behind a bounded amount a turn.
 *
 * Owns: the order in which a watch hears of things: snapshot, then every event once, then marks of
 * progress. Never: waits for a reader, or lets its unread bytes grow past WATCH_OUT_BYTES_MAX by
 * more than one part. Called by: queries (watch, unwatch), turn.
 */
import { OutcomeCode } from '../core/locks/outcome.js';
import {
  CONNECTION_WATCHES_MAX,
  GET_WAITERS_MAX,
  LIST_ROWS_MAX,
  LIST_VISITS_MAX,
  WATCH_CATCH_UP_MAX,
  WATCH_OUT_BYTES_MAX,
  WATCH_PROGRESS_MS,
  WATCH_ROWS_MAX,
  WATCHES_MAX,
} from '../limits.js';
import { OutBuffer } from '../wire/out-buffer.js';
import type { Query } from '../wire/query.js';
import { encodePong } from '../wire/query-reply.js';
import { encodeCompacted, encodeEvents, encodeSnapshotPart, putEvent } from '../wire/watch.js';
import type { Connection } from './connection.js';
import { finishReply, markDirty, onAnswered, replyRefusal } from './replies.js';
import type { ReplicaState } from './state.js';
import { isInSnapshot, isPassed, keyOf, type Topic, type Watch } from './watches.js';

const US_PER_MS = 1_000;
const NO_ROWS = new OutBuffer();

/** Begins a watch, or refuses it. */
export function admitWatch(
  state: ReplicaState,
  connection: Connection,
  correlation: number,
  query: Query,
): void {
  const { watches, events, machine } = state;
  const isFull = watches.countOf(connection) >= CONNECTION_WATCHES_MAX;
  if (isFull || watches.count >= WATCHES_MAX) {
    replyRefusal(state, connection, correlation, OutcomeCode.Limit, null, -1, 'watches');
    return;
  }
  const from = query.revision < 0 ? events.next : query.revision;
  if (from < events.oldest) {
    tellCompacted(state, connection, correlation, null);
    onAnswered(state, connection);
    return;
  }
  const watch = watches.add(connection, correlation, query.name, query.isPrefix, from);
  watch.isTakingSnapshot = query.snapshot;
  watch.toldUs = state.nowUs;
  encodeEvents(connection.beginItem(), correlation, machine.now, NO_ROWS, 0, from - 1);
  finishReply(state, connection);
  state.options.turn.soon();
}

/** Ends a watch; ending one that is not there is fine. */
export function admitUnwatch(
  state: ReplicaState,
  connection: Connection,
  correlation: number,
  watchCorrelation: number,
): void {
  state.watches.remove(connection, watchCorrelation);
  encodePong(connection.beginItem(), correlation, state.machine.now);
  finishReply(state, connection);
}

/** End of a turn: everything that was applied goes to those who watch it. */
export function tellWatches(state: ReplicaState): void {
  const { watches, events } = state;
  if (watches.count === 0) {
    watches.seen = events.next;
    return;
  }
  if (events.next !== watches.seen) tellLive(state);
  if (watches.behind.length > 0) catchUp(state);
  if (state.nowUs - watches.markedUs >= (WATCH_PROGRESS_MS / 4) * US_PER_MS) markProgress(state);
}

function tellLive(state: ReplicaState): void {
  const { watches, events } = state;
  const from = watches.seen;
  if (from < events.oldest || from > events.next) {
    // More was applied in one turn than is kept, or the state was restored: each is judged alone.
    watches.forEachLive((watch) => watches.makeBehind(watch, from));
    watches.seen = events.next;
    return;
  }
  for (let revision = from; revision < events.next; revision += 1) {
    const name = events.nameOf(revision);
    watches.forEachTopic(name, (topic) => addRow(state, topic, revision, name));
    watches.seen = revision + 1;
  }
  for (const topic of watches.touched) giveRows(state, topic);
  watches.touched.length = 0;
}

function addRow(state: ReplicaState, topic: Topic, revision: number, name: Uint8Array): void {
  if (topic.live.size === 0) return;
  if (topic.rowCount === 0) state.watches.touched.push(topic);
  putRow(state, topic.rows, revision, name);
  topic.rowCount += 1;
  topic.lastRevision = revision;
  if (topic.rowCount === 1) topic.firstRevision = revision;
  if (topic.rowCount < WATCH_ROWS_MAX) return;
  giveRows(state, topic);
  state.watches.touched.splice(state.watches.touched.indexOf(topic), 1);
}

function putRow(state: ReplicaState, out: OutBuffer, revision: number, name: Uint8Array): void {
  const { events } = state;
  putEvent(
    out,
    revision,
    events.kindOf(revision),
    name,
    events.tokenOf(revision),
    events.placeOf(revision),
    events.causeOf(revision),
    events.principalOf(revision),
    events.stampOf(revision),
  );
}

/** One encoding, copied into each connection that watches the topic and reads. */
function giveRows(state: ReplicaState, topic: Topic): void {
  const { machine, counters, watches } = state;
  for (const watch of topic.live) {
    const { connection } = watch;
    if (isFull(connection)) {
      watch.isBlocked = true;
      counters.watches_blocked += 1;
      watches.makeBehind(watch, topic.firstRevision);
      continue;
    }
    const out = connection.beginItem();
    const { rows, rowCount, lastRevision } = topic;
    encodeEvents(out, watch.correlation, machine.now, rows, rowCount, lastRevision);
    finishPart(state, watch);
    counters.watch_events_told += rowCount;
  }
  topic.rows.clear();
  topic.rowCount = 0;
}

function isFull(connection: Connection): boolean {
  return connection.out.length + connection.transport.backlogBytes > WATCH_OUT_BYTES_MAX;
}

function finishPart(state: ReplicaState, watch: Watch): void {
  watch.connection.endItem();
  watch.toldUs = state.nowUs;
  markDirty(state, watch.connection);
}

/** A bounded amount of work for watches that are behind, each in its turn. */
function catchUp(state: ReplicaState): void {
  const { watches, events } = state;
  const round = watches.behind;
  watches.behind = [];
  let budget = WATCH_CATCH_UP_MAX;
  let isMoreDue = false;
  for (let i = 0; i < round.length; i += 1) {
    const watch = round[i] as Watch;
    if (budget <= 0) {
      watches.behind.push(watch);
      isMoreDue = true;
      continue;
    }
    if (isFull(watch.connection)) {
      watch.isBlocked = true;
      if (isPassed(watch, events)) endPassed(state, watch);
      else watches.behind.push(watch);
      continue;
    }
    if (watch.isTakingSnapshot) budget -= tellSnapshotPage(state, watch);
    else budget -= tellKept(state, watch);
    isMoreDue ||= settle(state, watch);
  }
  if (isMoreDue) state.options.turn.soon();
}

/** Puts a watch where it belongs now. True when it has more to be told at once. */
function settle(state: ReplicaState, watch: Watch): boolean {
  const { watches, events } = state;
  if (watch.isEnded) return false;
  if (!watch.isTakingSnapshot && watch.next === events.next) {
    watches.makeLive(watch);
    return false;
  }
  watches.behind.push(watch);
  return watch.isTakingSnapshot || watch.next < events.next;
}

/** Tells kept events from where the watch stands, one part. Returns how many were looked at. */
function tellKept(state: ReplicaState, watch: Watch): number {
  const { events, machine, counters } = state;
  if (isPassed(watch, events)) {
    endPassed(state, watch);
    return 1;
  }
  if (watch.next >= events.next) return 1;
  watch.isBlocked = false;
  const start = watch.next;
  const until = Math.min(events.next, start + WATCH_CATCH_UP_MAX);
  const rows = new OutBuffer();
  let count = 0;
  while (watch.next < until && count < WATCH_ROWS_MAX) {
    const revision = watch.next;
    const name = events.nameOf(revision);
    watch.next += 1;
    if (!watch.topic.matches(name) || isInSnapshot(watch, name, revision)) continue;
    putRow(state, rows, revision, name);
    count += 1;
  }
  const out = watch.connection.beginItem();
  encodeEvents(out, watch.correlation, machine.now, rows, count, watch.next - 1);
  finishPart(state, watch);
  counters.watch_events_told += count;
  const newest = watch.pages.at(-1);
  if (newest !== undefined && watch.next > newest.revision) watch.pages = [];
  return watch.next - start;
}

/** Tells the next locks of a snapshot. Returns how many were looked at. */
function tellSnapshotPage(state: ReplicaState, watch: Watch): number {
  const { machine } = state;
  const { topic, connection, correlation } = watch;
  const { revision } = machine;
  const begun = watch.next - 1;
  if (!topic.isPrefix) {
    const lock = machine.get(topic.name, 0, topic.name.length, GET_WAITERS_MAX);
    const rows = lock === null ? [] : [lock];
    encodeSnapshotPart(connection.beginItem(), correlation, machine.now, rows, begun);
    finishPart(state, watch);
    watch.pages.push({ end: null, revision });
    watch.isTakingSnapshot = false;
    return 1;
  }
  const page = machine.list(topic.name, watch.cursor, LIST_ROWS_MAX, LIST_VISITS_MAX);
  encodeSnapshotPart(connection.beginItem(), correlation, machine.now, page.locks, begun);
  finishPart(state, watch);
  watch.cursor = page.cursor;
  watch.pages.push({ end: page.cursor === null ? null : keyOf(page.cursor), revision });
  watch.isTakingSnapshot = page.cursor !== null;
  return page.visits + 1;
}

/** The events that this watch needs next are gone: it is told, and ends. */
function endPassed(state: ReplicaState, watch: Watch): void {
  const { connection, correlation, isBlocked } = watch;
  state.watches.remove(connection, correlation);
  watch.isEnded = true;
  const message = isBlocked ? 'the watcher read too slowly' : null;
  tellCompacted(state, connection, correlation, message);
}

function tellCompacted(
  state: ReplicaState,
  connection: Connection,
  correlation: number,
  message: string | null,
): void {
  const { events } = state;
  state.counters.watches_compacted += 1;
  if (connection.closed) return;
  const out = connection.beginItem();
  encodeCompacted(out, correlation, message, events.oldest, events.next - 1);
  connection.endItem();
  markDirty(state, connection);
}

/** Live watches that heard nothing for a while hear how far they have come. */
function markProgress(state: ReplicaState): void {
  const { watches, machine, nowUs } = state;
  watches.markedUs = nowUs;
  watches.forEachLive((watch) => {
    if (nowUs - watch.toldUs < WATCH_PROGRESS_MS * US_PER_MS || isFull(watch.connection)) return;
    const out = watch.connection.beginItem();
    encodeEvents(out, watch.correlation, machine.now, NO_ROWS, 0, watches.seen - 1);
    finishPart(state, watch);
  });
}
