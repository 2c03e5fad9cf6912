/**
 * What a client was told is what the log's entry decided for its request id, field by field; what
 * was refused with the promise that it has no effect is in no entry (I5).
 *
 * Judges histories against the outcomes that the machines gave: so a fault between a machine and a
 * client (the wrong caller, the wrong field, another's result) is seen. Renewals have no id; they
 * are held against the outcomes for their lease. Used by: check-run.ts.
 */
import type { Answer, History, Operation } from '../history.js';
import type { LedgerEntry, SeenOutcome } from '../ledger.js';
import { hexOf, idWith, type LoggedOperation, operationsOf, textOf } from './logged-operation.js';
import { Verdict } from './verdict.js';

const OK = 0;
const QUEUED = 1;
const SESSION_EXPIRED = 16;
const LOCK_BUSY = 10;
const READS = new Set(['get', 'list', 'lookup', 'check', 'session-renew']);
const RENEW = 37;
const ADMIN = new Set(['force-release', 'disable', 'enable', 'expire-session', 'report']);
/** The first number of those. */
const FORCE = 42;
const CONFLICT = 20;

/** The request id as histories have it; '' for none. */
function idOf({ principal, fields }: LoggedOperation): string {
  const [kind, request, session, , , lease] = fields;
  if (kind === RENEW) return `renew ${hexOf(lease)}`;
  if (typeof request === 'number') return `${hexOf(session)}/${request}`;
  const id = textOf(request);
  return id === undefined ? '' : idWith(principal, id);
}

/** What must agree: code, moment, and the numbers that the code carries. */
function outcomeLine(outcome: SeenOutcome): string {
  const { code, entryTime, token, revision, deadline, ahead, ttlMs, id, kind } = outcome;
  if (code === QUEUED) return `queued at ${revision}, ${outcome.replay ? 0 : ahead}`;
  if (code === LOCK_BUSY) return `${code} at ${entryTime}: ${token} until ${deadline}`;
  if (code === CONFLICT && kind === FORCE) return `${code} at ${entryTime}: ${token}`;
  if (code !== OK) return `${code} at ${entryTime}`;
  if (kind >= FORCE) return `${code} at ${entryTime}: ${revision}, ${token} until ${deadline}`;
  if (kind === 38) return `released at ${revision}`;
  if (kind === 39) return `cause ${outcome.cause} of ${token}`;
  return `${code} at ${entryTime}: ${token} ${id} until ${deadline}, ${ttlMs}`;
}

function answerLine(operation: Operation, answer: Answer, renewedId: string): string {
  const { code, clusterTime, token, revision, deadline, ttlMs, subject, place, cause } = answer;
  if (code === QUEUED) return `queued at ${place}, ${answer.rest.split(', ')[1]?.replace(']', '')}`;
  if (code === LOCK_BUSY) return `${code} at ${clusterTime}: ${token} until ${deadline}`;
  const isForce = operation.kind === 'force-release';
  if (code === CONFLICT && isForce) return `${code} at ${clusterTime}: ${token}`;
  if (code !== OK) return `${code} at ${clusterTime}`;
  if (ADMIN.has(operation.kind)) {
    return `${code} at ${clusterTime}: ${revision}, ${token} until ${deadline}`;
  }
  if (operation.kind === 'release') return `released at ${revision}`;
  if (operation.kind === 'cancel') return `cause ${cause} of ${token}`;
  const id = operation.kind === 'renew' ? renewedId : subject;
  return `${code} at ${clusterTime}: ${token} ${id} until ${deadline}, ${ttlMs}`;
}

/** Every outcome that the log gave to an id, its waits' ends included. */
function outcomesOf(entries: readonly LedgerEntry[]): Map<string, Set<string>> {
  const outcomes = new Map<string, Set<string>>();
  const places = new Map<number, string>();
  const add = (id: string, outcome: SeenOutcome): void => {
    const lines = outcomes.get(id) ?? new Set();
    lines.add(outcomeLine(outcome));
    outcomes.set(id, lines);
  };
  for (const entry of entries) {
    for (const [at, operation] of operationsOf(entry.data).entries()) {
      const outcome = entry.outcomes[at];
      const id = idOf(operation);
      if (outcome === undefined || id === '') continue;
      add(id, outcome);
      if (outcome.code === QUEUED) places.set(outcome.revision, id);
    }
    for (const { place, outcome } of entry.completions) {
      const id = places.get(place);
      if (id !== undefined) add(id, { ...outcome, entryTime: entry.stampMs, kind: 36 });
    }
  }
  return outcomes;
}

export function checkAnswers(entries: readonly LedgerEntry[], history: History): Verdict {
  const verdict = new Verdict('answers');
  const outcomes = outcomesOf(entries);
  const leases = new Map<number, string>();
  for (const { answers } of history.operations) {
    for (const { code, subject, token } of answers) {
      if (code === OK && token > 0 && subject !== '') leases.set(token, subject);
    }
  }
  for (const operation of history.operations) {
    if (READS.has(operation.kind)) continue;
    const lease = leases.get(operation.aboutToken) ?? '';
    const id = operation.kind === 'renew' ? `renew ${lease}` : operation.id;
    const lines = outcomes.get(id);
    if (operation.isRefused === true) {
      verdict.demand(
        lines === undefined,
        () => `${id} was refused, the log says ${[...(lines ?? [])]}`,
      );
    }
    for (const answer of operation.answers) {
      // A node says so itself when it does not know the session: no entry is needed.
      if (answer.code === SESSION_EXPIRED) continue;
      const said = answerLine(operation, answer, '');
      const isSo = lines?.has(said) ?? false;
      verdict.demand(isSo, () => `${id} was told ${said}, the log says ${[...(lines ?? [])]}`);
    }
  }
  return verdict;
}
