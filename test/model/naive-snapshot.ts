/**
 * The naive machine seen from outside: its whole logical state as one text, and lookups.
 *
 * Owns: which fields are state (docs/ARCHITECTURE.md says what a digest is over: logical records
 * and counters, no stamp, no order of tables). Never: changes anything. Used by: property tests.
 */

import { type ModelCommand, type ModelLookup, outcomeOf } from './model-types.js';
import type { NaiveMachine } from './naive-machine.js';
import type { RequestRecord, SessionRecord } from './naive-records.js';
import { keyOfFree } from './naive-requests.js';

function sessionState(session: SessionRecord): unknown {
  const table = [...session.table].sort(([a], [b]) => a - b);
  return { ...session, table };
}

/** Every logical record and counter as one text; equal texts are equal states. */
export function snapshotOf(machine: NaiveMachine): string {
  const { settings, revision, sharedFloor, sessionsOpened, ended } = machine;
  const byName = [...machine.locks].sort((a, b) => (a.name < b.name ? -1 : 1));
  const leases = machine.leases
    .map((lease) => ({ ...lease, session: lease.session?.number }))
    .sort((a, b) => a.token - b.token);
  const waits = machine.waits
    .map((wait) => ({ ...wait, session: wait.session?.number, request: undefined }))
    .sort((a, b) => a.place - b.place);
  const sessions = [...machine.sessions].sort((a, b) => a.number - b.number).map(sessionState);
  const free = [...machine.free].sort(([a], [b]) => (a < b ? -1 : 1));
  const rules = [...machine.rules].sort((a, b) => a.revision - b.revision);
  const counters = { settings, revision, sharedFloor, sessionsOpened };
  return JSON.stringify([counters, byName, leases, waits, sessions, free, ended, rules]);
}

function lookUpRecord(record: RequestRecord): ModelLookup {
  if (record.state === 'acknowledged') return { state: 'forgotten', outcome: outcomeOf({}) };
  const state = record.state === 'pending' ? 'queued' : 'done';
  return { state, outcome: { ...record.outcome, ahead: 0, replay: true } };
}

/** What a lookup of the request id of `command` says at the last stamp. Ends nothing overdue. */
export function lookUp(machine: NaiveMachine, command: ModelCommand): ModelLookup {
  const { request, principal } = command;
  const unknown: ModelLookup = { state: 'unknown', outcome: outcomeOf({}) };
  if (request.kind === 'none') return unknown;
  if (request.kind === 'free') {
    const record = machine.free.get(keyOfFree(principal, request.id));
    return record === undefined || machine.now >= record.deadAt ? unknown : lookUpRecord(record);
  }
  const session = machine.sessions.find(({ number }) => number === command.session);
  if (session === undefined || session.principal !== principal) return unknown;
  if (session.state !== 'live' && machine.now >= session.deadAt) return unknown;
  const record = session.table.get(request.sequence);
  if (record !== undefined) return lookUpRecord(record);
  return request.sequence <= session.floor
    ? { state: 'forgotten', outcome: outcomeOf({}) }
    : unknown;
}
