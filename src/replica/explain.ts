/**
 * Gathers the facts of an explanation at one read point: lock, newest events, request, lease.
 *
 * Owns: which facts, and how far back events are looked for. Never: a cause or a sentence
 * (wire/explain.ts), a lease id: it tells of a lease only to the principal that names it or its
 * request. Called by: reads.ts.
 */
import { CommandKind, RequestKind } from '../core/locks/command.js';
import { EventKind } from '../core/locks/event.js';
import { LeaseEnd, OutcomeCode } from '../core/locks/outcome.js';
import type { LeaseReading } from '../core/locks/readings.js';
import { EXPLAIN_EVENTS_MAX, EXPLAIN_VISITS_MAX, GET_WAITERS_MAX } from '../limits.js';
import { saidIn } from '../wire/audit.js';
import { encodeExplanation, type RequestReading } from '../wire/explain-reply.js';
import type { PackValue } from '../wire/msgpack-writer.js';
import { auditedRow } from './audit.js';
import type { PendingRead } from './pending-reads.js';
import { finishReply } from './replies.js';
import type { ReplicaState } from './state.js';

const NAMES = new TextDecoder();

export function answerExplain(state: ReplicaState, read: PendingRead): void {
  const { machine, appliedIndex, outcome } = state;
  const { connection, correlation, query } = read;
  const { name } = query;
  const request = readRequest(state, read);
  const isGrant = request?.state === 'done' && request.code === OutcomeCode.Ok;
  let lease: LeaseReading | null = null;
  if (query.hasLease) {
    const { lease0, lease1, lease2, lease3 } = query;
    lease = machine.readLease(connection.principal, lease0, lease1, lease2, lease3);
  } else if (isGrant && outcome.kind === CommandKind.Acquire) {
    const { id0, id1, id2, id3 } = outcome;
    lease = machine.readLease(connection.principal, id0, id1, id2, id3);
  }
  const revisions = newestEvents(state, name);
  encodeExplanation(connection.beginItem(), correlation, {
    clusterTime: machine.now,
    lock: machine.get(name, 0, name.length, GET_WAITERS_MAX),
    events: revisions.map((revision) => eventRow(state, revision)),
    request,
    lease,
    revision: machine.revision,
    appliedIndex,
    rule: machine.readRule(name, 0, name.length),
    said: whatWasSaid(state, revisions, lease),
    grantsFrom: machine.grantsFrom,
  });
  finishReply(state, connection);
}

/** Null when no request was named. Fills the outcome when it is done. */
function readRequest(state: ReplicaState, read: PendingRead): RequestReading | null {
  const { machine, outcome } = state;
  const { query, connection } = read;
  const { principal } = connection;
  if (query.requestKind === RequestKind.None) return null;
  outcome.reset();
  let found: RequestReading['state'] = 'unknown';
  if (query.requestKind === RequestKind.Free) {
    found = machine.lookupFree(principal, query.request, outcome);
  } else {
    const { session0, session1, session2, session3 } = query;
    const session = machine.findSession(principal, session0, session1, session2, session3);
    if (session === null) found = 'session_gone';
    else found = machine.lookupSequence(session.slot, query.sequence, outcome);
  }
  const isKnown = found === 'done' || found === 'queued';
  return {
    state: found,
    code: isKnown ? outcome.code : 0,
    place: found === 'queued' ? outcome.revision : 0,
    token: isKnown ? outcome.token : 0,
    revision: isKnown ? outcome.revision : 0,
  };
}

/** Revisions of the newest events of one lock, the oldest first. */
function newestEvents({ events }: ReplicaState, name: Uint8Array): number[] {
  const revisions: number[] = [];
  const last = Math.max(events.oldest, events.next - EXPLAIN_VISITS_MAX);
  for (let revision = events.next - 1; revision >= last; revision -= 1) {
    if (!isSame(events.nameOf(revision), name)) continue;
    revisions.push(revision);
    if (revisions.length === EXPLAIN_EVENTS_MAX) break;
  }
  return revisions.reverse();
}

function eventRow({ events }: ReplicaState, revision: number): PackValue {
  return [
    revision,
    events.kindOf(revision),
    NAMES.decode(events.nameOf(revision)),
    events.tokenOf(revision),
    events.placeOf(revision),
    events.causeOf(revision),
    events.principalOf(revision),
    events.stampOf(revision),
  ];
}

/** Who asked for these events and for the end of the lease, and why, as far as it is in memory. */
function whatWasSaid(
  state: ReplicaState,
  revisions: readonly number[],
  lease: LeaseReading | null,
): PackValue[] {
  const { events } = state;
  const asked = revisions.filter((revision) => {
    const kind = events.kindOf(revision);
    const isForced = kind === EventKind.Ended && events.causeOf(revision) === LeaseEnd.Forced;
    return isForced || kind >= EventKind.Disabled;
  });
  const ended = lease?.cause === LeaseEnd.Forced ? lease.revision : 0;
  if (ended > 0 && !asked.includes(ended)) asked.push(ended);
  const said: PackValue[] = [];
  for (const revision of asked) {
    const row = auditedRow(state, revision);
    const words = row === null ? null : saidIn(row);
    if (words !== null) said.push(words);
  }
  return said;
}

function isSame(left: Uint8Array, right: Uint8Array): boolean {
  if (left.length !== right.length) return false;
  for (let at = 0; at < left.length; at += 1) if (left[at] !== right[at]) return false;
  return true;
}
