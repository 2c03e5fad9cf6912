/**
 * I6: one request id has one result, whoever is asked and how often.
 *
 * Judges histories. Every decided answer to one id says the same, up to the mark of a replay; only
 * what belongs to a session may be forgotten.
 * Used by: check-run.ts, the chaos command.
 */
import { type Answer, type History, isStored, type Operation } from '../history.js';
import { Verdict } from './verdict.js';

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

function checkOperation(verdict: Verdict, operation: Operation, retentionMs: number): void {
  const { id, kind, session } = operation;
  let result = '';
  let decidedAt = 0;
  for (const answer of operation.answers) {
    const { code } = answer;
    const mayForget = session !== '' || code !== FORGOTTEN;
    verdict.demand(mayForget, () => `${id} without a session is forgotten`);
    if (!isStored(answer)) continue;
    const isLoose = kind === 'release' || kind === 'close';
    const said = isLoose ? timelessOf(answer) : resultOf(answer);
    // A free-form id whose retention is over is a new request.
    const isForgotten = session === '' && answer.clusterTime >= decidedAt + retentionMs;
    const isSame = result === '' || said === result || isForgotten;
    verdict.demand(isSame, () => `${id} was ${result}, then ${said}`);
    result = said;
    decidedAt = answer.clusterTime;
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
