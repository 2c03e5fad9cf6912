/**
 * Why a lock is mine or not mine, in a word for programs and in sentences for people.
 *
 * Owns: the causes (public names, for ever) and the sentences. A function of the reply alone, so
 * the command line and HTTP say the same. Never: a guess; what is not known is said to be so.
 * Used by: http-answers.ts, cli/commands/explain.ts.
 */
import { ErrorCode } from './errors.js';
import { codeName, eventOf, type Json, leaseEndName } from './event-json.js';
import {
  enableWords,
  forcedSentence,
  oldRuleSentence,
  ruleSentence,
  saidJson,
} from './explain-said.js';
import { lockJson, ruleJson } from './lock-json.js';
import type { Reply } from './response.js';

/** What an explanation can come to. */
export const EXPLAIN_CAUSES = {
  held: 'somebody holds it',
  held_in_session: 'somebody holds it in a session',
  overdue: 'its lease has run out, and the next command on it or the sweep ends that',
  grace: 'the cluster was restored a moment ago, and nothing is granted yet',
  handing_over: 'nobody holds it and somebody waits: the next entry hands it over',
  never_used: 'nobody has ever held it, or so long ago that nothing is known',
  free: 'nobody holds it; how it became free is no longer in memory',
  free_released: 'its last holder released it',
  free_expired: 'its last lease ran out',
  free_session_expired: 'the session of its last holder ran out',
  free_session_closed: 'the session of its last holder was closed',
  free_forced: 'its last lease was ended by an administrator',
  free_taken_over: 'its last lease was taken over',
  disabled: 'nobody holds it, and an operator has it that no acquire is taken',
  yours: 'you hold it',
  yours_overdue: 'your lease has run out, and no entry has ended it yet',
  yours_elsewhere: 'that lease is of another lock',
  lost_released: 'you released it',
  lost_expired: 'your lease ran out before it was renewed',
  lost_session_expired: 'your session ran out, and its leases with it',
  lost_session_closed: 'your session was closed, and its leases with it',
  lost_forced: 'an administrator ended your lease',
  lost_taken_over: 'your lease was taken over by another process',
  lost_restored: 'the cluster was restored from a time when you held it',
  lease_unknown: 'that lease was never issued to you, or ended too long ago to be remembered',
  queued: 'you stand in line',
  refused_busy: 'your request did not wait, and somebody held it or waited',
  refused_disabled: 'your request came while an operator had it that no acquire is taken',
  timed_out: 'your request waited as long as it may',
  cancelled: 'your request was cancelled',
  wait_abandoned: 'your place lapsed: its session or connection was gone',
  refused: 'your request was refused',
  not_an_acquire: 'that request acquired nothing',
  request_unknown: 'no such request was decided, or it has been forgotten',
  request_forgotten: 'the result of that request was acknowledged, and is forgotten',
  request_session_gone: 'the session of that request has ended too long ago, or never was',
} as const;
export type ExplainCause = keyof typeof EXPLAIN_CAUSES;

/** The facts of a reply, named. */
interface Facts {
  readonly name: string;
  readonly now: number;
  readonly lock: Json | null;
  readonly events: readonly Json[];
  readonly request: Json | null;
  readonly lease: Json | null;
  /** The rule that disables the lock. */
  readonly rule: Json | null;
  /** What operators and guards said of its events. */
  readonly said: readonly Json[];
  /** Cluster time before which nothing is granted, 0 for no such time. */
  readonly grantsFrom: number;
}

const MS_PER_S = 1_000;

function listAt(fields: readonly unknown[], at: number): readonly unknown[] | null {
  const value = fields[at];
  return Array.isArray(value) ? value : null;
}

function requestJson(row: readonly unknown[] | null): Json | null {
  if (row === null) return null;
  const [state, code, place, token, revision] = row;
  const isDone = state === 'done';
  return {
    state,
    code: isDone ? codeName(Number(code)) : null,
    place: state === 'queued' ? place : null,
    fencing_token: isDone && code === ErrorCode.Ok ? token : null,
    revision: isDone ? revision : null,
  };
}

function leaseJson(row: readonly unknown[] | null): Json | null {
  if (row === null) return null;
  const [state, name, token, deadline, cause, revision] = row;
  const isLive = state === 'held' || state === 'overdue';
  return {
    state,
    name: isLive ? name : null,
    fencing_token: isLive ? token : null,
    expires_at: isLive ? deadline : null,
    cause: state === 'ended' ? leaseEndName(Number(cause)) : null,
    ended_revision: state === 'ended' ? revision : null,
  };
}

