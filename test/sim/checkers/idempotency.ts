/**
 * I6: one request id has one result, whoever is asked and how often.
 *
 * Judges histories. Every decided answer to one id says the same, up to the mark of a replay; only
 * what belongs to a session may be called forgotten. A free-form id is forgotten, to the ms of its
 * answers, at max(its result + retention, its not_after): from then on it is a new request.
 * Used by: check-run.ts, the chaos command.
 */
import { type Answer, type History, isStored, type Operation } from '../history.js';
import { Verdict } from './verdict.js';

const CANCELLED = 12;
const FORGOTTEN = 19;
/** Operations whose answers are not stored. */
const UNNAMED = new Set(['renew', 'session-renew', 'get', 'list', 'lookup', 'check']);

/** What must not differ between two answers to one id. */
function resultOf(answer: Answer): string {
  const { code, clusterTime, rest } = answer;
  return `${code} at ${clusterTime}: ${rest}`;
}

/** A release of what its own release ended is answered by the entry that asked, as a replay. */
function timelessOf(answer: Answer): string {
  return `${answer.code}: ${answer.rest}`;
}

/** Cluster time until which the id of `operation` answers as `answer` does. */
function keptUntil({ session, notAfter = 0 }: Operation, answer: Answer, retentionMs: number) {
  if (session !== '') return Number.POSITIVE_INFINITY;
  const least = answer.clusterTime + retentionMs;
  // A cancel that came before the request knew no not_after.
  return answer.code === CANCELLED ? least : Math.max(least, notAfter);
}

function checkOperation(verdict: Verdict, operation: Operation, retentionMs: number): void {
  const { id, kind, session } = operation;
  let result = '';
  let until = 0;
  for (const answer of operation.answers) {
    const { code } = answer;
    const mayForget = session !== '' || code !== FORGOTTEN;
    verdict.demand(mayForget, () => `${id} without a session is forgotten`);
    if (!isStored(answer)) continue;
    const isLoose = kind === 'release' || kind === 'close';
    const said = isLoose ? timelessOf(answer) : resultOf(answer);
    const isSame = result === '' || said === result || answer.clusterTime >= until;
    verdict.demand(isSame, () => `${id} was ${result}, then ${said}`);
    result = said;
    until = keptUntil(operation, answer, retentionMs);
  }
}

export function checkIdempotency(history: History, retentionMs: number): Verdict {
  const verdict = new Verdict('idempotency');
  const leases = new Map<string, string>();
  for (const operation of history.operations) {
    if (operation.id === '' || UNNAMED.has(operation.kind)) continue;
    checkOperation(verdict, operation, retentionMs);
    for (const { code, subject } of operation.answers) {
      if (code !== 0 || subject === '' || operation.kind === 'cancel') continue;
      const owner = leases.get(subject) ?? operation.id;
      verdict.demand(owner === operation.id, () => `${owner} and ${operation.id} got one lease`);
      leases.set(subject, owner);
    }
  }
  return verdict;
}
