/**
 * Explains a request or a lease whose lock is not named: the questions to ask one after the other.
 *
 * Owns: where in an explanation the lock's name is found, or the event that has it: a place, a
 * token and an end are revisions, and the audit stream has the name of each. Never: a connection;
 * who runs the steps sends each operation and hands in its reply. A lock whose event is no longer
 * kept stays unnamed, and the explanation says so. Used by: client, cli, io/http.
 */
import { CommandKind } from '../core/locks/command.js';
import { auditPageOf } from './audit.js';
import type { Json } from './event-json.js';
import { explanationOf } from './explain.js';
import type { PackValue } from './msgpack-writer.js';
import type { Reply } from './response.js';

/** What is asked about. */
export interface ExplainTarget {
  /** Null: found by the request or the lease. */
  readonly name: string | null;
  /** The session of a request that is a sequence. */
  readonly session: Uint8Array | null;
  readonly request: string | number | null;
  readonly lease: Uint8Array | null;
}

/** One question. */
export interface ExplainStep {
  readonly operation: PackValue[];
  /** A refusal is an answer too: hand in null. */
  readonly mayBeRefused: boolean;
}

/** Ends with the explanation as JSON. */
export type ExplainSteps = Generator<ExplainStep, Json, Reply | null>;

/** Stands for the name until it is known: any name has the same answer about request and lease. */
const UNKNOWN = '?';

export function* explainSteps(target: ExplainTarget): ExplainSteps {
  if (target.name !== null) return yield* explained(target, target.name);
  const first = yield { operation: operationOf(target, UNKNOWN), mayBeRefused: false };
  if (first === null) throw new Error('explain: the first step was refused');
  const known = nameIn(first);
  if (known !== null) return yield* explained(target, known);
  const event = yield* eventAt(revisionIn(first));
  const rule = event !== null && isRuleOfMany(event) ? ruleRowOf(event) : null;
  if (event === null || rule !== null) return withoutLock(first, rule);
  return yield* explained(target, String(event['name']));
}

/** A request that a rule for a prefix refused: the event has the prefix, not the lock. */
function isRuleOfMany(event: Json): boolean {
  return event['type'] === 'disabled' && event['place'] === 1;
}

/** As a node gives it. */
function ruleRowOf(event: Json): PackValue[] {
  const { name, revision, cluster_time: since, principal, asked_by: who, reason } = event;
  return [name, true, revision, since, principal, who, reason] as PackValue[];
}

function operationOf({ session, request, lease }: ExplainTarget, name: string): PackValue[] {
  return [CommandKind.Explain, name, session, request, lease];
}

function* explained(target: ExplainTarget, name: string): ExplainSteps {
  const reply = yield { operation: operationOf(target, name), mayBeRefused: false };
  if (reply === null) throw new Error('explain: a step was refused');
  return explanationOf(reply, name);
}

/** The event of this revision; null for none, or one that is not kept. */
function* eventAt(revision: number): Generator<ExplainStep, Json | null, Reply | null> {
  if (revision === 0) return null;
  const operation = [CommandKind.Audit, '', revision, 1, 0];
  const reply = yield { operation, mayBeRefused: true };
  const [event] = reply === null ? [] : (auditPageOf(reply)['events'] as readonly Json[]);
  return event?.['revision'] === revision ? event : null;
}

function rowAt(reply: Reply, at: number): readonly unknown[] {
  const row = reply.fields[at];
  return Array.isArray(row) ? row : [];
}

/** A lease that lives names its lock: [state, name|nil, token, deadline, cause, revision]. */
function nameIn(reply: Reply): string | null {
  const name = rowAt(reply, 3)[1];
  return typeof name === 'string' ? name : null;
}

/** A revision whose event is of the lock in question, 0 for none. */
function revisionIn(reply: Reply): number {
  const [leaseState, , , , , endedAt] = rowAt(reply, 3);
  if (leaseState === 'ended' && Number(endedAt) > 0) return Number(endedAt);
  const [state, , place, token, revision] = rowAt(reply, 2);
  if (state === 'queued') return Number(place);
  // Of a grant the own token, of a busy lock its holder's; of a wait that ended its last event.
  return state === 'done' ? Number(token) || Number(revision) || 0 : 0;
}

/** What is known of the request or lease alone. */
function withoutLock(reply: Reply, rule: PackValue[] | null): Json {
  const [, , request, lease, revision, index, , said] = reply.fields;
  const fields = [null, [], request, lease, revision, index, rule, said];
  const explanation = explanationOf({ ...reply, fields }, UNKNOWN);
  return { ...explanation, name: null, frees: null };
}