/** Everything that an explanation says, as JSON. */
export function explanationOf(reply: Reply, name: string): Json {
  const { fields } = reply;
  const now = Math.max(0, reply.clusterTimeMs);
  const facts: Facts = {
    name,
    now,
    lock: lockJson(listAt(fields, 0), now),
    events: (listAt(fields, 1) ?? []).map(eventOf),
    request: requestJson(listAt(fields, 2)),
    lease: leaseJson(listAt(fields, 3)),
    rule: ruleJson(fields[6]),
    said: saidJson(listAt(fields, 7)),
    grantsFrom: Number(fields[8] ?? 0),
  };
  const { lock, events, request, lease, rule, said } = facts;
  const cause = causeOf(facts);
  return {
    name,
    cause,
    says: [`${EXPLAIN_CAUSES[cause]}.`, ...sentencesOf(facts)].map(capitalized),
    frees: freesOf(facts, cause),
    fencing: lock?.['fencing'] ?? 'required',
    holder: lock?.['holder'] ?? null,
    waiters: lock?.['waiters'] ?? 0,
    queue: lock?.['queue'] ?? [],
    events,
    disabled: rule,
    said,
    request,
    lease,
    revision: Number(fields[4]),
    applied_index: Number(fields[5]),
    cluster_time: now,
  };
}

/** The one cause that answers what was asked: about a lease, a request, or the lock. */
export function causeOf(facts: Facts): ExplainCause {
  const { request, lease } = facts;
  if (request !== null) return causeOfRequest(facts, request);
  if (lease !== null) return causeOfLease(facts, lease);
  return causeOfLock(facts);
}

function causeOfRequest(facts: Facts, request: Json): ExplainCause {
  switch (request['state']) {
    case 'queued':
      return 'queued';
    case 'forgotten':
      return 'request_forgotten';
    case 'session_gone':
      return 'request_session_gone';
    case 'done':
      break;
    default:
      return 'request_unknown';
  }
  switch (request['code']) {
    case 'OK':
      return facts.lease === null ? 'not_an_acquire' : causeOfLease(facts, facts.lease);
    case 'LOCK_BUSY':
      return 'refused_busy';
    case 'DISABLED':
      return 'refused_disabled';
    case 'WAIT_TIMEOUT':
      return 'timed_out';
    case 'CANCELLED':
      return 'cancelled';
    case 'SESSION_EXPIRED':
      return 'wait_abandoned';
    default:
      return 'refused';
  }
}

function causeOfLease(facts: Facts, lease: Json): ExplainCause {
  switch (lease['state']) {
    case 'held':
      return lease['name'] === facts.name ? 'yours' : 'yours_elsewhere';
    case 'overdue':
      return lease['name'] === facts.name ? 'yours_overdue' : 'yours_elsewhere';
    case 'ended':
      return knownCause(`lost_${lease['cause']}`, 'lease_unknown');
    default:
      return 'lease_unknown';
  }
}

function causeOfLock({ lock, events, rule, grantsFrom }: Facts): ExplainCause {
  if (grantsFrom > 0) return 'grace';
  const holder = lock?.['holder'] as Json | null | undefined;
  if (holder) return holder['in_session'] === true ? 'held_in_session' : 'held';
  const last = events.findLast(({ type }) => type === 'granted' || type === 'ended');
  if (last?.['type'] === 'granted') return 'overdue';
  if (Number(lock?.['waiters'] ?? 0) > 0) return 'handing_over';
  if (rule !== null) return 'disabled';
  if (last !== undefined) return knownCause(`free_${last['cause']}`, 'free');
  return lock === null ? 'never_used' : 'free';
}

function knownCause(word: string, otherwise: ExplainCause): ExplainCause {
  return Object.hasOwn(EXPLAIN_CAUSES, word) ? (word as ExplainCause) : otherwise;
}

