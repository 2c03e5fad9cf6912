/**
 * I1, I2, I4: one holder a lock, tokens rise over all locks, only the holder's lease ends.
 *
 * Judges committed events in order, and histories of clients: a token is told to one request alone,
 * and of two grants of which one was told before the other was asked for, the later has the larger
 * token, whatever their locks. Used by: check-run.ts, the chaos command.
 */
import type { History, Operation } from '../history.js';
import { finalAnswer } from '../history.js';
import type { SeenEvent } from '../ledger.js';
import { Verdict } from './verdict.js';

const GRANTED = 1;
const ENDED = 2;
const OK = 0;
const STALE_LEASE = 17;

export function checkExclusion(events: readonly SeenEvent[]): Verdict {
  const verdict = new Verdict('exclusion');
  const holders = new Map<string, number>();
  let lastToken = 0;
  for (const { kind, lock, token, revision } of events) {
    const holder = holders.get(lock) ?? 0;
    if (kind === GRANTED) {
      verdict.demand(holder === 0, () => `I1: ${lock} is granted as ${token}, held as ${holder}`);
      verdict.demand(token > lastToken, () => `I2: token ${token} after ${lastToken}`);
      verdict.demand(token === revision, () => `I2: token ${token} at revision ${revision}`);
      lastToken = Math.max(lastToken, token);
      holders.set(lock, token);
    } else if (kind === ENDED) {
      verdict.demand(holder === token, () => `I4: ${lock} ends ${token}, held as ${holder}`);
      holders.delete(lock);
    }
  }
  return verdict;
}

interface ToldGrant {
  readonly operation: Operation;
  readonly token: number;
  readonly toldUs: number;
}

/** Grants that were told, by their acquire; a replay tells the same token again. */
export function grantsOf(history: History): ToldGrant[] {
  const grants: ToldGrant[] = [];
  for (const operation of history.operations) {
    const answer = finalAnswer(operation);
    if (operation.kind !== 'acquire' || answer?.code !== OK) continue;
    grants.push({ operation, token: answer.token, toldUs: answer.atUs });
  }
  return grants;
}

/** I4: the lease of one principal is unknown to every other, whoever knows its id. */
export function checkTrespass(history: History): Verdict {
  const verdict = new Verdict('trespass');
  const owners = new Map<number, number | undefined>();
  for (const { operation, token } of grantsOf(history)) owners.set(token, operation.principal);
  for (const { kind, client, principal, aboutToken, answers } of history.operations) {
    if (!owners.has(aboutToken) || (kind !== 'renew' && kind !== 'release')) continue;
    if (owners.get(aboutToken) === principal) continue;
    for (const { code, cause } of answers) {
      const isKnown = code === OK || (code === STALE_LEASE && cause > 0);
      verdict.demand(!isKnown, () => `${kind} of ${aboutToken} by ${client}: ${code}, ${cause}`);
    }
  }
  return verdict;
}

export function checkTokens(history: History): Verdict {
  const verdict = new Verdict('tokens');
  const grants = grantsOf(history);
  const owners = new Map<number, string>();
  for (const { operation, token } of grants) {
    const owner = owners.get(token);
    verdict.demand(owner === undefined, () => `I2: ${token} for ${operation.id} and ${owner}`);
    owners.set(token, operation.id);
  }
  const asked = [...grants].sort((a, b) => a.operation.sentUs - b.operation.sentUs);
  const told = [...grants].sort((a, b) => a.toldUs - b.toldUs);
  let highest = 0;
  let at = 0;
  for (const { operation, token } of asked) {
    for (let grant = told[at]; grant !== undefined; grant = told[at]) {
      if (grant.toldUs >= operation.sentUs) break;
      highest = Math.max(highest, grant.token);
      at += 1;
    }
    verdict.demand(token > highest, () => `I2: ${token} was asked for after ${highest} was told`);
  }
  return verdict;
}
