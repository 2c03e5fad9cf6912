/**
 * Whether an audit stream can be true: by itself, and beside what clients were told.
 *
 * Owns: the rules, as functions of events alone: every revision once, tokens that rise, one holder
 * at a time, queues in order, everything acknowledged, nothing that was refused. It shares none of
 * them with the lock machine, whose word it checks. Never: reads a stream. Used by: verify.ts.
 */
import type { Json } from '../../wire/event-json.js';
import { type Check, checkOf } from './check.js';
import type { Acknowledged, Ledger } from './ledger.js';

/** One event of the audit stream, as far as the rules ask. */
export interface AuditEvent {
  readonly revision: number;
  readonly type: string;
  readonly name: string;
  readonly token: number;
  readonly place: number;
  readonly cause: string | null;
  readonly requestId: string | null;
}

/** Reads what `holdfast audit --json` shows. */
export function auditEventOf(json: Json): AuditEvent {
  const { cause, request_id: requestId } = json;
  return {
    revision: Number(json['revision']),
    type: String(json['type']),
    name: String(json['name']),
    token: Number(json['fencing_token']),
    place: Number(json['place']),
    cause: typeof cause === 'string' ? cause : null,
    requestId: typeof requestId === 'string' ? requestId : null,
  };
}

/** Which part of the stream was read. */
export interface StreamPart {
  readonly events: readonly AuditEvent[];
  /** The first revision that was asked for, and the last that the cluster had then. */
  readonly from: number;
  readonly last: number;
  /** False: only locks under a prefix, so revisions of others lie between. */
  readonly isWhole: boolean;
}

function orderFaults({ events, from, last, isWhole }: StreamPart): string[] {
  const faults: string[] = [];
  let previous = from - 1;
  for (const { revision } of events) {
    if (revision <= previous) faults.push(`revision ${revision} comes after ${previous}`);
    else if (isWhole && revision > previous + 1) faults.push(missing(previous + 1, revision - 1));
    previous = Math.max(previous, revision);
  }
  if (isWhole && previous < last) faults.push(missing(previous + 1, last));
  if (previous > last) faults.push(`revision ${previous} is beyond the last, ${last}`);
  return faults;
}

function missing(first: number, last: number): string {
  return first === last ? `revision ${first} is missing` : `revisions ${first} to ${last} miss`;
}

function tokenFaults(events: readonly AuditEvent[]): string[] {
  const faults: string[] = [];
  let highest = 0;
  for (const { type, token, revision, name } of events) {
    if (type !== 'granted') continue;
    if (token !== revision) faults.push(`${name} was granted token ${token} at ${revision}`);
    if (token <= highest) faults.push(`${name} was granted token ${token} after ${highest}`);
    highest = Math.max(highest, token);
  }
  return faults;
}

/** Token of the holder by the stream, of each lock that is held at its end. */
export function holdersOf(events: readonly AuditEvent[]): Map<string, number> {
  const holders = new Map<string, number>();
  for (const { type, name, token } of events) {
    if (type === 'granted') holders.set(name, token);
    else if (type === 'ended' && holders.get(name) === token) holders.delete(name);
  }
  return holders;
}

function holderFaults(events: readonly AuditEvent[]): string[] {
  const faults: string[] = [];
  const holders = new Map<string, number>();
  for (const { type, name, token, revision } of events) {
    const holder = holders.get(name);
    if (type === 'granted') {
      if (holder !== undefined) faults.push(`${name}: ${token} was granted while ${holder} held`);
      holders.set(name, token);
    } else if (type === 'ended') {
      if (holder !== token) {
        faults.push(`${name}: ${token} ended at ${revision}, ${holder ?? 'nobody'} held`);
      }
      holders.delete(name);
    }
  }
  return faults;
}

function queueFaults(events: readonly AuditEvent[]): string[] {
  const faults: string[] = [];
  const queues = new Map<string, number[]>();
  for (const { type, name, place, revision } of events) {
    const queue = queues.get(name) ?? [];
    queues.set(name, queue);
    if (type === 'queued') queue.push(place);
    const leaves = type === 'left' || (type === 'granted' && place > 0);
    const at = leaves ? queue.indexOf(place) : -1;
    if (leaves && at < 0) faults.push(`${name}: place ${place} left at ${revision}, not in line`);
    if (type === 'granted' && place > 0 && at > 0) {
      faults.push(`${name}: place ${place} was granted before ${queue[0]}`);
    }
    if (type === 'granted' && place === 0 && queue.length > 0) {
      faults.push(`${name}: revision ${revision} was granted past place ${queue[0]}`);
    }
    if (at >= 0) queue.splice(at, 1);
  }
  return faults;
}

function isSame(event: AuditEvent | undefined, told: Acknowledged): boolean {
  if (event === undefined) return false;
  const { type, lock, token, requestId } = told;
  const isNamed = requestId === null || event.requestId === requestId;
  return event.type === type && event.name === lock && event.token === token && isNamed;
}

function acknowledgedFaults(events: readonly AuditEvent[], ledger: Ledger): string[] {
  const faults: string[] = [];
  const byRevision = new Map(events.map((event) => [event.revision, event]));
  for (const told of ledger.acknowledged) {
    if (isSame(byRevision.get(told.revision), told)) continue;
    const { type, lock, token, revision } = told;
    faults.push(`${lock}: ${type} with token ${token} was acknowledged at ${revision}, and is not`);
  }
  return faults;
}

function unbornFaults(events: readonly AuditEvent[], ledger: Ledger): string[] {
  const revisions = new Map(events.map((event) => [event.requestId, event.revision]));
  return ledger.unborn.flatMap(({ requestId, code }) => {
    const revision = revisions.get(requestId);
    return revision === undefined ? [] : [`${requestId} was refused with ${code}, at ${revision}`];
  });
}

/** Every rule, with what was looked at or what breaks it. */
export function checkStream(part: StreamPart, ledger: Ledger): Check[] {
  const { events, from, last, isWhole } = part;
  const grants = events.filter((event) => event.type === 'granted').length;
  const waits = events.filter((event) => event.type === 'queued').length;
  const span = `${events.length} events, revisions ${from} to ${last}`;
  const { acknowledged, unborn } = ledger;
  const order = isWhole
    ? 'the audit stream has every revision once, in order'
    : 'the audit stream has its revisions once, in order';
  const checks = [
    checkOf(order, orderFaults(part), span),
    checkOf('tokens rise, each the revision of its grant', tokenFaults(events), `${grants} grants`),
    checkOf('a lock has one holder at a time', holderFaults(events), `${grants} grants`),
    checkOf(
      'waiters are granted in the order of their line',
      queueFaults(events),
      `${waits} waits`,
    ),
    checkOf(
      'what was acknowledged is in the stream, as it was told',
      acknowledgedFaults(events, ledger),
      `${acknowledged.length} acknowledgements`,
    ),
  ];
  if (unborn.length > 0) {
    const what = 'what was refused without an effect has had none';
    checks.push(checkOf(what, unbornFaults(events, ledger), `${unborn.length} refusals`));
  }
  return checks;
}