function sentencesOf(facts: Facts): string[] {
  const sentences: string[] = [];
  const { lock, events, request, lease, now } = facts;
  const holder = lock?.['holder'] as Json | null | undefined;
  if (holder) sentences.push(...holderSentences(holder, now));
  const queue = (lock?.['queue'] ?? []) as readonly Json[];
  if (request?.['state'] === 'queued') sentences.push(placeSentence(request, queue));
  else if (queue.length > 0) sentences.push(queueSentence(lock as Json, queue, now));
  if (lease?.['state'] === 'ended' && lease['ended_revision'] !== 0) {
    sentences.push(`your lease ended with revision ${lease['ended_revision']}.`);
  }
  if (lease?.['state'] === 'held' && lease['name'] !== facts.name) {
    sentences.push(`it is a lease of ${lease['name']}, with token ${lease['fencing_token']}.`);
  }
  if (request?.['code'] != null) sentences.push(`your request was answered ${request['code']}.`);
  sentences.push(...operatorSentences(facts));
  const last = events.at(-1);
  if (last !== undefined) {
    const when = durationOf(now - Number(last['cluster_time']));
    const why = last['cause'] === null ? '' : ` (${last['cause']})`;
    sentences.push(`last event: ${last['type']}${why}, revision ${last['revision']}, ${when} ago.`);
  }
  return sentences;
}

/** By which rule it is disabled; who ended a lease by force, when that is why it is as it is. */
function operatorSentences({ request, lease, events, rule, said, now }: Facts): string[] {
  const sentences: string[] = [];
  if (rule !== null) sentences.push(ruleSentence(rule, durationOf(now - Number(rule['since']))));
  const refused = request?.['code'] === 'DISABLED' ? request['revision'] : null;
  if (refused !== null && refused !== rule?.['revision']) sentences.push(oldRuleSentence(refused));
  const ended = events.findLast(({ type }) => type === 'ended');
  const isLeaseForced = lease?.['cause'] === 'forced';
  const forced = isLeaseForced ? lease['ended_revision'] : ended?.['revision'];
  if (isLeaseForced || ended?.['cause'] === 'forced') {
    sentences.push(forcedSentence(forced, said));
  }
  return sentences;
}

function holderSentences(holder: Json, now: number): string[] {
  const who = holder['metadata'] ? `, "${holder['metadata']}"` : '';
  const since = durationOf(now - Number(holder['since']));
  const renewed = durationOf(now - Number(holder['last_renewed']));
  const left = durationOf(Number(holder['expires_in_ms']));
  return [
    `held for ${since} with token ${holder['fencing_token']}.`,
    `the holder is principal ${holder['principal']}${who}.`,
    `the lease ends in ${left} unless it is renewed; last renewed ${renewed} ago.`,
  ];
}

function placeSentence(request: Json, queue: readonly Json[]): string {
  const ahead = queue.findIndex((waiter) => waiter['place'] === request['place']);
  if (ahead < 0) return `your place is ${request['place']}, behind those that are shown.`;
  const who = ahead === 0 ? 'nobody waits before you' : `${ahead} before you`;
  return `your place is ${request['place']}: ${who}.`;
}

function queueSentence(lock: Json, queue: readonly Json[], now: number): string {
  const [first] = queue;
  const until = durationOf(Number(first?.['until']) - now);
  return `${lock['waiters']} in line, the first at place ${first?.['place']} for ${until} more.`;
}

/** What would make it free, or what to do. */
function freesOf({ lock, rule, grantsFrom }: Facts, cause: ExplainCause): string {
  if (grantsFrom > 0) return `cluster time ${grantsFrom}: the first waiter is granted then`;
  const holder = lock?.['holder'] as Json | null | undefined;
  if (holder) {
    const own = cause === 'yours' ? 'your' : 'its';
    const session = holder['in_session'] === true ? ', or the end of the session' : '';
    const ends = `cluster time ${holder['expires_at']} without a renewal`;
    const then = rule === null ? '' : `; no acquire is taken until ${enableWords(rule)}`;
    return `${own} release, or ${ends}${session}${then}`;
  }
  if (cause === 'overdue' || cause === 'yours_overdue' || Number(lock?.['waiters'] ?? 0) > 0) {
    return 'the next entry of the log: nothing has to be done';
  }
  if (rule !== null) return `it is free, and no acquire is taken until ${enableWords(rule)}`;
  return 'it is free: an acquire is granted at once';
}

function durationOf(ms: number): string {
  if (ms < MS_PER_S) return `${Math.max(0, ms)} ms`;
  if (ms < 120 * MS_PER_S) return `${(ms / MS_PER_S).toFixed(1)} s`;
  return `${Math.round(ms / (60 * MS_PER_S))} min`;
}

function capitalized(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
